// SPDX-License-Identifier: Apache-2.0
// How well a fit to some requests predicts the times of others: R2, and the residual of each
// category of requests.
#ifndef DSC_SIM_FIT_RESIDUALS_H
#define DSC_SIM_FIT_RESIDUALS_H

#include "traces/trace/trace.h"

#include <jansson.h>

// The fewest requests that are fitted and held out, and the fewest of a category of its own.
enum { DSC_HOLD_OUT_MIN = 20, DSC_CATEGORY_MIN = 20 };
enum { DSC_CATEGORIES_MAX = 64, DSC_CATEGORY_BYTES = 40 };

typedef struct dsc_fit_category {
    char name[DSC_CATEGORY_BYTES];
    double measured, predicted; // seconds of the requests that were held out
    int64_t requests;           // all
} dsc_fit_category;

typedef struct dsc_fit_residuals {
    dsc_fit_category category[DSC_CATEGORIES_MAX]; // the last one is of all others
    int categories;
    double requests, sum, squares, rest; // of the times held out; rest: squared residuals
} dsc_fit_residuals;                     // zero-initialize

// The category of a request, the metadata's field "category". The caller counts its requests.
int dsc_fit_category_of(dsc_fit_residuals *r, const json_t *metadata);
// Adds a request that was held out, after all requests were counted.
void dsc_fit_hold_out(dsc_fit_residuals *r, int category, double measured, double predicted);
// Appends "; on the held-out half R2 0.9990, residuals qa +1.0 % ..." to a text, the worst category
// first. Categories of few requests are one; so are requests without a category.
void dsc_fit_describe(const dsc_fit_residuals *r, char *text, size_t size);

#endif

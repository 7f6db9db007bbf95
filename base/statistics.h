// SPDX-License-Identifier: GPL-3.0-or-later
// Summary statistics over requests (GSL).
#ifndef DSC_BASE_STATISTICS_H
#define DSC_BASE_STATISTICS_H

#include "base/memory.h"

typedef struct dsc_summary {
    double mean, min, median, p90, max; // NaN when there is no value
} dsc_summary;

// Of x[0, n); x is sorted in place.
DSC_API dsc_summary dsc_summarise(double *x, size_t n);

// Coefficients of y = sum over c of coefficient[c] x[.][c], x [n][columns], against outliers:
// iteratively reweighted least squares, Huber's weights first and then Tukey's biweight (tuning
// constants 1.345 and 4.685: 95 % efficient if residuals are Gaussian). *scale, of a residual:
// 1.4826 x the median of their absolute values. n >= columns >= 1, finite numbers. DSC_ENOMEM.
DSC_API int dsc_fit_robust(const double *x, size_t columns, const double *y, size_t n,
                           double *coefficient, double *scale, dsc_error *err);

typedef struct dsc_line {
    double intercept, slope, scale;
} dsc_line;

// The same for y = intercept + slope x, neither below 0: where the best slope would be, or all x
// are equal, the line is level; where the intercept would be, it goes through the origin.
DSC_API int dsc_fit_line(const double *x, const double *y, size_t n, dsc_line *out, dsc_error *err);
DSC_API int dsc_fit_line_through_origin(const double *x, const double *y, size_t n, dsc_line *out,
                                        dsc_error *err);

// How many standard errors, estimated from n requests, chance exceeds in any of `comparisons` as
// seldom as a normal variable exceeds z > 0 in one: Student's t with n - 1 degrees of freedom,
// Bonferroni's bound. +infinity for n < 2; comparisons >= 1.
DSC_API double dsc_error_limit(double z, size_t n, size_t comparisons);

// Confidence of a ratio of totals, sum(top) / sum(bottom), over requests: the Poisson bootstrap
// (Hanley & MacGibbon 2006; Chamandy et al. 2012). In each resample every request has a Poisson(1)
// weight keyed by (seed, request, resample), so one pass with constant memory does all resamples,
// and integer sums make the result independent of the order of requests.
typedef struct dsc_bootstrap {
    int64_t *top, *bottom; // [resamples]
    int resamples;         // a multiple of 4
    int64_t requests;
    uint64_t seed;
} dsc_bootstrap;

DSC_API int dsc_bootstrap_init(dsc_bootstrap *b, int resamples, uint64_t seed, dsc_error *err);
DSC_API void dsc_bootstrap_fini(dsc_bootstrap *b);
DSC_API void dsc_bootstrap_add(dsc_bootstrap *b, int64_t request, int64_t top, int64_t bottom);
// The 95 % percentile interval; NaN when fewer than 2 requests were added.
DSC_API int dsc_bootstrap_interval(const dsc_bootstrap *b, double *lo, double *hi, dsc_error *err);

// What it is made of: a Poisson(1) weight from 32 uniform bits; the 2.5 % and 97.5 % quantiles of
// x[0, n), which is sorted in place (NaN when n is 0).
DSC_API int dsc_poisson_weight(uint32_t bits);
DSC_API void dsc_percentile_interval(double *x, size_t n, double *lo, double *hi);

#endif

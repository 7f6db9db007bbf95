// SPDX-License-Identifier: Apache-2.0
// Compares a prediction with a measurement of the same requests: the difference and its standard
// error.
//
// Both are ratios of sums over requests (output tokens / target calls). Requests are resampled with
// the Poisson weights of base/statistics.h, the same for both. Variation among requests is in both
// ratios and cancels. Random numbers (a sampled output, the acceptance of drafts) affect only one
// of them and contribute to the error. Without random numbers all resamples agree: the standard
// error is 0, and the difference must be 0 as well.
#ifndef DSC_SIM_COMPARE_H
#define DSC_SIM_COMPARE_H

#include "sim/tune/bootstrap.h"

#include <stdbool.h>

typedef struct dsc_comparison {
    double predicted, measured;
    double error; // predicted - measured
    double se;    // of the error, over requests; NaN with fewer than 2
    double z;     // error / se; without se 0 if there is no error, else +-infinity
} dsc_comparison;

// Relative errors below this bound count as 0, because expectations are sums of doubles.
#define DSC_COMPARE_EQUAL 1e-9
bool dsc_compare_equal(double predicted, double measured);

// Compares the ratios sum(top) / sum(bottom) of how->request. how->threads is not used. DSC_ENOMEM.
int dsc_compare_ratios(const dsc_resampling *how, const dsc_ratio *predicted,
                       const dsc_ratio *measured, dsc_comparison *out, dsc_error *err);

// Compares two distributions of an integer, given as counts [request][length] of its values. The
// error is the largest difference of the cumulative shares (Kolmogorov's distance, >= 0; predicted
// = the error, measured = 0). Its se is a root mean square over resamples: of the largest deviation
// of that difference from its value over all requests. If one value can differ, z is that of a
// ratio; if several can, z exceeds 3 by chance less often than a ratio's. DSC_ENOMEM.
int dsc_compare_dists(const dsc_resampling *how, const double *predicted, const double *measured,
                      size_t length, dsc_comparison *out, dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// A prediction beside a measurement of the same requests: the difference, and how large it may be
// by chance.
//
// Both are ratios of sums over requests (output tokens / target calls). Requests are resampled,
// with Poisson weights as in base/statistics.h, the same ones for both: what a request is like is
// in both and cancels, what was drawn (an output that was sampled twice, which drafts were
// accepted) is in one of them and counts. Where nothing was drawn, both agree and so does every
// resample: the standard error is 0, and so must the difference be.
#ifndef DSC_SIM_COMPARE_H
#define DSC_SIM_COMPARE_H

#include "sim/tune/bootstrap.h"

#include <stdbool.h>

typedef struct dsc_comparison {
    double predicted, measured;
    double error; // predicted - measured
    double se;    // of the error, over requests; NaN with fewer than 2
    double z;     // error / se; 0 for no error without se, and +-infinity for one
} dsc_comparison;

// Errors below this share of the values are none: expectations are sums of doubles.
#define DSC_COMPARE_EQUAL 1e-9
DSC_API bool dsc_compare_equal(double predicted, double measured);

// The ratios sum(top) / sum(bottom) of how->request. how->threads is not used. DSC_ENOMEM.
DSC_API int dsc_compare_ratios(const dsc_resampling *how, const dsc_ratio *predicted,
                               const dsc_ratio *measured, dsc_comparison *out, dsc_error *err);

// Two distributions of an integer: counts [request][length] of its values. The error is the largest
// difference of their cumulated shares (Kolmogorov's distance, >= 0; predicted = the error,
// measured = 0). Its se is the root mean square that chance alone gives it: in each resample, the
// largest deviation of that difference from what it is over all requests. With one value that can
// differ z is that of a ratio; with several, chance exceeds z = 3 less often than there.
// DSC_ENOMEM.
DSC_API int dsc_compare_dists(const dsc_resampling *how, const double *predicted,
                              const double *measured, size_t length, dsc_comparison *out,
                              dsc_error *err);

// The median of x[0, n), which is sorted in place; of an even number the mean of the middle two;
// NaN of none.
DSC_API double dsc_median(double *x, size_t n);

#endif

// SPDX-License-Identifier: GPL-3.0-or-later
// Statistics over requests: summaries, robust lines, error limits and the bootstrap. The only file
// that uses GSL.
#ifndef DSC_BASE_STATISTICS_H
#define DSC_BASE_STATISTICS_H

#include "base/memory.h"

typedef struct dsc_summary {
    double mean, min, median, p90, max; // NaN when there is no value
} dsc_summary;

// Summarizes x[0, n). Sorts x in place.
dsc_summary dsc_summarize(double *x, size_t n);

// Robust least squares: coefficients of y = sum over c of coefficient[c] x[.][c], x [n][columns],
// by iteratively reweighted least squares with Huber's weights first and Tukey's biweight next
// (tuning constants 1.345 and 4.685: 95 % efficient if residuals are Gaussian). *scale is the scale
// of a residual, 1.4826 x the median of the residuals' absolute values. n >= columns >= 1; all
// numbers are finite. DSC_ENOMEM.
int dsc_fit_robust(const double *x, size_t columns, const double *y, size_t n, double *coefficient,
                   double *scale, dsc_error *err);

typedef struct dsc_line {
    double intercept, slope, scale;
} dsc_line;

// dsc_fit_robust for y = intercept + slope x with both >= 0. If the best slope is negative, or all
// x are equal, the line is level; if the best intercept is negative, the line goes through the
// origin.
int dsc_fit_line(const double *x, const double *y, size_t n, dsc_line *out, dsc_error *err);
int dsc_fit_line_through_origin(const double *x, const double *y, size_t n, dsc_line *out,
                                dsc_error *err);

// Returns the limit, in standard errors estimated from n requests, that chance exceeds in any of
// `comparisons` comparisons as rarely as a normal variable exceeds z > 0 in one. It uses Student's
// t with n - 1 degrees of freedom and the Bonferroni bound. +infinity for n < 2; comparisons >= 1.
double dsc_error_limit(double z, size_t n, size_t comparisons);

// The quantile q in (0, 1) of the standard normal distribution.
double dsc_normal_quantile(double q);

// Confidence interval of a ratio of totals, sum(top) / sum(bottom), over requests: the Poisson
// bootstrap (Hanley & MacGibbon 2006; Chamandy et al. 2012). In each resample every request has a
// Poisson(1) weight keyed by (seed, request, resample), so one pass with constant memory computes
// all resamples, and integer sums make the result independent of the order of requests.
typedef struct dsc_bootstrap {
    int64_t *top, *bottom; // [resamples]
    int resamples;         // a multiple of 4
    int64_t requests;
    uint64_t seed;
} dsc_bootstrap;

int dsc_bootstrap_init(dsc_bootstrap *b, int resamples, uint64_t seed, dsc_error *err);
void dsc_bootstrap_fini(dsc_bootstrap *b);
void dsc_bootstrap_add(dsc_bootstrap *b, int64_t request, int64_t top, int64_t bottom);
// The 95 % percentile interval; NaN when fewer than 2 requests were added.
int dsc_bootstrap_interval(const dsc_bootstrap *b, double *lo, double *hi, dsc_error *err);

// Parts of the bootstrap: a Poisson(1) weight from 32 uniform bits; the 2.5 % and 97.5 % quantiles
// of x[0, n), which sorts x in place (NaN when n is 0).
int dsc_poisson_weight(uint32_t bits);
void dsc_percentile_interval(double *x, size_t n, double *lo, double *hi);

#endif

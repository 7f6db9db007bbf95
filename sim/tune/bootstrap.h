// SPDX-License-Identifier: Apache-2.0
// Confidence intervals of ratios of sums over requests, and of the quotient of two such ratios: the
// Poisson bootstrap of base/statistics.h for many rows on the same resamples.
#ifndef DSC_SIM_BOOTSTRAP_H
#define DSC_SIM_BOOTSTRAP_H

#include "base/memory.h"

#include <stdint.h>

// sum(top) / sum(bottom) over requests.
typedef struct dsc_ratio {
    const double *top, *bottom; // [request]
} dsc_ratio;

typedef struct dsc_ratio_interval {
    double low, high;                   // 95 % CI of the ratio
    double relative_low, relative_high; // 95 % CI of the ratio / the reference's ratio
} dsc_ratio_interval;                   // NaN when fewer than 2 requests

typedef struct dsc_resampling {
    const int64_t *request; // [requests] their indices, ascending; also the keys of their weights
    size_t requests;
    int resamples; // a multiple of 4, >= 4
    uint64_t seed;
    int threads; // >= 1; the result does not depend on it
} dsc_resampling;

// Percentile intervals of row[0, rows), each also relative to `reference` in the same resamples
// (variation that both rows share cancels; equal rows give 1 exactly). Needs memory for threads x
// 64 rows.
int dsc_bootstrap_ratios(const dsc_resampling *how, const dsc_ratio *row, size_t rows,
                         const dsc_ratio *reference, dsc_ratio_interval *out, dsc_error *err);

// The ratio itself, of requests that count weight[i] times (NULL: once); NaN without a denominator.
double dsc_ratio_value(const dsc_ratio *row, const int64_t *request, size_t requests,
                       const double *weight);

#endif

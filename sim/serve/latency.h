// SPDX-License-Identifier: Apache-2.0
// Distributions of times in constant memory: a histogram whose bins are 1/1024 of a power of two
// wide, so that a quantile is known to 0.1 %. Sums are exact to rounding.
#ifndef DSC_SIM_LATENCY_H
#define DSC_SIM_LATENCY_H

#include "base/memory.h"

typedef struct dsc_latency {
    int64_t *bin; // [DSC_LATENCY_BINS]
    int64_t count;
    double sum, least, most; // seconds; `least` and `most` only when count > 0
} dsc_latency;

int dsc_latency_init(dsc_latency *x, dsc_error *err); // DSC_ENOMEM
void dsc_latency_fini(dsc_latency *x);

// Adds `weight` >= 1 times of `seconds` >= 0 each. Times below 2^-30 s count as that in quantiles,
// times of 2^30 s and more as the longest.
void dsc_latency_add(dsc_latency *x, double seconds, int64_t weight);

double dsc_latency_mean(const dsc_latency *x); // NaN when there is none
// The smallest time that at least a share q in (0, 1] of all times do not exceed, to 0.1 %; within
// [least, most]. NaN when there is none.
double dsc_latency_quantile(const dsc_latency *x, double q);
// The number of times that do not exceed `seconds`, which is rounded as times are.
int64_t dsc_latency_within(const dsc_latency *x, double seconds);

#endif

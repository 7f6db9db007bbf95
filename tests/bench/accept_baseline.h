// SPDX-License-Identifier: Apache-2.0
// The baselines of bench_accept: reading both rows, and the computation by a radix sort.
#ifndef DSC_TESTS_BENCH_ACCEPT_BASELINE_H
#define DSC_TESTS_BENCH_ACCEPT_BASELINE_H

#include "theory/acceptance.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The sum of a row, as fast as memory gives it.
float baseline_read(const float *x, size_t n);

typedef struct baseline_pair {
    uint32_t key, token;
} baseline_pair;

typedef struct baseline_work {
    size_t vocab;
    baseline_pair *pair[2];         // [vocab]
    double *ratio, *draft, *target; // [vocab + 1] sorted; masses of the tokens before
    dsc_rule_acceptance out[DSC_MAX_DRAFTS];
} baseline_work;

int baseline_init(baseline_work *w, size_t vocab, dsc_error *err);
void baseline_fini(baseline_work *w);

// Argsort by target/draft, then prefix sums of both masses in that order.
void baseline_sort(baseline_work *w, const float *draft, const float *target, size_t vocab);
// All quantities for k = 1..kmax from the prefix sums.
void baseline_quantities(baseline_work *w, int kmax);

#endif

// SPDX-License-Identifier: Apache-2.0
// Statistics of a sequence of accepted counts: block efficiency, conditional acceptance rate at
// each depth, and the correlation between successive steps.
#ifndef DSC_TRACES_ACCEPT_TALLY_H
#define DSC_TRACES_ACCEPT_TALLY_H

#include "base/memory.h"

#include <stdbool.h>

// Counts only, so the order of the requests does not matter. {0} is empty.
typedef struct dsc_accept_tally {
    int64_t steps, accepted; // accepted tokens of all steps, bonus excluded
    int64_t *stopped;        // [depth] steps that accepted i tokens and rejected the next one
    int64_t *whole;          // [depth] steps that accepted i tokens, all that were drafted
    size_t depth, stopped_capacity, whole_capacity;
    bool lengths_unknown; // the draft length of some step is unknown
    // Pairs of successive steps of a request, which accepted x, then y tokens.
    int64_t pairs, x, y;
    double xx, yy, xy; // sums of products: whole numbers, exact below 2^53
    int32_t previous;  // tokens accepted by the previous step, or -1
} dsc_accept_tally;

// Begins a request: the next step forms no pair with the previous one.
DSC_API void dsc_accept_tally_begin(dsc_accept_tally *t);
// Adds a step that accepted `accepted` of `drafted` tokens, 0 <= accepted <= drafted <= 65535;
// drafted < 0: unknown. The only error is DSC_ENOMEM.
DSC_API int dsc_accept_tally_add(dsc_accept_tally *t, int32_t accepted, int32_t drafted,
                                 dsc_error *err);
DSC_API void dsc_accept_tally_fini(dsc_accept_tally *t);

// Tokens per step, the bonus included; NaN without steps.
DSC_API double dsc_accept_tally_block_efficiency(const dsc_accept_tally *t);
// The conditional acceptance rate at depth i >= 1. *reached is the number of steps that accepted
// i - 1 tokens and drafted an i-th; the rate is the share of these that accepted it. This is the
// Kaplan-Meier estimate: a step that accepted its whole draft is censored there and not counted as
// a rejection. EAGLE's n-alpha is the rate at depth n + 1. Where draft lengths are unknown, every
// draft is taken to be as long as the largest accepted count, so the rates are lower bounds when
// drafts were shorter. NaN when no step reached depth i.
DSC_API double dsc_accept_tally_conditional_rate(const dsc_accept_tally *t, int32_t i,
                                                 int64_t *reached);
// The largest depth that a step reached, or 0.
DSC_API int32_t dsc_accept_tally_depth(const dsc_accept_tally *t);
// The lag-1 autocorrelation of the accepted counts: Pearson's coefficient over all pairs of
// successive steps of a request. NaN when one side does not vary.
DSC_API double dsc_accept_tally_autocorrelation(const dsc_accept_tally *t);

#endif

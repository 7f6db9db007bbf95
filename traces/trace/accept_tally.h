// SPDX-License-Identifier: Apache-2.0
// What a sequence of accepted counts says about a drafter: block efficiency, conditional acceptance
// rate at each depth, dependence of one step on the one before.
#ifndef DSC_TRACES_ACCEPT_TALLY_H
#define DSC_TRACES_ACCEPT_TALLY_H

#include "base/memory.h"

#include <stdbool.h>

// Counts only, so the order of the requests does not matter. {0} is empty.
typedef struct dsc_accept_tally {
    int64_t steps, accepted; // accepted drafts of all steps, bonus excluded
    int64_t *stopped;        // [depth] steps that accepted i and whose next draft was rejected
    int64_t *whole;          // [depth] steps that accepted i because no more were drafted
    size_t depth, stopped_capacity, whole_capacity;
    bool lengths_unknown; // of some step
    // Pairs of steps of one request, one after the other: numbers accepted x, then y.
    int64_t pairs, x, y;
    double xx, yy, xy; // sums of products: whole numbers, exact below 2^53
    int32_t previous;  // accepted by the step before, or -1
} dsc_accept_tally;

// The next step belongs to another request.
DSC_API void dsc_accept_tally_begin(dsc_accept_tally *t);
// A step that accepted `accepted` of `drafted` drafts, 0 <= accepted <= drafted <= 65535;
// drafted < 0: unknown. Only DSC_ENOMEM.
DSC_API int dsc_accept_tally_add(dsc_accept_tally *t, int32_t accepted, int32_t drafted,
                                 dsc_error *err);
DSC_API void dsc_accept_tally_fini(dsc_accept_tally *t);

// Tokens per step, the bonus included; NaN without steps.
DSC_API double dsc_accept_tally_block_efficiency(const dsc_accept_tally *t);
// The conditional acceptance rate of acceptance at depth i >= 1: of the steps that accepted i - 1
// drafts and drafted an i-th, *reached, the share that accepted it (the Kaplan-Meier estimate: a
// step whose drafts were all accepted is censored there, not counted as a rejection; EAGLE's
// n-alpha is depth n + 1). Where lengths are unknown, the largest accepted count is taken for the
// length of every draft, so conditional acceptance rates below it are lower bounds when drafts were
// shorter. NaN where none reached it.
DSC_API double dsc_accept_tally_conditional_rate(const dsc_accept_tally *t, int32_t i,
                                                 int64_t *reached);
// The last depth that was reached; 0: none.
DSC_API int32_t dsc_accept_tally_depth(const dsc_accept_tally *t);
// Lag-1 autocorrelation of the accepted counts: Pearson's coefficient over all pairs of successive
// steps of a request. NaN where one side never varies.
DSC_API double dsc_accept_tally_autocorrelation(const dsc_accept_tally *t);

#endif

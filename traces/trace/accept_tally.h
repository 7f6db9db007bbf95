// SPDX-License-Identifier: Apache-2.0
// Recorded steps of a drafter, counted for the metrics of base/metrics.h; and the dependence of one
// step on the one before.
#ifndef DSC_TRACES_ACCEPT_TALLY_H
#define DSC_TRACES_ACCEPT_TALLY_H

#include "base/metrics.h"

#include <stdbool.h>

// Counts only, so the order of the requests does not matter. {0} is empty.
typedef struct dsc_accept_tally {
    int64_t steps, accepted; // accepted draft tokens of all steps, bonus excluded
    int64_t drafts, drafted; // steps with a draft, and its tokens as far as they are known
    int64_t *histogram;      // [depth] steps that accepted i
    int64_t *whole;          // [depth] steps that accepted i because no more were drafted
    int64_t *lengths;        // [longest] steps that drafted i, where it is known
    size_t depth, longest, histogram_capacity, whole_capacity, lengths_capacity;
    bool lengths_unknown; // of some step
    // Pairs of successive steps of one request: the number accepted by the first, x, and by the
    // second, y.
    int64_t pairs, x, y;
    double xx, yy, xy; // sums of products: whole numbers, exact below 2^53
    int32_t previous;  // tokens accepted by the previous step, or -1
} dsc_accept_tally;

// Begins a request: the next step forms no pair with the previous one.
void dsc_accept_tally_begin(dsc_accept_tally *t);
// A step that accepted `accepted` of `drafted` draft tokens, 0 <= accepted <= drafted <= 65535;
// drafted < 0: unknown. Only DSC_ENOMEM.
int dsc_accept_tally_add(dsc_accept_tally *t, int32_t accepted, int32_t drafted, dsc_error *err);
void dsc_accept_tally_fini(dsc_accept_tally *t);

// Returns the counts from which the metrics are computed; the lists remain the tally's. The output
// tokens are those that the steps wrote, a bonus token each, and the target calls are the steps. A
// step whose draft length is unknown counts as one with a draft.
dsc_metric_counts dsc_accept_tally_counts(const dsc_accept_tally *t);
// Lag-1 autocorrelation of the accepted counts: Pearson's coefficient over all pairs of successive
// steps of a request. NaN where one side never varies.
double dsc_accept_tally_autocorrelation(const dsc_accept_tally *t);

#endif

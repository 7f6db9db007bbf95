// SPDX-License-Identifier: Apache-2.0
// What every method is counted by. Integers only, so that sums do not depend on their order; or
// expectations, which are summed in the order of requests.
#ifndef DSC_SIM_COUNTS_H
#define DSC_SIM_COUNTS_H

#include "base/memory.h"

#include <stddef.h>
#include <stdint.h>

enum { DSC_MAX_EXTRA = 4 };

typedef struct dsc_expected {
    double target_calls, num_drafts, num_draft_tokens, num_accepted_tokens;
    double draft_calls, draft_call_tokens, target_call_tokens, target_call_context;
    double *histogram; // [histogram_length] of dsc_counts
} dsc_expected;

typedef struct dsc_counts {
    // Totals: integers up to the first list (DSC_COUNTS_TOTALS). What is added here is in the files
    // of shards without further ado.
    int64_t requests;
    int64_t output_tokens;       // bonus tokens included
    int64_t target_calls;        // forward passes of the target, the first (prefill) included
    int64_t num_drafts;          // drafts started, empty ones included (LLMA: triggers)
    int64_t num_draft_tokens;    // tokens proposed
    int64_t num_accepted_tokens; // of those, accepted; bonus excluded
    int64_t draft_calls;         // forward passes of the draft model
    int64_t draft_call_tokens;   // tokens in them
    int64_t target_call_tokens;  // tokens in the target's passes, the last committed one included
    // Tokens of prompt and output that stand before a draft: summed over the target's passes, and
    // over as many passes as there are output tokens, one for each (no speculation).
    int64_t target_call_context, output_context;
    int64_t extra[DSC_MAX_EXTRA]; // counters of the method (dsc_drafter_type.extra)
    int64_t *histogram;           // [histogram_length] target calls that accepted m draft tokens
    int64_t histogram_length;     // most draft tokens a call can accept, + 1
    int64_t *width;               // [width_length] target calls on m + 1 tokens; NULL: not counted
    int64_t width_length;
    // Of a method that drafts while the target verifies: steps with c forward passes of the draft
    // model beside one of the target on w + 1 tokens, at [c * parallel_length + w]; NULL otherwise.
    int64_t *parallel_steps; // [parallel_length][parallel_length]
    int64_t parallel_length;
    // Exact expectations of everything but requests and output_tokens, whose other counts are 0; or
    // NULL: it was counted. The caller's storage.
    dsc_expected *expected;
} dsc_counts;
enum { DSC_COUNTS_TOTALS = offsetof(dsc_counts, histogram) / sizeof(int64_t) };

// Zero counts without widths, with room for 0..most accepted tokens a call; `histogram` is the
// caller's storage.
static inline dsc_counts dsc_counts_zero(int64_t *histogram, int64_t most)
{
    for (int64_t m = 0; m <= most; m++)
        histogram[m] = 0;
    return (dsc_counts){.histogram = histogram, .histogram_length = most + 1};
}

DSC_API void dsc_counts_clear(dsc_counts *c);                      // zero, the same room
DSC_API void dsc_counts_add(dsc_counts *sum, const dsc_counts *x); // equal histogram lengths

// The counts or the expectations, whichever there are; histogram is NULL when it was counted.
DSC_API dsc_expected dsc_counts_real(const dsc_counts *c);

// accepted / draft tokens; NaN when nothing was drafted.
DSC_API double dsc_acceptance_rate(const dsc_counts *c);
// Output tokens per target call, bonus included; NaN when there was no call.
DSC_API double dsc_block_efficiency(const dsc_counts *c);

// What the block efficiency would be if every draft token were accepted with the same chance,
// whatever became of those before it: 1 + dsc_iid_accepted(rate, limit) of theory/block.h with
// drafts of `limit` tokens. The rate is that of the calls counted, accepted tokens / (accepted
// tokens + calls that did not accept `limit`): a call that accepts m < limit tokens refuses one,
// also where there was none to refuse. NaN when there was no call.
DSC_API double dsc_iid_block_efficiency(const dsc_counts *c, int64_t limit);

#endif

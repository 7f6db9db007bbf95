// SPDX-License-Identifier: Apache-2.0
// The counts of a run, from which every metric follows. They are integers, so sums do not depend on
// their order, or exact expectations (doubles), which are summed in the order of the requests.
#ifndef DSC_SIM_COUNTS_H
#define DSC_SIM_COUNTS_H

#include "base/memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DSC_MAX_EXTRA = 4 }; // counters of one method

// Expected values of the counts with the same names in dsc_counts.
typedef struct dsc_expected {
    double target_calls, num_drafts, num_draft_tokens, num_accepted_tokens;
    double draft_calls, draft_call_tokens, target_call_tokens, target_call_context;
    double *histogram; // [histogram_length] of dsc_counts
} dsc_expected;

typedef struct dsc_counts {
    // Totals: the integers before `histogram` (DSC_COUNTS_TOTALS of them). Shard files store all of
    // them, so a total that is added here needs no other change there.
    int64_t requests;
    int64_t output_tokens;       // bonus tokens included
    int64_t target_calls;        // forward passes of the target, the prefill included
    int64_t num_drafts;          // drafts started, empty ones included (LLMA: triggers)
    int64_t num_draft_tokens;    // tokens proposed
    int64_t num_accepted_tokens; // proposed tokens that were accepted; bonus excluded
    int64_t draft_calls;         // forward passes of the draft model
    int64_t draft_call_tokens;   // tokens in these passes
    int64_t target_call_tokens;  // tokens in the target's passes, the last committed one included
    // Number of tokens of prompt and output before a draft: summed over the target's passes, and
    // summed over one pass per output token (the run without speculation).
    int64_t target_call_context, output_context;
    int64_t extra[DSC_MAX_EXTRA]; // counters of the method (dsc_drafter_type.extra)
    int64_t *histogram;           // [histogram_length] target calls that accepted m draft tokens
    int64_t histogram_length;     // 1 + the most draft tokens that a call can accept
    int64_t *width;               // [width_length] target calls on m + 1 tokens; NULL: not counted
    int64_t width_length;
    // For a method that drafts while the target verifies: the number of steps with c forward passes
    // of the draft model at the same time as one of the target on w + 1 tokens, at
    // [c * parallel_length + w]. NULL for other methods.
    int64_t *parallel_steps; // [parallel_length][parallel_length]
    int64_t parallel_length;
    // NULL: the run was counted. Otherwise the exact expectations; then requests, output_tokens and
    // output_context are counts and all others are 0. The memory belongs to the caller.
    dsc_expected *expected;
} dsc_counts;
enum { DSC_COUNTS_TOTALS = offsetof(dsc_counts, histogram) / sizeof(int64_t) };

// Counts of zero, without widths, for calls that accept 0 to `most` tokens. `histogram` has
// most + 1 elements and stays the caller's.
DSC_API dsc_counts dsc_counts_zero(int64_t *histogram, int64_t most);
// Sets all counts to zero and keeps their memory.
DSC_API void dsc_counts_clear(dsc_counts *c);
// Adds *x to *sum; both have the same lengths.
DSC_API void dsc_counts_add(dsc_counts *sum, const dsc_counts *x);

// The expectations, or the counts as doubles with `histogram` NULL.
DSC_API dsc_expected dsc_counts_real(const dsc_counts *c);

// Draft acceptance rate: accepted / drafted tokens, in [0, 1]. NaN when nothing was drafted.
DSC_API double dsc_acceptance_rate(const dsc_counts *c);
// Block efficiency (SpecTr, Sun et al. 2023): output tokens per target call, the prefill and bonus
// tokens included. NaN when there was no call.
DSC_API double dsc_block_efficiency(const dsc_counts *c);

// The block efficiency if every draft token were accepted with one probability a, independently:
// 1 + dsc_iid_accepted(a, limit) of theory/block.h for drafts of `limit` tokens. a is estimated
// from all calls: accepted tokens / (accepted tokens + calls that accepted fewer than `limit`). A
// call that had no draft counts as a rejection. NaN when there was no call.
DSC_API double dsc_iid_block_efficiency(const dsc_counts *c, int64_t limit);

// One step of the speculative loop (dsc_run_options.step).
typedef struct dsc_step_record {
    int64_t request, step;                  // the step's number in the request, from 0
    int64_t draft_calls, draft_call_tokens; // forward passes of the draft model, tokens in them
    int64_t target_call_tokens;             // tokens in the target's forward pass
    int64_t context;                        // tokens of prompt and output before the step
    int64_t draft_tokens, accepted_tokens, emitted_tokens;
    bool parallel; // the draft model ran at the same time as the target
} dsc_step_record;

#ifdef __cplusplus
}
#endif

#endif

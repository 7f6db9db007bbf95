// SPDX-License-Identifier: Apache-2.0
// The counts of a run, the same for every method. They are integers, so that sums do not depend on
// their order, or expectations, which are summed in the order of requests. Where an argument is
// NULL or outside its range, a real number is NaN, other results are zero, and nothing is written.
#ifndef DSC_SIM_COUNTS_H
#define DSC_SIM_COUNTS_H

#include "base/metrics.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DSC_MAX_EXTRA = 4 }; // counters of one method

// Expected values of the counts with the same names in dsc_counts, totals first and in its order.
typedef struct dsc_expected {
    double target_calls, num_drafts_started, num_drafts, num_draft_tokens, num_accepted_tokens;
    double draft_calls, draft_call_tokens, target_call_tokens, target_call_context;
    double *histogram; // [histogram_length] of dsc_counts
    double *lengths;   // [lengths_length] NULL: not summed
    double *whole;     // [histogram_length] NULL with `lengths`
} dsc_expected;
enum { DSC_EXPECTED_TOTALS = offsetof(dsc_expected, histogram) / sizeof(double) };

typedef struct dsc_counts {
    // Totals: integers up to the first list (DSC_COUNTS_TOTALS). A total that is added here is in
    // the tables of shards without further work.
    int64_t requests;
    int64_t output_tokens;       // bonus tokens included
    int64_t target_calls;        // forward passes of the target, the first (prefill) included
    int64_t num_drafts_started;  // times the method began a draft, also if it came out empty
                                 // (LLMA: triggers) or is verified later (PEARL: windows)
    int64_t num_drafts;          // target calls that verified at least one draft token
    int64_t num_draft_tokens;    // draft tokens that were verified
    int64_t num_accepted_tokens; // draft tokens that were accepted; bonus excluded
    int64_t draft_calls;         // forward passes of the draft model
    int64_t draft_call_tokens;   // tokens in these passes
    int64_t target_call_tokens;  // tokens in the target's passes, the last committed one included
    // Tokens of prompt and output before a pass, summed over the target's passes; and summed over
    // one pass for each output token, as without speculation.
    int64_t target_call_context, output_context;
    int64_t extra[DSC_MAX_EXTRA]; // counters of the method (dsc_drafter_type.extra)
    int64_t *histogram;           // [histogram_length] target calls that accepted m draft tokens
    int64_t histogram_length;     // most draft tokens a call can accept, + 1
    int64_t *lengths;             // [lengths_length] target calls with a draft of m tokens in
                                  // sequence (dsc_draft_length), 0: without a draft; the last
                                  // element also counts longer drafts. NULL: not counted
    int64_t lengths_length;       // dsc_lengths_count
    int64_t *whole;               // [histogram_length] target calls that accepted m tokens and had
                                  // no more; NULL with `lengths`
    int64_t *width;               // [width_length] target calls on m + 1 tokens; NULL: not counted
    int64_t width_length;
    // For a method that drafts while the target verifies: steps with c forward passes of the draft
    // model and one of the target on w + 1 tokens, at [c * parallel_length + w]; NULL otherwise.
    int64_t *parallel_steps; // [parallel_length][parallel_length]
    int64_t parallel_length;
    // Exact expectations of all counts but requests and output_tokens, whose integers are then 0;
    // NULL if the run was counted. The caller's storage.
    dsc_expected *expected;
} dsc_counts;
enum { DSC_COUNTS_TOTALS = offsetof(dsc_counts, histogram) / sizeof(int64_t) };

// The elements of dsc_counts.lengths for drafts of up to `limit` tokens. Drafts longer than
// DSC_LONGEST_LENGTH tokens are counted as drafts of that length.
enum { DSC_LONGEST_LENGTH = 4096 };
static inline int64_t dsc_lengths_count(int64_t limit)
{
    return 1 + (limit < DSC_LONGEST_LENGTH ? limit : (int64_t)DSC_LONGEST_LENGTH);
}

// The sizes of all lists, each at least 0, and counts with their lists in one storage of
// dsc_counts_elements() zeros, histogram first.
typedef struct dsc_counts_room {
    int64_t most;     // draft tokens that a call can accept, at most INT32_MAX
    int64_t limit;    // draft tokens in sequence
    int64_t width;    // of dsc_counts.width, at most INT32_MAX; 0: none
    int64_t parallel; // parallel_length, at most INT32_MAX; 0: none
} dsc_counts_room;
DSC_API int64_t dsc_counts_elements(const dsc_counts_room *room);
DSC_API dsc_counts dsc_counts_in(int64_t *storage, const dsc_counts_room *room);

DSC_API void dsc_counts_clear(dsc_counts *c); // zero, the same room
// Adds the totals and the lists that both have. Does nothing where a list of x is longer than that
// of *sum.
DSC_API void dsc_counts_add(dsc_counts *sum, const dsc_counts *x);

// The counts or the expectations as real numbers; the lists are NULL if the run was counted.
DSC_API dsc_expected dsc_counts_real(const dsc_counts *c);

// The counts that the metrics of base/metrics.h are computed from. The lists remain those of *c.
DSC_API dsc_metric_counts dsc_counts_metrics(const dsc_counts *c);

// The metric of that name; NaN when there was no call.
DSC_API double dsc_block_efficiency(const dsc_counts *c);

// The block efficiency with i.i.d. acceptance and drafts of `limit` tokens in every call:
// 1 + dsc_iid_accepted(rate, limit) of theory/block.h. The rate is the maximum-likelihood estimate
// accepted tokens / (accepted tokens + calls that did not accept `limit`): a call that accepts
// m < limit tokens counts as one rejection, also where its draft was shorter. It differs from
// alpha_iid, which takes the draft lengths as they were. NaN when there was no call.
DSC_API double dsc_iid_block_efficiency(const dsc_counts *c, int64_t limit);

// One step of the speculative loop (dsc_run_options.step).
typedef struct dsc_step_record {
    int64_t request, step;                  // the step's number in the request, from 0
    int64_t draft_calls, draft_call_tokens; // forward passes of the draft model, tokens in them
    int64_t target_call_tokens;             // tokens in the target's forward pass
    int64_t context;                        // tokens of prompt and output before the step
    int64_t draft_tokens, accepted_tokens, emitted_tokens;
    int64_t draft_length; // draft tokens in sequence (dsc_draft_length)
    bool parallel;        // the draft model ran at the same time as the target
} dsc_step_record;

// Which steps of a request the loop runs.
typedef enum dsc_loop_steps {
    DSC_STEPS_ALL, // those of the run
    // A server's: the prefill gives the first token without a draft, then come those of the run.
    DSC_STEPS_AFTER_PREFILL,
    // One at every output position, whatever the one before accepted. For methods whose draft
    // depends on the preceding tokens only; counts are then sums over positions.
    DSC_STEPS_EVERYWHERE
} dsc_loop_steps;

#ifdef __cplusplus
}
#endif

#endif

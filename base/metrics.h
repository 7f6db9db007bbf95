// SPDX-License-Identifier: Apache-2.0
// The six acceptance metrics of speculative decoding, from counts. Every table that contains one of
// them (sim, sweep, tune, trace info, totals of servers, live run) takes it from here.
//
// A draft is a verification step with at least one draft token. Steps whose draft came out empty,
// and steps that verify nothing (a PEARL window that is begun), are target calls but not drafts.
// The length of a draft is the number of its tokens in sequence; of a tree it is the number of
// levels. With S(i) the drafts whose positions 1 .. i were all accepted, S(0) = num_drafts:
//
//   block_efficiency              output tokens / target calls, prefill included
//   mean_acceptance_length        1 + accepted tokens / drafts
//   draft_acceptance_rate         accepted tokens / draft tokens
//   acceptance_rate_pos[i]        S(i) / drafts
//   conditional_acceptance_rate[i]  S(i) / (drafts of length >= i whose first i - 1 positions were
//                                 all accepted): the Kaplan-Meier estimate. A draft that ends
//                                 before position i does not count as a rejection there.
//   alpha_iid                     the a in [0, 1] with
//                                 sum over drafts of (a + a^2 + ... + a^length) = accepted tokens
#ifndef DSC_BASE_METRICS_H
#define DSC_BASE_METRICS_H

#include "base/cell.h"
#include "base/columns.h"
#include "base/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

// What the metrics are computed from. NaN: unknown, and so are the metrics that depend on it.
typedef struct dsc_metric_counts {
    double output_tokens, target_calls;
    double num_drafts, num_draft_tokens, num_accepted_tokens;
    // Lists of counts or of expected counts; element 0 is not read. Empty: unknown.
    dsc_cell accepted; // [m] drafts that accepted exactly m tokens
    dsc_cell lengths;  // [m] drafts of length m
    dsc_cell whole; // [m] drafts of length m that accepted m tokens. Where the lengths are unknown
                    // it is empty, and every draft is taken to be as long as the longest
                    // accepted: the conditional rates are then lower bounds
} dsc_metric_counts;

typedef struct dsc_metrics {
    double block_efficiency, mean_acceptance_length, draft_acceptance_rate, alpha_iid;
    // Up to the last position that a draft had after accepting all before it. The arena's.
    int64_t positions;
    double *acceptance_rate_pos, *conditional_acceptance_rate; // [positions] [i - 1]
    double *reached; // [positions] the denominators of conditional_acceptance_rate
} dsc_metrics;

// DSC_EUSAGE: a pointer is NULL, or a list has a negative length or no elements. DSC_ENOMEM.
DSC_API int dsc_metrics_init(dsc_metrics *m, const dsc_metric_counts *c, dsc_arena *arena,
                             dsc_error *err);

// The one of them that is also wanted without the others; NaN when there was no call.
DSC_API double dsc_metric_block_efficiency(double output_tokens, double target_calls);

// The columns with their meaning, as initializers of dsc_column.
enum { DSC_METRICS = 6 };
// clang-format off
#define DSC_METRIC_COLUMNS                                                                         \
    {DSC_COL_BLOCK_EFFICIENCY, DSC_CELL_REAL,                                                      \
     "output tokens / forward passes of the target, prefill included"},                           \
    {DSC_COL_MEAN_ACCEPTANCE_LENGTH, DSC_CELL_REAL,                                                \
     "1 + num_accepted_tokens / num_drafts: tokens per verification step that had a draft, bonus " \
     "included"},                                                                                  \
    {DSC_COL_DRAFT_ACCEPTANCE_RATE, DSC_CELL_REAL,                                                 \
     "num_accepted_tokens / num_draft_tokens: share of the draft tokens that were accepted"},      \
    {DSC_COL_ACCEPTANCE_RATE_POS, DSC_CELL_LIST,                                                   \
     "share of all drafts whose token at position 1, 2, ... was accepted (unconditional)"},        \
    {DSC_COL_CONDITIONAL_ACCEPTANCE_RATE, DSC_CELL_LIST,                                           \
     "acceptance rate at position 1, 2, ... of the drafts that have a token there and accepted "   \
     "all earlier ones; a lower bound where draft lengths are unknown"},                           \
    {DSC_COL_ALPHA_IID, DSC_CELL_REAL,                                                             \
     "i.i.d. acceptance probability a of a draft token that gives the same number of accepted "    \
     "tokens: the sum of a + a^2 + ... + a^length over all drafts equals num_accepted_tokens; "    \
     "nan where draft lengths are unknown"}
// clang-format on

// The cells of a row, in the order of the columns. The lists remain the arena's. Does nothing when
// a pointer is NULL.
DSC_API void dsc_metrics_cells(const dsc_metrics *m, dsc_cell cell[DSC_METRICS]);

#ifdef __cplusplus
}
#endif

#endif

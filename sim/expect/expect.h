// SPDX-License-Identifier: Apache-2.0
// Replay without running the loop: exact counts for every draft length in one pass.
//
// For a drafter whose drafts depend on the preceding tokens only (drafter.h, `match_lengths`), and
// greedy verification of a recorded output, a run is a walk over output positions: a step at
// position i accepts a = min(run[i], limit) draft tokens, and the next one is at i + a + 1. Where
// drafts start and how far they agree does not depend on the draft length, so all lengths share one
// pass over the references. tests/cross/test_replay.c compares the counts with those of the loop.
#ifndef DSC_SIM_EXPECT_H
#define DSC_SIM_EXPECT_H

#include "sim/counts.h"
#include "sim/drafter.h"

// Configurations of one drafter, in groups that share their match lengths.
typedef struct dsc_plan {
    const dsc_config *config;
    size_t count;
    size_t groups;
    size_t *first;               // [groups] a configuration of each group
    size_t *order;               // [count] configurations, group by group
    size_t *start;               // [groups + 1] where each group begins in `order`
    int32_t *limit;              // [count]
    int64_t longest;             // max of limit
    int32_t end_token;           // the trace's EOS token; -1 (dsc_plan_init): unknown
    const dsc_trace_info *trace; // needed by a drafter with `view`
    dsc_history *history;        // [count] of drafters with a history, else NULL (dsc_plan_init);
                                 // requests then have to be run in order
    dsc_arena memory;            // of the arrays
} dsc_plan;

// All configurations are of one drafter that has `match_lengths`, and pass dsc_config_check. They
// must outlive the plan. DSC_ENOMEM.
int dsc_plan_init(dsc_plan *plan, const dsc_config *config, size_t count, dsc_error *err);
void dsc_plan_fini(dsc_plan *plan);

// Adds one request's counts to counts[c] of every configuration c of the plan, which have all lists
// but parallel_steps, and width only where no limit exceeds DSC_LONGEST_LENGTH. All memory is of
// `arena`, the request's. DSC_EINPUT: the request is too long.
int dsc_expect_run(const dsc_plan *plan, const dsc_request *request, uint64_t seed,
                   dsc_arena *arena, dsc_counts *counts, dsc_error *err);

#endif

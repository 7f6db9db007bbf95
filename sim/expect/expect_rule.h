// SPDX-License-Identifier: Apache-2.0
// Conditional replay: what a rule that draws, or a draft model, would have made of a recorded
// output, in exact expectation and without a draw; for all draft lengths in one pass.
//
// A lossless rule emits the target's distribution, so the tokens that a target really wrote can be
// replayed by what the drafts did given these tokens (theory: single.h, block_verify.h, kseq.h,
// specinfer.h, otm_sampler.h). At each position that takes the probabilities of the output's
// token, and for several drafts a distribution over how many of them it keeps; the walk over the
// output is sim/expect/renewal.h.
//
//   chain  greedy                            draft_rank or draft_argmax
//          single, kseq, otm, specinfer     draft_logp, target_logp
//          block                             likewise
//   spectr greedy                            draft_logp
//          kseq, otm, specinfer             draft_logp, target_logp and the column of that name
//   spectr-tree                              as spectr, for the drafts of its last level
//
// Rows of both models stand in for all of these. Drafts are counted as sim/loop.h counts them, but
// for EOS tokens: nobody recorded whether a draft, off the output, would have ended before its
// length. The last call is cut at the end of the output in both; only a recorded draft model goes
// on behind an EOS token in the loop, as it did (sim/model/model_trace.h).
#ifndef DSC_SIM_EXPECT_RULE_H
#define DSC_SIM_EXPECT_RULE_H

#include "sim/counts.h"
#include "sim/drafter.h"
#include "sim/expect/position_dist.h"

typedef struct dsc_rule_group dsc_rule_group;

// Configurations of one drafter, sorted into groups of as many drafts.
typedef struct dsc_rule_plan {
    const dsc_verifier_type *rule;
    size_t count, groups;
    size_t *order;             // [count] configurations, group by group, by length within each
    int32_t *limit;            // [count] their lengths, in that order
    dsc_rule_group *group;     // [groups]
    dsc_position_source dists; // of several drafts; .drafts is 0 when no group has any
    int32_t rank_depth;        // of the trace's draft_rank; 0: argmax is read
} dsc_rule_plan;

// Whether the drafter is replayed under the rule, if the trace has what it takes.
DSC_API bool dsc_rule_replays(const dsc_drafter_type *drafter, const dsc_verifier_type *rule);

// Whether the trace records what that takes, for some number of drafts at least.
DSC_API bool dsc_rule_recorded(const dsc_verifier_type *rule, const dsc_trace_info *info);

// All configurations are of one drafter that dsc_rule_replays. DSC_EUSAGE: a sentence that names
// what the trace does not have.
DSC_API int dsc_rule_plan_init(dsc_rule_plan *plan, const dsc_config *config, size_t count,
                               const dsc_verifier_type *rule, const dsc_trace_info *info,
                               dsc_error *err);
DSC_API void dsc_rule_plan_fini(dsc_rule_plan *plan);

// What of the trace is read: "draft_logp, target_logp".
DSC_API const char *dsc_rule_plan_reads(const dsc_rule_plan *plan);

// Adds one request's expectations to *counts[c].expected of every configuration c. The arena is the
// request's. Calls that accept so many tokens that it happens once in 2^90 are left out. The result
// depends on nothing but the request.
DSC_API int dsc_expect_rule_run(const dsc_rule_plan *plan, const dsc_request *request,
                                dsc_position_room *room, dsc_arena *arena, dsc_counts *counts,
                                dsc_error *err);

#endif

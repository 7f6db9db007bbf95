// SPDX-License-Identifier: Apache-2.0
// Conditional replay: the expected counts of a rule that samples, or of a sampled draft model,
// given the recorded output. They are exact (no Monte Carlo), for all draft lengths in one pass.
//
// The output of a lossless rule has the target distribution, so a recorded output is a sample of
// it, and the probability that drafts were accepted, given the output's tokens, follows from the
// recorded probabilities (theory: single.h, block_verify.h, kseq.h, specinfer.h, otm_sampler.h). A
// position needs the probabilities of the output's token and, for several drafts, a distribution of
// how many of them continue. The walk over the output is sim/expect/renewal.h.
//
//   chain  greedy                            draft_rank or draft_argmax
//          single, kseq, otm, specinfer     draft_logp, target_logp
//          block, traversal                  draft_logp, target_logp
//   parallel  rejection, block, traversal    marginals, target_logp
//   spectr greedy                            draft_logp
//          kseq, otm, specinfer             draft_logp, target_logp and the column of that name
//          gbv                               rows of both models
//   spectr-tree                              as spectr, for the drafts of its last level
//
// The rows of both models can replace all of these columns. Drafts are counted as in sim/loop.h,
// except at EOS tokens: the trace does not contain whether a draft that left the output would have
// ended early. In both, the last call is cut at the end of the output. Only a recorded draft model
// goes on after an EOS token in the loop, as it did when it was recorded (sim/model/model_trace.h).
#ifndef DSC_SIM_EXPECT_RULE_H
#define DSC_SIM_EXPECT_RULE_H

#include "sim/counts.h"
#include "sim/drafter.h"
#include "sim/expect/position_dist.h"

typedef struct dsc_rule_group dsc_rule_group;

// Configurations of one drafter, in groups with the same number of drafts.
typedef struct dsc_rule_plan {
    const dsc_verifier_type *rule;
    size_t count, groups;
    size_t *order;             // [count] configurations, group by group, by length within each
    int32_t *limit;            // [count] their lengths, in that order
    dsc_rule_group *group;     // [groups]
    dsc_position_source dists; // of several drafts; .drafts is 0 when no group needs them
    int32_t rank_depth;        // of the trace's draft_rank; 0: argmax is read
    int32_t offsets;           // of the trace's marginals; 0: they are not read
    dsc_arena memory;          // of the arrays
} dsc_rule_plan;

// Whether expectations of this drafter under this rule exist, given the columns they need.
bool dsc_rule_replays(const dsc_drafter_type *drafter, const dsc_verifier_type *rule);

// Whether the decision at a position depends, in addition to it, on the number of drafts there
// alone or, for one draft, on a running product, so that acceptances can be sampled position by
// position.
bool dsc_rule_is_by_position(const dsc_drafter_type *drafter, const dsc_verifier_type *rule);

// Whether the trace has the columns that the rule needs for one draft.
bool dsc_rule_recorded(const dsc_verifier_type *rule, const dsc_trace_info *info);

// All configurations are prepared and of one drafter that dsc_rule_replays. DSC_EUSAGE: the trace
// lacks a column, which the message names.
int dsc_rule_plan_init(dsc_rule_plan *plan, const dsc_config *config, size_t count,
                       const dsc_verifier_type *rule, const dsc_trace_info *info, dsc_error *err);
void dsc_rule_plan_fini(dsc_rule_plan *plan);

// The most drafts at a position of a plan whose method drafts several sequences or a tree of
// samples, and, for 1 .. that number of them, how many are accepted at a position with the output's
// token: dist[dsc_position_dist_at(drafts + 1)]. Those that are accepted are verified at the next
// position (position_dist.h). DSC_EINPUT as dsc_expect_rule_run.
int dsc_rule_plan_drafts(const dsc_rule_plan *plan);
int dsc_rule_plan_dists(const dsc_rule_plan *plan, const dsc_request *request, int64_t position,
                        dsc_position_room *room, double *dist, dsc_error *err);

// The columns of the trace that are read: "draft_logp, target_logp".
const char *dsc_rule_plan_reads(const dsc_rule_plan *plan);

// Adds one request's expectations to *counts[c].expected of every configuration c. All memory is of
// `arena`, the request's. Accept lengths with a probability below 2^-90 are left out. The result
// depends on the request alone. DSC_EINPUT: a row or column lacks the output's token.
int dsc_expect_rule_run(const dsc_rule_plan *plan, const dsc_request *request,
                        dsc_position_room *room, dsc_arena *arena, dsc_counts *counts,
                        dsc_error *err);

#endif

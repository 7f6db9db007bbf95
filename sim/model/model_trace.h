// SPDX-License-Identifier: Apache-2.0
// A recorded output as a model: the target that wrote it, teacher-forced. Queries off the recorded
// path are refused.
//
// The draft model can be recorded along the output: the rank of the output's token among its
// candidates as draft_rank, and its argmax token as draft_argmax. Greedy verification needs nothing
// else, because a draft that has left the output is rejected whatever its tokens are. These tokens,
// and candidates that are only known to differ from the output's, are DSC_TOKEN_OTHER. So the
// counts are those of a run of both models, with one exception: drafts that end with EOS after they
// left the output are known only for argmax tokens, as far as rollouts were recorded.
#ifndef DSC_SIM_MODEL_TRACE_H
#define DSC_SIM_MODEL_TRACE_H

#include "sim/model.h"
#include "traces/trace/recorded_run.h"

enum { DSC_TOKEN_OTHER = -1 }; // no token of any output

// The position of a node in a recorded rollout of the draft model.
typedef struct dsc_rollout_place {
    int32_t from;  // the rollout's position after the committed output; -1: in no rollout
    int32_t wrote; // tokens of the rollout up to the node
} dsc_rollout_place;

typedef struct dsc_model_trace {
    dsc_model base;
    dsc_token_view recorded;
    int32_t *depth; // [nodes] of the scored draft: depth of a node on the recorded path, else -1
    size_t capacity;
    dsc_request request;      // of a draft model
    dsc_rollout_place *place; // [nodes] for a draft model with rollouts
    size_t place_capacity;
    int32_t rollout_length;     // 0: none
    int32_t rank_depth, tokens; // of the draft's ranks; their vocabulary size
    // settings of the request's candidates and marginals, or 0: not recorded
    int32_t candidate_nodes, candidate_steps, candidate_topk, marginal_offsets, marginal_top;
    int head;          // dsc_recorded_run.head
    int32_t also_ends; // base.more_ends
    int32_t drawn;     // the token of the last distribution that was read
} dsc_model_trace;     // zero-initialize

// Starts on one recorded output; the view must outlive the use. An empty output has ended already.
void dsc_model_trace_begin(dsc_model_trace *m, dsc_token_view recorded);
// Starts the draft model that was recorded with the output: `next`, `top`, and `distribution` as at
// temperature 0, which is its argmax token alone; `candidates` and `marginal_top` where the trace
// has these columns. DSC_EUSAGE: a draft is deeper than the recorded
// ranks of a head, whose deeper ranks do not follow from those. The request's shard must stay open.
void dsc_model_trace_begin_draft(dsc_model_trace *m, const dsc_request *request,
                                 const dsc_trace_info *info, const dsc_recorded_run *run);
// After dsc_model_trace_begin: sets the tokens that end an output and the length limit of the
// recorded run, where they are known. A draft without EOS then continues after the recorded end.
void dsc_model_trace_set_ends(dsc_model_trace *m, const dsc_trace_info *info,
                              const dsc_recorded_run *run);
void dsc_model_trace_fini(dsc_model_trace *m);

#endif

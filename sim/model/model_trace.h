// SPDX-License-Identifier: Apache-2.0
// A recorded output as a model: the target that wrote it, teacher-forced. What the target would
// have said anywhere else is unknown, and asking is refused. Distributions are known where rows
// were recorded.
//
// And the draft model that was asked along it: where the output's token stands among its
// candidates is known, as draft_rank, and the most probable token, as draft_argmax. That is all
// that greedy verification wants to know, for a draft that has left the output is rejected whatever
// it says: its tokens, and candidates of which only that they are others is known, are
// DSC_TOKEN_OTHER. So counts are those of a run of both models, but where a draft would have said
// an EOS token after it had left the output: that is known of most probable tokens, as far as
// rollouts were recorded.
#ifndef DSC_SIM_MODEL_TRACE_H
#define DSC_SIM_MODEL_TRACE_H

#include "sim/model.h"
#include "traces/trace/recorded_run.h"

enum { DSC_TOKEN_OTHER = -1 }; // no token of any output

// Where a node stands in what the draft model would write.
typedef struct dsc_rollout_place {
    int32_t from;  // the rollout's position, behind the committed output; -1: in none
    int32_t wrote; // tokens of it up to the node
} dsc_rollout_place;

typedef struct dsc_model_trace {
    dsc_model base;
    dsc_token_view recorded;
    int32_t *depth; // [nodes] of the scored draft: depth of a node on the recorded path, else -1
    size_t capacity;
    dsc_request
        request; // whose rows answer `distribution`; only the rows and the output are looked at
    dsc_model_side side;
    int32_t vocab_size; // 0: no rows
    double *row;        // [vocab_size] the distribution asked for last
    size_t row_capacity;
    dsc_rollout_place *place; // [nodes] of the draft model, where it has rollouts
    size_t place_capacity;
    int32_t rollout_length;     // 0: none
    int32_t rank_depth, tokens; // of the draft's ranks; the vocabulary they are of
    int head;                   // dsc_recorded_run.head
    int32_t also_ends;          // base.more_ends
    int32_t drawn;              // the token of the distribution asked for last
} dsc_model_trace;              // zero-initialise

// Starts on one recorded output; the view must outlive the use. An empty output has ended already.
DSC_API void dsc_model_trace_begin(dsc_model_trace *m, dsc_token_view recorded);
// The same on a request's output, with the rows of one of its models as distributions, divided by
// their sums. What a row does not list is the distribution's `unlisted` mass. The request's shard
// must stay open.
DSC_API void dsc_model_trace_begin_rows(dsc_model_trace *m, const dsc_request *request,
                                        dsc_model_side side, int32_t vocab_size);
// The draft model that was recorded with the output: `next` and `top`, and `distribution` as at
// temperature 0, of its most probable token alone. DSC_EUSAGE when it is asked deeper in a draft
// than ranks were recorded, which a head's deeper ones do not follow from. The request's shard must
// stay open.
DSC_API void dsc_model_trace_begin_draft(dsc_model_trace *m, const dsc_request *request,
                                         const dsc_trace_info *info, const dsc_recorded_run *run);
// After dsc_model_trace_begin: which tokens end an output, and how long it could have been, where
// that is known; a draft goes on behind the recorded end then if it did not say the EOS token.
DSC_API void dsc_model_trace_set_ends(dsc_model_trace *m, const dsc_trace_info *info,
                                      const dsc_recorded_run *run);
DSC_API void dsc_model_trace_fini(dsc_model_trace *m);

#endif

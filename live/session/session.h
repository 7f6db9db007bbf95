// SPDX-License-Identifier: Apache-2.0
// A model at work on one text: the model of sim/model.h that an engine stands behind. It keeps the
// keys and values of what it has seen; a draft's nodes are scored in one pass, in slots behind the
// text; what a step commits stays, the rest is dropped.
#ifndef DSC_LIVE_SESSION_H
#define DSC_LIVE_SESSION_H

#include "live/model/model.h"
#include "sim/model.h"
#include "traces/trace/trace.h"

// Wall time in passes, and how many.
typedef struct live_times {
    double prefill_s; // of the prompt, all but its last token
    double score_s;   // passes that score drafts
    int64_t prefill_tokens, passes, pass_tokens;
} live_times;

typedef struct live_session live_session;

// A session of `w` for texts of at most `context` tokens and passes that score at most `nodes`
// nodes of a draft. `target`: of the session whose features an EAGLE head or Medusa heads read and
// that must outlive this one, else NULL. Estimates memory first (DSC_ENOMEM says how much is needed
// and free). *out owned by the caller.
int live_session_new(live_session **out, const live_weights *w, live_session *target,
                     int64_t context, int64_t nodes, dsc_error *err);
void live_session_free(live_session *s);

// Begins a text: runs the prompt (>= 1 token) but for its last token through the model. `limit`:
// tokens that the output can have. DSC_EUSAGE: prompt + limit + nodes exceed the context.
int live_session_begin(live_session *s, dsc_token_view prompt, int64_t limit,
                       const live_sampling *sampling, dsc_error *err);
// The model to give to a loop; valid from begin to the next begin.
dsc_model *live_session_model(live_session *s);
const live_times *live_session_times(const live_session *s); // since new

// After a score: the logits behind `node` (-1: behind the text), host memory, [vocab], until the
// session is asked again.
int live_session_logits(live_session *s, int32_t node, const float **logits, dsc_error *err);

// By how much the most probable token led the second where output token i was decided,
// [base.length]; NaN where this model was not asked (a draft model).
const float *live_session_margins(const live_session *s);

// Teacher-forced: runs `output` behind the prompt, whatever the model would say, in passes of up to
// `nodes` + 1 tokens, and calls `row` with the logits of each position in order: those that output
// token i was to be predicted from, host memory, [vocab], valid during the call. Ends the text that
// was begun.
int live_session_replay(live_session *s, dsc_token_view prompt, dsc_token_view output,
                        int (*row)(void *user, int64_t i, const float *logits, dsc_error *err),
                        void *user, dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// A model that runs on one text: sim/model.h implemented by an engine. It keeps the KV cache of the
// text; a draft's nodes are scored in one pass, in cache slots after the text; the accepted tokens
// of a step stay, the rest is dropped.
#ifndef DSC_LIVE_SESSION_H
#define DSC_LIVE_SESSION_H

#include "live/model/model.h"
#include "sim/model.h"
#include "traces/trace/trace.h"

// Wall time and number of passes.
typedef struct live_times {
    double prefill_s; // prefill: the prompt except its last token
    double score_s;   // passes that score drafts
    int64_t prefill_tokens, passes, pass_tokens;
} live_times;

typedef struct live_session live_session;

// Creates a session of `w` for texts of at most `context` tokens and passes that score at most
// `nodes` draft nodes. `target`: the session whose features an EAGLE head or Medusa heads read,
// which must outlive this one; else NULL. Estimates memory first (DSC_ENOMEM with the needed and
// free sizes). *out is owned by the caller.
int live_session_new(live_session **out, const live_weights *w, live_session *target,
                     int64_t context, int64_t nodes, dsc_error *err);
void live_session_free(live_session *s);

// Begins a text: runs the prompt (>= 1 token), except its last token, through the model. `limit`:
// maximum tokens of the output. DSC_EUSAGE: prompt + limit + nodes exceed the context.
int live_session_begin(live_session *s, dsc_token_view prompt, int64_t limit,
                       const live_sampling *sampling, dsc_error *err);
// The model to pass to a loop; valid from begin to the next begin.
dsc_model *live_session_model(live_session *s);
const live_times *live_session_times(const live_session *s); // accumulated since live_session_new

// After a score: the logits after `node` (-1: after the text), in host memory, [vocab], valid until
// the next call for this session.
int live_session_logits(live_session *s, int32_t node, const float **logits, dsc_error *err);

// Lead of the largest logit over the second where output token i was decided, [base.length]; NaN
// where this model did not score the position (a draft model).
const float *live_session_margins(const live_session *s);

// Teacher-forced pass: runs `output` after the prompt in passes of up to `nodes` + 1 tokens, and
// calls `row` in order with the logits that predict output token i, in host memory, [vocab], valid
// during the call. Ends the text that was begun.
int live_session_replay(live_session *s, dsc_token_view prompt, dsc_token_view output,
                        int (*row)(void *user, int64_t i, const float *logits, dsc_error *err),
                        void *user, dsc_error *err);

#endif

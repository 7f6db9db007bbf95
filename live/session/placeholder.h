// SPDX-License-Identifier: Apache-2.0
// A recorded draft in a form that a pass can run: the same tree, in which a vocabulary token
// replaces every token that the record does not contain.
#ifndef DSC_LIVE_PLACEHOLDER_H
#define DSC_LIVE_PLACEHOLDER_H

#include "sim/model/model_trace.h"
#include "traces/trace/trace.h"

typedef struct live_placeholder {
    dsc_draft
        draft; // the draft last taken; its tokens are those below, its other arrays the original's
    // Set before the first draft: the output that drafts are for, whose tokens are in [0, vocab),
    // and the vocabulary of the model.
    dsc_token_view recorded;
    int64_t vocab;
    int32_t *token,
        *depth; // [nodes]; depth is that on the recorded output, 1 after the text, or -1
    size_t token_capacity, depth_capacity;
} live_placeholder; // zero-initialize the rest; live_placeholder_fini

// Sets s->draft to `d` (which must live as long), drafted after recorded[0, length). Tokens outside
// the vocabulary, such as DSC_TOKEN_OTHER, become other tokens, but never the token with which the
// record continues (except in a vocabulary of one token). A node gets the same token each time
// while `length` and its ancestors do not change.
int live_placeholder_take(live_placeholder *s, const dsc_draft *d, int64_t length, dsc_error *err);
void live_placeholder_fini(live_placeholder *s);

struct live_replay_draft; // live/session/replay_draft.h

// A model that answers from a recording while a session runs every requested pass.
typedef struct live_replayed {
    dsc_model base;
    struct live_replay_draft *draft; // of a target: runs its passes first; NULL: there are none
    dsc_model_trace
        recorded; // the source of the answers or, if sampled, of the nodes on the output
    live_placeholder placeholder;
    dsc_model *worker; // runs the passes
} live_replayed;       // zero-initialize

// Begins a recorded output after the prompt that the worker has just begun. `recorded` has begun;
// the record determines where the output ends.
void live_replayed_begin(live_replayed *r, const dsc_model_type *type, dsc_model *worker,
                         dsc_token_view output, int64_t vocab);
// Functions of dsc_model_type.
int live_replayed_score(dsc_model *m, const dsc_draft *d, dsc_error *err);
int live_replayed_commit(dsc_model *m, const int32_t *token, size_t n, dsc_error *err);
void live_replayed_fini(live_replayed *r);

#endif

// SPDX-License-Identifier: Apache-2.0
// A recorded draft as a pass can run it: the same tree, with a token of the vocabulary in the place
// of each that nobody knows.
#ifndef DSC_LIVE_PLACEHOLDER_H
#define DSC_LIVE_PLACEHOLDER_H

#include "sim/draft.h"
#include "traces/trace/trace.h"

typedef struct live_placeholder {
    dsc_draft draft;         // what was taken last; arrays are those below and the original's
    dsc_token_view recorded; // the output that drafts are for
    int64_t vocab;           // of the model
    int32_t *token, *depth;  // [nodes]; depth on the recorded output, 1 below the text, or -1
    size_t token_capacity, depth_capacity;
} live_placeholder; // zero-initialise

// `recorded` holds tokens of [0, vocab) only and must outlive the use.
void live_placeholder_begin(live_placeholder *s, dsc_token_view recorded, int64_t vocab);
// s->draft is `d`, which must live as long, behind recorded[0, length): tokens that the model does
// not have, DSC_TOKEN_OTHER among them, become others, never the one that the record goes on with
// (but in a vocabulary of one token). A node gets the same token each time while `length` and the
// nodes above it stay.
int live_placeholder_take(live_placeholder *s, const dsc_draft *d, int64_t length, dsc_error *err);
void live_placeholder_fini(live_placeholder *s);

#endif

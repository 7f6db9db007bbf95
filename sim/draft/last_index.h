// SPDX-License-Identifier: Apache-2.0
// The occurrence before the last of every n-gram of a growing text, for one n.
//
// Algorithm: an open-addressed table contains the end of the last occurrence of every n-gram;
// appending a token stores what the table contained, so that occurrences of an n-gram are linked
// from the last to the first. Expected time O(n) per token. Internal to sim/draft/.
#ifndef DSC_SIM_DRAFT_LAST_INDEX_H
#define DSC_SIM_DRAFT_LAST_INDEX_H

#include "traces/trace/trace.h"

typedef struct dsc_last_index {
    int32_t *text; // [count] the prompt, then what was appended
    int64_t count, prompt, n;
    // [count + 1] by the end of an n-gram: the end of its occurrence before; 0: there is none.
    int32_t *previous;
    int32_t *table; // [mask + 1] ends of last occurrences; 0: free
    size_t mask, capacity, previous_capacity;
    dsc_arena *arena;
} dsc_last_index;

// Starts with a prompt; n >= 1. All memory is the arena's. DSC_EINPUT: the text is too long.
int dsc_last_begin(dsc_last_index *x, dsc_token_view prompt, int64_t n, dsc_arena *arena,
                   dsc_error *err);
// Appends tokens. DSC_EINPUT: the text is too long.
int dsc_last_append(dsc_last_index *x, const int32_t *token, int64_t tokens, dsc_error *err);

#endif

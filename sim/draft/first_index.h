// SPDX-License-Identifier: Apache-2.0
// Where did the last n tokens of a growing text occur for the first time, for n = 1..most?
//
// Algorithm: one open-addressed table for each n holds where the first occurrence of every n-gram
// ends. A token is appended by looking its n-grams up and adding the new ones, so that the answer
// for the last token falls out: O(most) expected time a token.
#ifndef DSC_SIM_DRAFT_FIRST_INDEX_H
#define DSC_SIM_DRAFT_FIRST_INDEX_H

#include "traces/trace/trace.h"

enum { DSC_FIRST_MOST = 16 };

typedef struct dsc_first_index {
    int32_t *text; // [count] the prompt, then what was appended
    int64_t count, prompt, most;
    // Of the n-gram at the end of the text, in first[n - 1]: the position that follows its first
    // occurrence; 0 when it never occurred before.
    int32_t first[DSC_FIRST_MOST];
    int32_t *table[DSC_FIRST_MOST]; // [mask + 1] such positions; 0: free
    size_t mask, capacity;          // of each table; of the text
    dsc_arena *arena;
} dsc_first_index;

// Starts with a prompt; most <= DSC_FIRST_MOST. Memory is the arena's. DSC_EINPUT: too long.
int dsc_first_begin(dsc_first_index *x, dsc_token_view prompt, int64_t most, dsc_arena *arena,
                    dsc_error *err);
int dsc_first_append(dsc_first_index *x, const int32_t *token, int64_t n, dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// The first occurrence of the last n tokens of a growing text, for n = 1..most.
//
// Algorithm: one open-addressed table for each n contains the end of the first occurrence of every
// n-gram. Appending a token looks up its n-grams and adds the new ones, which gives the answer for
// the last token. Expected time O(most) per token. Internal to sim/draft/.
#ifndef DSC_SIM_DRAFT_FIRST_INDEX_H
#define DSC_SIM_DRAFT_FIRST_INDEX_H

#include "traces/trace/trace.h"

enum { DSC_FIRST_MOST = 16 };

typedef struct dsc_first_index {
    int32_t *text; // [count] the prompt, then what was appended
    int64_t count, prompt, most;
    // first[n - 1]: the position after the first occurrence of the n-gram at the end of the text;
    // 0: it has not occurred before.
    int32_t first[DSC_FIRST_MOST];
    int32_t *table[DSC_FIRST_MOST]; // [mask + 1] such positions; 0: free
    size_t mask, capacity;          // of each table; of the text
    dsc_arena *arena;
} dsc_first_index;

// Starts with a prompt; 1 <= most <= DSC_FIRST_MOST. All memory is the arena's. DSC_EINPUT: the
// text is too long.
int dsc_first_begin(dsc_first_index *x, dsc_token_view prompt, int64_t most, dsc_arena *arena,
                    dsc_error *err);
// Appends n tokens and updates `first`. DSC_EINPUT: the text is too long.
int dsc_first_append(dsc_first_index *x, const int32_t *token, int64_t n, dsc_error *err);

#endif

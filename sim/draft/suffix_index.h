// SPDX-License-Identifier: Apache-2.0
// The number of occurrences of each string of a growing text, and the tokens that follow it.
//
// Algorithm: a suffix automaton (Blumer et al. 1985), built online. A state represents the strings
// that end at the same positions of the text, each a suffix of the longest; `link` is the state of
// the longest suffix that ends at further positions. Strings of at most `depth` tokens are counted:
// a new token adds 1 to the states of all suffixes of the text up to that length, which lie on the
// path of links from the longest one. States and edges are O(1) amortized per token; counting is
// O(states on that path) <= O(depth), few unless the text repeats itself. Internal to sim/draft/.
#ifndef DSC_SIM_DRAFT_SUFFIX_INDEX_H
#define DSC_SIM_DRAFT_SUFFIX_INDEX_H

#include "traces/trace/trace.h"

typedef struct dsc_suffix_state {
    int32_t length; // of its longest string
    int32_t link;   // -1: this is the root, the empty string
    int32_t edge;   // the first of its edges, -1: none
    // Valid if its shortest string has at most `depth` tokens:
    int32_t count; // occurrences of its strings
    int32_t last;  // the text position after the last one
} dsc_suffix_state;

typedef struct dsc_suffix_edge {
    int32_t token, from, to;
    int32_t next; // of the same state, -1: no more
} dsc_suffix_edge;

typedef struct dsc_suffix_index {
    dsc_suffix_state *state; // [states]; 0 is the root
    dsc_suffix_edge *edge;   // [edges]
    int32_t *table;          // [mask + 1] edges by state and token, -1: free
    size_t states, edges, state_capacity, edge_capacity, mask;
    int64_t count;  // tokens of the text
    int32_t whole;  // the state of the whole text
    int32_t active; // the state of its last `length` tokens
    int32_t length; // min(count, depth)
    int32_t depth;
    dsc_arena *arena;
} dsc_suffix_index;

// Starts with an empty text; depth >= 1. All memory is the arena's.
int dsc_suffix_begin(dsc_suffix_index *x, int32_t depth, dsc_arena *arena, dsc_error *err);
// Appends n tokens. DSC_EINPUT: the text is too long.
int dsc_suffix_append(dsc_suffix_index *x, const int32_t *token, int64_t n, dsc_error *err);

#endif

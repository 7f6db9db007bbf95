// SPDX-License-Identifier: Apache-2.0
// How often does each string of a growing text occur, and what follows it?
//
// Algorithm: a suffix automaton (Blumer et al. 1985), built online. A state stands for strings that
// end at the same places of the text, each a suffix of the longest of them; `link` leads to the
// state of the longest suffix that ends at further places. Every string of at most `depth` tokens
// is counted: a new token adds 1 to the states of all suffixes of the text up to that length, which
// are those on the way of links from the longest one. States and edges are O(1) amortised a token,
// counting is O(states on that way) <= O(depth), few unless the text repeats itself.
#ifndef DSC_SIM_DRAFT_SUFFIX_INDEX_H
#define DSC_SIM_DRAFT_SUFFIX_INDEX_H

#include "traces/trace/trace.h"

typedef struct dsc_suffix_state {
    int32_t length; // of its longest string
    int32_t link;   // -1: of the root, the empty string
    int32_t edge;   // the first of its edges, -1: none
    // Of its strings, when the shortest is of at most `depth` tokens:
    int32_t count; // occurrences
    int32_t last;  // the text position behind the last one
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

// An empty text; depth >= 1. Memory is the arena's.
int dsc_suffix_begin(dsc_suffix_index *x, int32_t depth, dsc_arena *arena, dsc_error *err);
// DSC_EINPUT: the text is too long.
int dsc_suffix_append(dsc_suffix_index *x, const int32_t *token, int64_t n, dsc_error *err);

#endif

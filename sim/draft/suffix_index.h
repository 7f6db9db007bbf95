// SPDX-License-Identifier: Apache-2.0
// The number of occurrences of each string of growing texts, and the tokens that follow it.
//
// Algorithm: a suffix automaton (Blumer et al. 1985) of several texts, built online. A state
// represents the strings that end at the same positions, each a suffix of the longest; `link` is
// the state of the longest suffix that ends at further positions. Strings of at most `depth` tokens
// are counted: a new token adds 1 to the states of all suffixes of the text up to that length,
// which lie on the path of links from the longest one. States and edges are O(1) amortized per
// token; counting is O(states on that path) <= O(depth), few unless the text repeats itself.
//
// The edges of a state are in the order in which SuffixTree of snowflakedb/ArcticInference
// (csrc/suffix_decoding/suffix_tree.cc at 9d46438) keeps the children of a node: by descending
// count, where ties depend on the history. A new edge is the last of its count. An edge whose count
// rises to c is the first of those with count c if it was the first of those with c - 1 and others
// have c, and else the last; an edge whose count falls to c is the first of them. Strings of a
// state have had the same history, so one list is enough. Internal to sim/draft/.
#ifndef DSC_SIM_DRAFT_SUFFIX_INDEX_H
#define DSC_SIM_DRAFT_SUFFIX_INDEX_H

#include "traces/trace/trace.h"

typedef struct dsc_suffix_state {
    int32_t length; // of its longest string
    int32_t link;   // -1: this is the root, the empty string
    int32_t edge;   // the first of its edges, -1: none
    int32_t count;  // occurrences of its strings, if the shortest has at most `depth` tokens
    int32_t end;    // tokens of all texts up to the end of the first occurrence of its strings
} dsc_suffix_state;

typedef struct dsc_suffix_edge {
    int32_t token, from, to;
    int32_t next, prev; // of the same state; next -1: no more; prev of the first one: the last one
    int32_t group;      // of the edges with the same count, -1: the state is the root
} dsc_suffix_edge;

typedef struct dsc_suffix_slot {
    uint32_t tag; // of state and token
    int32_t edge; // -1: free
} dsc_suffix_slot;

typedef struct dsc_suffix_index {
    dsc_suffix_state *state; // [states]; 0 is the root, whose edges have no order
    dsc_suffix_edge *edge;   // [edges]
    dsc_suffix_slot *table;  // [mask + 1] the edges of states with several, by state and token
    int32_t *head;           // [groups] the first edge of a group; of a free one the next free one
    size_t states, edges, groups, state_capacity, edge_capacity, group_capacity;
    size_t mask, entered, slots; // `slots` have memory
    int32_t free_group;          // -1: none
    int32_t *place;              // [place_capacity] of a state after compaction, -1: it is dropped
    dsc_suffix_edge *room;       // [room_capacity] for the edges that are kept
    size_t place_capacity, room_capacity;
    int64_t count;  // tokens of all texts
    int32_t whole;  // the state of the current text
    int32_t active; // the state of its last `length` tokens
    int32_t length; // of the text, at most `depth`
    int32_t depth;
    bool removed; // a text was removed: some edges may no longer occur
    dsc_arena *arena;
} dsc_suffix_index;

// Starts with an empty text; depth >= 1. All memory is the arena's.
int dsc_suffix_begin(dsc_suffix_index *x, int32_t depth, dsc_arena *arena, dsc_error *err);
// Ends the current text and starts another one.
void dsc_suffix_next_text(dsc_suffix_index *x);
// Appends n tokens to the current text. DSC_EINPUT: the texts are too long.
int dsc_suffix_append(dsc_suffix_index *x, const int32_t *token, int64_t n, dsc_error *err);
// Subtracts the occurrences of a text that was appended and is not the current one.
int dsc_suffix_remove(dsc_suffix_index *x, const int32_t *token, int64_t n, dsc_error *err);
// Frees the memory of strings that no longer occur for texts to come, and ends the current text.
// Text i is token[start[i], start[i + 1]); they are those that were not removed, in any order.
// O(memory in use).
int dsc_suffix_compact(dsc_suffix_index *x, const int32_t *token, const int64_t *start,
                       size_t texts, dsc_error *err);
// The state of the longest suffix of token[0, n), n < depth, that occurs in the texts; *length: the
// number of its tokens.
int32_t dsc_suffix_find(const dsc_suffix_index *x, const int32_t *token, int64_t n,
                        int32_t *length);
// The same for the last n tokens of the current text, n at most its length.
int32_t dsc_suffix_last(const dsc_suffix_index *x, int32_t n, int32_t *length);
// The position after the first occurrence of the longest suffix of the text that occurred before
// it, with any overlap, and the number of its tokens; 0: there is none. Of an index of a single
// text.
int32_t dsc_suffix_repeated(const dsc_suffix_index *x, int32_t *length);

#endif

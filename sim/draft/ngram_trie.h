// SPDX-License-Identifier: Apache-2.0
// A trie of token strings with a fixed number of nodes, which are evicted least recently used
// first. Every node knows its children, latest insertion first. Internal to sim/draft/.
#ifndef DSC_SIM_DRAFT_NGRAM_TRIE_H
#define DSC_SIM_DRAFT_NGRAM_TRIE_H

#include "base/memory.h"

#include <stdint.h>

// Links are node indices, -1: none.
typedef struct dsc_trie_node {
    int32_t token, parent;
    int32_t count;             // insertions through this node
    uint32_t version;          // changes when the node is evicted
    int32_t child, next, prev; // its latest child; among the children of its parent
    int32_t older, newer;      // among all nodes
    int32_t in_bucket;         // next node of its bucket, or of the free nodes
} dsc_trie_node;

// Node 0 is the root.
typedef struct dsc_ngram_trie {
    dsc_arena *arena;
    dsc_trie_node *node; // [nodes]
    size_t nodes, node_capacity;
    int32_t *bucket; // [buckets] nodes by (parent, token); a power of 2, at least `nodes`
    size_t buckets, bucket_capacity;
    int64_t unused;         // nodes that an insertion can still take
    int32_t free;           // evicted nodes
    int32_t newest, oldest; // of all nodes
    int32_t depth;
} dsc_ngram_trie;

// A trie of strings of at most `depth` tokens, of at most `capacity` > depth nodes, the root
// included.
int dsc_ngram_trie_begin(dsc_ngram_trie *t, int32_t depth, int64_t capacity, dsc_arena *arena,
                         dsc_error *err);
// Inserts every suffix of the n tokens, cut to `depth` tokens.
int dsc_ngram_trie_insert(dsc_ngram_trie *t, const int32_t *token, int64_t n, dsc_error *err);
// The child of a node, or -1.
int32_t dsc_ngram_trie_child(const dsc_ngram_trie *t, int32_t node, int32_t token);

#endif

// SPDX-License-Identifier: Apache-2.0
// The trie of SGLang's NGRAM (python/sglang/srt/speculative/cpp_ngram/trie.cpp at 0d1d60f of
// github.com/sgl-project/sglang). Before a string of n tokens is inserted, nodes are evicted until
// n are unused, however many of them exist already. A parent is always used later than its
// children, so the least recently used node is a leaf.
#include "sim/draft/ngram_trie.h"

#include <string.h>

enum { FIRST_BUCKETS = 1024 };

static size_t bucket_of(const dsc_ngram_trie *t, int32_t parent, int32_t token)
{
    const uint64_t key = (uint64_t)(uint32_t)parent << 32 | (uint32_t)token;
    return (size_t)((key * 0x9e3779b97f4a7c15u) >> 32) & (t->buckets - 1);
}

static void enter(dsc_ngram_trie *t, int32_t at)
{
    int32_t *bucket = &t->bucket[bucket_of(t, t->node[at].parent, t->node[at].token)];
    t->node[at].in_bucket = *bucket;
    *bucket = at;
}

// Doubles the buckets; only called while no node was evicted, as later none is added.
static int add_buckets(dsc_ngram_trie *t, size_t buckets, dsc_error *err)
{
    int rc = dsc_arena_resize(t->arena, &t->bucket, &t->bucket_capacity, buckets, err);
    if (rc)
        return rc;
    t->buckets = buckets;
    memset(t->bucket, 0xff, buckets * sizeof *t->bucket); // -1
    for (size_t i = 1; i < t->nodes; i++)
        enter(t, (int32_t)i);
    return DSC_OK;
}

int dsc_ngram_trie_begin(dsc_ngram_trie *t, int32_t depth, int64_t capacity, dsc_arena *arena,
                         dsc_error *err)
{
    *t = (dsc_ngram_trie){.arena = arena,
                          .depth = depth,
                          .unused = capacity - 1,
                          .free = -1,
                          .newest = -1,
                          .oldest = -1};
    int rc = dsc_arena_resize(arena, &t->node, &t->node_capacity, 1, err);
    if (rc)
        return rc;
    t->node[t->nodes++] = (dsc_trie_node){.parent = -1, .child = -1};
    return add_buckets(t, FIRST_BUCKETS, err);
}

int32_t dsc_ngram_trie_child(const dsc_ngram_trie *t, int32_t node, int32_t token)
{
    int32_t at = t->node[node].child; // the latest one is the most likely one
    if (at < 0 || t->node[at].token == token)
        return at;
    at = t->bucket[bucket_of(t, node, token)];
    while (at >= 0 && (t->node[at].parent != node || t->node[at].token != token))
        at = t->node[at].in_bucket;
    return at;
}

// --- the two orders ------------------------------------------------------------------------------

static void unlink_child(dsc_ngram_trie *t, int32_t at)
{
    const dsc_trie_node *x = &t->node[at];
    if (x->prev >= 0)
        t->node[x->prev].next = x->next;
    else
        t->node[x->parent].child = x->next;
    if (x->next >= 0)
        t->node[x->next].prev = x->prev;
}

static void link_child(dsc_ngram_trie *t, int32_t at)
{
    dsc_trie_node *x = &t->node[at], *parent = &t->node[x->parent];
    x->prev = -1;
    x->next = parent->child;
    if (x->next >= 0)
        t->node[x->next].prev = at;
    parent->child = at;
}

static void unlink_used(dsc_ngram_trie *t, int32_t at)
{
    const dsc_trie_node *x = &t->node[at];
    *(x->newer >= 0 ? &t->node[x->newer].older : &t->newest) = x->older;
    *(x->older >= 0 ? &t->node[x->older].newer : &t->oldest) = x->newer;
}

static void link_used(dsc_ngram_trie *t, int32_t at)
{
    dsc_trie_node *x = &t->node[at];
    x->newer = -1;
    x->older = t->newest;
    *(x->older >= 0 ? &t->node[x->older].newer : &t->oldest) = at;
    t->newest = at;
}

// --- insertion -----------------------------------------------------------------------------------

static void evict_oldest(dsc_ngram_trie *t)
{
    const int32_t at = t->oldest;
    dsc_trie_node *x = &t->node[at];
    int32_t *link = &t->bucket[bucket_of(t, x->parent, x->token)];
    while (*link != at)
        link = &t->node[*link].in_bucket;
    *link = x->in_bucket;
    unlink_used(t, at);
    unlink_child(t, at);
    x->version++;
    x->in_bucket = t->free;
    t->free = at;
    t->unused++;
}

static int add_child(dsc_ngram_trie *t, int32_t parent, int32_t token, int32_t *out, dsc_error *err)
{
    int rc = DSC_OK;
    int32_t at = t->free;
    uint32_t version = 0;
    if (at >= 0) {
        version = t->node[at].version;
        t->free = t->node[at].in_bucket;
    } else {
        at = (int32_t)t->nodes;
        rc = dsc_arena_resize(t->arena, &t->node, &t->node_capacity, t->nodes + 1, err);
        if (!rc && t->nodes >= t->buckets)
            rc = add_buckets(t, 2 * t->buckets, err);
        if (rc)
            return rc;
        t->nodes++;
    }
    t->node[at] = (dsc_trie_node){.token = token,
                                  .parent = parent,
                                  .version = version,
                                  .child = -1,
                                  .older = -1,
                                  .newer = -1};
    t->unused--;
    enter(t, at);
    link_child(t, at);
    link_used(t, at);
    *out = at;
    return DSC_OK;
}

static int insert_string(dsc_ngram_trie *t, const int32_t *token, int64_t n, dsc_error *err)
{
    int rc = DSC_OK;
    int32_t at = 0;
    while (t->unused < n)
        evict_oldest(t);
    for (int64_t i = 0; i < n && !rc; i++) {
        const int32_t parent = at;
        at = dsc_ngram_trie_child(t, parent, token[i]);
        if (at < 0) {
            rc = add_child(t, parent, token[i], &at, err);
        } else if (t->node[parent].child != at) {
            unlink_child(t, at);
            link_child(t, at);
        }
        if (!rc)
            t->node[at].count++;
    }
    for (; !rc && at > 0; at = t->node[at].parent) // the first token's node is the newest
        if (t->newest != at) {
            unlink_used(t, at);
            link_used(t, at);
        }
    return rc;
}

int dsc_ngram_trie_insert(dsc_ngram_trie *t, const int32_t *token, int64_t n, dsc_error *err)
{
    int rc = DSC_OK;
    for (int64_t i = 0; i < n && !rc; i++)
        rc = insert_string(t, token + i, n - i < t->depth ? n - i : t->depth, err);
    return rc;
}

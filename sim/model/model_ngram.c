// SPDX-License-Identifier: Apache-2.0
// Training and look-up of the n-gram language of model_ngram.h.
//
// Contexts are nodes of a tree: the empty context is node 0, and the child of h_j by token t is t
// h_j, one token further back. One hash table holds all edges. Each node has a list of the tokens
// that followed it. The list of a longer context is a subset of that of its parent.
#include "sim/model/model_ngram.h"

#include <stdlib.h>
#include <string.h>

typedef struct edge {
    uint64_t key;   // parent << 32 | token
    uint32_t child; // 0: free, because node 0 has no parent
    uint32_t hash;  // of the child's context
} edge;

typedef struct ngram {
    dsc_language base;
    int order;
    dsc_corpus held; // sequences for prompts

    edge *edge; // [mask + 1] open addressing, at most half full
    uint64_t mask;

    uint32_t nodes;
    uint32_t *begin; // [nodes + 1] of a node's list in the arrays of entries
    double *other;   // [nodes] other_j
    int32_t *best;   // [nodes] most probable token
    size_t begin_capacity, other_capacity, best_capacity;

    int32_t *token;      // [begin[nodes]] ascending within a list
    uint32_t *upto;      // counts c, added up within a list
    double *probability; // P
    size_t token_capacity, upto_capacity, probability_capacity;
} ngram;

// --- edges -------------------------------------------------------------------------------------

static uint64_t edge_key(uint32_t parent, int32_t token)
{
    return (uint64_t)parent << 32 | (uint32_t)token;
}

// The hash of a context that is one token longer (that of the empty context is 0): multiplicative
// (Knuth 6.4), the high half of the product depends on all lower bits. It depends on the tokens
// alone, so the slots of h_1, h_2, ... can be read before their nodes are known.
static uint32_t longer_hash(uint32_t hash, int32_t token)
{
    return (uint32_t)((edge_key(hash, token) * 0x9E3779B97F4A7C15u) >> 32);
}

// The edge, or the free slot where it would be.
static edge *edge_place(edge *table, uint64_t mask, uint32_t hash, uint64_t key)
{
    uint64_t i = hash;
    while (table[i & mask].child && table[i & mask].key != key)
        i++;
    return &table[i & mask];
}

static int grow_edges(ngram *m, dsc_error *err)
{
    uint64_t mask = m->edge ? 2 * m->mask + 1 : 1023;
    edge *table;
    int rc = dsc_new(&table, (size_t)mask + 1, err);
    if (rc)
        return rc;
    for (uint64_t i = 0; m->edge && i <= m->mask; i++)
        if (m->edge[i].child)
            *edge_place(table, mask, m->edge[i].hash, m->edge[i].key) = m->edge[i];
    free(m->edge);
    m->edge = table;
    m->mask = mask;
    return DSC_OK;
}

// --- distributions -------------------------------------------------------------------------------

// Finds the nodes of h_0, h_1, ... that occurred, and returns their number.
static int walk(const ngram *m, const dsc_place *at, uint32_t node[DSC_DIST_LEVELS])
{
    int n = 1;
    uint32_t hash = 0;
    node[0] = 0;
    for (; n < m->order && (size_t)n <= at->count; n++) {
        int32_t token = at->recent[at->count - (size_t)n];
        hash = longer_hash(hash, token);
        node[n] = edge_place(m->edge, m->mask, hash, edge_key(node[n - 1], token))->child;
        if (!node[n])
            break;
    }
    return n;
}

static void ngram_dist(const dsc_language *l, const dsc_place *at, dsc_dist *out)
{
    const ngram *m = (const ngram *)l;
    uint32_t node[DSC_DIST_LEVELS];
    int n = walk(m, at, node);
    out->vocab_size = l->vocab_size;
    out->dense = NULL;
    out->logits = NULL;
    out->levels = n;
    out->base = 1.0 / l->vocab_size;
    out->unlisted = 0;
    for (int j = 0; j < n; j++) {
        uint32_t h = node[n - 1 - j], begin = m->begin[h];
        out->level[j] = (dsc_dist_level){m->token + begin, m->probability + begin, m->upto + begin,
                                         m->begin[h + 1] - begin, m->other[h]};
    }
}

static int32_t ngram_best(const dsc_language *l, const dsc_place *at)
{
    const ngram *m = (const ngram *)l;
    uint32_t node[DSC_DIST_LEVELS];
    return m->best[node[walk(m, at, node) - 1]];
}

static dsc_token_view ngram_text(const dsc_language *l, int64_t r)
{
    const ngram *m = (const ngram *)l;
    return m->held.count ? dsc_corpus_sequence(&m->held, r % m->held.count) : (dsc_token_view){0};
}

static void ngram_free(dsc_language *l)
{
    ngram *m = (ngram *)l;
    dsc_corpus_fini(&m->held);
    free(m->edge);
    free(m->begin);
    free(m->other);
    free(m->best);
    free(m->token);
    free(m->upto);
    free(m->probability);
    free(m);
}

static const dsc_language_type type = {.name = "ngram",
                                       .dist = ngram_dist,
                                       .best = ngram_best,
                                       .text = ngram_text,
                                       .free = ngram_free};

// --- training ----------------------------------------------------------------------------------

// The training tokens, level by level. Tokens whose context would begin before their sequence are
// dropped.
typedef struct learner {
    const int32_t *text; // the corpus
    uint32_t *at;        // [count] positions in the corpus
    uint32_t *node;      // [count] of the context at the level
    uint32_t *hash;      // [count] of that context
    uint64_t *key;       // [count] node << 32 | token
    uint64_t *scratch;   // [count]
    size_t count;
    uint32_t *parent; // [nodes] of every node
    double *most;     // [nodes] probability of its most probable token
    size_t parent_capacity, most_capacity;
    double mix;
    dsc_arena arena; // of all but the text
} learner;

static int grow_node(ngram *m, learner *l, uint32_t parent, dsc_error *err)
{
    int rc =
        dsc_arena_resize(&l->arena, &l->parent, &l->parent_capacity, (size_t)m->nodes + 1, err);
    if (!rc)
        l->parent[m->nodes++] = parent;
    return rc;
}

// Extends all contexts by one token. Nodes are numbered in the order of their first occurrence.
static int extend_contexts(ngram *m, learner *l, uint32_t length, dsc_error *err)
{
    size_t kept = 0;
    int rc = DSC_OK;
    for (size_t i = 0; i < l->count && !rc; i++) {
        int32_t token = l->text[l->at[i] - length];
        if (token < 0) // the -1 before the sequence
            continue;
        if (2 * ((uint64_t)m->nodes + 1) > m->mask)
            rc = grow_edges(m, err);
        uint64_t key = edge_key(l->node[i], token);
        uint32_t hash = longer_hash(l->hash[i], token);
        edge *e = rc ? NULL : edge_place(m->edge, m->mask, hash, key);
        if (!rc && !e->child) {
            *e = (edge){key, m->nodes, hash};
            rc = grow_node(m, l, l->node[i], err);
        }
        if (!rc) {
            l->node[kept] = e->child;
            l->hash[kept] = hash;
            l->at[kept++] = l->at[i];
        }
    }
    l->count = kept;
    return rc;
}

// Radix sort, least significant byte first; bytes that all keys share are skipped. The sorted keys
// are in *key at the end; the two arrays may be swapped.
static void sort_keys(uint64_t **key, uint64_t **scratch, size_t count)
{
    for (int shift = 0; shift < 64; shift += 8) {
        size_t at[257] = {0};
        for (size_t i = 0; i < count; i++)
            at[((*key)[i] >> shift & 255) + 1]++;
        if (count == 0 || at[((*key)[0] >> shift & 255) + 1] == count)
            continue;
        for (int b = 0; b < 256; b++)
            at[b + 1] += at[b];
        for (size_t i = 0; i < count; i++)
            (*scratch)[at[(*key)[i] >> shift & 255]++] = (*key)[i];
        uint64_t *sorted = *scratch;
        *scratch = *key;
        *key = sorted;
    }
}

// Turns the list of `node`, tokens and running counts, into probabilities; finds the most probable
// token.
static void smooth(ngram *m, learner *l, uint32_t node)
{
    uint32_t begin = m->begin[node], end = m->begin[node + 1], parent = l->parent[node];
    uint32_t above = m->begin[parent]; // of the parent's list, which holds all of these tokens
    double n = m->upto[end - 1], t = end - begin, mix = node ? l->mix : 0;
    double own = (1 - mix) * n / (n + t), other = 1 - own, uniform = 1.0 / m->base.vocab_size;
    // An unlisted token is at most as probable as the parent's argmax. At node 0 all of them are
    // less probable than the listed tokens.
    int32_t best = node ? m->best[parent] : m->token[begin];
    double most = node ? other * l->most[parent] : 0;
    for (uint32_t i = begin; i < end; i++) {
        while (node && m->token[above] < m->token[i])
            above++;
        double shorter = node ? m->probability[above] : uniform;
        double p = own * (m->upto[i] - (i > begin ? m->upto[i - 1] : 0)) / n + other * shorter;
        if (p > most || (p == most && m->token[i] < best)) {
            most = p;
            best = m->token[i];
        }
        m->probability[i] = p;
    }
    m->other[node] = other;
    m->best[node] = best;
    l->most[node] = most;
}

static int grow_level(ngram *m, learner *l, size_t entries, dsc_error *err)
{
    size_t nodes = (size_t)m->nodes + 1;
    int rc = dsc_resize(&m->begin, &m->begin_capacity, nodes, err);
    if (!rc)
        rc = dsc_resize(&m->other, &m->other_capacity, nodes, err);
    if (!rc)
        rc = dsc_resize(&m->best, &m->best_capacity, nodes, err);
    if (!rc)
        rc = dsc_arena_resize(&l->arena, &l->most, &l->most_capacity, nodes, err);
    if (!rc)
        rc = dsc_resize(&m->token, &m->token_capacity, entries, err);
    if (!rc)
        rc = dsc_resize(&m->upto, &m->upto_capacity, entries, err);
    if (!rc)
        rc = dsc_resize(&m->probability, &m->probability_capacity, entries, err);
    return rc;
}

// The lists of the nodes of one level, which begin at `first`.
static int add_lists(ngram *m, learner *l, uint32_t first, uint32_t entries, dsc_error *err)
{
    size_t different = 0;
    for (size_t i = 0; i < l->count; i++)
        l->key[i] = edge_key(l->node[i], l->text[l->at[i]]);
    sort_keys(&l->key, &l->scratch, l->count);
    for (size_t i = 0; i < l->count; i++)
        different += i == 0 || l->key[i] != l->key[i - 1];
    int rc = grow_level(m, l, entries + different, err);
    if (rc)
        return rc;
    uint32_t e = entries, next = first; // node whose list begins next
    for (size_t i = 0; i < l->count; i++) {
        if (i && l->key[i] == l->key[i - 1]) {
            m->upto[e - 1]++;
            continue;
        }
        bool begins = l->key[i] >> 32 == next;
        if (begins)
            m->begin[next++] = e;
        m->token[e] = (int32_t)(uint32_t)l->key[i];
        m->upto[e] = (begins ? 0 : m->upto[e - 1]) + 1;
        e++;
    }
    m->begin[m->nodes] = e;
    for (uint32_t node = first; node < m->nodes; node++)
        smooth(m, l, node);
    return DSC_OK;
}

static bool is_held(int64_t i, int64_t hold)
{
    return hold > 0 && i % hold == hold - 1;
}

// Collects every token of the training sequences but their first.
static int collect(learner *l, const dsc_corpus *c, const dsc_ngram_options *o, dsc_error *err)
{
    size_t total = 0;
    for (int64_t i = 0; i < c->count; i++)
        if (!is_held(i, o->hold))
            total += (size_t)dsc_corpus_sequence(c, i).count - 1;
    if (total == 0)
        return dsc_fail(err, DSC_EINPUT, "no sequence of the corpus is left to train on");
    if ((uint64_t)c->start[c->count] > UINT32_MAX || total > UINT32_MAX / (uint64_t)o->order)
        return dsc_fail(
            err, DSC_EUSAGE,
            "%zu tokens in n-grams of up to %d tokens exceed the limit of 2^32 - 1 n-grams", total,
            o->order);
    int rc = dsc_arena_new(&l->arena, &l->at, total, err);
    if (!rc)
        rc = dsc_arena_new(&l->arena, &l->node, total, err);
    if (!rc)
        rc = dsc_arena_new(&l->arena, &l->hash, total, err);
    if (!rc)
        rc = dsc_arena_new(&l->arena, &l->key, total, err);
    if (!rc)
        rc = dsc_arena_new(&l->arena, &l->scratch, total, err);
    if (rc)
        return rc;
    l->text = c->token;
    l->mix = o->mix;
    memset(l->node, 0, total * sizeof *l->node); // the empty context
    memset(l->hash, 0, total * sizeof *l->hash);
    for (int64_t i = 0; i < c->count; i++)
        for (int64_t t = c->start[i] + 2; !is_held(i, o->hold) && t < c->start[i + 1]; t++)
            l->at[l->count++] = (uint32_t)t;
    return DSC_OK;
}

// Frees the training sequences.
static void keep_held(dsc_corpus *c, int64_t hold)
{
    int64_t kept = 0, at = 0;
    for (int64_t i = 0; i < c->count; i++) {
        int64_t begin = c->start[i], n = c->start[i + 1] - begin;
        if (!is_held(i, hold))
            continue;
        memmove(c->token + at, c->token + begin, (size_t)n * sizeof *c->token);
        c->start[kept++] = at;
        at += n;
    }
    c->start[kept] = at;
    c->count = kept;
    void *smaller = realloc(c->token, (at ? (size_t)at : 1) * sizeof *c->token);
    c->token = smaller ? smaller : c->token;
}

static int learn(ngram *m, const dsc_ngram_options *o, dsc_error *err)
{
    learner l = {0};
    int rc = collect(&l, &m->held, o, err);
    if (!rc)
        rc = grow_node(m, &l, 0, err);
    if (!rc)
        rc = add_lists(m, &l, 0, 0, err);
    for (int length = 1; length < o->order && !rc; length++) {
        uint32_t first = m->nodes, entries = m->begin[first];
        rc = extend_contexts(m, &l, (uint32_t)length, err);
        if (!rc)
            rc = add_lists(m, &l, first, entries, err);
    }
    dsc_arena_fini(&l.arena);
    if (!rc)
        keep_held(&m->held, o->hold);
    return rc;
}

static int check_options(const dsc_ngram_options *o, dsc_error *err)
{
    if (o->order < 1 || o->order > DSC_DIST_LEVELS)
        return dsc_fail(err, DSC_EUSAGE,
                        "the order of an n-gram model must be from 1 to %d, not %d",
                        DSC_DIST_LEVELS, o->order);
    if (!(o->mix >= 0 && o->mix <= 1))
        return dsc_fail(err, DSC_EUSAGE, "the mix of an n-gram model must be from 0 to 1, not %g",
                        o->mix);
    return DSC_OK;
}

int dsc_ngram_learn(dsc_language **out, dsc_corpus *c, const dsc_ngram_options *options,
                    dsc_error *err)
{
    ngram *m;
    *out = NULL;
    int rc = check_options(options, err);
    if (!rc)
        rc = dsc_new(&m, 1, err);
    if (rc) {
        dsc_corpus_fini(c);
        return rc;
    }
    m->held = *c;
    *c = (dsc_corpus){0};
    m->order = options->order;
    m->base = (dsc_language){.type = &type,
                             .vocab_size = m->held.vocab_size,
                             .end_token = m->held.end_token,
                             .reach = (size_t)options->order - 1,
                             .tokenizer_name = m->held.tokenizer_name,
                             .tokenizer_sha256 = m->held.tokenizer_sha256};
    rc = learn(m, options, err);
    if (rc)
        ngram_free(&m->base);
    else
        *out = &m->base;
    return rc;
}

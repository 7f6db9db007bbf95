// SPDX-License-Identifier: Apache-2.0
// Grows a draft level by level along a given tree: children are the top-k tokens, samples, or
// samples without replacement of the draft model's distribution at their parent.
#include "sim/draft/grow_tree.h"

#include "sim/draft/draft_next.h"

#include <assert.h>
#include <stdlib.h>

enum { ROOT = -1, CLOSED = -2 }; // of node[]; CLOSED: missing, or the output ends there

int64_t dsc_grow_tree_limit(const dsc_config *config)
{
    return ((const dsc_tree *)config->prepared)->depth;
}

int64_t dsc_grow_tree_width(const dsc_config *config)
{
    return ((const dsc_tree *)config->prepared)->nodes;
}

int dsc_grow_tree_levels(const dsc_config *config, int32_t nodes[DSC_MAX_LEVELS + 1])
{
    static_assert((int)DSC_TREE_DEPTH <= (int)DSC_MAX_LEVELS, "nodes[] has room for a tree");
    const dsc_tree *t = config->prepared;
    for (int i = 0; i <= t->depth; i++)
        nodes[i] = 0;
    for (int32_t i = 0; i < t->nodes; i++)
        nodes[t->level[i]]++;
    return t->depth;
}

int dsc_grow_tree_keep(dsc_tree *tree, void **prepared, dsc_error *err)
{
    dsc_tree *kept;
    int rc = dsc_new(&kept, 1, err);
    if (rc) {
        dsc_tree_fini(tree);
        return rc;
    }
    *kept = *tree;
    *prepared = kept;
    return DSC_OK;
}

void dsc_grow_tree_release(void *prepared)
{
    dsc_tree_fini(prepared);
    free(prepared);
}

int dsc_grow_tree_begin(void *state, const dsc_drafter_input *in, dsc_error *err)
{
    dsc_grow_tree *g = state;
    const dsc_tree *t = in->config->prepared;
    int32_t ranks = 0;
    *g = (dsc_grow_tree){.in = *in, .tree = t};
    for (int i = 1; i < t->nodes; i++)
        ranks = t->rank[i] >= ranks ? t->rank[i] + 1 : ranks;
    int rc = dsc_arena_new(in->arena, &g->node, (size_t)t->nodes, err);
    return rc ? rc : dsc_arena_new(in->arena, &g->sibling, (size_t)ranks, err);
}

// --- the children of one node ------------------------------------------------------------------

// The samples of one node so far, sibling[0, count).
typedef struct draws {
    const dsc_dist *dist;
    size_t count;
    double mass; // probability of these tokens
    double left; // sum of the row, once it is written out
    bool written_out;
} draws;

static bool drawn(const dsc_grow_tree *g, const draws *d, int32_t token)
{
    for (size_t i = 0; i < d->count; i++)
        if (g->sibling[i] == token)
            return true;
    return false;
}

// Writes the distribution without the sampled tokens to the row.
static void write_out(dsc_grow_tree *g, draws *d)
{
    if (!d->written_out)
        dsc_dist_fill(d->dist, g->row);
    d->written_out = true;
    for (size_t i = 0; i < d->count; i++)
        g->row[g->sibling[i]] = 0;
    d->left = 0;
    for (int32_t x = 0; x < d->dist->vocab_size; x++)
        d->left += g->row[x];
}

enum { TRY_BITS = 5 }; // low bits of the index of a sample: the try; above: the child

// A sample of the distribution given that it is none of the earlier ones: by rejection while these
// leave enough mass, else from the remaining row. Which of the two is used depends only on the
// earlier samples and on failed tries, so both have the same distribution. -1: no mass is left.
static int32_t draw_other(dsc_grow_tree *g, draws *d, int64_t length, int child)
{
    enum { TRIES = (1 << TRY_BITS) - 1 };
    static const double most = 0.9;
    uint32_t index = (uint32_t)child << TRY_BITS;
    for (uint32_t i = 0; i < TRIES && d->mass < most; i++) {
        int32_t x = dsc_dist_sample(d->dist, dsc_draft_uniform(&g->in, length, index | i));
        if (!drawn(g, d, x))
            return x;
    }
    write_out(g, d);
    if (!(d->left > 0))
        return -1;
    dsc_dist rest = {.vocab_size = d->dist->vocab_size, .dense = g->row, .unlisted = 1 - d->left};
    return dsc_dist_sample(&rest, dsc_draft_uniform(&g->in, length, index | TRIES));
}

static int append_child(dsc_grow_tree *g, int child, int32_t token, dsc_draft *draft,
                        dsc_error *err)
{
    const dsc_tree *t = g->tree;
    int rc = dsc_draft_append_chain(draft, g->node[t->parent[child]], &token, 1, err);
    if (!rc && !dsc_model_ends(g->in.models->target, t->level[child] - 1, token))
        g->node[child] = (int32_t)draft->count - 1;
    return rc;
}

static int draw_children(dsc_grow_tree *g, const dsc_dist *dist, int first, int end, int64_t length,
                         dsc_draft *draft, dsc_error *err)
{
    draws d = {.dist = dist};
    bool distinct = g->in.kind == DSC_DRAFT_SAMPLED_WITHOUT_REPLACEMENT;
    int rc = DSC_OK;
    for (int i = first; i < end && !rc; i++) {
        int32_t token = draw_other(g, &d, length, i);
        if (token < 0)
            break;
        if (distinct) {
            g->sibling[d.count++] = token;
            d.mass += dsc_dist_probability(dist, token);
        }
        rc = append_child(g, i, token, draft, err);
    }
    return rc;
}

// The distribution after a node, and a row for it.
static int find_dist(dsc_grow_tree *g, int32_t node, dsc_dist *dist, dsc_error *err)
{
    int rc = dsc_draft_next_dist(&g->in, node, dist, err);
    return rc || g->row ? rc : dsc_arena_new(g->in.arena, &g->row, (size_t)dist->vocab_size, err);
}

// The k most probable tokens after a node, into sibling[]; *n is their number.
static int find_top(dsc_grow_tree *g, int32_t node, size_t k, size_t *n, dsc_error *err)
{
    dsc_model *m = g->in.models->draft;
    dsc_dist dist;
    if (m->type->top)
        return m->type->top(m, node, k, g->sibling, n, err);
    int rc = find_dist(g, node, &dist, err);
    *n = rc ? 0 : dsc_dist_top(&dist, k, g->row, g->sibling);
    return rc;
}

static int choose_children(dsc_grow_tree *g, int32_t node, int first, int end, dsc_draft *draft,
                           dsc_error *err)
{
    const int32_t *rank = g->tree->rank;
    size_t n;
    int rc = find_top(g, node, (size_t)rank[end - 1] + 1, &n, err);
    for (int i = first; i < end && !rc && (size_t)rank[i] < n; i++)
        rc = append_child(g, i, g->sibling[rank[i]], draft, err);
    return rc;
}

// Nodes [first, end) of the tree, all children of one.
static int grow_node(dsc_grow_tree *g, int first, int end, int64_t length, dsc_draft *draft,
                     dsc_error *err)
{
    int32_t node = g->node[g->tree->parent[first]];
    dsc_dist dist;
    if (g->in.kind == DSC_DRAFT_TOPK)
        return choose_children(g, node, first, end, draft, err);
    int rc = find_dist(g, node, &dist, err);
    return rc ? rc : draw_children(g, &dist, first, end, length, draft, err);
}

// --- levels ------------------------------------------------------------------------------------

static int end_of_siblings(const dsc_tree *t, int first)
{
    int end = first + 1;
    while (end < t->nodes && t->parent[end] == t->parent[first])
        end++;
    return end;
}

// Open nodes that have children on the level that starts at `first`, whose end it finds.
static int64_t open_parents(const dsc_grow_tree *g, int first, int *end)
{
    const dsc_tree *t = g->tree;
    int64_t open = 0;
    int i = first;
    for (; i < t->nodes && t->level[i] == t->level[first]; i = end_of_siblings(t, i))
        open += g->node[t->parent[i]] != CLOSED;
    *end = i;
    return open;
}

// Announces the first sample of every child on the level [first, end).
static int prefetch_level(dsc_grow_tree *g, int first, int end, int64_t length, dsc_error *err)
{
    dsc_prefetch_list f = {.n = 0};
    int rc = DSC_OK;
    for (int i = first; i < end && !rc; i++) {
        const int32_t node = g->node[g->tree->parent[i]];
        if (node != CLOSED)
            rc = dsc_prefetch(&f, &g->in, length, node, (uint32_t)i << TRY_BITS, err);
    }
    return rc ? rc : dsc_prefetch_end(&f, &g->in, err);
}

int dsc_grow_tree_propose(void *state, const int32_t *output, int64_t length, dsc_draft *draft,
                          dsc_error *err)
{
    dsc_grow_tree *g = state;
    const dsc_tree *t = g->tree;
    (void)output;
    int64_t fresh = length - g->committed; // the first time, the last token of the prompt
    int rc = DSC_OK, level_end;
    g->committed = length;
    draft->kind = g->in.kind;
    draft->started = t->nodes > 1;
    g->node[0] = ROOT;
    for (int i = 1; i < t->nodes; i++)
        g->node[i] = CLOSED;
    for (int i = 1; i < t->nodes && !rc;) {
        int64_t open = open_parents(g, i, &level_end);
        if (!open)
            break;
        rc = dsc_draft_next_score(&g->in, i > 1 ? open : fresh > 0 ? fresh : 1, draft, err);
        if (!rc)
            rc = prefetch_level(g, i, level_end, length, err);
        for (int end; i < level_end && !rc; i = end) {
            end = end_of_siblings(t, i);
            if (g->node[t->parent[i]] != CLOSED)
                rc = grow_node(g, i, end, length, draft, err);
        }
    }
    return rc;
}

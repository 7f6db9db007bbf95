// SPDX-License-Identifier: Apache-2.0
// Traversal of a draft tree during verification: the live nodes, their children in order, and the
// distributions of one position, which a model computes in place or which are copied into rows.
#include "sim/verify/tree_verify.h"

#include "base/rng.h"
#include "theory/rows/row_sum.h"

#include <string.h>

// --- live nodes ----------------------------------------------------------------------------------

static void link_children(dsc_verify_room *r, const dsc_draft *d)
{
    for (size_t j = 0; j <= d->proposed; j++)
        r->first[j] = -1;
    for (size_t j = d->proposed; j-- > 0;) { // backwards, so that lists come out in order
        int32_t *first = &r->first[d->parent[j] + 1];
        r->sibling[j] = *first;
        *first = (int32_t)j;
    }
}

// Returns whether a candidate counts: an equal TOPK sibling changes nothing.
static bool counts_again(const dsc_tree_verify *w, int32_t token)
{
    if (w->draft->kind != DSC_DRAFT_TOPK)
        return true;
    for (size_t i = 0; i < w->candidates; i++)
        if (w->room->token[i] == token)
            return false;
    return true;
}

// Lists the children of all live nodes in candidate[] and the tokens that count in token[].
static size_t find_candidates(dsc_tree_verify *w)
{
    dsc_verify_room *r = w->room;
    size_t children = 0;
    w->candidates = 0;
    for (size_t i = 0; i < w->live; i++)
        for (int32_t j = r->first[r->live[i] + 1]; j >= 0; j = r->sibling[j]) {
            r->candidate[children++] = j;
            if (counts_again(w, w->draft->token[j]))
                r->token[w->candidates++] = w->draft->token[j];
        }
    return children;
}

int dsc_tree_verify_begin(dsc_tree_verify *w, const dsc_verify_input *in, dsc_error *err)
{
    dsc_verify_room *r = in->room;
    int32_t **const list[DSC_VERIFY_LISTS] = {&r->live, &r->candidate, &r->token, &r->first,
                                              &r->sibling};
    const size_t n = in->draft->proposed + 1;
    *w = (dsc_tree_verify){.draft = in->draft, .room = r, .live = 1};
    int rc = dsc_arena_resize(r->arena, &r->lists, &r->lists_capacity, DSC_VERIFY_LISTS * n, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < DSC_VERIFY_LISTS; i++)
        *list[i] = r->lists + i * n;
    link_children(r, in->draft);
    r->live[0] = -1;
    find_candidates(w);
    return DSC_OK;
}

void dsc_tree_verify_step(dsc_tree_verify *w, int32_t token)
{
    dsc_verify_room *r = w->room;
    size_t children = find_candidates(w);
    w->live = 0;
    for (size_t i = 0; i < children; i++)
        if (w->draft->token[r->candidate[i]] == token)
            r->live[w->live++] = r->candidate[i];
    find_candidates(w);
}

int32_t dsc_tree_verify_node(const dsc_tree_verify *w)
{
    return w->room->live[0];
}

bool dsc_tree_verify_scored(const dsc_tree_verify *w)
{
    return dsc_tree_verify_node(w) < (int32_t)(w->draft->proposed - w->draft->unscored);
}

// --- one position --------------------------------------------------------------------------------

double dsc_verify_uniform(const dsc_verify_input *in, uint32_t depth, uint32_t index)
{
    return dsc_rng_uniform(in->seed, (uint64_t)in->request, (uint32_t)in->models->target->length,
                           DSC_RNG_VERIFY | (depth << 12 | (index & 0xfff)) << 8);
}

double dsc_position_uniform(const dsc_position *at, uint32_t index)
{
    return dsc_verify_uniform(at->in, at->depth, index);
}

int32_t dsc_draw(const double *weight, size_t count, double u)
{
    return (int32_t)dsc_row_find(weight, count, u * dsc_row_sum(weight, count));
}

int dsc_verify_dist(dsc_model *m, int32_t node, dsc_dist *dist, dsc_error *err)
{
    int rc = dsc_model_dist(m, node, dist, err);
    if (!rc && dist->unlisted > 0)
        rc = dsc_fail(err, DSC_EABSENT, "model %s does not list all tokens of its distributions",
                      m->type->name);
    return rc;
}

int dsc_tree_verify_dist(const dsc_verify_input *in, dsc_model *m, int32_t node, double **row,
                         size_t *capacity, size_t *vocab, dsc_error *err)
{
    dsc_dist dist;
    int rc = dsc_verify_dist(m, node, &dist, err);
    if (!rc)
        rc = dsc_arena_resize(in->room->arena, row, capacity, (size_t)dist.vocab_size, err);
    if (rc)
        return rc;
    *vocab = (size_t)dist.vocab_size;
    dsc_dist_fill(&dist, *row);
    return DSC_OK;
}

// Copies the distributions into rows.
static int write_dists(dsc_position *at, dsc_model *draft, int32_t node, dsc_error *err)
{
    dsc_verify_room *r = at->in->room;
    size_t vocab;
    int rc = dsc_tree_verify_dist(at->in, at->in->models->target, node, &r->target,
                                  &r->target_capacity, &vocab, err);
    if (!rc && draft)
        rc = dsc_tree_verify_dist(at->in, draft, node, &r->draft, &r->draft_capacity, &vocab, err);
    if (!rc)
        rc = dsc_arena_resize(r->arena, &r->residual, &r->residual_capacity, vocab, err);
    if (!rc && draft)
        rc = dsc_rows_order_reserve(&r->order, vocab, err);
    if (rc)
        return rc;
    for (int i = 0; i < at->count; i++)
        r->target_of[i] = r->target[at->token[i]];
    for (int i = 0; i < at->count && draft; i++)
        r->draft_of[i] = r->draft[at->token[i]];
    dsc_rows_overlap_set(&at->rows, draft ? r->draft : NULL, r->target, vocab, r->residual);
    at->rows.order = draft ? &r->order : NULL;
    at->dists = &at->rows.base;
    return DSC_OK;
}

int dsc_position_overlap(dsc_position *at, int32_t node, dsc_error *err)
{
    const dsc_verify_input *in = at->in;
    dsc_verify_room *r = in->room;
    dsc_model *target = in->models->target;
    dsc_model *draft = at->drawn ? dsc_models_drafter(in->models, in->draft) : NULL;
    const size_t count = (size_t)at->count;
    int rc = dsc_arena_resize(r->arena, &r->draft_of, &r->draft_of_capacity, count, err);
    if (!rc)
        rc = dsc_arena_resize(r->arena, &r->target_of, &r->target_of_capacity, count, err);
    at->dists = NULL;
    at->draft_of = r->draft_of;
    at->target_of = r->target_of;
    for (int i = 0; i < at->count && !rc; i++)
        r->draft_of[i] = 1; // TOPK: the draft distribution is all on the candidate
    dsc_overlap_query query = {draft, in->draft,   node,         at->token,
                               count, r->draft_of, r->target_of, NULL};
    if (!rc && target->type->overlap)
        rc = target->type->overlap(target, &query, err);
    at->dists = query.overlap;
    return rc || at->dists ? rc : write_dists(at, draft, node, err);
}

int32_t dsc_position_draw(dsc_position *at, const dsc_residual *residual, double u)
{
    const dsc_residual all = {.lines = 1, .keep = {1}};
    int32_t token = 0;
    if (!(at->dists->type->residual(at->dists, residual, u, &token) > 0))
        at->dists->type->residual(at->dists, &all, u, &token);
    return token;
}

// Samples logits directly, without copying them into a row.
int dsc_verify_draw(const dsc_verify_input *in, int32_t node, double u, int32_t *token,
                    dsc_error *err)
{
    dsc_verify_room *r = in->room;
    dsc_model *m = in->models->target;
    size_t vocab;
    dsc_dist dist;
    int rc = dsc_verify_dist(m, node, &dist, err);
    if (!rc && dist.logits) {
        *token = dsc_dist_sample(&dist, u);
        return DSC_OK;
    }
    if (!rc)
        rc = dsc_tree_verify_dist(in, m, node, &r->target, &r->target_capacity, &vocab, err);
    if (!rc)
        *token = dsc_draw(r->target, vocab, u);
    return rc;
}

int dsc_tree_verify_run(const dsc_verify_input *in, dsc_choose choose, dsc_verdict *out,
                        dsc_error *err)
{
    dsc_tree_verify w;
    dsc_verdict_clear(out);
    int rc = dsc_tree_verify_begin(&w, in, err);
    while (!rc && dsc_tree_verify_scored(&w)) {
        dsc_position at = {.in = in,
                           .depth = (uint32_t)out->accepted,
                           .token = w.room->token,
                           .count = (int)w.candidates,
                           .drawn = in->draft->kind != DSC_DRAFT_TOPK};
        int chosen = -1;
        int32_t token;
        rc = at.count ? dsc_position_overlap(&at, dsc_tree_verify_node(&w), err)
                      : dsc_verify_draw(in, dsc_tree_verify_node(&w), dsc_position_uniform(&at, 0),
                                        &token, err);
        if (!rc && at.count)
            rc = choose(&at, &chosen, &token, err);
        if (rc)
            return rc;
        if (chosen >= 0)
            token = at.token[chosen];
        if (chosen < 0 || dsc_model_ends(in->models->target, at.depth, token))
            return dsc_verdict_close(out, token, err);
        dsc_tree_verify_step(&w, token);
        rc = dsc_verdict_accept(out, token, dsc_tree_verify_node(&w), err);
    }
    return rc;
}

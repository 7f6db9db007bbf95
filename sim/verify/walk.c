// SPDX-License-Identifier: Apache-2.0
#include "sim/verify/walk.h"

#include "base/rng.h"
#include "theory/row_sum.h"

#include <string.h>

// --- live nodes ----------------------------------------------------------------------------------

static int grow_ids(int32_t **array, size_t *capacity, size_t count, dsc_error *err)
{
    void *p = *array;
    int rc = dsc_grow(&p, capacity, count, sizeof **array, err);
    *array = p;
    return rc;
}

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

// Of chosen candidates a second one with the same token changes nothing.
static bool counts_again(const dsc_walk *w, int32_t token)
{
    if (w->draft->law != DSC_DRAFT_CHOSEN)
        return true;
    for (size_t i = 0; i < w->candidates; i++)
        if (w->room->token[i] == token)
            return false;
    return true;
}

// candidate[] holds the children of all live nodes, token[] what counts of them.
static size_t find_candidates(dsc_walk *w)
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

int dsc_walk_begin(dsc_walk *w, const dsc_verify_input *in, dsc_error *err)
{
    dsc_verify_room *r = in->room;
    size_t n = in->draft->proposed + 1;
    *w = (dsc_walk){.draft = in->draft, .room = r, .live = 1};
    int rc = grow_ids(&r->first, &r->first_capacity, n, err);
    if (!rc)
        rc = grow_ids(&r->sibling, &r->sibling_capacity, n, err);
    if (!rc)
        rc = grow_ids(&r->live, &r->live_capacity, n, err);
    if (!rc)
        rc = grow_ids(&r->candidate, &r->candidate_capacity, n, err);
    if (!rc)
        rc = grow_ids(&r->token, &r->token_capacity, n, err);
    if (rc)
        return rc;
    link_children(r, in->draft);
    r->live[0] = -1;
    find_candidates(w);
    return DSC_OK;
}

void dsc_walk_step(dsc_walk *w, int32_t token)
{
    dsc_verify_room *r = w->room;
    size_t children = find_candidates(w);
    w->live = 0;
    for (size_t i = 0; i < children; i++)
        if (w->draft->token[r->candidate[i]] == token)
            r->live[w->live++] = r->candidate[i];
    find_candidates(w);
}

int32_t dsc_walk_node(const dsc_walk *w)
{
    return w->room->live[0];
}

bool dsc_walk_scored(const dsc_walk *w)
{
    return dsc_walk_node(w) < (int32_t)(w->draft->proposed - w->draft->unscored);
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

int32_t dsc_draw_rest(const double *rest, const double *law, size_t count, double u)
{
    const double sum = dsc_row_sum(rest, count);
    return sum > 0 ? (int32_t)dsc_row_find(rest, count, u * sum) : dsc_draw(law, count, u);
}

static int law_at(dsc_model *m, int32_t node, dsc_dist *law, dsc_error *err)
{
    int rc = m->type->law ? m->type->law(m, node, law, err)
                          : dsc_fail(err, DSC_EABSENT, "model %s has no laws", m->type->name);
    if (!rc && law->unlisted > 0)
        rc = dsc_fail(err, DSC_EABSENT, "model %s does not list all tokens of its laws",
                      m->type->name);
    return rc;
}

int dsc_walk_law(dsc_model *m, int32_t node, double **row, size_t *capacity, size_t *vocab,
                 dsc_error *err)
{
    dsc_dist law;
    void *p = *row;
    int rc = law_at(m, node, &law, err);
    if (!rc)
        rc = dsc_grow(&p, capacity, (size_t)law.vocab_size, sizeof **row, err);
    *row = p;
    if (rc)
        return rc;
    *vocab = (size_t)law.vocab_size;
    dsc_dist_fill(&law, *row);
    return DSC_OK;
}

static int laws_at(const dsc_walk *w, dsc_position *at, dsc_error *err)
{
    dsc_verify_room *r = w->room;
    const dsc_models *m = at->in->models;
    int32_t node = dsc_walk_node(w);
    int rc = dsc_walk_law(m->target, node, &r->target, &r->target_capacity, &at->vocab, err);
    at->target = r->target;
    at->draft = NULL;
    if (!rc && w->draft->law != DSC_DRAFT_CHOSEN) {
        rc = dsc_walk_law(dsc_models_drafter(m, w->draft), node, &r->draft, &r->draft_capacity,
                          &at->vocab, err);
        at->draft = r->draft;
    }
    return rc;
}

// A draw from the target's law. One of logits need not be written out for it.
static int draw_at(const dsc_walk *w, const dsc_position *at, int32_t *token, dsc_error *err)
{
    dsc_verify_room *r = w->room;
    dsc_model *m = at->in->models->target;
    const double u = dsc_position_uniform(at, 0);
    size_t vocab;
    dsc_dist law;
    int rc = law_at(m, dsc_walk_node(w), &law, err);
    if (!rc && law.logits) {
        *token = dsc_dist_sample(&law, u);
        return DSC_OK;
    }
    if (!rc)
        rc = dsc_walk_law(m, dsc_walk_node(w), &r->target, &r->target_capacity, &vocab, err);
    if (!rc)
        *token = dsc_draw(r->target, vocab, u);
    return rc;
}

int dsc_walk_verify(const dsc_verify_input *in, dsc_choose choose, dsc_verdict *out, dsc_error *err)
{
    dsc_walk w;
    dsc_verdict_clear(out);
    int rc = dsc_walk_begin(&w, in, err);
    while (!rc && dsc_walk_scored(&w)) {
        dsc_position at = {.in = in,
                           .depth = (uint32_t)out->accepted,
                           .token = w.room->token,
                           .count = (int)w.candidates};
        int chosen = -1;
        int32_t token;
        rc = at.count ? laws_at(&w, &at, err) : draw_at(&w, &at, &token, err);
        if (!rc && at.count)
            rc = choose(&at, &chosen, &token, err);
        if (rc)
            return rc;
        if (chosen >= 0)
            token = at.token[chosen];
        if (chosen < 0 || dsc_model_ends(in->models->target, at.depth, token))
            return dsc_verdict_close(out, token, err);
        dsc_walk_step(&w, token);
        rc = dsc_verdict_accept(out, token, dsc_walk_node(&w), err);
    }
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
// Queries of the draft model for the next token of a draft, and the random numbers of drafts, keyed
// by (seed, request, output length, index).
#include "sim/draft/draft_next.h"

#include "base/rng.h"

#include <math.h>

double dsc_draft_uniform(const dsc_drafter_input *in, int64_t length, uint32_t index)
{
    if (!in || !in->request || index >> 24)
        return (double)NAN;
    return dsc_rng_uniform(in->seed, (uint64_t)in->request->index, (uint32_t)length,
                           DSC_RNG_DRAFT | index << 8);
}

int dsc_draft_next_score(const dsc_drafter_input *in, int64_t count, dsc_draft *draft,
                         dsc_error *err)
{
    draft->draft_calls++;
    draft->draft_call_tokens += count;
    return in->models->draft->type->score(in->models->draft, draft, err);
}

static int64_t depth_of(const dsc_draft *d, int32_t node)
{
    int64_t depth = 0;
    for (; node >= 0; node = d->parent[node])
        depth++;
    return depth;
}

int dsc_draft_next_dist(const dsc_drafter_input *in, int32_t node, dsc_dist *out, dsc_error *err)
{
    dsc_model *m = in->models->draft;
    if (in->kind == DSC_DRAFT_TOPK && m->type->base_dist)
        return m->type->base_dist(m, node, out, err);
    return dsc_model_dist(m, node, out, err);
}

int dsc_draft_next_token(const dsc_drafter_input *in, int64_t length, int32_t node, uint32_t index,
                         int32_t *token, dsc_error *err)
{
    dsc_model *m = in->models->draft;
    dsc_next next;
    dsc_dist dist;
    bool chosen = in->kind == DSC_DRAFT_TOPK;
    int rc =
        chosen ? m->type->next(m, node, &next, err) : dsc_draft_next_dist(in, node, &dist, err);
    if (!rc)
        *token = chosen ? next.token : dsc_dist_sample(&dist, dsc_draft_uniform(in, length, index));
    return rc;
}

int dsc_prefetch_end(dsc_prefetch_list *f, const dsc_drafter_input *in, dsc_error *err)
{
    dsc_model *m = in->models->draft;
    const size_t n = f->n;
    f->n = 0;
    return n ? m->type->prefetch(m, f->node, f->u, n, err) : DSC_OK;
}

int dsc_prefetch(dsc_prefetch_list *f, const dsc_drafter_input *in, int64_t length, int32_t node,
                 uint32_t index, dsc_error *err)
{
    if (!in->models->draft->type->prefetch || in->kind == DSC_DRAFT_TOPK)
        return DSC_OK;
    f->node[f->n] = node;
    f->u[f->n++] = dsc_draft_uniform(in, length, index);
    return f->n < DSC_PREFETCHED ? DSC_OK : dsc_prefetch_end(f, in, err);
}

int dsc_draft_next_append(const dsc_drafter_input *in, int64_t length, int32_t node,
                          dsc_draft *draft, bool *ends, dsc_error *err)
{
    int32_t token;
    int rc = dsc_draft_next_token(in, length, node, (uint32_t)draft->count, &token, err);
    if (!rc)
        rc = dsc_draft_append_chain(draft, node, &token, 1, err);
    *ends = !rc && dsc_model_ends(in->models->target, depth_of(draft, node), token);
    return rc;
}

int dsc_draft_next(const dsc_drafter_input *in, int64_t length, int32_t node, dsc_draft *draft,
                   bool *ends, dsc_error *err)
{
    int rc = dsc_draft_next_score(in, 1, draft, err);
    return rc ? rc : dsc_draft_next_append(in, length, node, draft, ends, err);
}

int dsc_draft_next_chain(const dsc_drafter_input *in, int64_t length, int64_t most, double least,
                         dsc_draft *draft, dsc_error *err)
{
    bool ends = false;
    int rc = DSC_OK;
    draft->kind = in->kind;
    draft->started = most > 0;
    for (int64_t i = 0; i < most && !ends && !rc; i++) {
        const int32_t parent = (int32_t)draft->count - 1;
        dsc_dist dist;
        rc = dsc_draft_next(in, length, parent, draft, &ends, err);
        if (!rc && least > 0)
            rc = dsc_draft_next_dist(in, parent, &dist, err);
        if (!rc && least > 0)
            ends |= dsc_dist_probability(&dist, draft->token[parent + 1]) < least;
    }
    return rc;
}

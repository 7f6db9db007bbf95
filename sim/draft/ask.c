// SPDX-License-Identifier: Apache-2.0
#include "sim/draft/ask.h"

#include "base/rng.h"

double dsc_draft_uniform(const dsc_drafter_input *in, int64_t length, uint32_t index)
{
    return dsc_rng_uniform(in->seed, (uint64_t)in->request->index, (uint32_t)length,
                           DSC_RNG_DRAFT | index << 8);
}

int dsc_ask_score(const dsc_drafter_input *in, int64_t count, dsc_draft *draft, dsc_error *err)
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

int dsc_ask_law(const dsc_drafter_input *in, int32_t node, dsc_dist *out, dsc_error *err)
{
    dsc_model *m = in->models->draft;
    if (in->law == DSC_DRAFT_CHOSEN && m->type->untempered)
        return m->type->untempered(m, node, out, err);
    return m->type->law ? m->type->law(m, node, out, err)
                        : dsc_fail(err, DSC_EABSENT, "model %s has no laws", m->type->name);
}

int dsc_ask_token(const dsc_drafter_input *in, int64_t length, int32_t node, uint32_t index,
                  int32_t *token, dsc_error *err)
{
    dsc_model *m = in->models->draft;
    dsc_next next;
    dsc_dist law;
    bool chosen = in->law == DSC_DRAFT_CHOSEN;
    int rc = chosen ? m->type->next(m, node, &next, err) : dsc_ask_law(in, node, &law, err);
    if (!rc)
        *token = chosen ? next.token : dsc_dist_sample(&law, dsc_draft_uniform(in, length, index));
    return rc;
}

int dsc_foresee_end(dsc_foresight *f, const dsc_drafter_input *in, dsc_error *err)
{
    dsc_model *m = in->models->draft;
    const size_t n = f->n;
    f->n = 0;
    return n ? m->type->foresee(m, f->node, f->u, n, err) : DSC_OK;
}

int dsc_foresee(dsc_foresight *f, const dsc_drafter_input *in, int64_t length, int32_t node,
                uint32_t index, dsc_error *err)
{
    if (!in->models->draft->type->foresee || in->law == DSC_DRAFT_CHOSEN)
        return DSC_OK;
    f->node[f->n] = node;
    f->u[f->n++] = dsc_draft_uniform(in, length, index);
    return f->n < DSC_FORESEEN ? DSC_OK : dsc_foresee_end(f, in, err);
}

int dsc_ask_append(const dsc_drafter_input *in, int64_t length, int32_t node, dsc_draft *draft,
                   bool *ends, dsc_error *err)
{
    int32_t token;
    int rc = dsc_ask_token(in, length, node, (uint32_t)draft->count, &token, err);
    if (!rc)
        rc = dsc_draft_append_chain(draft, node, &token, 1, err);
    *ends = !rc && dsc_model_ends(in->models->target, depth_of(draft, node), token);
    return rc;
}

int dsc_ask_next(const dsc_drafter_input *in, int64_t length, int32_t node, dsc_draft *draft,
                 bool *ends, dsc_error *err)
{
    int rc = dsc_ask_score(in, 1, draft, err);
    return rc ? rc : dsc_ask_append(in, length, node, draft, ends, err);
}

// SPDX-License-Identifier: Apache-2.0
// The exact optimal-transport sampler (theory/otm_sampler.h) at every position: k i.i.d. drafts,
// accepted as often as any rule can.
#include "sim/verify/walk.h"

#include "theory/acceptance.h"

static int choose(const dsc_position *at, int *chosen, int32_t *token, dsc_error *err)
{
    dsc_verify_room *r = at->in->room;
    double draft[DSC_MAX_DRAFTS], target[DSC_MAX_DRAFTS], uniform[2 * DSC_MAX_DRAFTS + 2];
    int k = at->count;
    if (k > DSC_MAX_DRAFTS)
        return dsc_fail(err, DSC_EUSAGE, "rule otm: %d drafts at one position, at most %d", k,
                        DSC_MAX_DRAFTS);
    int rc = r->otm ? DSC_OK : dsc_otm_sampler_new(&r->otm, err);
    if (!rc)
        rc = dsc_otm_sampler_build(r->otm, at->draft, at->target, at->vocab, k, err);
    if (rc)
        return rc;
    for (int i = 0; i < k; i++) {
        draft[i] = at->draft[at->token[i]];
        target[i] = at->target[at->token[i]];
    }
    for (int i = 0; i < 2 * k + 2; i++)
        uniform[i] = dsc_position_uniform(at, (uint32_t)i);
    *chosen = dsc_otm_sampler_choose(r->otm, draft, target, uniform);
    if (*chosen >= 0)
        return DSC_OK;
    void *p = r->residual;
    rc = dsc_grow(&p, &r->residual_capacity, at->vocab, sizeof *r->residual, err);
    r->residual = p;
    const double sum =
        rc ? 0 : dsc_otm_sampler_residuals(r->otm, at->draft, at->target, at->vocab, r->residual);
    if (!rc)
        *token = dsc_draw(sum > 0 ? r->residual : at->target, at->vocab,
                          dsc_position_uniform(at, 2 * (uint32_t)k + 2));
    return rc;
}

static int verify(const dsc_verify_input *in, dsc_verdict *out, dsc_error *err)
{
    return dsc_walk_verify(in, choose, out, err);
}

const dsc_verifier_type dsc_verifier_otm = {
    .name = "otm",
    .summary = "optimal transport: i.i.d. drafts accepted as often as any rule can",
    .source = "theory/otm_sampler.c; the optimum of SpecTr Eq. (4)",
    .lossless = true,
    .tree = true,
    .laws = DSC_DRAFT_IID,
    .verify = verify,
};

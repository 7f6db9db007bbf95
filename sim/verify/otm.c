// SPDX-License-Identifier: Apache-2.0
// The exact optimal-transport sampler (theory/otm_sampler.h) at every position: k i.i.d. drafts,
// accepted as often as any rule can.
#include "sim/verify/tree_verify.h"

#include "theory/acceptance.h"

static int choose(dsc_position *at, int *chosen, int32_t *token, dsc_error *err)
{
    dsc_verify_room *r = at->in->room;
    double uniform[2 * DSC_MAX_DRAFTS + 2];
    dsc_residual residual;
    int k = at->count;
    if (k > DSC_MAX_DRAFTS)
        return dsc_fail(err, DSC_EUSAGE, "rule otm: %d drafts at one position, at most %d", k,
                        DSC_MAX_DRAFTS);
    int rc = r->otm ? DSC_OK : dsc_otm_sampler_new(&r->otm, err);
    if (!rc)
        rc = dsc_otm_sampler_build_overlap(r->otm, at->dists, k, err);
    if (rc)
        return rc;
    for (int i = 0; i < 2 * k + 2; i++)
        uniform[i] = dsc_position_uniform(at, (uint32_t)i);
    *chosen = dsc_otm_sampler_choose(r->otm, at->draft_of, at->target_of, uniform);
    if (*chosen >= 0)
        return DSC_OK;
    dsc_otm_sampler_residual(r->otm, &residual);
    *token = dsc_position_draw(at, &residual, dsc_position_uniform(at, 2 * (uint32_t)k + 2));
    return DSC_OK;
}

static int verify(const dsc_verify_input *in, dsc_verdict *out, dsc_error *err)
{
    return dsc_tree_verify_run(in, choose, out, err);
}

const dsc_verifier_type dsc_verifier_otm = {
    .name = "otm",
    .summary = "optimal transport: i.i.d. drafts with the highest acceptance that any rule reaches",
    .source = "theory/otm_sampler.c; the optimum of SpecTr Eq. (4)",
    .lossless = true,
    .tree = true,
    .kinds = DSC_DRAFT_SAMPLED,
    .verify = verify,
};

// SPDX-License-Identifier: Apache-2.0
// The optimal-transport sampler (theory/otm_sampler.h) at every position: k i.i.d. drafts are
// accepted with the highest probability that a lossless rule can reach, SpecTr Eq. (4).
#include "sim/replay_dist.h"
#include "sim/verify/tree_verify.h"

#include "theory/acceptance.h"

static int choose(dsc_position *at, int *chosen, int32_t *token, dsc_error *err)
{
    dsc_verify_room *r = at->in->room;
    double uniform[2 * DSC_MAX_DRAFTS + 2];
    dsc_residual residual;
    int k = at->count;
    if (k > DSC_MAX_DRAFTS)
        return dsc_fail(err, DSC_EUSAGE,
                        "rule otm verifies at most %d drafts at one position, not %d",
                        DSC_MAX_DRAFTS, k);
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

// --- replay of a recorded output -----------------------------------------------------------------

static void from_statistics(const dsc_sufficient *s, int64_t position, int most,
                            const double y[DSC_SIDES], int drafts, double *dist)
{
    const float *known = dsc_sufficient_otm(s, most, position, 1);
    (void)y; // the recorded distributions are those given y
    for (size_t i = 0; i < dsc_position_dist_at(drafts + 1); i++)
        dist[i] = (double)known[i];
}

static int from_rows(dsc_position_room *room, size_t vocab, const double y[DSC_SIDES], int drafts,
                     double *dist, dsc_error *err)
{
    int rc = room->otm ? DSC_OK : dsc_otm_sampler_new(&room->otm, err);
    for (int k = 1; k <= drafts && !rc; k++) {
        rc = dsc_otm_sampler_build(room->otm, room->row[DSC_SIDE_DRAFT], room->row[DSC_SIDE_TARGET],
                                   vocab, k, err);
        if (!rc)
            dsc_otm_sampler_survivors(room->otm, y[DSC_SIDE_DRAFT], y[DSC_SIDE_TARGET],
                                      dist + dsc_position_dist_at(k));
    }
    return rc;
}

static const dsc_replay_dist replay = {"otm", offsetof(dsc_trace_info, has_otm), from_statistics,
                                       from_rows};

const dsc_verifier_type dsc_verifier_otm = {
    .name = "otm",
    .summary = "optimal transport: i.i.d. drafts with the highest acceptance that any rule reaches",
    .source = "Sun et al. 2023, SpecTr, the optimum of Eq. (4), arXiv 2310.15141; sampler: "
              "theory/otm_sampler.c",
    .engines = "none",
    .lossless = true,
    .tree = true,
    .kinds = DSC_DRAFT_SAMPLED,
    .replay = DSC_RULE_REPLAY_TOKEN,
    .replay_dist = &replay,
    .verify = verify,
};

// SPDX-License-Identifier: Apache-2.0
// Block verification (Sun et al. 2024, Algorithm 2; theory/block_verify.h): one chain, accepted up
// to the longest prefix whose acceptance test succeeds, whatever the tests of shorter prefixes.
#include "sim/verify/tree_verify.h"

#include "theory/block_verify.h"

// The distributions after i tokens of the draft; the candidate is token i.
static int overlap_after(dsc_position *at, const dsc_verify_input *in, uint32_t i, dsc_error *err)
{
    const dsc_draft *d = in->draft;
    *at = (dsc_position){.in = in,
                         .depth = i,
                         .token = d->token + i,
                         .count = 1,
                         .drawn = d->kind != DSC_DRAFT_TOPK};
    return dsc_position_overlap(at, (int32_t)i - 1, err);
}

// sum over x of (p target - draft)+.
static double left_of(dsc_position *at, double p)
{
    if (!(p > 0))
        return 0;
    return at->drawn ? p * dsc_overlap_curve(at->dists, 1 / p) : p * (1 - at->target_of[0]);
}

// Samples the token after `tau` accepted draft tokens; p is p_tau.
static int close_block(const dsc_verify_input *in, uint32_t tau, double p, int32_t *token,
                       dsc_error *err)
{
    const double u = dsc_verify_uniform(in, tau, 1);
    dsc_position at;
    if (tau == in->draft->proposed)
        return dsc_verify_draw(in, (int32_t)tau - 1, u, token, err);
    int rc = overlap_after(&at, in, tau, err);
    if (rc)
        return rc;
    dsc_residual residual = {.lines = 1, .keep = {p}};
    if (!at.drawn) {
        residual.own = 1;
        residual.token = at.token;
    } else if (p > 0)
        residual = (dsc_residual){.lines = 2, .from = {0, 1 / p}, .keep = {0, p}, .take = {0, 1}};
    *token = dsc_position_draw(&at, &residual, u);
    return DSC_OK;
}

static int verify(const dsc_verify_input *in, dsc_verdict *out, dsc_error *err)
{
    const dsc_draft *d = in->draft;
    uint32_t length = (uint32_t)d->proposed, tau = 0;
    double p = 1, p_tau = 1;
    int rc = DSC_OK;
    dsc_verdict_clear(out);
    for (uint32_t i = 0; i <= length && !rc; i++) { // p is p_i, after X_1 .. X_i
        dsc_position at;
        double coin = p;
        if (i < length) {
            rc = overlap_after(&at, in, i, err);
            coin = rc ? 0 : dsc_block_coin(p, left_of(&at, p));
        }
        if (i > 0 && !rc && dsc_verify_uniform(in, i, 0) < coin) {
            tau = i;
            p_tau = p;
        }
        if (i < length && !rc)
            p = dsc_block_ratio(p, at.draft_of[0], at.target_of[0]);
    }
    for (uint32_t i = 0; i < tau && !rc; i++) {
        int32_t x = d->token[i];
        if (dsc_model_ends(in->models->target, i, x))
            return dsc_verdict_close(out, x, err);
        rc = dsc_verdict_accept(out, x, (int32_t)i, err);
    }
    int32_t token = 0;
    if (!rc && tau == length && d->unscored)
        return DSC_OK; // the target has not scored the last node
    if (!rc)
        rc = close_block(in, tau, p_tau, &token, err);
    return rc ? rc : dsc_verdict_close(out, token, err);
}

const dsc_verifier_type dsc_verifier_block = {
    .name = "block",
    .summary = "block verification: a chain is accepted up to a jointly sampled position",
    .source = "Sun et al. 2024, Block Verification Accelerates Speculative Decoding, Algorithm 2, "
              "arXiv 2403.10444",
    .engines = "vLLM rejection_sample_method block",
    .lossless = true,
    .kinds = DSC_DRAFT_TOPK | DSC_DRAFT_SAMPLED,
    .replay = DSC_RULE_REPLAY_BLOCK,
    .verify = verify,
};

// SPDX-License-Identifier: Apache-2.0
// Block verification (Sun et al. 2024, Algorithm 2; theory/block_verify.h): one chain, accepted up
// to the longest prefix whose coin comes up, however the shorter ones fell.
#include "sim/verify/walk.h"

#include "theory/block_verify.h"

#include <math.h>

// A position's laws, the draft's as a row too when its candidate was chosen.
static int laws_after(const dsc_verify_input *in, int32_t node, bool proposed, size_t *vocab,
                      dsc_error *err)
{
    dsc_verify_room *r = in->room;
    const dsc_draft *d = in->draft;
    int rc = dsc_walk_law(in->models->target, node, &r->target, &r->target_capacity, vocab, err);
    if (rc || !proposed)
        return rc;
    if (d->law != DSC_DRAFT_CHOSEN)
        return dsc_walk_law(dsc_models_drafter(in->models, d), node, &r->draft, &r->draft_capacity,
                            vocab, err);
    void *p = r->draft;
    rc = dsc_grow(&p, &r->draft_capacity, *vocab, sizeof *r->draft, err);
    r->draft = p;
    for (size_t x = 0; x < *vocab && !rc; x++)
        r->draft[x] = (int32_t)x == d->token[node + 1];
    return rc;
}

// sum over x of (p target - draft)+.
static double left_of(const dsc_verify_room *r, double p, size_t vocab)
{
    double left = 0;
    for (size_t x = 0; x < vocab; x++)
        left += fmax(p * r->target[x] - r->draft[x], 0);
    return left;
}

// Draws the token after `tau` accepted drafts; p is p_tau.
static int close_block(const dsc_verify_input *in, uint32_t tau, uint32_t length, double p,
                       int32_t *token, dsc_error *err)
{
    dsc_verify_room *r = in->room;
    size_t vocab;
    int rc = laws_after(in, (int32_t)tau - 1, tau < length, &vocab, err);
    void *room = r->residual;
    if (!rc)
        rc = dsc_grow(&room, &r->residual_capacity, vocab, sizeof *r->residual, err);
    r->residual = room;
    if (rc)
        return rc;
    double sum = 0;
    if (tau < length)
        dsc_block_residual(p, r->draft, r->target, vocab, r->residual);
    for (size_t x = 0; x < vocab && tau < length; x++)
        sum += r->residual[x];
    *token = dsc_draw(sum > 0 ? r->residual : r->target, vocab, dsc_verify_uniform(in, tau, 1));
    return DSC_OK;
}

static int verify(const dsc_verify_input *in, dsc_verdict *out, dsc_error *err)
{
    const dsc_draft *d = in->draft;
    uint32_t length = (uint32_t)d->proposed, tau = 0;
    double p = 1, p_tau = 1;
    int rc = DSC_OK;
    dsc_verdict_clear(out);
    for (uint32_t i = 0; i <= length && !rc; i++) { // p is p_i, and X_1 .. X_i are behind
        size_t vocab;
        double coin = p;
        if (i < length) {
            rc = laws_after(in, (int32_t)i - 1, true, &vocab, err);
            coin = rc ? 0 : dsc_block_coin(p, left_of(in->room, p, vocab));
        }
        if (i > 0 && !rc && dsc_verify_uniform(in, i, 0) < coin) {
            tau = i;
            p_tau = p;
        }
        if (i < length && !rc) {
            int32_t x = d->token[i];
            p = dsc_block_ratio(p, in->room->draft[x], in->room->target[x]);
        }
    }
    for (uint32_t i = 0; i < tau && !rc; i++) {
        int32_t x = d->token[i];
        if (dsc_model_ends(in->models->target, i, x))
            return dsc_verdict_close(out, x, err);
        rc = dsc_verdict_accept(out, x, (int32_t)i, err);
    }
    int32_t token = 0;
    if (!rc && tau == length && d->unscored)
        return DSC_OK; // nobody asked what follows
    if (!rc)
        rc = close_block(in, tau, length, p_tau, &token, err);
    return rc ? rc : dsc_verdict_close(out, token, err);
}

const dsc_verifier_type dsc_verifier_block = {
    .name = "block",
    .summary = "block verification: one chain, accepted as a whole prefix",
    .source = "Sun et al. 2024, Block Verification Accelerates Speculative Decoding, Algorithm 2",
    .lossless = true,
    .laws = DSC_DRAFT_CHOSEN | DSC_DRAFT_IID,
    .verify = verify,
};

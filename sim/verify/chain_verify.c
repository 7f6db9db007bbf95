// SPDX-License-Identifier: Apache-2.0
// The chain that rules `rejection` and `ensemble` verify: rejection sampling of one draft
// (Leviathan et al. 2023, Alg. 1; SpecTr Alg. 1): token x is accepted with probability min(1,
// target(x)/draft(x)); the first rejected token is replaced by a sample of (target - draft)+,
// normalized.
//
// The correction is sampled by rejection too: x from the target, kept with probability
// (1 - draft(x)/target(x))+. With acceptance probability beta this takes 1/(1 - beta) samples on
// average and happens with probability 1 - beta, so it costs one sample per position, and no
// distribution is written out over the vocabulary.
//
// The ensemble rule verifies against the mixture w target + (1 - w) draft in place of the target
// (speculative decoding of a weighted ensemble: Fu et al. 2025, arXiv 2502.01662). Its residual is
// w (target - draft)+, so the correction is the same; only the acceptance changes. It is lossy, and
// no rule for one draft accepts more at its distance from the target (theory/lossy.h).
#include "sim/verify/tree_verify.h"

enum { TRIES = 4000 };

// The distributions of one position; a TOPK draft's is all on one token.
typedef struct dists {
    dsc_dist target, draft;
    bool chosen;
    int32_t token; // the candidate
} dists;

static double draft_of(const dists *l, int32_t x)
{
    return l->chosen ? x == l->token : dsc_dist_probability(&l->draft, x);
}

// Fallback after TRIES samples, which happens when a rejection was due to rounding or nearly so:
// computes the residual over the whole vocabulary.
static int draw_written_out(const dsc_verify_input *in, int32_t node, const dists *l,
                            uint32_t depth, int32_t *token, dsc_error *err)
{
    dsc_verify_room *r = in->room;
    size_t vocab;
    double sum = 0;
    int rc = dsc_tree_verify_dist(in, in->models->target, node, &r->target, &r->target_capacity,
                                  &vocab, err);
    if (!rc)
        rc = dsc_arena_resize(r->arena, &r->residual, &r->residual_capacity, vocab, err);
    if (rc)
        return rc;
    for (size_t x = 0; x < vocab; x++) {
        double left = r->target[x] - draft_of(l, (int32_t)x);
        sum += r->residual[x] = left > 0 ? left : 0;
    }
    *token = dsc_draw(sum > 0 ? r->residual : r->target, vocab,
                      dsc_verify_uniform(in, depth, TRIES + 1));
    return DSC_OK;
}

static int correct(const dsc_verify_input *in, int32_t node, const dists *l, uint32_t depth,
                   int32_t *token, dsc_error *err)
{
    for (uint32_t i = 1; i + 1 < TRIES; i += 2) {
        int32_t x = dsc_dist_sample(&l->target, dsc_verify_uniform(in, depth, i));
        double target = dsc_dist_probability(&l->target, x);
        if (dsc_verify_uniform(in, depth, i + 1) * target < target - draft_of(l, x)) {
            *token = x;
            return DSC_OK;
        }
    }
    return draw_written_out(in, node, l, depth, token, err);
}

int dsc_chain_verify(const dsc_verify_input *in, double weight, dsc_verdict *out, dsc_error *err)
{
    const dsc_models *m = in->models;
    const dsc_draft *d = in->draft;
    int32_t node = -1;
    dsc_verdict_clear(out);
    for (uint32_t depth = 0; node < (int32_t)(d->proposed - d->unscored); depth++) {
        dists l = {.chosen = d->kind == DSC_DRAFT_TOPK};
        int32_t child = node + 1, token;
        bool proposed = child < (int32_t)d->proposed;
        int rc = dsc_verify_dist(m->target, node, &l.target, err);
        if (!rc && proposed && !l.chosen)
            rc = dsc_verify_dist(dsc_models_drafter(m, d), node, &l.draft, err);
        if (rc)
            return rc;
        bool accepted = false;
        if (!proposed) {
            token = dsc_dist_sample(&l.target, dsc_verify_uniform(in, depth, 0));
        } else {
            token = l.token = d->token[child];
            const double target = dsc_dist_probability(&l.target, token);
            const double draft = draft_of(&l, token);
            accepted =
                dsc_verify_uniform(in, depth, 0) * draft < weight * target + (1 - weight) * draft;
            if (!accepted)
                rc = correct(in, node, &l, depth, &token, err);
        }
        if (rc)
            return rc;
        if (!accepted || dsc_model_ends(m->target, depth, token))
            return dsc_verdict_close(out, token, err);
        rc = dsc_verdict_accept(out, token, child, err);
        if (rc)
            return rc;
        node = child;
    }
    return DSC_OK;
}

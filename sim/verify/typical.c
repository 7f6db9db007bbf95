// SPDX-License-Identifier: Apache-2.0
// Typical acceptance (Medusa, Cai et al. 2024, section 3.3.1): a token passes when its target
// probability exceeds min(epsilon, delta exp(-H)), where H is the entropy of the target
// distribution there. The longest path on which every token passes is accepted, among several the
// one with the largest product of probabilities; the target's argmax follows it. The rule is lossy:
// the output does NOT have the target distribution.
#include "sim/verify/tree_verify.h"

#include <math.h>

// posterior_threshold and posterior_alpha of Medusa's programs.
static const double epsilon = 0.09, delta = 0.3;

// The probability that a token has to exceed.
static double threshold(const double *dist, size_t vocab)
{
    double entropy = 0;
    for (size_t x = 0; x < vocab; x++)
        entropy -= dist[x] * log(dist[x] + 1e-5);
    return fmin(epsilon, delta * exp(-entropy));
}

// room->residual[node + 1]: ln of the product of the target's probabilities down to the node when
// all of them pass, else NaN. room->first[node + 1]: its depth.
static int score_paths(const dsc_verify_input *in, dsc_error *err)
{
    const dsc_draft *d = in->draft;
    dsc_verify_room *r = in->room;
    double *sum = r->residual;
    sum[0] = 0;
    r->first[0] = 0;
    for (size_t j = 0; j < d->proposed; j++)
        sum[j + 1] = NAN;
    for (int32_t node = -1; node < (int32_t)d->proposed; node++) {
        size_t vocab;
        double passes = NAN;
        for (int32_t j = node + 1; j < (int32_t)d->proposed; j++) {
            if (d->parent[j] != node || isnan(sum[node + 1]))
                continue;
            if (isnan(passes)) {
                int rc = dsc_tree_verify_dist(in, in->models->target, node, &r->target,
                                              &r->target_capacity, &vocab, err);
                if (rc)
                    return rc;
                passes = threshold(r->target, vocab);
            }
            double p = r->target[d->token[j]];
            sum[j + 1] = p > passes ? sum[node + 1] + log(p) : NAN;
            r->first[j + 1] = r->first[node + 1] + 1;
        }
    }
    return DSC_OK;
}

// The node where the best path ends.
static int32_t best_end(const dsc_verify_input *in)
{
    const dsc_verify_room *r = in->room;
    int32_t best = -1;
    for (int32_t j = 0; j < (int32_t)in->draft->proposed; j++)
        if (!isnan(r->residual[j + 1]) &&
            (r->first[j + 1] > r->first[best + 1] ||
             (r->first[j + 1] == r->first[best + 1] && r->residual[j + 1] > r->residual[best + 1])))
            best = j;
    return best;
}

static int verify(const dsc_verify_input *in, dsc_verdict *out, dsc_error *err)
{
    const dsc_draft *d = in->draft;
    dsc_verify_room *r = in->room;
    dsc_model *target = in->models->target;
    dsc_tree_verify w;
    dsc_next next;
    dsc_verdict_clear(out);
    int rc = dsc_tree_verify_begin(&w, in, err); // room for the nodes
    if (!rc)
        rc = dsc_arena_resize(r->arena, &r->residual, &r->residual_capacity, d->proposed + 1, err);
    if (!rc)
        rc = score_paths(in, err);
    if (rc)
        return rc;
    int32_t end = best_end(in);
    size_t depth = (size_t)r->first[end + 1], i = depth;
    for (int32_t j = end; j >= 0; j = d->parent[j])
        r->live[--i] = j;
    for (i = 0; i < depth && !rc; i++) {
        int32_t x = d->token[r->live[i]];
        if (dsc_model_ends(target, (int64_t)i, x))
            return dsc_verdict_close(out, x, err);
        rc = dsc_verdict_accept(out, x, r->live[i], err);
    }
    if (!rc && end < (int32_t)(d->proposed - d->unscored)) {
        rc = target->type->next(target, end, &next, err);
        if (!rc)
            rc = dsc_verdict_close(out, next.token, err);
    }
    return rc;
}

const dsc_verifier_type dsc_verifier_typical = {
    .name = "typical",
    .summary = "typical acceptance (LOSSY: the output does not have the target's distribution)",
    .source = "Medusa, section 3.3.1, with the values of its programs (0.09, 0.3)",
    .tree = true,
    .kinds = DSC_DRAFT_TOPK | DSC_DRAFT_SAMPLED | DSC_DRAFT_SAMPLED_WITHOUT_REPLACEMENT,
    .verify = verify,
};

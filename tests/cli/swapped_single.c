// SPDX-License-Identifier: Apache-2.0
// The rule `single` with its residual swapped, for tests/cli/test_validate_live.sh: a rejected
// token is corrected by a draw from (draft - target)+ in place of (target - draft)+. Linked in
// front of the library, it is the rule of that name.
#include "sim/verify/tree_verify.h"

static int verify(const dsc_verify_input *in, dsc_verdict *out, dsc_error *err)
{
    const dsc_models *m = in->models;
    const dsc_draft *d = in->draft;
    dsc_verify_room *r = in->room;
    size_t vocab = 0;
    dsc_verdict_clear(out);
    for (int32_t node = -1, token;; node++) {
        const int32_t child = node + 1;
        const uint32_t depth = (uint32_t)child;
        const bool proposed = child < (int32_t)d->proposed;
        const double u = dsc_verify_uniform(in, depth, 0);
        bool accepted = false;
        int rc =
            dsc_tree_verify_dist(in, m->target, node, &r->target, &r->target_capacity, &vocab, err);
        if (!rc && proposed)
            rc = dsc_tree_verify_dist(in, dsc_models_drafter(m, d), node, &r->residual,
                                      &r->residual_capacity, &vocab, err);
        if (rc)
            return rc;
        token = proposed ? d->token[child] : dsc_draw(r->target, vocab, u);
        if (proposed && !(accepted = u * r->residual[token] < r->target[token])) {
            for (size_t x = 0; x < vocab; x++)
                r->residual[x] = r->residual[x] > r->target[x] ? r->residual[x] - r->target[x] : 0;
            token = dsc_draw(r->residual, vocab, dsc_verify_uniform(in, depth, 1));
        }
        if (!accepted || dsc_model_ends(m->target, depth, token))
            return dsc_verdict_close(out, token, err);
        rc = dsc_verdict_accept(out, token, child, err);
        if (rc)
            return rc;
    }
}

const dsc_verifier_type dsc_verifier_rejection = {
    .name = "rejection",
    .summary = "with its residual swapped",
    .source = "none",
    .lossless = true,
    .kinds = DSC_DRAFT_TOPK | DSC_DRAFT_SAMPLED,
    .verify = verify,
};

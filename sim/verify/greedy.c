// SPDX-License-Identifier: Apache-2.0
// Greedy verification (Stern et al. 2018, "Blockwise parallel decoding"; LLMA Algorithm 1): go
// down the draft as long as a child carries the target's argmax. A token that ends the output is
// emitted as the target's own, because no bonus can follow it.
#include "sim/verify/tree_verify.h"

static bool offers(const dsc_tree_verify *w, int32_t token)
{
    for (size_t i = 0; i < w->candidates; i++)
        if (w->room->token[i] == token)
            return true;
    return false;
}

static int verify(const dsc_verify_input *in, dsc_verdict *out, dsc_error *err)
{
    dsc_model *target = in->models->target;
    dsc_tree_verify w;
    dsc_verdict_clear(out);
    int rc = dsc_tree_verify_begin(&w, in, err);
    while (!rc && dsc_tree_verify_scored(&w)) {
        dsc_next next;
        rc = target->type->next(target, dsc_tree_verify_node(&w), &next, err);
        if (rc)
            return rc;
        if (next.ends || !offers(&w, next.token))
            return dsc_verdict_close(out, next.token, err);
        dsc_tree_verify_step(&w, next.token);
        rc = dsc_verdict_accept(out, next.token, dsc_tree_verify_node(&w), err);
    }
    return rc;
}

const dsc_verifier_type dsc_verifier_greedy = {
    .name = "greedy",
    .summary = "accept draft tokens as long as they equal the target's argmax",
    .source = "Stern et al. 2018, Blockwise Parallel Decoding, arXiv 1811.03115",
    .engines = "all, at temperature 0",
    .lossless = true,
    .greedy = true,
    .tree = true,
    .kinds = DSC_DRAFT_TOPK | DSC_DRAFT_SAMPLED | DSC_DRAFT_SAMPLED_WITHOUT_REPLACEMENT,
    .verify = verify,
};

// SPDX-License-Identifier: Apache-2.0
// Greedy verification (Stern et al. 2018, "Blockwise parallel decoding"; LLMA Algorithm 1): walk
// down the draft as long as a child carries the target's own greedy token. A token that ends the
// output is emitted as the target's own: accepting it would leave no room for the bonus.
#include "sim/verifier.h"

// The child of `node` that carries `token`, or -1. Children come after their parents.
static int32_t child_with(const dsc_draft *d, int32_t node, int32_t token)
{
    for (size_t j = (size_t)(node + 1); j < d->count; j++)
        if (d->parent[j] == node && d->token[j] == token)
            return (int32_t)j;
    return -1;
}

static int verify(dsc_model *target, const dsc_draft *draft, dsc_verdict *out, dsc_error *err)
{
    int32_t node = -1;
    out->accepted = 0;
    for (;;) {
        dsc_next next;
        int rc = target->type->next(target, node, &next, err);
        if (rc)
            return rc;
        void *p = out->token;
        rc = dsc_grow(&p, &out->capacity, out->accepted + 1, sizeof *out->token, err);
        out->token = p;
        if (rc)
            return rc;
        out->token[out->accepted] = next.token;
        if (next.ends)
            return DSC_OK;
        node = child_with(draft, node, next.token);
        if (node < 0)
            return DSC_OK;
        out->accepted++;
    }
}

const dsc_verifier_type dsc_verifier_greedy = {
    .name = "greedy",
    .summary = "accept while the draft says what the target's argmax says",
    .lossless = true,
    .tree = true,
    .verify = verify,
};

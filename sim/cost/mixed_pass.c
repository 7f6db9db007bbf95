// SPDX-License-Identifier: Apache-2.0
// The time of a pass in which some sequences decode and others compute a part of their prompt.
#include "sim/cost/mixed_pass.h"

// A pass with measured parts of prompts, which count as one part after their mean context.
static int measured_target(const dsc_cost *cost, const dsc_mixed_pass *p, double *seconds,
                           dsc_error *err)
{
    const bool alone = !(p->decoding > 0); // the first token of each part counts as a decode token
    const double batch = alone ? p->prefilling : p->decoding;
    const double tokens = alone ? p->prefilling : p->decode_tokens;
    const double context = alone ? p->prefill_context : p->decode_context;
    const dsc_pass decode = {tokens / batch, context / batch, batch, p->again};
    const dsc_pass next_to = {
        .tokens = tokens / batch, .context = p->prefill_context / p->prefilling, .batch = batch};
    double added;
    int rc = dsc_cost_target(cost, decode, seconds, err);
    if (!rc)
        rc = dsc_cost_prefill(cost, next_to, p->prefill_tokens - (alone ? p->prefilling : 0),
                              &added, err);
    *seconds += rc ? 0 : added;
    return rc;
}

int dsc_mixed_target(const dsc_cost *cost, const dsc_mixed_pass *pass, double *seconds,
                     dsc_error *err)
{
    const double batch = pass->decoding + pass->prefilling;
    if (cost->mixed && pass->prefilling > 0)
        return measured_target(cost, pass, seconds, err);
    if (cost->type->mixed)
        return cost->type->mixed(cost, pass, seconds, err);
    const dsc_pass mean = {(pass->decode_tokens + pass->prefill_tokens) / batch,
                           (pass->decode_context + pass->prefill_context) / batch, batch,
                           pass->again};
    return dsc_cost_target(cost, mean, seconds, err);
}

int dsc_mixed_first_draft(const dsc_cost *cost, dsc_pass pass, const dsc_mixed_pass *after,
                          double *seconds, dsc_error *err)
{
    pass.again = false;
    return cost->type->first_draft ? cost->type->first_draft(cost, pass, after, seconds, err)
                                   : dsc_cost_draft(cost, pass, seconds, err);
}

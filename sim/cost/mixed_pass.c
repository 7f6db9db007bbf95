// SPDX-License-Identifier: Apache-2.0
// The time of a pass in which some sequences decode and others compute a part of their prompt.
#include "sim/cost/mixed_pass.h"

int dsc_mixed_target(const dsc_cost *cost, const dsc_mixed_pass *pass, double *seconds,
                     dsc_error *err)
{
    const double batch = pass->decoding + pass->prefilling;
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

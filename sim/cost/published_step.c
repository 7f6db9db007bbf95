// SPDX-License-Identifier: Apache-2.0
// The roofline's time for a published step of an engine (sim/cost/presets.c has the steps).
#include "sim/cost/roofline.h"

int dsc_published_step_time(const dsc_published_step *step, double *seconds, dsc_error *err)
{
    dsc_cost cost;
    double target, drafts = 0;
    dsc_pass pass = {step->draft_tokens + 1, step->context, step->batch, .again = false};
    int rc = dsc_cost_parse(&cost, step->cost, err);
    if (rc)
        return rc;
    rc = dsc_cost_target(&cost, pass, &target, err);
    pass.tokens = 1;
    if (!rc && step->draft_tokens > 0)
        rc = dsc_cost_drafts(&cost, pass, step->draft_tokens + 1, step->draft_tokens, 1, &drafts,
                             err);
    if (!rc)
        *seconds = target + drafts;
    dsc_cost_fini(&cost);
    return rc;
}

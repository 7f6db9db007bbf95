// SPDX-License-Identifier: Apache-2.0
// The roofline's time for a published step of an engine (sim/cost/presets.c has the steps).
#include "sim/cost/roofline.h"

int dsc_published_step_time(const dsc_published_step *step, double *seconds, dsc_error *err)
{
    dsc_cost cost;
    double target, draft = 0;
    dsc_pass pass = {step->draft_tokens + 1, step->context, step->batch, .again = false};
    int rc = dsc_cost_parse(&cost, step->cost, err);
    if (rc)
        return rc;
    rc = dsc_cost_target(&cost, pass, &target, err);
    if (!rc && step->draft_tokens > 0)
        rc = dsc_cost_draft(&cost, pass, &draft, err);
    if (!rc)
        *seconds = target + draft;
    pass.tokens = 1;
    pass.again = true;
    if (!rc && step->draft_tokens > 1)
        rc = dsc_cost_draft(&cost, pass, &draft, err);
    if (!rc && step->draft_tokens > 1)
        *seconds += (step->draft_tokens - 1) * draft;
    dsc_cost_fini(&cost);
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
// Prices the passes of an engine step by a cost model.
#include "sim/serve/serve_price.h"

#include "sim/cost/roofline.h"

#include <math.h>

static int pass_time(const dsc_serve_price *price, int64_t sequences, int64_t tokens,
                     int64_t context, double *seconds, dsc_error *err)
{
    const double batch = (double)sequences;
    // Unless a draft model runs in between, on the same device, the target's passes follow each
    // other.
    const bool again = price->drafting == DSC_SERVE_DRAFT_FREE || price->overlap;
    const dsc_pass pass = {(double)tokens / batch, (double)context / batch, batch, again};
    return dsc_cost_target(price->cost, pass, seconds, err);
}

int dsc_serve_target_time(const dsc_serve_price *price, const dsc_serve_step *s, double *seconds,
                          dsc_error *err)
{
    if (!s->prefilling || isnan(price->prefill_s))
        return pass_time(price, s->decoding + s->prefilling, s->decode_tokens + s->prefill_tokens,
                         s->decode_context + s->prefill_context, seconds, err);
    const int rc = s->decoding ? pass_time(price, s->decoding, s->decode_tokens, s->decode_context,
                                           seconds, err)
                               : pass_time(price, 1, 1, s->prefill_context, seconds, err);
    *seconds += price->prefill_s * (double)s->prefill_tokens;
    return rc;
}

// Mean tokens of a sequence in a pass of the draft model.
static double draft_width(const dsc_serve_step *s, int32_t passes)
{
    int64_t all = 0;
    if (!s->draft_tokens)
        return 1;
    for (int32_t i = 1; i <= passes; i++)
        all += s->drafts[i];
    return (double)s->draft_tokens / (double)all;
}

int dsc_serve_draft_time(const dsc_serve_price *price, const dsc_serve_step *s, double *seconds,
                         dsc_error *err)
{
    int32_t passes = price->drafting == DSC_SERVE_DRAFT_EACH ? s->longest : s->longest > 0;
    *seconds = 0;
    if (price->drafting == DSC_SERVE_DRAFT_FREE)
        return DSC_OK;
    const double tokens = draft_width(s, passes);
    for (int32_t i = 1, last; i <= passes; i = last + 1) {
        double one, times;
        for (last = i; last < passes && i > 1 && s->drafts[last + 1] == s->drafts[i]; last++)
            ;
        const dsc_pass pass = {tokens, (double)s->draft_context / (double)s->drafts[1],
                               (double)s->drafts[i], i > 1};
        const int rc = dsc_cost_draft(price->cost, pass, &one, err);
        if (rc)
            return rc;
        times = last - i + 1;
        *seconds += times * one;
    }
    return DSC_OK;
}

double dsc_serve_token_bytes(const dsc_cost *cost)
{
    if (cost->type != &dsc_cost_roofline)
        return 0;
    const dsc_roofline *r = cost->model;
    const double draft = r->has_draft ? dsc_model_shape_cache(&r->draft) : 0;
    return (dsc_model_shape_cache(&r->target) + draft) * r->cache->bytes;
}

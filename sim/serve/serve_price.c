// SPDX-License-Identifier: Apache-2.0
// Prices the passes of an engine step by a cost model.
#include "sim/serve/serve_price.h"

#include "sim/cost/mixed_pass.h"
#include "sim/cost/roofline.h"

#include <math.h>
#include <string.h>

// Unless a draft model runs in between, on the same device, the target's passes follow each other.
static bool again(const dsc_serve_price *price)
{
    return price->drafting == DSC_SERVE_DRAFT_FREE || price->overlap;
}

static dsc_pass pass_of(const dsc_serve_price *price, int64_t sequences, int64_t tokens,
                        int64_t context)
{
    const double batch = (double)sequences;
    return (dsc_pass){(double)tokens / batch, (double)context / batch, batch, again(price)};
}

static int pass_time(const dsc_serve_price *price, int64_t sequences, int64_t tokens,
                     int64_t context, double *seconds, dsc_error *err)
{
    return dsc_cost_target(price->cost, pass_of(price, sequences, tokens, context), seconds, err);
}

static dsc_mixed_pass mixed_of(const dsc_serve_price *price, const dsc_serve_step *s)
{
    return (dsc_mixed_pass){.decoding = (double)s->decoding,
                            .decode_tokens = (double)s->decode_tokens,
                            .decode_context = (double)s->decode_context,
                            .prefilling = (double)s->prefilling,
                            .prefill_tokens = (double)s->prefill_tokens,
                            .prefill_context = (double)s->prefill_context,
                            .again = again(price)};
}

int dsc_serve_target_time(const dsc_serve_price *price, const dsc_serve_step *s, double *seconds,
                          dsc_error *err)
{
    if (!s->prefilling)
        return pass_time(price, s->decoding, s->decode_tokens, s->decode_context, seconds, err);
    if (isnan(price->prefill_s)) {
        const dsc_mixed_pass pass = mixed_of(price, s);
        return dsc_mixed_target(price->cost, &pass, seconds, err);
    }
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

// Whether the cost model filled in the passes of all sequences together.
static bool passes_together(const dsc_serve_price *price, const dsc_serve_step *s, size_t count,
                            double *seconds)
{
    const dsc_cost *cost = price->cost;
    const bool apart = s->prefilling && !isnan(price->prefill_s);
    const int64_t sequences = s->decoding + (apart ? 0 : s->prefilling),
                  tokens = s->decode_tokens + (apart ? 0 : s->prefill_tokens),
                  context = s->decode_context + (apart ? 0 : s->prefill_context);
    // A model with a time for prompts prices them apart.
    const bool mixed = s->prefilling && !apart && (cost->type->mixed || cost->mixed);
    if (!cost->type->targets || !sequences || mixed ||
        !cost->type->targets(cost, pass_of(price, sequences, tokens, context), tokens, 1, count,
                             seconds))
        return false;
    for (size_t i = 0; apart && i < count; i++)
        seconds[i] += price->prefill_s * (double)s->prefill_tokens;
    return true;
}

int dsc_serve_target_times(const dsc_serve_price *price, const dsc_serve_step *s, size_t count,
                           double *seconds, dsc_error *err)
{
    dsc_serve_step step;
    memcpy(&step, s, offsetof(dsc_serve_step, draft_context));
    step.decode_tokens += (int64_t)count - 1;
    // The longest pass tells whether the model has times for all of them.
    int rc = dsc_serve_target_time(price, &step, &seconds[count - 1], err);
    if (rc || count == 1 || passes_together(price, s, count, seconds))
        return rc;
    for (size_t i = 0; i < count && !rc; i++) {
        step.decode_tokens = s->decode_tokens + (int64_t)i;
        rc = dsc_serve_target_time(price, &step, &seconds[i], err);
    }
    return rc;
}

// A pass over `tokens` tokens of each sequence whose draft has at least `place` passes.
static int draft_pass_time(const dsc_serve_price *price, const dsc_serve_step *s, int32_t place,
                           double tokens, double *seconds, dsc_error *err)
{
    const dsc_pass pass = {tokens, (double)s->draft_context / (double)s->drafts[1],
                           (double)s->drafts[place], place > 1};
    dsc_mixed_pass after = mixed_of(price, s);
    if (place > 1)
        return dsc_cost_draft(price->cost, pass, seconds, err);
    if (!isnan(price->prefill_s)) // which has the draft model's part
        after.prefilling = after.prefill_tokens = after.prefill_context = 0;
    return dsc_mixed_first_draft(price->cost, pass, &after, seconds, err);
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
        const int rc = draft_pass_time(price, s, i, tokens, &one, err);
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

// SPDX-License-Identifier: Apache-2.0
// Prices the counts of a run: passes of the target and the draft model in turn, or overlapped, and
// the same output at one token per call.
#include "sim/cost/price.h"

#include "sim/cost/width_dist.h"

#include <inttypes.h>
#include <math.h>

// Mean seconds of a target call; `pass` has the mean width, the context and the batch.
static int target_call(const dsc_cost *cost, const dsc_counts *c, dsc_pass pass, double *seconds,
                       dsc_error *err)
{
    dsc_width_dist dist;
    if (cost->type->linear || c->width_length < 1)
        return dsc_cost_target(cost, pass, seconds, err);
    int rc = dsc_width_dist_init(&dist, c->width, c->width_length, (int64_t)pass.batch, err);
    *seconds = 0;
    for (size_t i = 0; !rc && i < dist.count; i++) {
        double one;
        if (dist.chance[i] <= 0)
            continue;
        pass.tokens = (double)(dist.least + (int64_t)i) / pass.batch;
        rc = dsc_cost_target(cost, pass, &one, err);
        *seconds += rc ? 0 : dist.chance[i] * one;
    }
    dsc_width_dist_fini(&dist);
    return rc;
}

// Draft model and target at the same time: a step takes as long as the longer of the two.
static int overlapped(const dsc_cost *cost, const dsc_counts *c, dsc_pass pass, dsc_price *out,
                      dsc_error *err)
{
    double draft = 0;
    int rc = DSC_OK;
    out->time_s = out->draft_s = out->verify_s = 0;
    for (int64_t i = 0; i < c->parallel_length * c->parallel_length && !rc; i++) {
        int64_t calls = i / c->parallel_length, steps = c->parallel_steps[i];
        double target;
        if (!steps)
            continue;
        pass.tokens = 1;
        rc = calls ? dsc_cost_draft(cost, pass, &draft, err) : DSC_OK;
        pass.tokens = (double)(i % c->parallel_length + 1);
        if (!rc)
            rc = dsc_cost_target(cost, pass, &target, err);
        if (rc)
            break;
        out->time_s += (double)steps * fmax((double)calls * draft, target);
        out->draft_s += (double)(steps * calls) * draft;
        out->verify_s += (double)steps * target;
    }
    return rc;
}

// Draft model and target in turn.
static int in_turns(const dsc_cost *cost, const dsc_counts *c, dsc_pass pass, dsc_price *out,
                    dsc_error *err)
{
    const dsc_expected x = dsc_counts_real(c);
    const double rows =
        fmin(x.target_calls, x.draft_calls); // steps that draft, for the first pass of each draft
    double target;
    pass.tokens = x.target_call_tokens / x.target_calls;
    pass.again = !(x.draft_calls > 0);
    out->draft_s = 0;
    int rc = target_call(cost, c, pass, &target, err);
    if (!rc && x.draft_calls > 0) {
        pass.tokens = x.draft_call_tokens / x.draft_calls;
        rc = dsc_cost_drafts(cost, pass, x.draft_calls, rows, &out->draft_s, err);
    }
    if (rc)
        return rc;
    out->verify_s = x.target_calls * target;
    out->time_s = out->verify_s + out->draft_s;
    return rc;
}

static int check(const dsc_price *out, const dsc_cost *cost, const dsc_counts *counts,
                 int64_t batch, dsc_error *err)
{
    if (!out || !cost || !cost->type || !counts)
        return dsc_fail(
            err, DSC_EUSAGE,
            "out, cost and counts must not be NULL, and dsc_cost_parse initializes a cost");
    if (batch < 1 || batch > DSC_MAX_BATCH)
        return dsc_fail(err, DSC_EUSAGE, "batch is %" PRId64 "; it must be from 1 to %d", batch,
                        DSC_MAX_BATCH);
    return DSC_OK;
}

int dsc_price_run(dsc_price *out, const dsc_cost *cost, const dsc_counts *counts, int64_t batch,
                  dsc_error *err)
{
    int rc = check(out, cost, counts, batch, err);
    if (rc)
        return rc;
    const dsc_expected x = dsc_counts_real(counts);
    double tokens = (double)counts->output_tokens;
    *out = (dsc_price){NAN, NAN, NAN, NAN, NAN, NAN};
    if (!(x.target_calls > 0) || !(tokens > 0))
        return DSC_OK;
    // Models that overlap run on separate processors.
    const dsc_pass pass = {.context = x.target_call_context / x.target_calls,
                           .batch = (double)batch,
                           .again = counts->parallel_steps != NULL};
    dsc_cost other = *cost;
    other.quartile = -cost->quartile;
    const dsc_pass plain = {1, (double)counts->output_context / tokens, (double)batch, true};
    rc = counts->parallel_steps ? overlapped(cost, counts, pass, out, err)
                                : in_turns(cost, counts, pass, out, err);
    if (!rc && !cost->no_plain)
        rc = dsc_cost_target(&other, plain, &out->plain_s, err);
    if (rc)
        return rc;
    out->plain_s *= tokens;
    out->speedup = out->plain_s / out->time_s;
    out->tokens_per_s = (double)batch * tokens / out->time_s;
    return DSC_OK;
}

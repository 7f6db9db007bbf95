// SPDX-License-Identifier: Apache-2.0
// Prices the counts of a run: passes of the target and the draft model in turn, or overlapped, and
// the same output at one token per call.
#include "sim/cost/price.h"

#include "sim/cost/width_dist.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

// Seconds of the target's passes that have the tokens of a distribution, [dist->count]; `pass` has
// the context and the batch. Passes that do not occur are 0 or priced: a cost may have no time.
static int target_times(const dsc_cost *cost, const dsc_width_dist *dist, dsc_pass pass,
                        double *seconds, dsc_error *err)
{
    dsc_error why = {0};
    int rc = DSC_OK;
    const int64_t most = dist->least + (int64_t)(dist->count - 1) * dist->step;
    pass.tokens = (double)most / pass.batch;
    if (cost->type->targets && !dsc_cost_target(cost, pass, seconds, &why) &&
        cost->type->targets(cost, pass, dist->least, dist->step, dist->count, seconds))
        return DSC_OK;
    for (size_t i = 0; i < dist->count && !rc; i++) {
        seconds[i] = 0;
        pass.tokens = (double)(dist->least + (int64_t)i * dist->step) / pass.batch;
        if (dist->chance[i] > 0)
            rc = dsc_cost_target(cost, pass, &seconds[i], err);
    }
    return rc;
}

// Mean seconds of a target call; `pass` has the mean width, the context and the batch.
static int target_call(const dsc_cost *cost, const dsc_counts *c, dsc_pass pass, double *seconds,
                       dsc_error *err)
{
    dsc_width_dist dist;
    double *time = NULL;
    if (cost->type->linear || c->width_length < 1)
        return dsc_cost_target(cost, pass, seconds, err);
    int rc = dsc_width_dist_init(&dist, c->width, c->width_length, (int64_t)pass.batch, err);
    if (!rc)
        rc = dsc_new(&time, dist.count, err);
    if (!rc)
        rc = target_times(cost, &dist, pass, time, err);
    *seconds = 0;
    for (size_t i = 0; i < dist.count && !rc; i++)
        *seconds += dist.chance[i] * time[i];
    free(time);
    dsc_width_dist_fini(&dist);
    return rc;
}

// Draft model and target at the same time, one sequence: a step takes as long as the longer of the
// two.
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

// Mean seconds of a step that calls the draft model `calls` times, where the tokens of the target's
// pass have the distribution; *target is the mean of that pass alone.
static int longer_of_both(const dsc_cost *cost, const dsc_width_dist *dist, double draft,
                          dsc_pass pass, double *step, double *target, dsc_error *err)
{
    double *time;
    int rc = dsc_new(&time, dist->count, err);
    *step = *target = 0;
    if (!rc && dist->count)
        rc = target_times(cost, dist, pass, time, err);
    for (size_t i = 0; !rc && i < dist->count; i++) {
        *step += dist->chance[i] * fmax(draft, time[i]);
        *target += dist->chance[i] * time[i];
    }
    free(time);
    return rc;
}

// The steps of a run with up to some number of calls of the draft model.
typedef struct steps_up_to {
    int64_t *width;      // [parallel_length] steps on m + 1 tokens
    int64_t count;       // steps
    double share;        // probability that no sequence of a batch has more calls
    dsc_width_dist dist; // tokens of the batch's pass in that case
} steps_up_to;

// Adds the steps with `calls` calls. Returns whether there are any.
static bool add_calls(steps_up_to *s, const dsc_counts *c, int64_t calls)
{
    const int64_t *steps = c->parallel_steps + calls * c->parallel_length, before = s->count;
    for (int64_t w = 0; w < c->parallel_length; w++) {
        s->width[w] += steps[w];
        s->count += steps[w];
    }
    return s->count > before;
}

// Draft model and target at the same time, in a batch: the sequences are in states of their own,
// the target's pass covers the tokens of all of them, and the step waits for the sequence with the
// most calls of the draft model. With the probability F_c that no sequence has more than c calls,
// the mean time of a step is the sum over c of
//   F_c E[step with c calls | at most c] - F_{c-1} E[step with c calls | at most c - 1]
static int overlapped_batch(const dsc_cost *cost, const dsc_counts *c, dsc_pass pass,
                            dsc_price *out, dsc_error *err)
{
    steps_up_to s = {0};
    double one = 0, all = 0;
    int rc = dsc_new(&s.width, (size_t)c->parallel_length, err);
    out->time_s = out->draft_s = out->verify_s = 0;
    for (int64_t i = 0; i < c->parallel_length * c->parallel_length; i++)
        all += (double)c->parallel_steps[i];
    pass.tokens = 1;
    for (int64_t calls = 0; calls < c->parallel_length && !rc; calls++) {
        double with[2] = {0, 0}, without[2] = {0, 0};
        const double before = s.share;
        dsc_width_dist old = s.dist;
        if (!add_calls(&s, c, calls))
            continue;
        s.share = pow((double)s.count / all, pass.batch);
        rc = dsc_width_dist_init(&s.dist, s.width, c->parallel_length, (int64_t)pass.batch, err);
        if (!rc && calls && !(one > 0))
            rc = dsc_cost_draft(cost, pass, &one, err);
        const double draft = (double)calls * one;
        if (!rc)
            rc = longer_of_both(cost, &s.dist, draft, pass, &with[0], &with[1], err);
        if (!rc)
            rc = longer_of_both(cost, &old, draft, pass, &without[0], &without[1], err);
        dsc_width_dist_fini(&old);
        out->time_s += all * (s.share * with[0] - before * without[0]);
        out->verify_s += all * (s.share * with[1] - before * without[1]);
        out->draft_s += all * (s.share - before) * draft;
    }
    dsc_width_dist_fini(&s.dist);
    free(s.width);
    return rc;
}

// Draft model and target in turn.
static int in_turns(const dsc_cost *cost, const dsc_counts *c, dsc_pass pass, dsc_price *out,
                    dsc_error *err)
{
    const dsc_expected x = dsc_counts_real(c);
    const double rows =
        fmin(x.target_calls, x.draft_calls); // steps that draft, for the first pass of each draft
    const double verified = x.target_call_tokens / x.target_calls;
    double target;
    pass.tokens = verified;
    pass.again = !(x.draft_calls > 0);
    out->draft_s = 0;
    int rc = target_call(cost, c, pass, &target, err);
    if (!rc && x.draft_calls > 0) {
        pass.tokens = x.draft_call_tokens / x.draft_calls;
        rc = dsc_cost_drafts(cost, pass, verified, x.draft_calls, rows, &out->draft_s, err);
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
    rc = !counts->parallel_steps ? in_turns(cost, counts, pass, out, err)
         : batch == 1            ? overlapped(cost, counts, pass, out, err)
                                 : overlapped_batch(cost, counts, pass, out, err);
    if (!rc && !cost->no_plain)
        rc = dsc_cost_target(&other, plain, &out->plain_s, err);
    if (rc)
        return rc;
    out->plain_s *= tokens;
    out->speedup = out->plain_s / out->time_s;
    out->tokens_per_s = (double)batch * tokens / out->time_s;
    return DSC_OK;
}

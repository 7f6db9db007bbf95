// SPDX-License-Identifier: Apache-2.0
// The best division of outputs into steps; sim/cost/speedup_bound.h.
#include "sim/cost/speedup_bound.h"

#include <math.h>
#include <stdlib.h>

// Arrays over the positions 0 .. count of an output.
typedef struct planner {
    const dsc_cost *cost;
    dsc_speedup_bound *out;
    int64_t longest;
    double draft_s;
    double *least; // [capacity] seconds from the position on
    size_t capacity;
    int64_t *calls; // [calls_capacity] of the target in that time
    size_t calls_capacity;
    double *width; // [longest + 2] seconds of a pass by its tokens, for costs without contexts
} planner;

static int pass_time(const planner *p, int64_t tokens, double context, double *seconds,
                     dsc_error *err)
{
    if (p->width) {
        *seconds = p->width[tokens];
        return DSC_OK;
    }
    const dsc_pass pass = {(double)tokens, context, 1, true};
    return dsc_cost_target(p->cost, pass, seconds, err);
}

static int plan(planner *p, double prompt, int64_t count, dsc_error *err)
{
    int rc = DSC_OK;
    p->least[count] = 0;
    p->calls[count] = 0;
    for (int64_t at = count - 1; at >= 0 && !rc; at--) {
        const int64_t most = count - at < p->longest + 1 ? count - at : p->longest + 1;
        p->least[at] = INFINITY;
        for (int64_t n = 1; n <= most && !rc; n++) {
            double seconds;
            rc = pass_time(p, n, prompt + (double)at, &seconds, err);
            seconds += (double)(n - 1) * p->draft_s + p->least[at + n];
            if (!rc && seconds < p->least[at]) {
                p->least[at] = seconds;
                p->calls[at] = 1 + p->calls[at + n];
            }
        }
    }
    return rc;
}

static int visit(void *context, const dsc_request *q, dsc_error *err)
{
    planner *p = context;
    const int64_t count = q->output.count;
    const double prompt = (double)q->prompt.count;
    int rc = dsc_resize(&p->least, &p->capacity, (size_t)count + 1, err);
    if (!rc)
        rc = dsc_resize(&p->calls, &p->calls_capacity, (size_t)count + 1, err);
    if (!rc)
        rc = plan(p, prompt, count, err);
    if (rc)
        return rc;
    p->out->least_s += p->least[0];
    p->out->calls += p->calls[0];
    p->out->tokens += count;
    p->out->context += (double)count * (prompt + (double)(count - 1) / 2);
    return DSC_OK;
}

static int fill_widths(planner *p, dsc_error *err)
{
    int rc = dsc_new(&p->width, (size_t)p->longest + 2, err);
    for (int64_t n = 1; n <= p->longest + 1 && !rc; n++)
        rc = dsc_cost_target(p->cost, (dsc_pass){(double)n, 0, 1, true}, &p->width[n], err);
    return rc;
}

int dsc_speedup_bound_of(dsc_speedup_bound *out, const dsc_trace *trace, const dsc_cost *cost,
                         int64_t longest, double draft_s, dsc_error *err)
{
    planner p = {.cost = cost, .out = out, .longest = longest, .draft_s = draft_s};
    *out = (dsc_speedup_bound){.speedup = NAN, .plain_s = NAN};
    if (longest < 0 || longest > 1000000 || !(draft_s >= 0 && isfinite(draft_s)))
        return dsc_fail(err, DSC_EUSAGE,
                        "a bound needs a draft length from 0 to 1000000 and a draft cost of at "
                        "least 0");
    int rc = cost->type->linear ? fill_widths(&p, err) : DSC_OK;
    if (!rc)
        rc = dsc_trace_each(trace, visit, &p, err);
    free(p.least);
    free(p.calls);
    free(p.width);
    if (rc || !out->tokens)
        return rc ? rc : dsc_fail(err, DSC_EUSAGE, "the trace has no output tokens");
    out->context /= (double)out->tokens;
    if (cost->no_plain)
        return DSC_OK;
    const dsc_pass plain = {1, out->context, 1, true};
    rc = dsc_cost_target(cost, plain, &out->plain_s, err);
    out->plain_s *= (double)out->tokens;
    out->speedup = out->plain_s / out->least_s;
    return rc;
}

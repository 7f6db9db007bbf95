// SPDX-License-Identifier: Apache-2.0
// A linear cost model fitted to a recorded run: verify_s = FIXED + PER_TOKEN x (drafted + 1) and
// draft_s = DRAFT x drafted. Both lines are fitted to the steps of a trace with step times,
// robustly against interrupted steps (base/statistics.h). DRAFT is the time of a call, because a
// draft model is called once for each draft token.
#include "sim/cost/cost.h"

#include "base/statistics.h"
#include "traces/trace/trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_STEPS = 1 << 17
}; // points of the fit: longer runs are thinned to every second, fourth, ... step

typedef struct points {
    double *x, *y;
    size_t count, x_capacity, y_capacity;
} points;

static int add_point(points *p, double x, double y, dsc_error *err)
{
    void *xs = p->x, *ys = p->y;
    int rc = dsc_grow(&xs, &p->x_capacity, p->count + 1, sizeof *p->x, err);
    p->x = xs;
    if (!rc)
        rc = dsc_grow(&ys, &p->y_capacity, p->count + 1, sizeof *p->y, err);
    p->y = ys;
    if (rc)
        return rc;
    p->x[p->count] = x;
    p->y[p->count++] = y;
    return DSC_OK;
}

// Drops every second point.
static void thin(points *p)
{
    for (size_t i = 0; 2 * i < p->count; i++) {
        p->x[i] = p->x[2 * i];
        p->y[i] = p->y[2 * i];
    }
    p->count = (p->count + 1) / 2;
}

typedef struct sample {
    points verify, draft; // over tokens in the pass, over draft tokens
    int64_t steps, stride;
} sample;

static int add_step(sample *s, const dsc_steps *t, int64_t i, dsc_error *err)
{
    double drafted = t->drafted ? t->drafted[i] : 0;
    if (s->steps++ % s->stride)
        return DSC_OK;
    int rc = add_point(&s->verify, drafted + 1, (double)t->verify_s[i], err);
    if (!rc && t->draft_s && t->drafted)
        rc = add_point(&s->draft, drafted, (double)t->draft_s[i], err);
    if (!rc && s->verify.count > MOST_STEPS) {
        thin(&s->verify);
        if (s->draft.count)
            thin(&s->draft);
        s->stride *= 2;
    }
    return rc;
}

static int add_steps(void *context, const dsc_request *q, dsc_error *err)
{
    int rc = DSC_OK;
    for (int64_t i = 0; i < q->steps.count && !rc; i++)
        rc = add_step(context, &q->steps, i, err);
    return rc;
}

// Formats the relative errors of the points: " (median error 0.8 %, 90 % within 3.1 %)".
static void describe(const points *p, dsc_line line, double *room, char *text, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < p->count; i++)
        if (p->y[i] > 0)
            room[n++] = 100 * fabs(p->y[i] - line.intercept - line.slope * p->x[i]) / p->y[i];
    dsc_summary s = dsc_summarize(room, n);
    snprintf(text, size, " (median error %.2g %%, 90 %% within %.2g %%)", s.median, s.p90);
}

// Appends to the note; `room` is scratch for a number per step.
static int fit_verify(const points *p, dsc_cost *cost, double *room, dsc_error *err)
{
    dsc_line line;
    char errors[80];
    int rc = dsc_fit_line(p->x, p->y, p->count, &line, err);
    if (rc)
        return rc;
    cost->fixed_s = line.intercept;
    cost->per_token_s = line.slope;
    describe(p, line, room, errors, sizeof errors);
    snprintf(cost->note, sizeof cost->note, "%zu steps: verify_s = %.4g + %.4g x tokens%s",
             p->count, line.intercept, line.slope, errors);
    return DSC_OK;
}

static int fit_draft(const points *p, dsc_cost *cost, double *room, dsc_error *err)
{
    dsc_line line;
    char errors[80];
    size_t used = strlen(cost->note);
    int rc = dsc_fit_line_through_origin(p->x, p->y, p->count, &line, err);
    if (rc)
        return rc;
    cost->draft_s = line.slope;
    describe(p, line, room, errors, sizeof errors);
    snprintf(cost->note + used, sizeof cost->note - used, "; draft_s = %.4g x draft tokens%s",
             line.slope, errors);
    return DSC_OK;
}

static int fit(const sample *s, dsc_cost *cost, dsc_error *err)
{
    void *room;
    int rc = dsc_alloc(&room, s->verify.count, sizeof(double), err);
    if (!rc)
        rc = fit_verify(&s->verify, cost, room, err);
    if (!rc && s->draft.count)
        rc = fit_draft(&s->draft, cost, room, err);
    free(room);
    return rc;
}

static int open_fit(dsc_cost *cost, const char *path, dsc_error *err)
{
    dsc_trace *trace;
    sample s = {.stride = 1};
    int rc = dsc_trace_open(&trace, path, err);
    if (rc)
        return rc;
    if (!dsc_trace_get_info(trace)->has_step_verify_s)
        rc = dsc_fail(err, DSC_EINPUT, "%s: the trace lacks step times (verify_s)", path);
    if (!rc)
        rc = dsc_trace_each(trace, add_steps, &s, err);
    if (!rc && !s.verify.count)
        rc = dsc_fail(err, DSC_EINPUT, "%s: the trace has no steps", path);
    if (!rc)
        rc = fit(&s, cost, err);
    if (!rc && !(cost->fixed_s + cost->per_token_s > 0))
        rc = dsc_fail(err, DSC_EINPUT, "%s: all step times are 0", path);
    dsc_trace_close(trace);
    free(s.verify.x);
    free(s.verify.y);
    free(s.draft.x);
    free(s.draft.y);
    return rc;
}

const dsc_cost_type dsc_cost_fit = {.name = "fit",
                                    .summary = "linear, fitted to the steps of a recorded run",
                                    .usage = "TRACE",
                                    .linear = true,
                                    .open = open_fit};

// SPDX-License-Identifier: Apache-2.0
// A linear cost model fitted to a recorded run: verify_s = FIXED + PER_TOKEN x (drafted + 1) and
// draft_s = DRAFT x drafted. Both lines are fitted to the steps of a trace with step times,
// robustly against interrupted steps (base/statistics.h). DRAFT is the time of a call, because a
// draft model is called once for each draft token. The lines of half of the requests are compared
// with the others (sim/cost/fit_residuals.h). A trace without step times is fitted by the wall
// times of its requests (sim/cost/fit_wall.h).
#include "sim/cost/cost.h"

#include "base/statistics.h"
#include "sim/cost/fit_residuals.h"
#include "sim/cost/fit_wall.h"
#include "traces/trace/trace.h"
#include "traces/trace/trace_json.h"

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
    int rc = dsc_resize(&p->x, &p->x_capacity, p->count + 1, err);
    if (!rc)
        rc = dsc_resize(&p->y, &p->y_capacity, p->count + 1, err);
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
    bool even; // only the requests with even numbers
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
    sample *s = context;
    int rc = DSC_OK;
    for (int64_t i = 0; i < q->steps.count && !rc && !(s->even && q->index % 2); i++)
        rc = add_step(s, &q->steps, i, err);
    return rc;
}

typedef int fitter(const double *x, const double *y, size_t n, dsc_line *out, dsc_error *err);

// Fits a line and formats the relative errors of the points: "median error 0.8 %, 90 % within 3.1
// %". `room` is scratch for a number per point.
static int fit_points(const points *p, fitter *fit_line, double *room, dsc_line *line,
                      char errors[80], dsc_error *err)
{
    size_t n = 0;
    int rc = fit_line(p->x, p->y, p->count, line, err);
    for (size_t i = 0; i < p->count && !rc; i++)
        if (p->y[i] > 0)
            room[n++] = 100 * fabs(p->y[i] - line->intercept - line->slope * p->x[i]) / p->y[i];
    dsc_summary s = dsc_summarize(room, n);
    snprintf(errors, 80, "median error %.2g %%, 90 %% within %.2g %%", s.median, s.p90);
    return rc;
}

static int fit(const sample *s, dsc_cost *cost, dsc_error *err)
{
    double *room;
    char errors[80];
    dsc_line verify, draft;
    int used = 0, rc = dsc_new(&room, s->verify.count, err);
    if (!rc)
        rc = fit_points(&s->verify, dsc_fit_line, room, &verify, errors, err);
    if (!rc) {
        cost->fixed_s = verify.intercept;
        cost->per_token_s = verify.slope;
        used = snprintf(cost->note, sizeof cost->note,
                        "%zu steps: verify_s = %.4g + %.4g x tokens (%s)", s->verify.count,
                        verify.intercept, verify.slope, errors);
    }
    if (!rc && s->draft.count)
        rc = fit_points(&s->draft, dsc_fit_line_through_origin, room, &draft, errors, err);
    if (!rc && s->draft.count) {
        cost->draft_s = draft.slope;
        snprintf(cost->note + used, sizeof cost->note - (size_t)used,
                 "; draft_s = %.4g x draft tokens (%s)", draft.slope, errors);
    }
    free(room);
    return rc;
}

static void free_sample(sample *s)
{
    free(s->verify.x);
    free(s->verify.y);
    free(s->draft.x);
    free(s->draft.y);
}

// The prediction of the requests with odd numbers from those with even ones.
typedef struct prediction {
    dsc_line verify, draft;
    dsc_fit_residuals residuals;
    bool count; // the first of two walks: count the requests of each category
} prediction;

static int predict(void *context, const dsc_request *q, dsc_error *err)
{
    prediction *p = context;
    const dsc_steps *t = &q->steps;
    json_t *metadata;
    double measured = 0, predicted = 0;
    int rc = dsc_request_metadata(&metadata, q, err);
    if (rc)
        return rc;
    for (int64_t i = 0; i < t->count; i++) {
        const double drafted = t->drafted ? t->drafted[i] : 0;
        const bool drafts = t->draft_s && t->drafted;
        measured += (double)t->verify_s[i] + (drafts ? (double)t->draft_s[i] : 0);
        predicted += p->verify.intercept + p->verify.slope * (drafted + 1) +
                     (drafts ? p->draft.slope * drafted : 0);
    }
    const int category = dsc_fit_category_of(&p->residuals, metadata);
    if (p->count)
        p->residuals.category[category].requests++;
    else if (q->index % 2)
        dsc_fit_hold_out(&p->residuals, category, measured, predicted);
    json_decref(metadata);
    return DSC_OK;
}

// Appends the residuals on half of the requests to the note.
static int hold_out(dsc_cost *cost, const dsc_trace *trace, dsc_error *err)
{
    sample s = {.stride = 1, .even = true};
    prediction p = {.count = true};
    int rc = dsc_trace_each(trace, add_steps, &s, err);
    if (!rc && s.verify.count)
        rc = dsc_fit_line(s.verify.x, s.verify.y, s.verify.count, &p.verify, err);
    if (!rc && s.draft.count)
        rc = dsc_fit_line_through_origin(s.draft.x, s.draft.y, s.draft.count, &p.draft, err);
    if (!rc)
        rc = dsc_trace_each(trace, predict, &p, err);
    p.count = false;
    if (!rc)
        rc = dsc_trace_each(trace, predict, &p, err);
    if (!rc)
        dsc_fit_describe(&p.residuals, cost->note, sizeof cost->note);
    free_sample(&s);
    return rc;
}

static int fit_steps(dsc_cost *cost, const dsc_trace *trace, const char *path, dsc_error *err)
{
    sample s = {.stride = 1};
    int rc = dsc_trace_each(trace, add_steps, &s, err);
    if (!rc && !s.verify.count)
        rc = dsc_fail(err, DSC_EINPUT, "%s: the trace has no steps", path);
    if (!rc)
        rc = fit(&s, cost, err);
    if (!rc && !(cost->fixed_s + cost->per_token_s > 0))
        rc = dsc_fail(err, DSC_EINPUT, "%s: all step times are 0", path);
    if (!rc && dsc_trace_get_info(trace)->requests >= DSC_HOLD_OUT_MIN)
        rc = hold_out(cost, trace, err);
    free_sample(&s);
    return rc;
}

static int open_fit(dsc_cost *cost, const char *path, dsc_error *err)
{
    dsc_trace *trace;
    int rc = dsc_trace_open(&trace, path, err);
    if (rc)
        return rc;
    rc = dsc_trace_get_info(trace)->has_step_verify_s ? fit_steps(cost, trace, path, err)
                                                      : dsc_fit_wall(cost, trace, err);
    dsc_trace_close(trace);
    return rc;
}

const dsc_cost_type dsc_cost_fit = {
    .name = "fit",
    .summary = "linear, fitted to the step or wall times of a recorded run",
    .usage = "TRACE",
    .linear = true,
    .open = open_fit};

// SPDX-License-Identifier: Apache-2.0
// The wall time of a request as a sum over what it did,
//
//   wall = STEP steps + DRAFT drafted + PROMPT prompt + CONTEXT sum of contexts + START turns,
//
// by robust least squares (base/statistics.h) with residuals in proportion to the square root of
// the time. `drafted` is the number of draft tokens; where it is not recorded, the accepted tokens
// stand for it. Terms that are 0 or proportional to earlier ones in every request are left out, and
// so are those whose time would be negative. Half of the requests, every second one, is fitted for
// the residuals on the other half; the result is the fit to all.
//
// A pass of one token costs STEP and its context. A further token costs DRAFT, with the time that
// the draft model took for it; in a run without drafts it costs PROMPT, which is not too little as
// long as a pass is bound by memory. If the lengths of drafts are unknown, STEP contains a draft
// and the time of a step without one is unknown (dsc_cost.no_plain).
#include "sim/cost/fit_wall.h"

#include "base/memory.h"
#include "base/statistics.h"
#include "sim/cost/fit_residuals.h"
#include "traces/trace/trace_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEP, DRAFT, PROMPT, CONTEXT, START, TERMS };
static const char *const term_name[TERMS] = {"steps", "draft tokens", "prompt tokens",
                                             "thousand tokens of context in a step", "turns"};

typedef struct request {
    double x[TERMS], wall_s;
    int category;
} request;

typedef struct sample {
    const dsc_trace_info *info;
    request *item; // [count]
    size_t count, capacity;
    int64_t left_out; // without a wall time
    dsc_fit_residuals residuals;
    double drafted, accepted;
} sample;

// --- a request -----------------------------------------------------------------------------------

// Adds up a number of seconds or an array of them, one for each turn. *turns 0: there is none.
static int read_wall(const json_t *metadata, const dsc_request *q, double *wall_s, int64_t *turns,
                     dsc_error *err)
{
    static const char *const field[] = {"wall_time", "e2e_latency"};
    const json_t *wall = json_object_get(metadata, field[0]);
    const char *name = wall ? field[0] : field[1];
    wall = wall ? wall : json_object_get(metadata, name);
    const size_t n = json_is_array(wall) ? json_array_size(wall) : wall != NULL;
    *wall_s = 0;
    *turns = (int64_t)n;
    for (size_t i = 0; i < n; i++) {
        const json_t *x = json_is_array(wall) ? json_array_get(wall, i) : wall;
        if (!(json_number_value(x) > 0 && json_number_value(x) <= 1e9)) // 0: it is no number
            return dsc_fail(
                err, DSC_EINPUT,
                "request %.*s: %s must be a time in seconds above 0 and up to 1e9, not %g",
                (int)(q->id.length < 60 ? q->id.length : 60), q->id.bytes, name,
                json_number_value(x));
        *wall_s += json_number_value(x);
    }
    return DSC_OK;
}

static int add_request(sample *s, const dsc_request *q, double wall_s, int64_t turns,
                       const json_t *metadata, dsc_error *err)
{
    int rc = dsc_resize(&s->item, &s->capacity, s->count + 1, err);
    if (rc)
        return rc;
    request *r = &s->item[s->count++];
    const bool logged = s->info->steps != DSC_STEPS_NONE;
    const double output = (double)q->output.count, prompt = (double)q->prompt.count;
    double drafted = 0, accepted = 0;
    for (int64_t i = 0; i < q->steps.count; i++) {
        accepted += q->steps.accepted[i];
        drafted += q->steps.drafted ? q->steps.drafted[i] : 0;
    }
    s->accepted += accepted;
    s->drafted += drafted;
    const double steps = logged ? (double)q->steps.count : output;
    *r = (request){{[STEP] = steps,
                    [DRAFT] = s->info->has_step_drafted ? drafted : accepted,
                    [PROMPT] = prompt,
                    [CONTEXT] = steps * (prompt + output / 2) / 1000,
                    [START] = (double)turns},
                   wall_s,
                   dsc_fit_category_of(&s->residuals, metadata)};
    s->residuals.category[r->category].requests++;
    return DSC_OK;
}

static int visit(void *context, const dsc_request *q, dsc_error *err)
{
    sample *s = context;
    json_t *metadata;
    double wall_s = 0;
    int64_t turns = 0;
    int rc = dsc_request_metadata(&metadata, q, err);
    if (!rc)
        rc = read_wall(metadata, q, &wall_s, &turns, err);
    if (!rc && turns)
        rc = add_request(s, q, wall_s, turns, metadata, err);
    s->left_out += !turns;
    json_decref(metadata);
    return rc;
}

// --- the terms -----------------------------------------------------------------------------------

// Chooses the terms that are not 0 and not proportional to earlier ones, by orthogonalization of
// the weighted columns. DSC_EINPUT: steps are 0, or draft tokens proportional to them.
static int choose_terms(const sample *s, bool use[TERMS], const char *path, dsc_error *err)
{
    double *q;
    const size_t n = s->count;
    int rc = dsc_new(&q, TERMS * n, err);
    for (int t = 0; t < TERMS && !rc; t++) {
        double whole = 0, rest = 0;
        for (size_t i = 0; i < n; i++) {
            q[(size_t)t * n + i] = s->item[i].x[t] / sqrt(s->item[i].wall_s);
            whole += q[(size_t)t * n + i] * q[(size_t)t * n + i];
        }
        for (int u = 0; u < t; u++) {
            double product = 0;
            for (size_t i = 0; i < n && use[u]; i++)
                product += q[(size_t)t * n + i] * q[(size_t)u * n + i];
            for (size_t i = 0; i < n && use[u]; i++)
                q[(size_t)t * n + i] -= product * q[(size_t)u * n + i];
        }
        for (size_t i = 0; i < n; i++)
            rest += q[(size_t)t * n + i] * q[(size_t)t * n + i];
        use[t] = rest > 1e-12 * whole;
        for (size_t i = 0; i < n && use[t]; i++)
            q[(size_t)t * n + i] /= sqrt(rest);
        if (t == DRAFT && whole > 0 && !use[t])
            rc = dsc_fail(err, DSC_EINPUT,
                          "%s: %s are a fixed multiple of the steps in every request, so their "
                          "times cannot be separated; add runs with another draft length",
                          path, s->info->has_step_drafted ? "draft tokens" : "accepted tokens");
        if (t == STEP && !use[t])
            rc = dsc_fail(err, DSC_EINPUT, "%s: the requests with wall times have no steps", path);
    }
    free(q);
    return rc;
}

static int fit_once(const sample *s, size_t stride, const bool use[TERMS], double out[TERMS],
                    dsc_error *err)
{
    double *rows, found[TERMS], scale;
    size_t columns = 0, n = 0;
    for (int t = 0; t < TERMS; t++)
        columns += use[t];
    int rc = dsc_new(&rows, s->count * (columns + 1), err);
    if (rc)
        return rc;
    double *to = rows, *y = rows + s->count * columns;
    for (size_t i = 0; i < s->count; i += stride) {
        const request *r = &s->item[i];
        for (int t = 0; t < TERMS; t++)
            if (use[t])
                *to++ = r->x[t] / sqrt(r->wall_s);
        y[n++] = sqrt(r->wall_s);
    }
    rc = dsc_fit_robust(rows, columns, y, n, found, &scale, err);
    free(rows);
    for (int t = 0, c = 0; t < TERMS; t++)
        out[t] = use[t] ? found[c++] : 0;
    return rc;
}

// Fits, and leaves out the terms with a negative time, the largest first.
static int fit_terms(const sample *s, bool use[TERMS], double out[TERMS], const char *path,
                     dsc_error *err)
{
    for (;;) {
        int rc = fit_once(s, 1, use, out, err), worst = STEP;
        double least = 0;
        for (int t = DRAFT; t < TERMS && !rc; t++) {
            double sum = 0;
            for (size_t i = 0; i < s->count; i++)
                sum += out[t] * s->item[i].x[t];
            worst = sum < least ? t : worst;
            least = fmin(sum, least);
        }
        if (rc)
            return rc;
        if (worst == STEP && !(out[STEP] > 0))
            return dsc_fail(err, DSC_EINPUT, "%s: wall times do not grow with the steps", path);
        if (worst == STEP)
            return DSC_OK;
        use[worst] = false;
    }
}

// --- the result ----------------------------------------------------------------------------------

// Predicts the odd requests from the even ones.
static int hold_out(sample *s, const bool use[TERMS], dsc_error *err)
{
    double c[TERMS];
    int rc = fit_once(s, 2, use, c, err);
    for (size_t i = 1; i < s->count && !rc; i += 2) {
        const request *r = &s->item[i];
        double predicted = 0;
        for (int t = 0; t < TERMS; t++)
            predicted += c[t] * r->x[t];
        dsc_fit_hold_out(&s->residuals, r->category, r->wall_s, predicted);
    }
    return rc;
}

static void append(dsc_cost *cost, size_t *used, const char *format, ...) DSC_PRINTF(3, 4);
static void append(dsc_cost *cost, size_t *used, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(cost->note + *used, sizeof cost->note - *used, format, args);
    va_end(args);
    *used =
        n < 0 || (size_t)n >= sizeof cost->note - *used ? sizeof cost->note - 1 : *used + (size_t)n;
}

static void describe(dsc_cost *cost, const sample *s, const double c[TERMS])
{
    size_t used = 0;
    append(cost, &used, "%zu requests: wall_s =", s->count);
    for (int t = 0; t < TERMS; t++)
        if (c[t] > 0)
            append(cost, &used, "%s %.4g x %s", t == STEP ? "" : " +", c[t],
                   t == DRAFT && !s->info->has_step_drafted ? "accepted tokens" : term_name[t]);
    if (s->left_out)
        append(cost, &used, "; %" PRId64 " without a wall time left out", s->left_out);
    dsc_fit_describe(&s->residuals, cost->note, sizeof cost->note);
}

// Takes the cost from the terms.
static int convert(dsc_cost *cost, const sample *s, const double c[TERMS], const char *path,
                   dsc_error *err)
{
    double steps = 0, context = 0;
    for (size_t i = 0; i < s->count; i++) {
        steps += s->item[i].x[STEP];
        context += s->item[i].x[CONTEXT];
    }
    const double step_s = c[STEP] + c[CONTEXT] * context / steps;
    const bool drafts = s->accepted > 0 || s->drafted > 0;
    if (drafts && !s->info->has_step_drafted) {
        cost->fixed_s = step_s + c[DRAFT] * s->accepted / steps;
        cost->no_plain = "the lengths of the drafts are not recorded, so the time of a step "
                         "without speculation is unknown; fit a run without speculation";
        return DSC_OK;
    }
    cost->per_token_s = drafts ? c[DRAFT] : c[PROMPT];
    if (!drafts && !(cost->per_token_s > 0))
        return dsc_fail(err, DSC_EINPUT,
                        "%s: the run has no drafts and %s, so the time of a draft token is "
                        "unknown; import a run with drafts%s",
                        path,
                        s->info->prompt_tokens ? "wall times do not grow with the prompts"
                                               : "the trace has no prompts",
                        s->info->prompt_tokens ? "" : ", or with prompts (--questions)");
    cost->fixed_s = fmax(step_s - cost->per_token_s, 0);
    return DSC_OK;
}

int dsc_fit_wall(dsc_cost *cost, const dsc_trace *trace, dsc_error *err)
{
    sample s = {.info = dsc_trace_get_info(trace)};
    const char *path = dsc_trace_path(trace);
    bool use[TERMS] = {false};
    double c[TERMS];
    int rc = dsc_trace_each(trace, visit, &s, err);
    if (rc == DSC_EINPUT)
        dsc_error_prefix(err, rc, "%s", path);
    if (!rc && !s.count)
        rc = dsc_fail(err, DSC_EINPUT,
                      "%s: the trace has neither step times (verify_s) nor wall times (metadata "
                      "field wall_time)",
                      path);
    if (!rc && s.count < DSC_HOLD_OUT_MIN)
        rc = dsc_fail(err, DSC_EINPUT,
                      "%s: only %zu requests have wall times; a fit and its held-out half take at "
                      "least %d",
                      path, s.count, DSC_HOLD_OUT_MIN);
    if (!rc)
        rc = choose_terms(&s, use, path, err);
    if (!rc)
        rc = fit_terms(&s, use, c, path, err);
    if (!rc)
        rc = hold_out(&s, use, err);
    if (!rc)
        rc = convert(cost, &s, c, path, err);
    if (!rc)
        describe(cost, &s, c);
    free(s.item);
    return rc;
}

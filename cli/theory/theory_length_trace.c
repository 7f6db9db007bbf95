// SPDX-License-Identifier: Apache-2.0
// draftscope theory length --trace: the expected tokens per target call by draft length, from the
// recorded steps of a trace or from accept lengths by position, with and without an effect of each
// request (theory/request_effect.h). Accept lengths also give the exact value of every length.
#include "cli/theory/theory_length.h"
#include "theory/request_effect.h"
#include "traces/trace/trace.h"

#include <stdlib.h>

enum {
    LENGTH,
    RATE,
    RATE_WITH,
    PLAIN,
    WITH,
    MEASURED,
    SPEEDUP,
    SPEEDUP_WITH,
    REQUESTS,
    SD,
    GAIN,
    COLUMNS
};

// One half of the requests, or all of them.
typedef struct sample {
    dsc_conditional_count *count; // [requests][positions]
    double *tokens;               // [requests] written by the steps
    size_t requests, count_capacity, tokens_capacity;
    double output, *calls; // tokens of all outputs; [most + 1] target calls by draft length
} sample;

typedef struct collector {
    const dsc_trace_info *info;
    int drafter;         // -1: the recorded steps
    int positions, most; // that are fitted; the longest draft of the table
    bool held_out;
    sample sample[2]; // requests to fit to; held-out requests
} collector;

// --- the trace -----------------------------------------------------------------------------------

static int find_longest(void *context, const dsc_request *q, dsc_error *err)
{
    collector *c = context;
    (void)err;
    for (int64_t i = 0; i < q->steps.count; i++) {
        const int n = q->steps.drafted ? q->steps.drafted[i] : q->steps.accepted[i];
        c->positions = n > c->positions ? n : c->positions;
    }
    return DSC_OK;
}

// Adds a step to the counts of a request, cut to the positions that are fitted.
static int add_step(const collector *c, sample *s, int accepted, int drafted, dsc_error *err)
{
    dsc_conditional_count *count = s->count + s->requests * (size_t)c->positions;
    const int d = drafted < c->positions ? drafted : c->positions, m = accepted < d ? accepted : d;
    s->tokens[s->requests] += m + 1;
    return dsc_conditional_add(count, c->positions, m, d, 1, err);
}

static int add_recorded_steps(const collector *c, sample *s, const dsc_request *q, dsc_error *err)
{
    int rc = DSC_OK;
    for (int64_t i = 0; i < q->steps.count && !rc; i++) {
        const int a = q->steps.accepted[i], d = q->steps.drafted ? q->steps.drafted[i] : 65535;
        rc = add_step(c, s, a, d, err);
        s->output += a + 1;
        if (c->positions <= c->most)
            s->calls[c->positions]++;
    }
    return rc;
}

// The steps of drafts of `length` tokens. Returns their number; adds them to the counts if asked.
static int walk(const collector *c, sample *s, const dsc_request *q, int length, bool add,
                double *calls, dsc_error *err)
{
    const uint16_t *lengths = q->accept[c->drafter];
    int rc = DSC_OK;
    *calls = 0;
    for (int64_t p = 0, n = q->output.count; p < n && !rc; ++*calls) {
        const int64_t left = n - 1 - p, room = left < length ? left : length;
        const int64_t a = lengths[p] < room ? lengths[p] : room;
        if (add)
            rc = add_step(c, s, (int)a, (int)room, err);
        p += a + 1;
    }
    return rc;
}

static int add_lengths(const collector *c, sample *s, const dsc_request *q, dsc_error *err)
{
    double calls;
    int rc = walk(c, s, q, c->positions, true, &calls, err);
    const int cap = c->info->drafter[c->drafter].cap;
    for (int l = 0; l <= c->most && l <= cap && !rc; l++) {
        rc = walk(c, s, q, l, false, &calls, err);
        s->calls[l] += calls;
    }
    s->output += (double)q->output.count;
    return rc;
}

static int collect(void *context, const dsc_request *q, dsc_error *err)
{
    collector *c = context;
    sample *s = &c->sample[c->held_out && q->index % 2];
    const size_t n = (size_t)c->positions;
    int rc = dsc_resize(&s->count, &s->count_capacity, (s->requests + 1) * n, err);
    if (!rc)
        rc = dsc_resize(&s->tokens, &s->tokens_capacity, s->requests + 1, err);
    if (rc)
        return rc;
    memset(s->count + s->requests * n, 0, n * sizeof *s->count);
    s->tokens[s->requests] = 0;
    rc = c->drafter < 0 ? add_recorded_steps(c, s, q, err) : add_lengths(c, s, q, err);
    s->requests += s->tokens[s->requests] > 0;
    return rc;
}

// Chooses what is read: the drafter, or the steps.
static int choose(collector *c, const dsc_trace *trace, const char *name, dsc_error *err)
{
    c->drafter = -1;
    for (int d = 0; d < c->info->drafters; d++)
        if (name ? strcmp(c->info->drafter[d].name, name) == 0
                 : c->info->steps == DSC_STEPS_NONE && c->info->drafters == 1)
            c->drafter = d;
    if (c->drafter >= 0) {
        c->positions = c->info->drafter[c->drafter].cap;
        return DSC_OK;
    }
    if (name || c->info->steps == DSC_STEPS_NONE)
        return dsc_fail(
            err, DSC_EUSAGE, "%s: %s%.64s; --drafter names a drafter that `trace info` lists",
            dsc_trace_path(trace), name ? "no accept lengths of drafter " : "no recorded steps",
            name ? name : "");
    return dsc_trace_each(trace, find_longest, c, err);
}

static int read_trace(collector *c, const dsc_trace *trace, const dsc_option_value *value,
                      dsc_error *err)
{
    c->info = dsc_trace_get_info(trace);
    c->held_out = value[CLI_LENGTH_HELD_OUT].given;
    int rc = choose(c, trace, value[CLI_LENGTH_DRAFTER].text, err);
    const int64_t fit = value[CLI_LENGTH_FIT].integer;
    if (!rc && c->positions < 1)
        rc = dsc_fail(err, DSC_EUSAGE, "%s: no step accepted a draft token", dsc_trace_path(trace));
    if (rc)
        return rc;
    const int recorded = c->positions;
    c->positions = fit && fit < recorded ? (int)fit : recorded;
    c->positions = c->positions < DSC_EFFECT_POSITIONS ? c->positions : DSC_EFFECT_POSITIONS;
    c->most = value[CLI_LENGTH_MAX].given ? (int)value[CLI_LENGTH_MAX].integer : recorded;
    for (int h = 0; h < 2 && !rc; h++)
        rc = dsc_new(&c->sample[h].calls, (size_t)c->most + 1, err);
    if (!rc)
        rc = dsc_trace_each(trace, collect, c, err);
    // Steps that were cut for the fit are no measurement of that length.
    if (c->drafter < 0 && c->positions < recorded)
        for (int h = 0; h < 2; h++)
            c->sample[h].output = NAN;
    return rc;
}

// --- the table -----------------------------------------------------------------------------------

static int one_number(const dsc_option *o, const char *text, double *out, dsc_error *err)
{
    double *list;
    size_t n;
    int rc = dsc_option_reals(o, text, &list, &n, err);
    if (rc)
        return rc;
    *out = list[0];
    free(list);
    return n == 1 ? DSC_OK
                  : dsc_fail(err, DSC_EUSAGE, "--%s: with --trace, one value is needed", o->name);
}

static double measured(const sample *s, int length)
{
    return s->calls[length] > 0 ? s->output / s->calls[length] : NAN;
}

static int add_rows(dsc_table *t, const collector *c, const dsc_request_effect *e,
                    const double *plain, const double *with, dsc_block_cost cost, dsc_error *err)
{
    const sample *seen = &c->sample[c->held_out];
    double gain = e->gain;
    int rc = DSC_OK;
    if (c->held_out)
        gain = 0;
    for (size_t i = 0; i < seen->requests && c->held_out; i++)
        gain += dsc_request_effect_gain(e, seen->count + i * (size_t)c->positions);
    for (int l = 1; l <= c->most && !rc; l++) {
        const int j = (l < e->positions ? l : e->positions) - 1;
        const dsc_cell row[COLUMNS] = {
            [LENGTH] = cli_integer(l),
            [RATE] = cli_real(e->rate[j]),
            [RATE_WITH] = cli_real(1 / (1 + exp(-e->intercept[j]))),
            [PLAIN] = cli_real(plain[l]),
            [WITH] = cli_real(with[l]),
            [MEASURED] = cli_real(measured(seen, l)),
            [SPEEDUP] = cli_real(dsc_block_speedup(plain[l] - 1, l, cost)),
            [SPEEDUP_WITH] = cli_real(dsc_block_speedup(with[l] - 1, l, cost)),
            [REQUESTS] = cli_integer((int64_t)seen->requests),
            [SD] = cli_real(e->sd),
            [GAIN] = cli_real(gain),
        };
        rc = dsc_table_add_row(t, row, err);
    }
    return rc;
}

static int fit_and_add(dsc_table *t, const collector *c, const dsc_option *option,
                       const dsc_option_value *value, dsc_error *err)
{
    const sample *s = &c->sample[0];
    const size_t room = (size_t)c->most + 1;
    dsc_block_cost cost;
    dsc_request_effect e;
    double *curve;
    int rc = one_number(&option[CLI_LENGTH_DRAFT_COST], value[CLI_LENGTH_DRAFT_COST].text,
                        &cost.draft, err);
    if (!rc)
        rc = one_number(&option[CLI_LENGTH_TARGET_SLOPE], value[CLI_LENGTH_TARGET_SLOPE].text,
                        &cost.slope, err);
    if (!rc && c->held_out && !c->sample[1].requests)
        rc = dsc_fail(err, DSC_EUSAGE, "--held-out: the trace has one request");
    if (!rc)
        rc = dsc_request_effect_fit(s->count, s->requests, c->positions, &e, err);
    if (rc)
        return rc;
    rc = dsc_new(&curve, 2 * room, err);
    if (!rc)
        rc = dsc_request_effect_curve(&e, s->count, c->positions, s->tokens, s->requests, c->most,
                                      curve, curve + room, err);
    if (!rc)
        rc = add_rows(t, c, &e, curve, curve + room, cost, err);
    free(curve);
    return rc;
}

int cli_length_fill(dsc_table *t, const dsc_option *option, const dsc_option_value *value,
                    dsc_error *err)
{
    collector c = {0};
    dsc_trace *trace;
    int rc = dsc_table_add_columns(t, cli_length_columns, COLUMNS, err);
    if (!rc)
        rc = dsc_trace_open(&trace, value[CLI_LENGTH_TRACE].text, err);
    if (rc)
        return rc;
    rc = read_trace(&c, trace, value, err);
    if (!rc)
        rc = fit_and_add(t, &c, option, value, err);
    for (int h = 0; h < 2; h++) {
        free(c.sample[h].count);
        free(c.sample[h].tokens);
        free(c.sample[h].calls);
    }
    dsc_trace_close(trace);
    return rc;
}

// clang-format off
const dsc_column cli_length_columns[CLI_LENGTH_COLUMNS] = {
    [LENGTH] = {"length", DSC_CELL_INT, "draft tokens per target call"},
    [RATE] = {"conditional_acceptance_rate", DSC_CELL_REAL, "acceptance rate at the position of "
              "that number, given that all earlier ones were accepted, of all requests together"},
    [RATE_WITH] = {"conditional_acceptance_rate_median", DSC_CELL_REAL, "the same rate of the "
                   "median request, from which others differ by effect_sd on the logit"},
    [PLAIN] = {"block_efficiency", DSC_CELL_REAL, "expected output tokens per target call, from "
               "one rate for each position; the last rate applies to later positions"},
    [WITH] = {"block_efficiency_effect", DSC_CELL_REAL, "expected output tokens per target call "
              "with an effect of each request"},
    [MEASURED] = {"block_efficiency_measured", DSC_CELL_REAL, "output tokens per target call in "
                  "the trace, of the held-out requests with --held-out; nan: not recorded"},
    [SPEEDUP] = {"speedup", DSC_CELL_REAL, "speedup without an effect, over one token per target "
                 "call"},
    [SPEEDUP_WITH] = {"speedup_effect", DSC_CELL_REAL, "speedup with an effect of each request"},
    [REQUESTS] = {"requests", DSC_CELL_INT, "requests that were measured"},
    [SD] = {"effect_sd", DSC_CELL_REAL, "standard deviation of the effect of a request on the "
            "logit of its acceptance rates; 0: requests do not differ"},
    [GAIN] = {"effect_gain", DSC_CELL_REAL, "log-likelihood that the effect adds for these "
              "requests, in nats; with --held-out it may be negative"},
};
// clang-format on

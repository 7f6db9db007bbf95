// SPDX-License-Identifier: Apache-2.0
// Measured speedup of a recorded run with speculation over one without, of all requests and by a
// metadata field, with bootstrap intervals over requests, and the predicted speedup.
#include "cli/validate/validate_pair.h"

#include "cli/method.h"
#include "cli/result.h"
#include "sim/tune/bootstrap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIELD, PERCENT_TEXT = 32 };
// clang-format off
const dsc_column validate_pair_columns[VALIDATE_PAIR_COLUMNS] = {
    {"FIELD", DSC_CELL_TEXT, "value of the metadata field of --by; all: every matched request"},
    {"method", DSC_CELL_TEXT, "method whose speedup is predicted; recorded: that of B's steps"},
    {"quantity", DSC_CELL_TEXT, "what is compared: speedup"},
    {"requests", DSC_CELL_INT, "number of matched requests"},
    {"tokens_without", DSC_CELL_REAL, "output tokens of A"},
    {"tokens_with", DSC_CELL_REAL, "output tokens of B"},
    {"measured", DSC_CELL_REAL, "seconds per output token of A / of B"},
    {"measured_low", DSC_CELL_REAL, "95 % CI of measured, lower bound (bootstrap over requests)"},
    {"measured_high", DSC_CELL_REAL, "95 % CI of measured, upper bound (bootstrap over requests)"},
    {"per_request", DSC_CELL_REAL,
     "seconds of A / of B; differs from measured where the outputs differ in length"},
    {"per_request_low", DSC_CELL_REAL,
     "95 % CI of per_request, lower bound (bootstrap over requests)"},
    {"per_request_high", DSC_CELL_REAL,
     "95 % CI of per_request, upper bound (bootstrap over requests)"},
    {"mean_rate", DSC_CELL_REAL,
     "mean over requests of output tokens per second, of B / of A (Spec-Bench's speedup)"},
    {"predicted", DSC_CELL_REAL, "predicted speedup per output token"},
    {"error_percent", DSC_CELL_REAL, "100 (predicted / measured - 1)"},
    {"tolerance", DSC_CELL_TEXT, "largest |error_percent|"},
    {"verdict", DSC_CELL_TEXT,
     "pass: within the tolerance or within the interval of measured; else fail"},
};
// clang-format on

// --- reading ------------------------------------------------------------------------------------

typedef struct reader {
    validate_pair *pair;
    int run;
} reader;

static int add_request(void *context, const dsc_request *q, dsc_error *err)
{
    const reader *r = context;
    validate_pair *p = r->pair;
    const int64_t pair = p->matches.pair[r->run][q->index];
    return pair < 0 ? DSC_OK
                    : validate_turns_add(&p->turns[r->run], q, dsc_trace_path(p->trace[r->run]),
                                         (size_t)pair, validate_pair_group(p, (size_t)pair), err);
}

static int read_run(validate_pair *p, int run, dsc_error *err)
{
    const size_t n = p->matches.count;
    reader r = {p, run};
    int rc = dsc_new(&p->tokens[run], n, err);
    if (!rc)
        rc = dsc_new(&p->time_s[run], n, err);
    if (!rc)
        rc = dsc_new(&p->rate[run], n, err);
    if (!rc)
        rc = dsc_trace_each(p->trace[run], add_request, &r, err);
    for (size_t i = 0; i < p->turns[run].count && !rc; i++) {
        const validate_turn *t = &p->turns[run].turn[i];
        p->tokens[run][t->request] += t->tokens;
        p->time_s[run][t->request] += t->time_s;
    }
    for (size_t i = 0; i < n && !rc; i++)
        p->rate[run][i] = p->tokens[run][i] / p->time_s[run][i];
    return rc;
}

// The field of --by; without the option, category where the requests have it.
static int read_groups(validate_pair *p, const char *by, dsc_error *err)
{
    dsc_error none;
    int rc = DSC_OK;
    if (by)
        rc = dsc_trace_groups_init(&p->by, p->trace[VALIDATE_A], by, err);
    else if (dsc_trace_groups_init(&p->by, p->trace[VALIDATE_A], "category", &none))
        rc = none.status == DSC_EUSAGE ? DSC_OK : dsc_fail(err, none.status, "%s", none.message);
    p->groups = p->by.field ? p->by.count : 1;
    return rc;
}

static int open_pair(validate_pair *p, const cli_call *call, const char *by, dsc_error *err)
{
    int rc = DSC_OK;
    for (int r = 0; r < VALIDATE_RUNS && !rc; r++)
        rc = dsc_trace_open(&p->trace[r], call->word[r], err);
    if (!rc)
        rc = validate_match(&p->matches, p->trace, err);
    if (!rc)
        rc = read_groups(p, by, err);
    for (int r = 0; r < VALIDATE_RUNS && !rc; r++)
        rc = read_run(p, r, err);
    if (!rc)
        rc = dsc_new(&p->ones, p->matches.count, err);
    if (!rc)
        rc = dsc_new(&p->request, p->matches.count, err);
    for (size_t i = 0; i < p->matches.count && !rc; i++)
        p->ones[i] = 1;
    return rc;
}

static void close_pair(validate_pair *p)
{
    for (int r = 0; r < VALIDATE_RUNS; r++) {
        dsc_trace_close(p->trace[r]);
        validate_turns_fini(&p->turns[r]);
        free(p->tokens[r]);
        free(p->time_s[r]);
        free(p->rate[r]);
    }
    validate_matches_fini(&p->matches);
    dsc_trace_groups_fini(&p->by);
    dsc_cost_fini(&p->cost);
    free(p->ones);
    free(p->request);
    free(p->predicted);
}

// --- the prediction ------------------------------------------------------------------------------

static int choose_source(validate_pair *p, const cli_call *call, const char *cost, dsc_error *err)
{
    p->source = call->methods ? VALIDATE_METHOD : cost ? VALIDATE_STEPS : VALIDATE_HELD_OUT;
    if (call->methods && !cost)
        return dsc_fail(err, DSC_EUSAGE,
                        "--method needs --cost: the speedup of a method depends on the time of a "
                        "forward pass");
    if (cost && strcmp(cost, "unit") == 0)
        return dsc_fail(err, DSC_EUSAGE,
                        "--cost unit gives no speedup, because it prices draft tokens at nothing; "
                        "give measured or modeled times (see: draftscope list costs)");
    return cost ? dsc_cost_parse(&p->cost, cost, err) : DSC_OK;
}

static int predict(validate_pair *p, const cli_call *call, int threads, dsc_error *err)
{
    dsc_config config = {.drafter = call->method[0]};
    int rc = call->methods ? cli_config_fill(&config, call->list[0], err) : DSC_OK;
    if (!rc)
        rc = validate_pair_predict(p, &config, call, threads, err);
    if (call->methods)
        dsc_config_fini(&config);
    return rc;
}

// --- the table
// ------------------------------------------------------------------------------------

static int add_comments(dsc_table *t, const validate_pair *p, const char *cost, dsc_error *err)
{
    static const char *const sources[] = {
        [VALIDATE_HELD_OUT] =
            ("target calls of B, with step times of A and B fitted to other requests: to the other "
             "values of the field, or to the other half"),
        [VALIDATE_STEPS] = "recorded steps of B, with the cost model",
        [VALIDATE_METHOD] = "the method on the text of A, with the cost model",
    };
    const validate_matches *m = &p->matches;
    char text[160];
    int rc = cli_result_comments(t, err);
    for (int r = 0; r < VALIDATE_RUNS && !rc; r++) {
        const char *const names[] = {"run_without", "run_with"};
        const dsc_trace_info *info = dsc_trace_get_info(p->trace[r]);
        dsc_buffer b = {0};
        rc = dsc_buffer_printf(&b, err, "%s, hash %s", dsc_trace_path(p->trace[r]), info->hash);
        if (!rc)
            rc = dsc_table_comment(t, names[r], b.data, err);
        dsc_buffer_fini(&b);
    }
    snprintf(text, sizeof text, "%zu by id, %zu by prompt; without a partner: %zu of A, %zu of B%s",
             m->count - m->by_prompt, m->by_prompt,
             (size_t)dsc_trace_get_info(p->trace[0])->requests - m->count,
             (size_t)dsc_trace_get_info(p->trace[1])->requests - m->count,
             m->other_prompt ? " (some have an id of A with another prompt)" : "");
    if (!rc)
        rc = dsc_table_comment(t, "matched", text, err);
    if (!rc)
        rc = dsc_table_comment(t, "predicted_from", sources[p->source], err);
    if (!rc && cost)
        rc = dsc_table_comment(t, "cost", cost, err);
    if (!rc && p->cost.note[0])
        rc = dsc_table_comment(t, "cost_note", p->cost.note, err);
    return rc || !p->by.field ? rc : dsc_table_comment(t, "by", p->by.field, err);
}

static int add_columns(dsc_table *t, const validate_pair *p, dsc_error *err)
{
    dsc_column column[VALIDATE_PAIR_COLUMNS];
    memcpy(column, validate_pair_columns, sizeof column);
    column[FIELD].name = p->by.field ? p->by.field : "group";
    for (size_t c = FIELD + 1; c < VALIDATE_PAIR_COLUMNS; c++)
        if (strcmp(column[FIELD].name, column[c].name) == 0)
            return dsc_fail(err, DSC_EUSAGE,
                            "--by: metadata field '%.60s' has the name of a result column; choose "
                            "another field",
                            column[FIELD].name);
    return dsc_table_add_columns(t, column, VALIDATE_PAIR_COLUMNS, err);
}

// The measured speedups of some pairs, with intervals.
typedef struct measured {
    double per_token, per_request, mean_rate, tokens[VALIDATE_RUNS];
    dsc_ratio_interval token_interval, request_interval;
} measured;

static int measure(const validate_pair *p, const dsc_resampling *how, measured *out, dsc_error *err)
{
    const size_t n = how->requests;
    const dsc_ratio speed[VALIDATE_RUNS] = {{p->tokens[0], p->time_s[0]},
                                            {p->tokens[1], p->time_s[1]}},
                    mean[VALIDATE_RUNS] = {{p->rate[0], p->ones}, {p->rate[1], p->ones}},
                    times = {p->time_s[0], p->time_s[1]};
    *out = (measured){.per_token = dsc_ratio_value(&speed[1], how->request, n, NULL) /
                                   dsc_ratio_value(&speed[0], how->request, n, NULL),
                      .per_request = dsc_ratio_value(&times, how->request, n, NULL),
                      .mean_rate = dsc_ratio_value(&mean[1], how->request, n, NULL) /
                                   dsc_ratio_value(&mean[0], how->request, n, NULL)};
    for (size_t i = 0; i < n; i++)
        for (int r = 0; r < VALIDATE_RUNS; r++)
            out->tokens[r] += p->tokens[r][how->request[i]];
    int rc = dsc_bootstrap_ratios(how, &speed[1], 1, &speed[0], &out->token_interval, err);
    return rc ? rc : dsc_bootstrap_ratios(how, &times, 1, &times, &out->request_interval, err);
}

static const char *judge(const measured *m, double predicted, double error, double tolerance)
{
    const dsc_ratio_interval *ci = &m->token_interval;
    if (isnan(predicted))
        return "not predicted";
    return fabs(error) <= tolerance ||
                   (predicted >= ci->relative_low && predicted <= ci->relative_high)
               ? "pass"
               : "fail";
}

// Adds the row of group g - 1, or of all pairs.
static int add_row(dsc_table *t, validate_pair *p, size_t g, const char *method,
                   const validate_pair_options *o, size_t *failed, dsc_error *err)
{
    dsc_resampling how = {p->request, 0, o->resamples, o->seed, o->threads};
    measured m;
    char percent[PERCENT_TEXT];
    for (size_t i = 0; i < p->matches.count; i++)
        if (!g || validate_pair_group(p, i) == (int32_t)g - 1)
            p->request[how.requests++] = (int64_t)i;
    if (!how.requests)
        return DSC_OK;
    int rc = measure(p, &how, &m, err);
    if (rc)
        return rc;
    const double error = 100 * (p->predicted[g] / m.per_token - 1);
    const char *verdict = judge(&m, p->predicted[g], error, o->tolerance);
    snprintf(percent, sizeof percent, "%g%%", o->tolerance);
    *failed += strcmp(verdict, "fail") == 0;
    const dsc_cell row[VALIDATE_PAIR_COLUMNS] = {cli_text(g ? p->by.value[g - 1] : DSC_GROUP_ALL),
                                                 cli_text(method),
                                                 cli_text("speedup"),
                                                 cli_integer((int64_t)how.requests),
                                                 cli_real(m.tokens[VALIDATE_A]),
                                                 cli_real(m.tokens[VALIDATE_B]),
                                                 cli_real(m.per_token),
                                                 cli_real(m.token_interval.relative_low),
                                                 cli_real(m.token_interval.relative_high),
                                                 cli_real(m.per_request),
                                                 cli_real(m.request_interval.low),
                                                 cli_real(m.request_interval.high),
                                                 cli_real(m.mean_rate),
                                                 cli_real(p->predicted[g]),
                                                 cli_real(error),
                                                 cli_text(percent),
                                                 cli_text(verdict)};
    return dsc_table_add_row(t, row, err);
}

int validate_pair_run(dsc_table *t, const cli_call *call, const validate_pair_options *o,
                      size_t *failed, dsc_error *err)
{
    validate_pair p = {.groups = 0};
    const char *method = call->methods ? call->method[0]->name : "recorded";
    *failed = 0;
    int rc = choose_source(&p, call, o->cost, err);
    if (!rc)
        rc = open_pair(&p, call, o->by, err);
    if (!rc)
        rc = predict(&p, call, o->threads, err);
    if (!rc)
        rc = add_comments(t, &p, o->cost, err);
    if (!rc)
        rc = add_columns(t, &p, err);
    for (size_t g = 0; g <= (p.by.field ? p.groups : 0) && !rc; g++)
        rc = add_row(t, &p, g, method, o, failed, err);
    close_pair(&p);
    return rc;
}

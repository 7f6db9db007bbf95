// SPDX-License-Identifier: Apache-2.0
// Adds up the requests of a live run and puts them into a row: sim's fields, then the measured
// ones.
#include "live/program/run_report.h"

#include "base/columns.h"
#include "sim/run/result.h"

#include <math.h>
#include <stdlib.h>

enum {
    SPEEDUP,
    PREFILL,
    DRAFT,
    VERIFY,
    SELECT,
    TIME,
    RATE,
    PLAIN_RATE,
    DIVERGENCES,
    REQUESTS,
    POSITIONS,
    MARGINS,
    STEP_COST,
    PREDICTED,
    FIELDS
};
enum { VOCABULARY_SIZE, VOCABULARY_COVERAGE, VOCABULARY_BOUND, VOCABULARY_FIELDS };
// clang-format off
static const dsc_column fields[FIELDS] = {
    [SPEEDUP] = {DSC_COL_SPEEDUP, DSC_CELL_REAL,
     "measured: tokens_per_s / baseline_tokens_per_s over the requests that both finished; nan "
     "without --baseline"},
    [PREFILL] = {"prefill_s", DSC_CELL_REAL,
     "seconds in passes over the prompts, summed over all models"},
    [DRAFT] = {"draft_s", DSC_CELL_REAL,
     "seconds in passes of the draft and middle models over drafts"},
    [VERIFY] = {"verify_s", DSC_CELL_REAL, "seconds in passes of the target over drafts"},
    [SELECT] = {"select_s", DSC_CELL_REAL,
     "seconds outside all passes; nan where draft model and target run at the same time"},
    [TIME] = {"time_s", DSC_CELL_REAL,
     "total seconds, including prefill and excluding loading of the models"},
    [RATE] = {DSC_COL_TOKENS_PER_S, DSC_CELL_REAL, "output_tokens / time_s"},
    [PLAIN_RATE] = {"baseline_tokens_per_s", DSC_CELL_REAL,
     "tokens per second of plain decoding, run after the method for each request (--baseline)"},
    [DIVERGENCES] = {"divergences", DSC_CELL_REAL,
     "number of outputs that differ from plain decoding (--baseline); nan at temperature > 0, "
     "where both are sampled"},
    [REQUESTS] = {"divergence_requests", DSC_CELL_LIST,
     "indices of the requests whose outputs differ, from 0"},
    [POSITIONS] = {"divergence_positions", DSC_CELL_LIST,
     "index of the first output token that differs, from 0, for each such request"},
    [MARGINS] = {"divergence_margins", DSC_CELL_LIST,
     "lead of the largest logit over the second at the first token that differs; close to 0 "
     "where rounding decides"},
    [STEP_COST] = {"step_cost", DSC_CELL_REAL,
     "predicted seconds of a step / predicted seconds of a token of plain decoding (--cost): the "
     "tokens per step above which the method is faster than plain decoding"},
    [PREDICTED] = {"predicted_speedup", DSC_CELL_REAL,
     "speedup that the cost model of --cost gives for the run's passes, without prefill"},
};
static const dsc_column vocabulary[VOCABULARY_FIELDS] = {
    [VOCABULARY_SIZE] = {"draft_vocab_size", DSC_CELL_INT,
     "tokens that an EAGLE-3 head with a vocabulary of its own can draft; this and the next two "
     "fields are missing for other draft models and for random weights"},
    [VOCABULARY_COVERAGE] = {"draft_vocab_coverage", DSC_CELL_REAL,
     "share of the output tokens that the EAGLE-3 head can draft: its accepted tokens / "
     "output_tokens is not greater"},
    [VOCABULARY_BOUND] = {"draft_vocab_bound", DSC_CELL_REAL,
     "mean target probability of the tokens that the EAGLE-3 head can draft: no lossless rule "
     "accepts one of them more often at a position; with greedy decoding, draft_vocab_coverage; "
     "nan in a replay at another temperature than 0"},
};
// clang-format on

const dsc_column *live_report_fields(size_t *count)
{
    *count = FIELDS;
    return fields;
}

const dsc_column *live_report_vocabulary_fields(size_t *count)
{
    *count = VOCABULARY_FIELDS;
    return vocabulary;
}

void live_report_fini(live_report *r)
{
    free(r->counts.histogram);
    free(r->divergence);
    *r = (live_report){0};
}

void live_report_add(live_report *r, const live_run *run)
{
    dsc_counts_add(&r->counts, &run->counts);
    live_measure_add(&r->measure, &run->measure);
}

int live_report_compare(live_report *r, int64_t request, const live_output *method,
                        const live_measure *time, const live_output *plain,
                        const live_measure *plain_time, dsc_error *err)
{
    int64_t same = 0;
    r->method_s += time->time_s;
    r->method_tokens += method->count;
    r->plain_s += plain_time->time_s;
    r->method_prefill_s += time->prefill_s;
    r->plain_prefill_s += plain_time->prefill_s;
    r->plain_tokens += plain->count;
    while (same < method->count && same < plain->count && method->token[same] == plain->token[same])
        same++;
    if (!r->texts || (same == method->count && same == plain->count))
        return DSC_OK;
    int rc = dsc_resize(&r->divergence, &r->capacity, r->divergences + 1, err);
    if (!rc)
        r->divergence[r->divergences++] = (live_divergence){
            request, same, same < plain->count ? plain->margin[same] : (double)NAN};
    return rc;
}

// --- the row -------------------------------------------------------------------------------------

void live_row_put(live_row *r, const dsc_column *field, dsc_cell cell)
{
    const size_t at = r->table.columns;
    if (!r->rc)
        r->rc = dsc_resize(&r->cell, &r->capacity, at + 1, r->err);
    if (!r->rc)
        r->rc = dsc_table_add_columns(&r->table, field, 1, r->err);
    if (!r->rc)
        r->cell[at] = cell;
}

void *live_row_new(live_row *r, size_t count, size_t size)
{
    void *p = NULL;
    if (!r->rc)
        r->rc = dsc_arena_alloc(&r->arena, &p, count, size, r->err);
    return p;
}

int live_row_end(live_row *r)
{
    return r->rc ? r->rc : dsc_table_add_row(&r->table, r->cell, r->err);
}

void live_row_fini(live_row *r)
{
    dsc_table_fini(&r->sim);
    dsc_table_fini(&r->table);
    dsc_arena_fini(&r->arena);
    free(r->cell);
}

static void put_real(live_row *r, int field, double x)
{
    live_row_put(r, &fields[field], dsc_cell_real(x));
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : (double)NAN;
}

// The speed of plain decoding, and the outputs that differ from it.
static void put_baseline(const live_report *r, live_row *row)
{
    const size_t n = r->divergences;
    int64_t *request = live_row_new(row, n, sizeof *request);
    int64_t *position = live_row_new(row, n, sizeof *position);
    double *margin = live_row_new(row, n, sizeof *margin);
    for (size_t i = 0; i < n && !row->rc; i++) {
        request[i] = r->divergence[i].request;
        position[i] = r->divergence[i].position;
        margin[i] = r->divergence[i].margin;
    }
    put_real(row, PLAIN_RATE, ratio((double)r->plain_tokens, r->plain_s));
    put_real(row, DIVERGENCES, r->texts ? (double)n : (double)NAN);
    live_row_put(row, &fields[REQUESTS], live_cell_list(request, n));
    live_row_put(row, &fields[POSITIONS], live_cell_list(position, n));
    live_row_put(row, &fields[MARGINS], live_cell_reals(margin, n));
}

double live_report_decode_speedup(const live_report *r)
{
    return ratio(ratio((double)r->method_tokens, r->method_s - r->method_prefill_s),
                 ratio((double)r->plain_tokens, r->plain_s - r->plain_prefill_s));
}

double live_report_step_cost(const live_report *r)
{
    const dsc_counts *c = &r->counts;
    return ratio(ratio(r->price->time_s, (double)c->target_calls),
                 ratio(r->price->plain_s, (double)c->output_tokens));
}

// The fields of sim.
static int put_simulated(const live_report *r, live_row *row)
{
    const dsc_result result = {.config = r->config, .rule = r->rule, .counts = &r->counts};
    const double speedup = ratio(ratio((double)r->method_tokens, r->method_s),
                                 ratio((double)r->plain_tokens, r->plain_s));
    dsc_table *sim = &row->sim;
    int rc = dsc_result_columns(sim, &r->config->drafter, 1, 0, row->err);
    if (!rc)
        rc = dsc_result_row_timed(sim, &result, speedup, NAN, 0, row->err);
    for (size_t c = 0; c < sim->columns && !rc; c++)
        live_row_put(row, &sim->column[c], *dsc_table_at(sim, 0, c));
    return rc;
}

void live_report_put(const live_report *r, live_row *row)
{
    const live_measure *m = &r->measure;
    row->rc = put_simulated(r, row);
    put_real(row, PREFILL, m->prefill_s);
    put_real(row, DRAFT, m->draft_s);
    put_real(row, VERIFY, m->verify_s);
    put_real(row, SELECT, live_measure_select_s(m, r->config));
    put_real(row, TIME, m->time_s);
    put_real(row, RATE, ratio((double)r->counts.output_tokens, m->time_s));
    if (r->baseline)
        put_baseline(r, row);
    if (r->price) {
        put_real(row, STEP_COST, live_report_step_cost(r));
        put_real(row, PREDICTED, r->price->speedup);
    }
}

void live_report_put_vocabulary(const live_draft_vocabulary *v, live_row *row)
{
    if (!v->in)
        return;
    live_row_put(row, &vocabulary[VOCABULARY_SIZE], dsc_cell_int(v->draft_tokens));
    live_row_put(row, &vocabulary[VOCABULARY_COVERAGE],
                 dsc_cell_real(live_draft_vocabulary_coverage(v)));
    live_row_put(row, &vocabulary[VOCABULARY_BOUND], dsc_cell_real(live_draft_vocabulary_bound(v)));
}

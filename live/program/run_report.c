// SPDX-License-Identifier: Apache-2.0
// Adds up the requests of a live run and makes a table row of them: sim's fields, then the measured
// ones.
#include "live/program/run_report.h"

#include "base/columns.h"
#include "sim/run/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    FIELDS
};
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
};
// clang-format on

const dsc_column *live_report_fields(size_t *count)
{
    *count = FIELDS;
    return fields;
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

// --- the table -----------------------------------------------------------------------------------

static double ratio(double a, double b)
{
    return b > 0 ? a / b : (double)NAN;
}

static dsc_cell real(double x)
{
    return (dsc_cell){.type = DSC_CELL_REAL, .r = x};
}

// Puts the lists of divergences into cells that use the memory *lists.
static int put_divergences(const live_report *r, dsc_cell cell[FIELDS], int64_t **lists,
                           dsc_error *err)
{
    const size_t n = r->divergences;
    int rc = dsc_new(lists, 3 * n, err);
    if (rc)
        return rc;
    int64_t *request = *lists, *position = request + n;
    double *margin = (double *)(position + n);
    for (size_t i = 0; i < n; i++) {
        request[i] = r->divergence[i].request;
        position[i] = r->divergence[i].position;
        margin[i] = r->divergence[i].margin;
    }
    cell[DIVERGENCES] = real(r->texts ? (double)n : (double)NAN);
    cell[REQUESTS] = (dsc_cell){.type = DSC_CELL_LIST, .list = request, .i = (int64_t)n};
    cell[POSITIONS] = (dsc_cell){.type = DSC_CELL_LIST, .list = position, .i = (int64_t)n};
    cell[MARGINS] = (dsc_cell){.type = DSC_CELL_LIST, .reals = margin, .i = (int64_t)n};
    return DSC_OK;
}

static double plain_rate(const live_report *r)
{
    return ratio((double)r->plain_tokens, r->plain_s);
}

static double speedup(const live_report *r)
{
    return ratio(ratio((double)r->method_tokens, r->method_s), plain_rate(r));
}

int live_report_extend(dsc_table *t, const dsc_table *row, const dsc_column *field,
                       const dsc_cell *value, const bool *has, size_t count, dsc_error *err)
{
    dsc_cell *cell = NULL;
    size_t n = 0;
    int rc = dsc_new(&cell, row->columns + count, err);
    for (size_t c = 0; c < row->columns && !rc; c++) {
        const dsc_column *x = &row->column[c];
        const char *help = x->help;
        for (size_t f = 0; f < count; f++)
            help = strcmp(x->name, field[f].name) == 0 ? field[f].help : help;
        rc = dsc_table_add_column(t, x->name, x->type, help, err);
        cell[n++] = *dsc_table_at(row, 0, c);
    }
    for (size_t f = 0; f < count && !rc; f++) {
        if (!has[f])
            continue;
        rc = dsc_table_add_column(t, field[f].name, field[f].type, field[f].help, err);
        cell[n++] = value[f];
    }
    if (!rc)
        rc = dsc_table_add_row(t, cell, err);
    free(cell);
    return rc;
}

// Appends the fields to the row of sim's table.
static int extend(const live_report *r, const dsc_table *sim, dsc_table *t, dsc_error *err)
{
    const live_measure *m = &r->measure;
    bool has[FIELDS] = {false}; // the speedup is a column of sim's
    dsc_cell own[FIELDS] = {
        [PREFILL] = real(m->prefill_s),
        [DRAFT] = real(m->draft_s),
        [VERIFY] = real(m->verify_s),
        [SELECT] = real(live_measure_select_s(m, r->config)),
        [TIME] = real(m->time_s),
        [RATE] = real(ratio((double)r->counts.output_tokens, m->time_s)),
        [PLAIN_RATE] = real(plain_rate(r)),
    };
    int64_t *lists = NULL;
    for (int f = PREFILL; f < FIELDS; f++)
        has[f] = f < PLAIN_RATE || r->baseline;
    int rc = put_divergences(r, own, &lists, err);
    if (!rc)
        rc = live_report_extend(t, sim, fields, own, has, FIELDS, err);
    free(lists);
    return rc;
}

int live_report_table(const live_report *r, dsc_table *t, dsc_error *err)
{
    dsc_table sim = {0};
    const dsc_result result = {.config = r->config, .rule = r->rule, .counts = &r->counts};
    int rc = dsc_result_columns(&sim, &r->config->drafter, 1, 0, err);
    if (!rc)
        rc = dsc_result_row_timed(&sim, &result, speedup(r), NAN, 0, err);
    if (!rc)
        rc = extend(r, &sim, t, err);
    dsc_table_fini(&sim);
    return rc;
}

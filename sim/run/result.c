// SPDX-License-Identifier: Apache-2.0
// The columns of result tables and their cells: the configuration, the counts, the metrics of
// base/metrics.h and what the cost model or the clock gives. Tables of several methods have the
// columns of all of them.
#include "sim/run/result.h"

#include "base/columns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const dsc_column fields[] = {
    {DSC_COL_REQUESTS, DSC_CELL_INT, "number of requests replayed"},
    {DSC_COL_OUTPUT_TOKENS, DSC_CELL_INT, "tokens of all outputs, EOS tokens included"},
    {DSC_COL_TARGET_CALLS, DSC_CELL_INT,
     "forward passes of the target, the prefill that gives the first token included"},
    {DSC_COL_NUM_DRAFTS_STARTED, DSC_CELL_INT,
     "times the method began a draft, also if it came out empty (llma: triggers) or if its tokens "
     "are verified in a later step (pearl: windows)"},
    {DSC_COL_NUM_DRAFTS, DSC_CELL_INT,
     "verification steps that had a draft: target calls that verified at least one draft token"},
    {DSC_COL_NUM_DRAFT_TOKENS, DSC_CELL_INT, "draft tokens that the target verified"},
    {DSC_COL_NUM_ACCEPTED_TOKENS, DSC_CELL_INT,
     "draft tokens accepted; the token that each target call adds itself is not counted"},
    {DSC_COL_DRAFT_CALLS, DSC_CELL_INT, "forward passes of the draft model"},
    DSC_METRIC_COLUMNS,
    {DSC_COL_SPEEDUP, DSC_CELL_REAL,
     "time of one token per target call / time with the method, by the cost model"},
    {DSC_COL_ACCEPT_HISTOGRAM, DSC_CELL_LIST,
     "target calls that accepted 0, 1, 2, ... draft tokens (bonus excluded); the sum is "
     "target_calls"},
    {DSC_COL_DRAFT_LENGTH_HISTOGRAM, DSC_CELL_LIST,
     "target calls whose draft had 0, 1, 2, ... tokens in sequence (of a tree: levels); the sum is "
     "target_calls"},
    {DSC_COL_IID_BLOCK_EFFICIENCY, DSC_CELL_REAL,
     "block efficiency if every call had a draft of the greatest length and every draft token were "
     "accepted with probability num_accepted_tokens / (num_accepted_tokens + calls that accepted "
     "less than this length), independently; nan where target and draft model overlap"},
    {DSC_COL_IID_ERROR, DSC_CELL_REAL, "iid_block_efficiency / block_efficiency - 1"},
};
enum { FIELDS = sizeof fields / sizeof *fields };
enum { EXPECTED = 2 }; // the first field that may be an expectation

static const dsc_column request_columns[] = {
    {DSC_COL_REQUEST, DSC_CELL_INT, "number of the request in the trace, from 0"},
    {DSC_COL_ID, DSC_CELL_TEXT, "id of the request"},
};
static const dsc_column interval_columns[] = {
    {DSC_COL_BLOCK_EFFICIENCY_LOW, DSC_CELL_REAL,
     "95 % CI of block_efficiency, lower bound (bootstrap over requests)"},
    {DSC_COL_BLOCK_EFFICIENCY_HIGH, DSC_CELL_REAL,
     "95 % CI of block_efficiency, upper bound (bootstrap over requests)"},
};

static const dsc_column batch_columns[] = {
    {DSC_COL_BATCH, DSC_CELL_INT,
     "batch size: sequences that take each step together; speedup is that of the batch"},
    {DSC_COL_TOKENS_PER_S, DSC_CELL_REAL,
     "output tokens of the batch per second, by the cost model (unit: per target call)"},
};

static const dsc_column spread_columns[] = {
    {DSC_COL_SPEEDUP_COST_LOW, DSC_CELL_REAL,
     "speedup if the method's passes take the third quartile of the measured times, and passes "
     "without speculation the first"},
    {DSC_COL_SPEEDUP_COST_HIGH, DSC_CELL_REAL,
     "speedup if the method's passes take the first quartile of the measured times, and passes "
     "without speculation the third"},
};

const dsc_column *dsc_result_fields(size_t *count)
{
    *count = FIELDS;
    return fields;
}

void dsc_parameter_name(const dsc_option *o, char out[DSC_PARAMETER_NAME])
{
    snprintf(out, DSC_PARAMETER_NAME, "%s", o->column ? o->column : o->name);
    for (char *p = out; *p; p++)
        if (*p == '-')
            *p = '_';
}

static dsc_cell_type parameter_type(const dsc_option *o)
{
    return o->kind == DSC_OPTION_INT    ? DSC_CELL_INT
           : o->kind == DSC_OPTION_REAL ? DSC_CELL_REAL
                                        : DSC_CELL_TEXT;
}

// Adds a column unless another method has one of that name. Rows of a method without it have no
// value there.
static int merge_column(dsc_table *t, dsc_column x, dsc_error *err)
{
    int at = dsc_table_find(t, x.name);
    if (at < 0)
        return dsc_table_add_column(t, x.name, x.type, x.help, err);
    const dsc_cell_type type = t->column[at].type;
    if (type != x.type)
        t->column[at].type =
            type == DSC_CELL_TEXT || x.type == DSC_CELL_TEXT ? DSC_CELL_TEXT : DSC_CELL_REAL;
    return DSC_OK;
}

static int add_parameters(dsc_table *t, const dsc_drafter_type *d, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t o = 0; o < d->option_count && !rc; o++) {
        char name[DSC_PARAMETER_NAME];
        dsc_parameter_name(&d->option[o], name);
        const dsc_column x = {name, parameter_type(&d->option[o]), d->option[o].help};
        rc = merge_column(t, x, err);
    }
    return rc;
}

static int add_extras(dsc_table *t, const dsc_drafter_type *d, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t e = 0; e < d->extra_count && !rc; e++) {
        const dsc_column x = {d->extra[e].name, DSC_CELL_INT, d->extra[e].help};
        rc = merge_column(t, x, err);
    }
    return rc;
}

int dsc_result_columns(dsc_table *t, const dsc_drafter_type *const *drafter, size_t count,
                       int parts, dsc_error *err)
{
    bool alone = count == 1;
    int rc =
        parts & DSC_RESULT_REQUEST ? dsc_table_add_columns(t, request_columns, 2, err) : DSC_OK;
    if (!rc)
        rc = dsc_table_add_column(t, DSC_COL_METHOD, DSC_CELL_TEXT,
                                  alone ? drafter[0]->summary : "drafting method", err);
    if (!rc)
        rc = dsc_table_add_column(t, DSC_COL_RULE, DSC_CELL_TEXT, "verification rule", err);
    for (size_t d = 0; d < count && !rc; d++)
        rc = add_parameters(t, drafter[d], err);
    for (size_t f = 0; f < FIELDS && !rc; f++) {
        dsc_column x = fields[f];
        if (parts & DSC_RESULT_EXPECTED && f >= EXPECTED && x.type == DSC_CELL_INT)
            x.type = DSC_CELL_REAL;
        rc = dsc_table_find(t, x.name) < 0
                 ? dsc_table_add_columns(t, &x, 1, err)
                 : dsc_fail(err, DSC_EUSAGE,
                            "two columns '%s': an option of a method has the name of a result; "
                            "set dsc_option.column to another name",
                            x.name);
    }
    for (size_t d = 0; d < count && !rc; d++)
        rc = add_extras(t, drafter[d], err);
    if (!rc && parts & DSC_RESULT_INTERVAL)
        rc = dsc_table_add_columns(t, interval_columns, 2, err);
    if (!rc && parts & DSC_RESULT_BATCH)
        rc = dsc_table_add_columns(t, batch_columns, 2, err);
    if (!rc && parts & DSC_RESULT_SPREAD)
        rc = dsc_table_add_columns(t, spread_columns, 2, err);
    return rc;
}

int dsc_result_columns_by(dsc_table *t, const char *by, const dsc_drafter_type *const *drafter,
                          size_t count, int parts, dsc_error *err)
{
    dsc_table others = {0};
    int rc = by ? dsc_result_columns(&others, drafter, count, parts, err) : DSC_OK;
    if (!rc && by && dsc_table_find(&others, by) >= 0)
        rc = dsc_fail(err, DSC_EUSAGE,
                      "metadata field '%.60s' has the name of a result column; rename it in the "
                      "source of the trace",
                      by);
    dsc_table_fini(&others);
    if (!rc && by)
        rc = dsc_table_add_column(t, by, DSC_CELL_TEXT,
                                  "value of this metadata field of the requests that the row is "
                                  "of; all: every request",
                                  err);
    return rc ? rc : dsc_result_columns(t, drafter, count, parts, err);
}

// A row under way.
typedef struct row {
    const dsc_table *table;
    dsc_cell *cell;                                    // [columns]
    dsc_arena arena;                                   // of the cells and their lists
    char word[DSC_MAX_PARAMETERS][DSC_PARAMETER_NAME]; // texts of parameters
    size_t words;
} row;

// Sets cell `at`, converted to the type of its column: where methods differ, integers are real
// numbers, and numbers may be text.
static void put_at(row *r, size_t at, dsc_cell x)
{
    const dsc_cell_type type = r->table->column[at].type;
    if (type == DSC_CELL_REAL && x.type == DSC_CELL_INT)
        x = dsc_cell_real((double)x.i);
    if (type == DSC_CELL_TEXT && x.type != DSC_CELL_TEXT) {
        char *word = r->word[r->words++];
        dsc_number_text(x.type == DSC_CELL_INT ? (double)x.i : x.r, word);
        x = dsc_cell_text(word);
    }
    r->cell[at] = x;
}

static void put(row *r, const char *column, dsc_cell x)
{
    put_at(r, (size_t)dsc_table_find(r->table, column), x);
}

static void put_parameter(row *r, const dsc_config *config, size_t o)
{
    const dsc_option *option = &config->drafter->option[o];
    char name[DSC_PARAMETER_NAME];
    dsc_parameter_name(option, name);
    switch (option->kind) {
    case DSC_OPTION_INT: put(r, name, dsc_cell_int(config->parameter[o])); break;
    case DSC_OPTION_REAL: put(r, name, dsc_cell_real(config->real[o])); break;
    case DSC_OPTION_TEXT:
        put(r, name, dsc_cell_text(config->text[o] ? config->text[o] : ""));
        break;
    default: {
        char *word = r->word[r->words++];
        dsc_option_text(option, config->parameter[o], word, DSC_PARAMETER_NAME);
        put(r, name, dsc_cell_text(word));
    }
    }
}

// Up to the last length that occurred, one element at least where it was counted.
static dsc_cell trimmed(dsc_cell list)
{
    while (list.i > 1 && !(dsc_cell_element(&list, list.i - 1) > 0))
        list.i--;
    return list;
}

static int put_fields(row *r, const dsc_config *config, const dsc_counts *c, double speedup,
                      dsc_error *err)
{
    const dsc_metric_counts counts = dsc_counts_metrics(c);
    const dsc_expected x = dsc_counts_real(c);
    const int64_t count[] = {c->target_calls,     c->num_drafts_started,  c->num_drafts,
                             c->num_draft_tokens, c->num_accepted_tokens, c->draft_calls};
    const double expected[] = {x.target_calls,     x.num_drafts_started,  x.num_drafts,
                               x.num_draft_tokens, x.num_accepted_tokens, x.draft_calls};
    const double iid = config->drafter->parallel
                           ? (double)NAN
                           : dsc_iid_block_efficiency(c, dsc_config_limit(config));
    dsc_cell cell[FIELDS] = {dsc_cell_int(c->requests), dsc_cell_int(c->output_tokens)},
             *next = cell + 2;
    dsc_metrics metrics;
    int rc = dsc_metrics_init(&metrics, &counts, &r->arena, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < sizeof count / sizeof *count; i++)
        *next++ = c->expected ? dsc_cell_real(expected[i]) : dsc_cell_int(count[i]);
    dsc_metrics_cells(&metrics, next);
    next += DSC_METRICS;
    *next++ = dsc_cell_real(speedup);
    *next++ = trimmed(counts.accepted);
    *next++ = trimmed(counts.lengths);
    *next++ = dsc_cell_real(iid);
    *next = dsc_cell_real(iid / metrics.block_efficiency - 1);
    const size_t at = (size_t)dsc_table_find(r->table, fields[0].name);
    for (size_t f = 0; f < FIELDS; f++)
        put_at(r, at + f, cell[f]);
    return DSC_OK;
}

int dsc_result_row_timed(dsc_table *t, const dsc_result *x, double speedup, double tokens_per_s,
                         int parts, dsc_error *err)
{
    const dsc_drafter_type *d = x->config->drafter;
    const struct {
        int part; // 0: of every row
        const char *column;
        dsc_cell cell;
    } named[] = {{DSC_RESULT_REQUEST, DSC_COL_REQUEST, dsc_cell_int(x->request)},
                 {DSC_RESULT_REQUEST, DSC_COL_ID, dsc_cell_text(x->id)},
                 {0, DSC_COL_METHOD, dsc_cell_text(d->name)},
                 {0, DSC_COL_RULE, dsc_cell_text(x->rule->name)},
                 {DSC_RESULT_INTERVAL, DSC_COL_BLOCK_EFFICIENCY_LOW, dsc_cell_real(x->low)},
                 {DSC_RESULT_INTERVAL, DSC_COL_BLOCK_EFFICIENCY_HIGH, dsc_cell_real(x->high)},
                 {DSC_RESULT_BATCH, DSC_COL_BATCH, dsc_cell_int(x->batch ? x->batch : 1)},
                 {DSC_RESULT_BATCH, DSC_COL_TOKENS_PER_S, dsc_cell_real(tokens_per_s)},
                 {DSC_RESULT_SPREAD, DSC_COL_SPEEDUP_COST_LOW, dsc_cell_real(x->cost_low)},
                 {DSC_RESULT_SPREAD, DSC_COL_SPEEDUP_COST_HIGH, dsc_cell_real(x->cost_high)}};
    row r = {.table = t};
    int rc = dsc_arena_new(&r.arena, &r.cell, t->columns, err);
    for (size_t c = 0; c < t->columns && !rc; c++) // where the method lacks a column
        r.cell[c] = t->column[c].type == DSC_CELL_TEXT ? dsc_cell_text("") : dsc_cell_absent();
    for (size_t i = 0; i < sizeof named / sizeof *named && !rc; i++)
        if (!named[i].part || parts & named[i].part)
            put(&r, named[i].column, named[i].cell);
    if (!rc && x->by)
        put(&r, x->by, dsc_cell_text(x->value));
    for (size_t o = 0; o < d->option_count && !rc; o++)
        put_parameter(&r, x->config, o);
    for (size_t e = 0; e < d->extra_count && !rc; e++)
        put(&r, d->extra[e].name, dsc_cell_int(x->counts->extra[e]));
    if (!rc)
        rc = put_fields(&r, x->config, x->counts, speedup, err);
    if (!rc)
        rc = dsc_table_add_row(t, r.cell, err);
    dsc_arena_fini(&r.arena);
    return rc;
}

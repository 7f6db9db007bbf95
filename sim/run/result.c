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

static int add_columns(dsc_table *t, const dsc_column *column, size_t count, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t c = 0; c < count && !rc; c++)
        rc = dsc_table_add_column(t, column[c].name, column[c].type, column[c].help, err);
    return rc;
}

static dsc_cell_type parameter_type(const dsc_option *o)
{
    return o->kind == DSC_OPTION_INT    ? DSC_CELL_INT
           : o->kind == DSC_OPTION_REAL ? DSC_CELL_REAL
                                        : DSC_CELL_TEXT;
}

// Adds a column unless another method has one of that name. Unless every method has it, rows may
// lack it, and integers become real numbers so that NaN can stand there.
static int merge_column(dsc_table *t, dsc_column x, bool everywhere, dsc_error *err)
{
    int at = dsc_table_find(t, x.name);
    if (x.type == DSC_CELL_INT && !everywhere)
        x.type = DSC_CELL_REAL;
    if (at < 0)
        return dsc_table_add_column(t, x.name, x.type, x.help, err);
    if (t->column[at].type != x.type)
        t->column[at].type = DSC_CELL_TEXT;
    return DSC_OK;
}

static int add_parameters(dsc_table *t, const dsc_drafter_type *d, bool alone, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t o = 0; o < d->option_count && !rc; o++) {
        char name[DSC_PARAMETER_NAME];
        dsc_parameter_name(&d->option[o], name);
        const dsc_column x = {name, parameter_type(&d->option[o]), d->option[o].help};
        rc = merge_column(t, x, alone, err);
    }
    return rc;
}

static int add_extras(dsc_table *t, const dsc_drafter_type *d, bool alone, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t e = 0; e < d->extra_count && !rc; e++) {
        const dsc_column x = {d->extra[e].name, DSC_CELL_INT, d->extra[e].help};
        rc = merge_column(t, x, alone, err);
    }
    return rc;
}

int dsc_result_columns(dsc_table *t, const dsc_drafter_type *const *drafter, size_t count,
                       int parts, dsc_error *err)
{
    bool alone = count == 1;
    int rc = parts & DSC_RESULT_REQUEST ? add_columns(t, request_columns, 2, err) : DSC_OK;
    if (!rc)
        rc = dsc_table_add_column(t, DSC_COL_METHOD, DSC_CELL_TEXT,
                                  alone ? drafter[0]->summary : "drafting method", err);
    if (!rc)
        rc = dsc_table_add_column(t, DSC_COL_RULE, DSC_CELL_TEXT, "verification rule", err);
    for (size_t d = 0; d < count && !rc; d++)
        rc = add_parameters(t, drafter[d], alone, err);
    for (size_t f = 0; f < FIELDS && !rc; f++) {
        dsc_column x = fields[f];
        if (parts & DSC_RESULT_EXPECTED && f >= EXPECTED && x.type == DSC_CELL_INT)
            x.type = DSC_CELL_REAL;
        rc = add_columns(t, &x, 1, err);
    }
    for (size_t d = 0; d < count && !rc; d++)
        rc = add_extras(t, drafter[d], alone, err);
    if (!rc && parts & DSC_RESULT_INTERVAL)
        rc = add_columns(t, interval_columns, 2, err);
    if (!rc && parts & DSC_RESULT_BATCH)
        rc = add_columns(t, batch_columns, 2, err);
    return rc;
}

static dsc_cell integer(int64_t i)
{
    return (dsc_cell){.type = DSC_CELL_INT, .i = i};
}

static dsc_cell real(double r)
{
    return (dsc_cell){.type = DSC_CELL_REAL, .r = r};
}

static dsc_cell text(const char *s)
{
    return (dsc_cell){.type = DSC_CELL_TEXT, .text = s};
}

typedef struct row {
    dsc_cell cell[8 + DSC_MAX_PARAMETERS + FIELDS + DSC_MAX_EXTRA];
    char choice[DSC_MAX_PARAMETERS][DSC_PARAMETER_NAME];
    size_t n;
} row;

static void put_config(row *r, const dsc_config *config, const dsc_verifier_type *rule)
{
    const dsc_drafter_type *d = config->drafter;
    r->cell[r->n++] = text(d->name);
    r->cell[r->n++] = text(rule->name);
    for (size_t o = 0; o < d->option_count; o++) {
        dsc_cell *cell = &r->cell[r->n++];
        switch (d->option[o].kind) {
        case DSC_OPTION_INT: *cell = integer(config->parameter[o]); break;
        case DSC_OPTION_REAL: *cell = real(config->real[o]); break;
        case DSC_OPTION_TEXT: *cell = text(config->text[o] ? config->text[o] : ""); break;
        default:
            dsc_option_text(&d->option[o], config->parameter[o], r->choice[o], DSC_PARAMETER_NAME);
            *cell = text(r->choice[o]);
        }
    }
}

static void put_counts(row *r, const dsc_counts *c)
{
    const int64_t count[] = {c->target_calls,     c->num_drafts_started,  c->num_drafts,
                             c->num_draft_tokens, c->num_accepted_tokens, c->draft_calls};
    for (size_t i = 0; i < sizeof count / sizeof *count; i++)
        r->cell[r->n++] = integer(count[i]);
}

static void put_expected(row *r, const dsc_expected *x)
{
    const double count[] = {x->target_calls,     x->num_drafts_started,  x->num_drafts,
                            x->num_draft_tokens, x->num_accepted_tokens, x->draft_calls};
    for (size_t i = 0; i < sizeof count / sizeof *count; i++)
        r->cell[r->n++] = real(count[i]);
}

// Up to the last length that occurred, one element at least where it was counted.
static void put_list(row *r, dsc_cell list)
{
    while (list.i > 1 && !(dsc_cell_element(&list, list.i - 1) > 0))
        list.i--;
    r->cell[r->n++] = list;
}

// `arena` holds the lists until the row is in its table.
static int put_fields(row *r, const dsc_config *config, const dsc_counts *c, double speedup,
                      dsc_arena *arena, dsc_error *err)
{
    const dsc_metric_counts counts = dsc_counts_metrics(c);
    const double iid = config->drafter->parallel
                           ? (double)NAN
                           : dsc_iid_block_efficiency(c, dsc_config_limit(config));
    dsc_metrics metrics;
    int rc = dsc_metrics_init(&metrics, &counts, arena, err);
    if (rc)
        return rc;
    r->cell[r->n++] = integer(c->requests);
    r->cell[r->n++] = integer(c->output_tokens);
    if (c->expected)
        put_expected(r, c->expected);
    else
        put_counts(r, c);
    dsc_metrics_cells(&metrics, r->cell + r->n);
    r->n += DSC_METRICS;
    r->cell[r->n++] = real(speedup);
    put_list(r, counts.accepted);
    put_list(r, counts.lengths);
    r->cell[r->n++] = real(iid);
    r->cell[r->n++] = real(iid / metrics.block_efficiency - 1);
    return DSC_OK;
}

// Converts a cell to the type of its column; a number in a text column is written into `word`.
static dsc_cell as_column(dsc_cell x, dsc_cell_type type, char word[DSC_PARAMETER_NAME])
{
    if (type == DSC_CELL_REAL && x.type == DSC_CELL_INT)
        return real((double)x.i);
    if (type != DSC_CELL_TEXT || x.type == DSC_CELL_TEXT)
        return x;
    dsc_number_text(x.type == DSC_CELL_INT ? (double)x.i : x.r, word);
    return text(word);
}

// Adds the row of one drafter to a table that has columns of other drafters too.
static int spread(dsc_table *t, const row *r, const dsc_config *config, int parts, dsc_error *err)
{
    const dsc_drafter_type *d = config->drafter;
    size_t lead = parts & DSC_RESULT_REQUEST ? 4 : 2;
    size_t fields_at = (size_t)dsc_table_find(t, fields[0].name), from = 0;
    char word[DSC_MAX_PARAMETERS][DSC_PARAMETER_NAME];
    dsc_cell *cell;
    int rc = dsc_new(&cell, t->columns, err);
    for (size_t c = 0; c < t->columns && !rc; c++)
        cell[c] = t->column[c].type == DSC_CELL_TEXT ? text("") : real((double)NAN);
    for (; from < lead && !rc; from++)
        cell[from] = r->cell[from];
    for (size_t o = 0; o < d->option_count && !rc; o++) {
        char name[DSC_PARAMETER_NAME];
        dsc_parameter_name(&d->option[o], name);
        size_t at = (size_t)dsc_table_find(t, name);
        cell[at] = as_column(r->cell[from++], t->column[at].type, word[o]);
    }
    for (size_t f = 0; f < FIELDS && !rc; f++) {
        size_t at = fields_at + f;
        cell[at] = as_column(r->cell[from++], t->column[at].type, NULL);
    }
    for (size_t e = 0; e < d->extra_count && !rc; e++)
        cell[dsc_table_find(t, d->extra[e].name)] = as_column(r->cell[from++], DSC_CELL_REAL, NULL);
    for (size_t at = t->columns - (r->n - from); from < r->n && !rc; at++)
        cell[at] = r->cell[from++];
    if (!rc)
        rc = dsc_table_add_row(t, cell, err);
    free(cell);
    return rc;
}

// Whether the table has exactly the columns of this row: its drafter is the only one.
static bool is_alone(const dsc_table *t, const row *r, const dsc_result *result, int parts)
{
    const dsc_drafter_type *d = result->config->drafter;
    size_t lead = parts & DSC_RESULT_REQUEST ? 4 : 2;
    bool same = t->columns == r->n && (result->counts->expected || !(parts & DSC_RESULT_EXPECTED));
    for (size_t o = 0; o < d->option_count && same; o++) {
        char name[DSC_PARAMETER_NAME];
        dsc_parameter_name(&d->option[o], name);
        same = strcmp(name, t->column[lead + o].name) == 0;
    }
    return same;
}

int dsc_result_row_timed(dsc_table *t, const dsc_result *result, double speedup,
                         double tokens_per_s, int parts, dsc_error *err)
{
    dsc_arena lists = {0};
    row r;
    r.n = 0;
    if (parts & DSC_RESULT_REQUEST) {
        r.cell[r.n++] = integer(result->request);
        r.cell[r.n++] = text(result->id);
    }
    put_config(&r, result->config, result->rule);
    int rc = put_fields(&r, result->config, result->counts, speedup, &lists, err);
    for (size_t e = 0; e < result->config->drafter->extra_count; e++)
        r.cell[r.n++] = integer(result->counts->extra[e]);
    if (parts & DSC_RESULT_INTERVAL) {
        r.cell[r.n++] = real(result->low);
        r.cell[r.n++] = real(result->high);
    }
    if (parts & DSC_RESULT_BATCH) {
        r.cell[r.n++] = integer(result->batch ? result->batch : 1);
        r.cell[r.n++] = real(tokens_per_s);
    }
    if (!rc)
        rc = is_alone(t, &r, result, parts) ? dsc_table_add_row(t, r.cell, err)
                                            : spread(t, &r, result->config, parts, err);
    dsc_arena_fini(&lists);
    return rc;
}

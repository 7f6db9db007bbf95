// SPDX-License-Identifier: Apache-2.0
// draftscope theory regret: how much longer the rows of a result table take than the best constant
// draft length in hindsight, and than the upper bound that knows what will be accepted. All rows
// are of the same requests, so times are compared by their speedups.
#include "base/columns.h"
#include "cli/result.h"
#include "cli/theory/theory_closed.h"

#include <stdlib.h>
#include <string.h>

// clang-format off
static const dsc_option options[] = {
    CLI_OPTIONS_RESULT,
};
// clang-format on
static const dsc_column columns[] = {
    {"group", DSC_CELL_TEXT, "rule, and batch size and group of requests where the table has them"},
    {"rank", DSC_CELL_INT, "rank in the group by time; 1: fastest"},
    {"method", DSC_CELL_TEXT, "drafting method"},
    {"parameters", DSC_CELL_TEXT, "parameters that differ among the rows of the table"},
    {"length", DSC_CELL_TEXT,
     "fixed: a constant draft length; adaptive: the method chooses it step by step; bound: it is "
     "chosen by what will be accepted"},
    {"speedup", DSC_CELL_REAL, "speedup of the row"},
    {"regret_fixed", DSC_CELL_REAL,
     "time / time of the fastest row with length fixed - 1; negative: faster than every constant "
     "length"},
    {"regret_bound", DSC_CELL_REAL,
     "time / time of the fastest bound - 1; nan: the table has no bound"},
};
static const dsc_column formulas[] = {
    {"regret", DSC_CELL_TEXT,
     "T(row) / T(reference) - 1 = speedup(reference) / speedup(row) - 1, with T the time of all "
     "requests; BanditSpec (Hou et al. 2025), Eq. (1), is T(row) - T(fixed) in target calls"},
};
enum { COLUMNS = sizeof columns / sizeof *columns, TEXT = 512 };

typedef struct row {
    char group[TEXT], parameters[TEXT];
    const char *method, *length;
    double speedup;
} row;

typedef struct regret {
    const char *path;
    dsc_table in;
    size_t method, results; // columns: before `method` are keys, from `results` on results
    bool *differs;          // [in.columns] among the rows
    row *row;               // [in.rows]
} regret;

// --- a row of the table --------------------------------------------------------------------------

static void cell_text(const dsc_cell *c, char text[TEXT])
{
    char number[DSC_NUMBER_TEXT] = "";
    if (c->type == DSC_CELL_INT)
        dsc_number_text((double)c->i, number);
    else if (c->type == DSC_CELL_REAL && !isnan(c->r))
        dsc_number_text(c->r, number);
    snprintf(text, TEXT, "%s", c->type == DSC_CELL_TEXT && c->text ? c->text : number);
}

// Adds "NAME=VALUE" of a cell that has a value.
static void add_pair(const regret *x, size_t r, size_t column, char to[TEXT])
{
    char value[TEXT];
    const size_t used = strlen(to);
    cell_text(dsc_table_at(&x->in, r, column), value);
    if (*value)
        snprintf(to + used, TEXT - used, "%s%s=%s", used ? " " : "", x->in.column[column].name,
                 value);
}

static const char *kind_of(const regret *x, size_t r, const char *method)
{
    const int controller = dsc_table_find(&x->in, "controller");
    char text[TEXT] = "";
    if (dsc_table_is_bound(&x->in, r))
        return "bound";
    if (controller >= 0)
        cell_text(dsc_table_at(&x->in, r, (size_t)controller), text);
    return *text || !strcmp(method, "hf-dynamic") || !strcmp(method, "threshold") ? "adaptive"
                                                                                  : "fixed";
}

static void describe(regret *x, size_t r)
{
    row *o = &x->row[r];
    const int rule = dsc_table_find(&x->in, DSC_COL_RULE),
              batch = dsc_table_find(&x->in, DSC_COL_BATCH);
    o->method = dsc_table_at(&x->in, r, x->method)->text;
    o->length = kind_of(x, r, o->method);
    o->speedup = dsc_table_real(&x->in, r, (size_t)dsc_table_find(&x->in, DSC_COL_SPEEDUP));
    for (size_t c = 0; c < x->method; c++)
        add_pair(x, r, c, o->group);
    if (rule >= 0)
        add_pair(x, r, (size_t)rule, o->group);
    if (batch >= 0)
        add_pair(x, r, (size_t)batch, o->group);
    for (size_t c = x->method + 1; c < x->results; c++)
        if (x->differs[c] && (int)c != rule)
            add_pair(x, r, c, o->parameters);
}

// --- the table -----------------------------------------------------------------------------------

static int find_columns(regret *x, dsc_error *err)
{
    const int method = dsc_table_find(&x->in, DSC_COL_METHOD),
              results = dsc_table_find(&x->in, DSC_COL_REQUESTS);
    if (method < 0 || results < method || dsc_table_find(&x->in, DSC_COL_SPEEDUP) < 0)
        return dsc_fail(err, DSC_EINPUT,
                        "%.300s: the columns %s, %s and %s are expected, in this order; "
                        "draftscope sweep writes such tables",
                        x->path, DSC_COL_METHOD, DSC_COL_REQUESTS, DSC_COL_SPEEDUP);
    if (!x->in.rows)
        return dsc_fail(err, DSC_EINPUT, "%.300s: the table has no rows", x->path);
    x->method = (size_t)method;
    x->results = (size_t)results;
    return DSC_OK;
}

// A column differs if two rows have different values; one without a value has no such parameter.
static void find_differences(regret *x)
{
    for (size_t c = 0; c < x->in.columns; c++) {
        char first[TEXT] = "", text[TEXT];
        for (size_t r = 0; r < x->in.rows; r++) {
            cell_text(dsc_table_at(&x->in, r, c), text);
            if (!*first)
                snprintf(first, sizeof first, "%s", text);
            else if (*text && strcmp(first, text) != 0)
                x->differs[c] = true;
        }
        // Constant in one method, which others lack: their names differ already.
        x->differs[c] |= c < x->results && !strcmp(x->in.column[c].name, "controller");
    }
}

static double known(double speedup)
{
    return isnan(speedup) ? -1 : speedup;
}

static int by_group_and_time(const void *a, const void *b)
{
    const row *x = a, *y = b;
    const int order = strcmp(x->group, y->group);
    const double faster = known(x->speedup) - known(y->speedup);
    return order ? order : faster > 0 ? -1 : faster < 0 ? 1 : strcmp(x->parameters, y->parameters);
}

// The speedup of the fastest row of a kind in the group that begins at `first`, NaN: it has none.
static double fastest(const regret *x, size_t first, const char *length)
{
    for (size_t r = first; r < x->in.rows; r++)
        if (strcmp(x->row[r].group, x->row[first].group) != 0)
            break;
        else if (!strcmp(x->row[r].length, length))
            return x->row[r].speedup;
    return NAN;
}

static int fill(dsc_table *t, const regret *x, dsc_error *err)
{
    size_t first = 0;
    double fixed = NAN, bound = NAN;
    int rc = dsc_table_add_columns(t, columns, COLUMNS, err);
    for (size_t r = 0; r < x->in.rows && !rc; r++) {
        const row *o = &x->row[r];
        if (!r || strcmp(o->group, x->row[first].group) != 0) {
            first = r;
            fixed = fastest(x, first, "fixed");
            bound = fastest(x, first, "bound");
        }
        if (isnan(fixed))
            return dsc_fail(err, DSC_EINPUT,
                            "%.300s: no row with %.100s has a constant draft length and a speedup; "
                            "add ngram, draft-model or another method without a controller to "
                            "--method of draftscope sweep",
                            x->path, o->group);
        const dsc_cell cell[COLUMNS] = {cli_text(o->group),
                                        cli_integer((int64_t)(r - first) + 1),
                                        cli_text(o->method),
                                        cli_text(o->parameters),
                                        cli_text(o->length),
                                        cli_real(o->speedup),
                                        cli_real(fixed / o->speedup - 1),
                                        cli_real(bound / o->speedup - 1)};
        rc = dsc_table_add_row(t, cell, err);
    }
    return rc;
}

static int compute(regret *x, dsc_table *t, dsc_error *err)
{
    static const char *const kept[] = {"trace", "trace_sha256", "cost", "seed"};
    int rc = find_columns(x, err);
    if (!rc)
        rc = dsc_new(&x->differs, x->in.columns, err);
    if (!rc)
        rc = dsc_new(&x->row, x->in.rows, err);
    if (rc)
        return rc;
    find_differences(x);
    for (size_t r = 0; r < x->in.rows; r++)
        describe(x, r);
    qsort(x->row, x->in.rows, sizeof *x->row, by_group_and_time);
    rc = cli_result_comments(t, err);
    for (size_t i = 0; i < sizeof kept / sizeof *kept && !rc; i++) {
        const char *value = dsc_table_get_comment(&x->in, kept[i]);
        rc = value ? dsc_table_comment(t, kept[i], value, err) : DSC_OK;
    }
    return rc ? rc : fill(t, x, err);
}

static int execute(const cli_call *call, dsc_error *err)
{
    regret x = {.path = call->word[0]};
    dsc_table t = {0};
    int rc = dsc_table_read(&x.in, x.path, err);
    if (!rc)
        rc = compute(&x, &t, err);
    if (!rc)
        rc = cli_result_write(&t, call, err);
    free(x.differs);
    free(x.row);
    dsc_table_fini(&x.in);
    dsc_table_fini(&t);
    return rc;
}

const cli_command cli_theory_regret = {
    .name = "regret",
    .summary = "regret of adaptive draft lengths, against constant ones and the bound",
    CLI_OPTIONS(options),
    .usage = "theory regret TABLE [OPTIONS]",
    .about = "Ranks the rows of a result table of draftscope sweep by time. Regret is the share "
             "of time that a row takes longer than the best constant draft length in hindsight, "
             "and than a bound that knows what will be accepted (--controller oracle of adaptive "
             "methods, --policy oracle of recorded).",
    .least = 1,
    .most = 1,
    .what = "a result table of sweep",
    .fields = {CLI_FIELDS("Columns", columns), CLI_FIELDS("Formulas", formulas)},
    .execute = execute,
};

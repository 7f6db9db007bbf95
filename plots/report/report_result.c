// SPDX-License-Identifier: Apache-2.0
// Reads a result, determines its kind, and ranks its rows by speedup or block efficiency.
#include "plots/report/report_result.h"

#include "base/file.h"
#include "plots/draw/join.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void dsc_result_view_fini(dsc_result_view *r)
{
    dsc_table_fini(&r->table);
    dsc_table_fini(&r->values);
    dsc_plot_fini(&r->memory);
}

double dsc_merit(const dsc_result_view *r, size_t row)
{
    double v = r->merit < 0 ? NAN : dsc_table_real(&r->table, row, (size_t)r->merit);
    return isfinite(v) ? v : -INFINITY;
}

bool dsc_is_better(const dsc_result_view *r, size_t row, size_t than)
{
    const bool a = dsc_table_is_bound(&r->table, row), b = dsc_table_is_bound(&r->table, than);
    return a != b ? b : dsc_merit(r, row) > dsc_merit(r, than);
}

static int better_first(const void *pa, const void *pb, void *context)
{
    size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
    if (dsc_is_better(context, a, b))
        return -1;
    return dsc_is_better(context, b, a) ? 1 : (a > b) - (a < b);
}

// Ranks the rows, and makes filters that select those with the text parameters of the best one, for
// figures that show one group at a time.
static void rank(dsc_result_view *r)
{
    const dsc_table *t = &r->table;
    const char *cost = dsc_table_get_comment(t, "cost");
    r->merit = dsc_table_find(t, "speedup");
    if (cost && !strcmp(cost, "unit") && dsc_table_find(t, "block_efficiency") >= 0)
        r->merit = -1; // drafting is free there, and a speedup means nothing
    if (r->merit < 0 && dsc_table_find(t, "rank") < 0) // the rows of tune are ranked already
        r->merit = dsc_table_find(t, "block_efficiency");
    r->ranked = dsc_plot_new(&r->memory, size_t, t->rows);
    r->column = dsc_plot_new(&r->memory, size_t, t->columns);
    r->filter = dsc_plot_new(&r->memory, dsc_figure_filter, t->columns);
    if (r->memory.rc)
        return;
    for (size_t i = 0; i < t->rows; i++)
        r->ranked[i] = i;
    qsort_r(r->ranked, t->rows, sizeof *r->ranked, better_first, r);
    for (size_t c = 0; t->rows && c < t->columns; c++)
        if (t->column[c].type == DSC_CELL_TEXT && dsc_is_parameter(t, c) && dsc_varies(t, c))
            r->filter[r->filters++] =
                (dsc_figure_filter){t->column[c].name, dsc_table_at(t, r->ranked[0], c)->text};
}

bool dsc_has_best(const dsc_result_view *r)
{
    return r->table.rows && dsc_merit(r, r->ranked[0]) > -INFINITY;
}

static bool has(const dsc_table *t, const char *column)
{
    return dsc_table_find(t, column) >= 0;
}

static dsc_result_kind kind_of(const dsc_table *t)
{
    const char *command = dsc_table_get_comment(t, "command");
    int batch = dsc_table_find(t, "batch");
    if (has(t, "predicted") && has(t, "verdict"))
        return DSC_RESULT_VALIDATED;
    if (has(t, "tokens") && has(t, "target_s"))
        return DSC_RESULT_COSTS;
    if (has(t, "conditional_acceptance_reached"))
        return DSC_RESULT_WORKLOAD;
    if (has(t, "arrivals") && has(t, "saturated"))
        return DSC_RESULT_SERVED;
    if (has(t, "significant") || (has(t, "speedup") && batch >= 0 && dsc_varies(t, (size_t)batch)))
        return DSC_RESULT_TUNED;
    if (has(t, "method") && (has(t, "speedup") || has(t, "block_efficiency")))
        return DSC_RESULT_METHODS;
    if ((command && strstr(command, " theory ")) || has(t, "otm") || has(t, "alpha"))
        return DSC_RESULT_BOUNDS;
    return has(t, "request") ? DSC_RESULT_METHODS : DSC_RESULT_OTHER;
}

enum { MOST_BYTES = 1 << 28 }; // size of a JSON object

// A trace without conditional acceptance rates has no rows.
static int read_rates(dsc_result_view *r, const char *text, dsc_error *err)
{
    dsc_error e = {0};
    int rc = dsc_read_trace_info(&r->table, text, &e);
    if (rc == DSC_ENOMEM)
        return dsc_fail(err, rc, "%s", e.message);
    return DSC_OK;
}

// Reads a trace (a folder with a manifest) or the output of trace info --json.
static int read_json(dsc_result_view *r, const char *path, bool folder, dsc_error *err)
{
    const char *file = folder ? dsc_text(&r->memory, "%s/manifest.json", path) : path;
    char *text = NULL;
    size_t length;
    int rc = r->memory.rc ? r->memory.rc : dsc_sha256_file(file, r->sha256, err);
    rc = rc ?: dsc_read_file(&text, &length, file, MOST_BYTES, err);
    if (!rc && (rc = dsc_read_facts(r, text, err)))
        dsc_error_prefix(err, rc, "%s", file);
    if (!rc && !dsc_fact_find(r, folder ? "hash" : "trace"))
        rc = dsc_fail(err, DSC_EINPUT,
                      "%s: neither the manifest of a trace nor the output of trace info "
                      "--json",
                      file);
    if (!rc && !folder)
        rc = read_rates(r, text, err);
    free(text);
    return rc;
}

// Copies the rows of all requests, or the other ones.
static int copy_rows(dsc_table *out, const dsc_table *t, size_t by, bool all, dsc_error *err)
{
    int rc = dsc_table_add_columns(out, t->column, t->columns, err);
    for (size_t i = 0; i < t->comments && !rc; i++)
        rc = dsc_table_comment(out, t->key[i], t->value[i], err);
    for (size_t i = 0; i < t->rows && !rc; i++)
        if (!strcmp(dsc_table_at(t, i, by)->text, "all") == all)
            rc = dsc_table_add_row(out, dsc_table_at(t, i, 0), err);
    return rc;
}

// Separates the rows of all requests from those of the values of a metadata field.
static int split_values(dsc_result_view *r, dsc_error *err)
{
    const char *by = dsc_table_get_comment(&r->table, "by");
    const int c = by ? dsc_table_find(&r->table, by) : -1;
    dsc_table all = {0};
    if (c < 0 || r->table.column[c].type != DSC_CELL_TEXT)
        return DSC_OK;
    int rc = copy_rows(&r->values, &r->table, (size_t)c, false, err);
    rc = rc ?: copy_rows(&all, &r->table, (size_t)c, true, err);
    dsc_table_fini(&r->table);
    r->table = all;
    return rc;
}

int dsc_result_view_read(dsc_result_view *r, const char *path, dsc_error *err)
{
    struct stat st;
    bool folder = !stat(path, &st) && S_ISDIR(st.st_mode);
    bool trace = folder || dsc_is_json_object(path);
    r->path = path;
    r->memory = dsc_plot_of(&r->table, NULL, err);
    int rc = trace ? read_json(r, path, folder, err) : dsc_sha256_file(path, r->sha256, err);
    if (!rc && !trace)
        rc = dsc_read_tables(&r->table, &path, 1, err);
    if (!rc && !trace)
        rc = split_values(r, err);
    if (rc)
        return rc;
    rank(r);
    r->kind = trace ? DSC_RESULT_WORKLOAD : kind_of(&r->table);
    return r->memory.rc;
}

static bool is_comparable(const dsc_result_view *r)
{
    const dsc_table *t = &r->table;
    int batch = dsc_table_find(t, "batch");
    return r->kind == DSC_RESULT_METHODS && t->rows && dsc_table_find(t, "request") < 0 &&
           dsc_table_find(t, "method") >= 0 && (batch < 0 || !dsc_varies(t, (size_t)batch));
}

bool dsc_same_comment(const dsc_table *a, const dsc_table *b, const char *key)
{
    const char *x = dsc_table_get_comment(a, key), *y = dsc_table_get_comment(b, key);
    return x && y ? !strcmp(x, y) : x == y;
}

bool dsc_are_comparable(const dsc_result_view *a, const dsc_result_view *b)
{
    return is_comparable(a) && is_comparable(b) &&
           dsc_same_comment(&a->table, &b->table, "trace_hash") &&
           dsc_same_comment(&a->table, &b->table, "cost") &&
           dsc_same_comment(&a->table, &b->table, "target") &&
           dsc_same_comment(&a->table, &b->table, "draft");
}

int dsc_result_view_join(dsc_result_view *r, const dsc_result_view *in, size_t n, size_t first,
                         dsc_error *err)
{
    size_t joined = 0;
    *r = (dsc_result_view){.path = "", .memory = dsc_plot_of(&r->table, NULL, err)};
    const dsc_table **table = dsc_plot_new(&r->memory, const dsc_table *, n);
    for (size_t i = first; table && i < n; i++)
        if (dsc_are_comparable(&in[first], &in[i]))
            table[joined++] = &in[i].table;
    if (joined > 1)
        r->memory.rc = dsc_join_tables(&r->table, table, joined, err);
    rank(r);
    return r->memory.rc;
}

size_t dsc_short_columns(dsc_result_view *r)
{
    const dsc_table *t = &r->table;
    size_t n = 0;
    for (size_t c = 0; c < t->columns; c++)
        if (t->column[c].type != DSC_CELL_LIST && (t->rows == 1 || dsc_varies(t, c)))
            r->column[n++] = c;
    return n;
}

size_t dsc_corner_rows(const dsc_result_view *r, size_t row[4])
{
    const dsc_table *t = &r->table;
    int k = dsc_table_find(t, "num_speculative_tokens"), n = dsc_table_find(t, "n");
    dsc_figure_options o = {.filter = r->filter, .filters = r->filters};
    size_t count = 0;
    if (k < 0 || n < 0)
        return 0;
    dsc_plot p = dsc_plot_of(t, NULL, NULL);
    dsc_selection s = dsc_select(&p, t, &o, NULL);
    dsc_groups g = dsc_group(&p, &s, k, n);
    dsc_plot_grid grid = dsc_grid(&p, &s, &g, k, n);
    size_t x[2] = {0, grid.nx - 1}, y[2] = {0, grid.ny - 1};
    for (int i = 0; !p.rc && i < 4 && grid.nx > 1 && grid.ny > 1; i++) {
        size_t at = dsc_plot_grid_row(&grid, 0, x[i % 2], y[i / 2]);
        if (at != SIZE_MAX)
            row[count++] = at;
    }
    dsc_plot_fini(&p);
    return count;
}

// SPDX-License-Identifier: Apache-2.0
// Filters the rows of a table, distinguishes parameters from results, and reads cells by the name
// of their column.
#include "plots/draw/select.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Columns of results of sweep, theory, tune and serve; parameters stand to the left of the first of
// them.
static const char *const known_result[] = {
    "requests",
    "output_tokens",
    "target_calls",
    "draft_calls",
    "num_drafts_started",
    "num_drafts",
    "num_draft_tokens",
    "num_accepted_tokens",
    "draft_acceptance_rate",
    "block_efficiency",
    "mean_acceptance_length",
    "alpha_iid",
    "speedup",
    "accept_histogram",
    "iid_block_efficiency",
    "tokens_per_s",
    "target_s",
    "draft_s",
    "rank",
    "accepted",
    "largest_stable_qps",
    "running",
};

static bool is_identity(const char *name)
{
    return !strcmp(name, "request") || !strcmp(name, "id");
}

// Results in words: of tune, and of serve.
static bool is_verdict(const char *name)
{
    return !strcmp(name, "significant") || !strcmp(name, "saturated");
}

bool dsc_is_parameter(const dsc_table *t, size_t c)
{
    if (is_identity(t->column[c].name) || is_verdict(t->column[c].name))
        return false;
    if (t->column[c].type == DSC_CELL_TEXT || !strcmp(t->column[c].name, "batch"))
        return true;
    if (t->column[c].type == DSC_CELL_LIST)
        return false;
    for (size_t i = 0; i <= c; i++)
        for (size_t j = 0; j < sizeof known_result / sizeof *known_result; j++)
            if (!strcmp(t->column[i].name, known_result[j]))
                return false;
    return true;
}

void dsc_refuse_column(dsc_plot *p, const dsc_table *t, const char *who, const char *name)
{
    dsc_writer *w = dsc_text_begin(p);
    for (size_t i = 0; i < t->columns; i++)
        dsc_put(w, "%s%s", i ? ", " : "", t->column[i].name);
    dsc_refuse(p, "%s needs a column '%s'; the table has: %.600s", who, name,
               t->columns ? dsc_text_end(p) : "no columns");
}

int dsc_need(dsc_plot *p, const char *name, unsigned what)
{
    const dsc_table *t = p->table;
    int c = p->rc ? -1 : dsc_table_find(t, name);
    if (c < 0)
        dsc_refuse_column(p, t, p->name, name);
    else if (t->rows && !(what >> t->column[c].type & 1))
        dsc_refuse(p, "%s: column '%.60s' must contain %s", p->name, name,
                   what == DSC_NAMES     ? "names"
                   : what == DSC_NUMBERS ? "numbers"
                                         : "lists of counts");
    return p->rc ? -1 : c;
}

void dsc_need_columns(dsc_plot *p, const char *needs, int *column)
{
    char name[DSC_NAME];
    while (dsc_next_name(&needs, name))
        *column++ = dsc_need(p, name, DSC_ANYTHING);
}

double dsc_value_at(const dsc_table *t, size_t row, int column)
{
    double v = row == SIZE_MAX || column < 0 ? NAN : dsc_table_real(t, row, (size_t)column);
    return dsc_drawable(v) ? v : NAN;
}

double dsc_number_at(const dsc_table *t, size_t row, const char *column)
{
    return dsc_value_at(t, row, dsc_table_find(t, column));
}

const char *dsc_text_at(const dsc_table *t, size_t row, const char *column)
{
    int c = dsc_table_find(t, column);
    const dsc_cell *cell = c < 0 ? NULL : dsc_table_at(t, row, (size_t)c);
    return cell && cell->type == DSC_CELL_TEXT ? cell->text : "";
}

dsc_cell dsc_list_at(const dsc_table *t, size_t row, int column)
{
    const dsc_cell *c = dsc_table_at(t, row, (size_t)column);
    if (c->type == DSC_CELL_LIST)
        return *c;
    return (dsc_cell){.type = DSC_CELL_LIST, .list = &c->i, .i = c->type == DSC_CELL_INT};
}

double dsc_merit_at(const dsc_table *t, size_t row)
{
    double v = dsc_number_at(t, row, "speedup");
    v = isnan(v) ? dsc_number_at(t, row, "block_efficiency") : v;
    return isnan(v) ? -INFINITY : v;
}

static bool same_number(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool cell_is(const dsc_cell *c, const char *value)
{
    if (c->type == DSC_CELL_TEXT)
        return !strcmp(c->text, value);
    if (c->type == DSC_CELL_LIST)
        return false;
    char *end;
    double v = strtod(value, &end);
    double x = c->type == DSC_CELL_INT ? (double)c->i : c->r;
    return end != value && !*end && same_number(v, x);
}

bool dsc_same_cell(const dsc_cell *a, const dsc_cell *b)
{
    bool same = a->i == b->i;
    if (a->type == DSC_CELL_TEXT)
        return !strcmp(a->text, b->text);
    if (a->type == DSC_CELL_REAL)
        return same_number(a->r, b->r);
    for (int64_t i = 0; a->type == DSC_CELL_LIST && same && i < a->i; i++)
        same = same_number(dsc_cell_element(a, i), dsc_cell_element(b, i));
    return same;
}

bool dsc_varies(const dsc_table *t, size_t column)
{
    for (size_t i = 1; i < t->rows; i++)
        if (!dsc_same_cell(dsc_table_at(t, 0, column), dsc_table_at(t, i, column)))
            return true;
    return false;
}

bool dsc_rows_agree(const dsc_table *t, const bool *marked, size_t a, size_t b)
{
    for (size_t c = 0; c < t->columns; c++)
        if (marked[c] && !dsc_same_cell(dsc_table_at(t, a, c), dsc_table_at(t, b, c)))
            return false;
    return true;
}

bool dsc_same_texts(const dsc_table *t, size_t a, size_t b)
{
    for (size_t c = 0; c < t->columns; c++)
        if (t->column[c].type == DSC_CELL_TEXT && dsc_is_parameter(t, c) &&
            !dsc_same_cell(dsc_table_at(t, a, c), dsc_table_at(t, b, c)))
            return false;
    return true;
}

void dsc_put_values(dsc_writer *w, const dsc_table *t, const size_t *row, size_t rows, size_t c)
{
    enum { MOST = 12 };
    size_t shown[MOST], n = 0;
    for (size_t i = 0; i < rows; i++) {
        size_t r = row ? row[i] : i, j = 0;
        while (j < n && !dsc_same_cell(dsc_table_at(t, shown[j], c), dsc_table_at(t, r, c)))
            j++;
        if (j < n)
            continue;
        dsc_put(w, "%s", n ? ", " : "");
        if (n == MOST) {
            dsc_put(w, "...");
            return;
        }
        dsc_put_cell(w, dsc_table_at(t, r, c));
        shown[n++] = r;
    }
}

static void refuse_filter(dsc_plot *p, const dsc_table *t, const dsc_figure_filter *f,
                          size_t column)
{
    dsc_put_values(dsc_text_begin(p), t, NULL, t->rows, column);
    const char *values = dsc_text_end(p);
    dsc_refuse(p, "no row is left with %s = %s (the table contains %.600s)", f->column, f->value,
               values);
}

bool dsc_passes(const dsc_table *t, size_t row, const dsc_figure_filter *f)
{
    const int column = dsc_table_find(t, f->column);
    return column >= 0 && cell_is(dsc_table_at(t, row, (size_t)column), f->value);
}

static void apply_filter(dsc_plot *p, dsc_selection *s, const dsc_figure_filter *f)
{
    int column = dsc_table_find(s->table, f->column);
    size_t kept = 0;
    if (column < 0 || s->table->column[column].type == DSC_CELL_LIST) {
        dsc_refuse_column(p, s->table, "the filter", f->column);
        return;
    }
    for (size_t j = 0; j < s->rows; j++)
        if (cell_is(dsc_table_at(s->table, s->row[j], (size_t)column), f->value))
            s->row[kept++] = s->row[j];
    s->rows = kept;
    if (!kept)
        refuse_filter(p, s->table, f, (size_t)column);
}

static void keep_method(dsc_selection *s, const dsc_figure_options *o, const char *method)
{
    int m = dsc_table_find(s->table, "method");
    if (m < 0 || s->table->column[m].type != DSC_CELL_TEXT)
        return;
    for (size_t i = 0; i < o->filters; i++)
        if (!strcmp(o->filter[i].column, "method"))
            return;
    size_t wanted = 0, none = 0, kept = 0;
    for (size_t j = 0; j < s->rows; j++) {
        const char *is = dsc_table_at(s->table, s->row[j], (size_t)m)->text;
        wanted += method && !strcmp(is, method);
        none += !strcmp(is, "none");
    }
    for (size_t j = 0; j < s->rows; j++) {
        const char *is = dsc_table_at(s->table, s->row[j], (size_t)m)->text;
        if (wanted ? !strcmp(is, method) : none == s->rows || strcmp(is, "none"))
            s->row[kept++] = s->row[j];
    }
    s->dropped = s->rows - kept;
    s->rows = kept;
}

// Whether the options select one request of the table.
static bool is_of_request(const dsc_figure_options *o)
{
    for (size_t i = 0; i < o->filters; i++)
        if (is_identity(o->filter[i].column))
            return true;
    return false;
}

// Keeps the rows of all requests, or those of the values of the field that the table is by.
static void keep_groups(dsc_plot *p, dsc_selection *s, const dsc_figure_options *o)
{
    const char *by = dsc_table_get_comment(s->table, "by");
    const int c = by ? dsc_table_find(s->table, by) : -1;
    bool values = by && ((o->by && !strcmp(o->by, by)) || (o->x && !strcmp(o->x, by)));
    size_t kept = 0;
    if (o->by && !values)
        dsc_refuse(p, "the table has no rows by '%.60s'; make it with --by %.60s", o->by, o->by);
    for (size_t i = 0; by && i < o->filters; i++)
        if (!strcmp(o->filter[i].column, by))
            return;
    if (p->rc || c < 0 || s->table->column[c].type != DSC_CELL_TEXT)
        return;
    for (size_t j = 0; j < s->rows; j++) {
        const char *value = dsc_table_at(s->table, s->row[j], (size_t)c)->text;
        // Of joined tables, one may be without the field.
        const bool all = !*value || !strcmp(value, "all");
        if (all != values)
            s->row[kept++] = s->row[j];
    }
    s->rows = kept;
    if (!kept)
        dsc_refuse(p, "no row is left of %s of '%.60s'", values ? "the values" : "all values", by);
}

static dsc_selection select_rows(dsc_plot *p, const dsc_table *t, const dsc_figure_options *o)
{
    dsc_selection s = {.table = t};
    if (!t->rows)
        dsc_refuse(p, "the table has no rows to draw");
    s.row = dsc_plot_new(p, size_t, t->rows);
    for (size_t i = 0; !p->rc && i < t->rows; i++)
        s.row[s.rows++] = i;
    for (size_t i = 0; !p->rc && i < o->filters; i++)
        apply_filter(p, &s, &o->filter[i]);
    return s;
}

dsc_selection dsc_select_groups(dsc_plot *p, const dsc_table *t, const dsc_figure_options *o)
{
    if (t->rows && dsc_table_find(t, "request") >= 0 && !is_of_request(o))
        dsc_refuse(p, "the table has one row per request: draw the table of totals, or select one "
                      "request (--where request=N)");
    return select_rows(p, t, o);
}

dsc_selection dsc_select_requests(dsc_plot *p, const dsc_table *t, const dsc_figure_options *o)
{
    if (t->rows && dsc_table_find(t, "request") < 0)
        dsc_refuse(p,
                   "the table has totals; draftscope sim --per-request prints a row per request");
    return select_rows(p, t, o);
}

dsc_selection dsc_select(dsc_plot *p, const dsc_table *t, const dsc_figure_options *o,
                         const char *method)
{
    dsc_selection s = dsc_select_groups(p, t, o);
    if (!p->rc)
        keep_groups(p, &s, o);
    if (!p->rc)
        keep_method(&s, o, method);
    return s;
}

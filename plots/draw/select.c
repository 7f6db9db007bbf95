// SPDX-License-Identifier: Apache-2.0
// Filters the rows of a table, distinguishes parameters from results, and reads cells by the name
// of their column.
#include "plots/draw/select.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Columns of results of sweep, theory and tune; parameters stand to the left of the first of them.
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
};

static bool is_identity(const char *name)
{
    return !strcmp(name, "request") || !strcmp(name, "id");
}

bool dsc_is_parameter(const dsc_table *t, size_t c)
{
    if (is_identity(t->column[c].name) || !strcmp(t->column[c].name, "significant"))
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

static int refuse_column(const dsc_table *t, const char *who, const char *name, dsc_error *err)
{
    dsc_buffer b = {0};
    dsc_writer w = {.to = &b, .err = err};
    for (size_t i = 0; i < t->columns; i++)
        dsc_put(&w, "%s%s", i ? ", " : "", t->column[i].name);
    int rc = w.rc ? w.rc
                  : dsc_fail(err, DSC_EUSAGE, "%s needs a column '%s'; the table has: %.600s", who,
                             name, b.data ? b.data : "no columns");
    dsc_buffer_fini(&b);
    return rc;
}

int dsc_need_column(const dsc_table *t, const char *who, const char *name, int *column,
                    dsc_error *err)
{
    *column = dsc_table_find(t, name);
    return *column < 0 ? refuse_column(t, who, name, err) : DSC_OK;
}

int dsc_need_columns(const dsc_table *t, const char *who, const char *needs, int *column,
                     dsc_error *err)
{
    char name[128];
    int rc = DSC_OK;
    while (!rc && *needs) {
        size_t n = strcspn(needs, " ");
        snprintf(name, sizeof name, "%.*s", (int)n, needs);
        rc = dsc_need_column(t, who, name, column++, err);
        needs += n + strspn(needs + n, " ");
    }
    return rc;
}

static int need_type(const dsc_table *t, const char *who, const char *name, unsigned types,
                     const char *must, int *column, dsc_error *err)
{
    int rc = dsc_need_column(t, who, name, column, err);
    if (!rc && t->rows && !(types >> t->column[*column].type & 1))
        rc = dsc_fail(err, DSC_EUSAGE, "%s: column '%.60s' must contain %s", who, name, must);
    return rc;
}

int dsc_need_text(const dsc_table *t, const char *who, const char *name, int *column,
                  dsc_error *err)
{
    return need_type(t, who, name, 1u << DSC_CELL_TEXT, "names", column, err);
}

int dsc_need_number(const dsc_table *t, const char *who, const char *name, int *column,
                    dsc_error *err)
{
    return need_type(t, who, name, 1u << DSC_CELL_INT | 1u << DSC_CELL_REAL, "numbers", column,
                     err);
}

int dsc_need_list(const dsc_table *t, const char *who, const char *name, int *column,
                  dsc_error *err)
{
    return need_type(t, who, name, 1u << DSC_CELL_INT | 1u << DSC_CELL_LIST, "lists of counts",
                     column, err);
}

double dsc_number_at(const dsc_table *t, size_t row, const char *column)
{
    int c = dsc_table_find(t, column);
    double v = c < 0 ? NAN : dsc_table_real(t, row, (size_t)c);
    return dsc_drawable(v) ? v : NAN;
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

static bool cell_is(const dsc_cell *c, const char *value)
{
    if (c->type == DSC_CELL_TEXT)
        return !strcmp(c->text, value);
    if (c->type == DSC_CELL_LIST)
        return false;
    char *end;
    double v = strtod(value, &end);
    double x = c->type == DSC_CELL_INT ? (double)c->i : c->r;
    return end != value && !*end && (v == x || (isnan(v) && isnan(x)));
}

bool dsc_same_cell(const dsc_cell *a, const dsc_cell *b)
{
    if (a->type == DSC_CELL_TEXT)
        return !strcmp(a->text, b->text);
    if (a->type == DSC_CELL_INT)
        return a->i == b->i;
    return a->r == b->r || (isnan(a->r) && isnan(b->r));
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

static int refuse_filter(const dsc_table *t, const dsc_figure_filter *f, size_t column,
                         dsc_error *err)
{
    dsc_buffer b = {0};
    dsc_writer w = {.to = &b, .err = err};
    dsc_put_values(&w, t, NULL, t->rows, column);
    int rc =
        w.rc ? w.rc
             : dsc_fail(err, DSC_EUSAGE, "no row is left with %s = %s (the table contains %.600s)",
                        f->column, f->value, b.data ? b.data : "");
    dsc_buffer_fini(&b);
    return rc;
}

static int apply_filters(dsc_selection *s, const dsc_figure_options *o, dsc_error *err)
{
    for (size_t i = 0; i < o->filters; i++) {
        const dsc_figure_filter *f = &o->filter[i];
        int column = dsc_table_find(s->table, f->column);
        if (column < 0 || s->table->column[column].type == DSC_CELL_LIST)
            return refuse_column(s->table, "the filter", f->column, err);
        size_t kept = 0;
        for (size_t j = 0; j < s->rows; j++)
            if (cell_is(dsc_table_at(s->table, s->row[j], (size_t)column), f->value))
                s->row[kept++] = s->row[j];
        s->rows = kept;
        if (!kept)
            return refuse_filter(s->table, f, (size_t)column, err);
    }
    return DSC_OK;
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

static int refuse_requests(const dsc_table *t, const dsc_figure_options *o, dsc_error *err)
{
    if (dsc_table_find(t, "request") < 0)
        return DSC_OK;
    for (size_t i = 0; i < o->filters; i++)
        if (is_identity(o->filter[i].column))
            return DSC_OK;
    return dsc_fail(err, DSC_EUSAGE,
                    "the table has one row per request: draw the table of totals, or select one "
                    "request (--where request=N)");
}

int dsc_select(dsc_selection *s, const dsc_table *t, const dsc_figure_options *o,
               const char *method, dsc_error *err)
{
    *s = (dsc_selection){.table = t};
    if (!t->rows)
        return dsc_fail(err, DSC_EUSAGE, "the table has no rows to draw");
    int rc = refuse_requests(t, o, err);
    if (!rc)
        rc = dsc_new(&s->row, t->rows, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < t->rows; i++)
        s->row[s->rows++] = i;
    rc = apply_filters(s, o, err);
    if (!rc)
        keep_method(s, o, method);
    else
        dsc_selection_fini(s);
    return rc;
}

void dsc_selection_fini(dsc_selection *s)
{
    free(s->row);
    *s = (dsc_selection){0};
}

// SPDX-License-Identifier: Apache-2.0
// Writes the sections of the report about one result: its best configuration, figures and rows.
#include "base/columns.h"
#include "plots/draw/glossary.h"
#include "plots/report/report_result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS_SHOWN = 5000, // more would make the page unusable
    BEST_SHOWN = 10,
};

// --- sentences -----------------------------------------------------------------------------

// Whether parameter c says something about a row: it is the method, which varies, or it varies
// among the rows of its method. Everything does in a table of one row.
static bool is_open(const dsc_table *t, size_t row, size_t c)
{
    int method = dsc_table_find(t, "method");
    if (t->rows == 1 || method < 0 || (int)c == method)
        return t->rows == 1 || dsc_varies(t, c);
    for (size_t i = 0; i < t->rows; i++)
        if (dsc_same_cell(dsc_table_at(t, i, (size_t)method),
                          dsc_table_at(t, row, (size_t)method)) &&
            !dsc_same_cell(dsc_table_at(t, i, c), dsc_table_at(t, row, c)))
            return true;
    return false;
}

// "n = 1, draft length 32, semantics = paper": the parameters that vary for its method, or
// all of them in a one-row table.
void dsc_put_configuration(dsc_writer *w, const dsc_table *t, size_t row, const char *but)
{
    const char *comma = "";
    for (size_t c = 0; c < t->columns; c++) {
        const dsc_cell *cell = dsc_table_at(t, row, c);
        if (!dsc_is_parameter(t, c) || !is_open(t, row, c) || dsc_is_missing(cell) ||
            (but && !strcmp(but, t->column[c].name)))
            continue;
        dsc_put(w, "%s%s%s", comma, dsc_term_label(t->column[c].name),
                dsc_term_equals(t->column[c].name));
        if (cell->type == DSC_CELL_REAL) // a parameter is written as it was given
            dsc_put_cell(w, cell);
        else
            dsc_put_reading(w, cell);
        comma = ", ";
    }
    if (!*comma)
        dsc_put(w, "row %zu", row + 1);
}

// Writes the smallest draft length whose merit is within 2 % of the best with all other parameters
// equal: longer drafts gain little.
static void put_plateau(dsc_page *p, const dsc_result_view *r)
{
    const dsc_table *t = &r->table;
    size_t best = r->ranked[0];
    int k = dsc_table_find(t, "num_speculative_tokens");
    if (k < 0)
        return;
    double least = dsc_table_real(t, best, (size_t)k), from = least, at = dsc_merit(r, best);
    for (size_t i = 0; i < t->rows; i++) {
        bool same = true;
        for (size_t c = 0; same && c < t->columns; c++) {
            if ((int)c != k && dsc_is_parameter(t, c))
                same = dsc_same_cell(dsc_table_at(t, i, c), dsc_table_at(t, best, c));
        }
        double v = dsc_table_real(t, i, (size_t)k);
        if (same && dsc_merit(r, i) >= 0.98 * at && v < least)
            least = v;
    }
    if (least < from)
        dsc_say_block(p, DSC_PARAGRAPH, "A draft length of %g is within 2 %% of the best.", least);
}

static void put_merit(dsc_page *p, const dsc_table *t, size_t row, const char *column,
                      const char *unit, const char *label)
{
    char value[64];
    int c = dsc_table_find(t, column);
    if (c < 0 || !isfinite(dsc_table_real(t, row, (size_t)c)))
        return;
    snprintf(value, sizeof value, "%.2f%s", dsc_table_real(t, row, (size_t)c), unit);
    p->type->merit(&p->w, label, value);
}

// The highest upper bound, if the best row is none.
static void put_upper_bound(dsc_page *p, const dsc_result_view *r)
{
    const dsc_table *t = &r->table;
    size_t i = 0;
    while (i < t->rows && !dsc_table_is_bound(t, r->ranked[i]))
        i++;
    if (!i || i == t->rows || dsc_merit(r, r->ranked[i]) == -INFINITY)
        return;
    dsc_open(p, DSC_PARAGRAPH);
    dsc_writer *w = dsc_say_begin(p);
    dsc_put(w, "Upper bound, which cannot be run: ");
    dsc_put_configuration(w, t, r->ranked[i], NULL);
    dsc_put(w, ", %s %.2f.", dsc_term_label(t->column[r->merit].name), dsc_merit(r, r->ranked[i]));
    dsc_say_end(p);
    dsc_close(p, DSC_PARAGRAPH);
}

void dsc_put_best(dsc_page *p, const dsc_result_view *r)
{
    const dsc_table *t = &r->table;
    if (!dsc_has_best(r)) {
        dsc_say_block(p, DSC_SOFT, "%s",
                      !t->rows ? "The table has no rows."
                               : "The table has no finite speedup or block efficiency by which "
                                 "rows could be ranked.");
        return;
    }
    size_t best = r->ranked[0];
    const char *cost = dsc_table_get_comment(t, "cost");
    bool requests = dsc_table_find(t, "request") >= 0;
    dsc_open(p, DSC_BOX);
    dsc_open(p, DSC_PARAGRAPH);
    dsc_open(p, DSC_STRONG);
    dsc_writer *w = dsc_say_begin(p);
    dsc_put(w, "%s: ",
            dsc_table_is_bound(t, best) ? "Upper bound"
            : requests                  ? "Best request"
                                        : "Best observed");
    dsc_put_configuration(w, t, best, NULL);
    dsc_say_end(p);
    dsc_close(p, DSC_STRONG);
    dsc_close(p, DSC_PARAGRAPH);
    dsc_open(p, DSC_MERITS);
    if (!cost || strcmp(cost, "unit") != 0) // unit costs make no speedup
        put_merit(p, t, best, "speedup", "×", "speedup (no speculation = 1)");
    put_merit(p, t, best, "block_efficiency", "", dsc_term_title("block_efficiency"));
    put_merit(p, t, best, DSC_COL_DRAFT_ACCEPTANCE_RATE, "",
              "draft acceptance rate (accepted / drafted tokens)");
    dsc_close(p, DSC_MERITS);
    put_plateau(p, r);
    put_upper_bound(p, r);
    if (cost)
        dsc_say_block(p, DSC_SOFT, "Cost model: %s. %zu %s%s compared.%s", cost, t->rows,
                      requests ? "request" : "configuration", t->rows == 1 ? "" : "s",
                      requests || t->rows == 1
                          ? ""
                          : " The best was selected on these requests, so its value is "
                            "optimistically biased.");
    dsc_close(p, DSC_BOX);
}

// --- figures -------------------------------------------------------------------------------

// Draws a figure. If it cannot show several groups, the rows are narrowed to the best row's group
// and *narrowed is set; figures that compare are not narrowed.
static int draw(const dsc_page *p, const dsc_result_view *r, const dsc_figure_type *f,
                dsc_drawing *d, bool *narrowed, dsc_error *err)
{
    dsc_figure_options o = {.width = p->type->width};
    int rc = dsc_figure_draw(f, &r->table, &o, p->type->terminal, d, err);
    *narrowed = rc == DSC_EUSAGE && r->filters && !f->compares;
    if (*narrowed) {
        o.filter = r->filter;
        o.filters = r->filters;
        rc = dsc_figure_draw(f, &r->table, &o, p->type->terminal, d, err);
    }
    return rc;
}

// Adds the drawn rows to the finding.
static void say_narrowed(dsc_writer *w, const dsc_result_view *r)
{
    for (size_t i = 0; i < r->filters; i++)
        dsc_put(w, "%s%s = %s%s", i ? ", " : " Rows with ", r->filter[i].column, r->filter[i].value,
                i + 1 == r->filters ? "." : "");
}

static void put_figure(dsc_page *p, const dsc_result_view *r, const dsc_figure_type *f)
{
    dsc_drawing d = {0};
    dsc_error why = {0};
    bool narrowed;
    int rc = draw(p, r, f, &d, &narrowed, &why);
    if (rc == DSC_EUSAGE) { // the figure cannot show the table; the report goes on without it
        dsc_say_block(p, DSC_SOFT, "Figure %s is not drawn: %s.", f->name, why.message);
    } else if (rc) {
        p->w.rc = p->w.rc ? p->w.rc : dsc_fail(p->w.err, rc, "%s", why.message);
    } else {
        dsc_writer finding = {.to = &d.finding, .err = p->w.err, .rc = p->w.rc};
        if (narrowed)
            say_narrowed(&finding, r);
        p->w.rc = finding.rc;
        p->figures++;
        p->type->figure(p, &d);
    }
    dsc_drawing_fini(&d);
}

static bool has_figures(const dsc_result_view *r)
{ // figures compare configurations, not requests
    return r->table.rows && dsc_table_find(&r->table, "request") < 0;
}

// Draws the first figure that fits; returns whether there is one.
static bool put_first_of(dsc_page *p, const dsc_result_view *r, bool compare)
{
    for (const dsc_figure_type *const *f = dsc_figures(); has_figures(r) && *f && !p->w.rc; f++)
        if ((!compare || (*f)->compares) && dsc_figure_fits(*f, &r->table)) {
            p->first_of = &r->table;
            p->first_figure = *f;
            put_figure(p, r, *f);
            return true;
        }
    return false;
}

// Draws result i and those that can be compared with it in one figure.
static bool put_first_joined(dsc_page *p, const dsc_result_view *r, size_t n, size_t i)
{
    dsc_result_view all = {0};
    int rc = dsc_result_view_join(&all, r, n, i, p->w.err);
    p->w.rc = p->w.rc ? p->w.rc : rc;
    bool any = !p->w.rc && put_first_of(p, &all, true);
    p->first_joined = any ? i + 1 : 0;
    dsc_result_view_fini(&all);
    return any;
}

void dsc_put_first_figure(dsc_page *p, const dsc_result_view *r, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n && !any; i++)
        any = dsc_table_find(&r[i].table, "significant") >= 0 && put_first_of(p, &r[i], false);
    for (size_t i = 0; i < n && !any; i++)
        any = put_first_joined(p, r, n, i);
    for (size_t i = 0; i < n && !any; i++)
        any = put_first_of(p, &r[i], false);
}

void dsc_put_figures(dsc_page *p, const dsc_result_view *r, bool compare, const char *heading)
{
    bool any = false;
    if (!has_figures(r))
        return;
    for (const dsc_figure_type *const *f = dsc_figures(); *f && !p->w.rc; f++) {
        if ((compare && !(*f)->compares) || !dsc_figure_fits(*f, &r->table) ||
            (*f == p->first_figure && &r->table == p->first_of))
            continue;
        if (!any) {
            dsc_say_block(p, compare ? DSC_HEADING : DSC_SUBHEADING, "%s", heading);
            dsc_open(p, DSC_FIGURES);
        }
        any = true;
        put_figure(p, r, *f);
    }
    if (any)
        dsc_close(p, DSC_FIGURES);
}

// --- tables --------------------------------------------------------------------------------

// Writes the columns that are constant: "In all rows: method = llma, requests = 100."
static void put_constants(dsc_page *p, const dsc_table *t)
{
    bool any = false;
    for (size_t c = 0; c < t->columns; c++) {
        const char *name = t->column[c].name;
        if (t->rows < 2 || t->column[c].type == DSC_CELL_LIST || dsc_varies(t, c))
            continue;
        const char *before = any ? ", " : "In all rows: ";
        dsc_open_once(p, DSC_SOFT, &any);
        dsc_say(p, "%s%s%s", before, dsc_term_label(name), dsc_term_equals(name));
        dsc_say_cell(p, dsc_table_at(t, 0, c));
    }
    if (!any)
        return;
    dsc_say(p, ".");
    dsc_close(p, DSC_SOFT);
}

static void put_whole_table(dsc_page *p, dsc_result_view *r)
{
    const dsc_table *t = &r->table;
    size_t shown = t->rows < ROWS_SHOWN ? t->rows : ROWS_SHOWN, *row = NULL;
    if (!p->w.rc)
        p->w.rc = dsc_new(&row, shown, p->w.err);
    if (p->w.rc)
        return;
    for (size_t i = 0; i < shown; i++)
        row[i] = i;
    size_t columns = t->columns;
    // The others are constant, or lists, which the file contains.
    if (t->rows > BEST_SHOWN || r->kind == DSC_RESULT_SERVED)
        columns = dsc_short_columns(r);
    for (size_t c = 0; columns == t->columns && c < columns; c++)
        r->column[c] = c;
    char caption[64], folded[64];
    snprintf(folded, sizeof folded, "%s %zu rows", shown < t->rows ? "The first" : "All", shown);
    snprintf(caption, sizeof caption, "%zu of %zu rows, in the file's order", shown, t->rows);
    p->type->table(p, &(dsc_page_table){t, row, r->column, shown, columns, caption,
                                        t->rows > BEST_SHOWN ? folded : NULL});
    free(row);
}

void dsc_put_tables(dsc_page *p, dsc_result_view *r)
{
    const dsc_table *t = &r->table;
    if (!t->rows)
        return;
    dsc_say_block(p, DSC_SUBHEADING, "Rows");
    if (t->rows > BEST_SHOWN) {
        size_t columns = dsc_short_columns(r), corner[4], corners = dsc_corner_rows(r, corner);
        char caption[128];
        put_constants(p, t);
        if (dsc_has_best(r)) {
            snprintf(caption, sizeof caption, "The %d best rows by %s", BEST_SHOWN,
                     t->column[r->merit].name);
            p->type->table(
                p, &(dsc_page_table){t, r->ranked, r->column, BEST_SHOWN, columns, caption, NULL});
        }
        if (corners)
            p->type->table(p, &(dsc_page_table){t, corner, r->column, corners, columns,
                                                "The corners of the grid: least and "
                                                "greatest draft length and n",
                                                NULL});
    }
    put_whole_table(p, r);
}

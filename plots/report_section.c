// SPDX-License-Identifier: Apache-2.0
// The sections of the report about one result: what is best, figures, rows.
#include "plots/report_html.h"
#include "plots/report_result.h"
#include "plots/select.h"

#include <math.h>
#include <stdlib.h>

enum {
    ROWS_SHOWN = 5000, // a page of more is no use; the file is named beside it
    BEST_SHOWN = 10,
    PHONE_WIDTH = 360, // pixels; the smallest phones have 360, less the margins
};

// --- sentences -----------------------------------------------------------------------------

// "n = 1, k = 32, semantics = paper" of the parameters that vary, all of them in a one-row table.
static void put_configuration(dsc_writer *w, const dsc_table *t, size_t row)
{
    const char *comma = "";
    for (size_t c = 0; c < t->columns; c++) {
        const dsc_cell *cell = dsc_table_at(t, row, c);
        if (!dsc_is_parameter(t, c) || (t->rows > 1 && !dsc_varies(t, c)) || dsc_is_missing(cell))
            continue;
        dsc_put(w, "%s", comma);
        dsc_put_html(w, t->column[c].name);
        dsc_put(w, " = ");
        if (cell->type == DSC_CELL_REAL) // a setting, not a result: as it was given
            dsc_put_cell(w, cell);
        else
            dsc_put_html_cell(w, cell);
        comma = ", ";
    }
    if (!*comma)
        dsc_put(w, "row %zu", row + 1);
}

// The smallest k whose merit is within 2 % of the best, all else as in the best row: where longer
// drafts stop paying.
static void put_plateau(dsc_writer *w, const dsc_result_view *r)
{
    const dsc_table *t = &r->table;
    size_t best = r->ranked[0];
    int k = dsc_table_find(t, "k");
    if (k < 0)
        return;
    double least = dsc_table_real(t, best, (size_t)k), from = least, at = dsc_merit(r, best);
    for (size_t i = 0; i < t->rows; i++) {
        bool alike = true;
        for (size_t c = 0; alike && c < t->columns; c++) {
            if ((int)c != k && dsc_is_parameter(t, c))
                alike = dsc_same_cell(dsc_table_at(t, i, c), dsc_table_at(t, best, c));
        }
        double v = dsc_table_real(t, i, (size_t)k);
        if (alike && dsc_merit(r, i) >= 0.98 * at && v < least)
            least = v;
    }
    if (least < from)
        dsc_put(w, "<p>k = %g is already within 2&nbsp;%% of it.</p>\n", least);
}

static void put_merit(dsc_writer *w, const dsc_table *t, size_t row, const char *column,
                      const char *unit, const char *label)
{
    int c = dsc_table_find(t, column);
    if (c < 0 || !isfinite(dsc_table_real(t, row, (size_t)c)))
        return;
    dsc_put(w, "<div><dt>%s</dt><dd>%.2f%s</dd></div>", label, dsc_table_real(t, row, (size_t)c),
            unit);
}

void dsc_put_best(dsc_writer *w, const dsc_result_view *r)
{
    const dsc_table *t = &r->table;
    if (!dsc_has_best(r)) {
        dsc_put(w, "<p class=\"soft\">%s</p>\n",
                !t->rows
                    ? "The table has no rows."
                    : "The table has no finite speed-up or block efficiency to rank its rows by.");
        return;
    }
    size_t best = r->ranked[0];
    const char *cost = dsc_table_get_comment(t, "cost");
    bool requests = dsc_table_find(t, "request") >= 0;
    dsc_put(w, "<div class=\"best\">\n<p><strong>%s: ",
            requests ? "Best request" : "Best configuration");
    put_configuration(w, t, best);
    dsc_put(w, "</strong></p>\n<dl class=\"figure-of-merit\">");
    put_merit(w, t, best, "speedup", "×", "speed-up (no speculation = 1)");
    put_merit(w, t, best, "block_efficiency", "", "output tokens per target call (bonus included)");
    put_merit(w, t, best, "acceptance_rate", "", "acceptance rate (bonus excluded)");
    dsc_put(w, "</dl>\n");
    put_plateau(w, r);
    if (cost) {
        dsc_put(w, "<p class=\"soft\">Cost model: ");
        dsc_put_html(w, cost);
        dsc_put(w, ". %zu %s%s compared.%s</p>\n", t->rows, requests ? "request" : "configuration",
                t->rows == 1 ? "" : "s",
                requests || t->rows == 1 ? ""
                                         : " The best was chosen on these very requests: on others "
                                           "it gains somewhat less.");
    }
    dsc_put(w, "</div>\n");
}

// --- figures -------------------------------------------------------------------------------

static bool has_columns(const dsc_table *t, const char *needs)
{
    int column[16];
    return dsc_need_columns(t, "", needs, column, NULL) == DSC_OK;
}

// Draws for one width; a table of several groups that the figure refuses is narrowed to the best
// row's group, and *narrowed tells. A figure that compares would have nothing left to compare.
static int draw(const dsc_result_view *r, const dsc_figure_type *f, double width, dsc_drawing *d,
                bool *narrowed, dsc_error *err)
{
    dsc_figure_options o = {.width = width};
    int rc = dsc_figure_draw(f, &r->table, &o, "svg", d, err);
    *narrowed = rc == DSC_EUSAGE && r->filters && !f->compares;
    if (*narrowed) {
        o.filter = r->filter;
        o.filters = r->filters;
        rc = dsc_figure_draw(f, &r->table, &o, "svg", d, err);
    }
    return rc;
}

static void put_caption(dsc_writer *w, const dsc_result_view *r, const dsc_drawing *d,
                        size_t number, bool narrowed)
{
    dsc_put(w, "<figcaption>Figure %zu. ", number);
    dsc_put_html(w, d->finding.data);
    for (size_t i = 0; narrowed && i < r->filters; i++) {
        dsc_put(w, "%s", i ? ", " : " Rows with ");
        dsc_put_html(w, r->filter[i].column);
        dsc_put(w, " = ");
        dsc_put_html(w, r->filter[i].value);
        dsc_put(w, "%s", i + 1 == r->filters ? "." : "");
    }
    dsc_put(w, "</figcaption>\n</figure>\n");
}

static int put_figure(dsc_writer *w, const dsc_result_view *r, const dsc_figure_type *f,
                      size_t *number, dsc_error *err)
{
    dsc_drawing wide = {0}, narrow = {0};
    dsc_error why = {0};
    bool narrowed;
    char prefix[64];
    int rc = draw(r, f, 0, &wide, &narrowed, &why);
    if (!rc)
        rc = draw(r, f, PHONE_WIDTH, &narrow, &narrowed, &why);
    if (rc == DSC_EUSAGE) { // a table that this figure cannot show is no fault of the report
        dsc_put(w, "<p class=\"soft\">Figure %s is not drawn: ", f->name);
        dsc_put_html(w, why.message);
        dsc_put(w, ".</p>\n");
        rc = DSC_OK;
    } else if (rc) {
        rc = dsc_fail(err, rc, "%s", why.message);
    } else {
        ++*number;
        dsc_put(w, "<figure>\n");
        snprintf(prefix, sizeof prefix, "f%zuw", *number);
        dsc_put_inline_svg(w, &wide.picture, prefix, "wide", wide.finding.data);
        snprintf(prefix, sizeof prefix, "f%zun", *number);
        dsc_put_inline_svg(w, &narrow.picture, prefix, "narrow", narrow.finding.data);
        put_caption(w, r, &wide, *number, narrowed);
    }
    dsc_drawing_fini(&wide);
    dsc_drawing_fini(&narrow);
    return rc ? rc : w->rc;
}

int dsc_put_figures(dsc_writer *w, const dsc_result_view *r, bool compare, const char *heading,
                    size_t *number, dsc_error *err)
{
    const dsc_table *t = &r->table;
    bool any = false;
    int rc = DSC_OK;
    if (!t->rows || dsc_table_find(t, "request") >= 0)
        return DSC_OK; // figures compare configurations, not requests
    for (const dsc_figure_type *const *f = dsc_figures(); *f && !rc; f++) {
        if (!has_columns(t, (*f)->needs) || (compare && !(*f)->compares) ||
            ((*f)->fits && !(*f)->fits(t)))
            continue;
        if (!any)
            dsc_put(w, "%s", heading);
        any = true;
        rc = put_figure(w, r, *f, number, err);
    }
    return rc;
}

// --- tables --------------------------------------------------------------------------------

// "In all rows: method = llma, requests = 100."
static void put_constants(dsc_writer *w, const dsc_table *t)
{
    const char *comma = "<p class=\"soft\">In all rows: ";
    for (size_t c = 0; c < t->columns; c++) {
        if (t->rows < 2 || t->column[c].type == DSC_CELL_LIST || dsc_varies(t, c))
            continue;
        dsc_put(w, "%s", comma);
        dsc_put_html(w, t->column[c].name);
        dsc_put(w, " = ");
        dsc_put_html_cell(w, dsc_table_at(t, 0, c));
        comma = ", ";
    }
    if (comma[0] == ',')
        dsc_put(w, ".</p>\n");
}

static void put_whole_table(dsc_writer *w, dsc_result_view *r)
{
    const dsc_table *t = &r->table;
    size_t shown = t->rows < ROWS_SHOWN ? t->rows : ROWS_SHOWN, *row = NULL;
    if (!w->rc)
        w->rc = dsc_alloc((void **)&row, shown, sizeof *row, w->err);
    if (w->rc)
        return;
    for (size_t i = 0; i < shown; i++)
        row[i] = i;
    for (size_t c = 0; c < t->columns; c++)
        r->column[c] = c;
    if (t->rows > BEST_SHOWN)
        dsc_put(w, "<details><summary>%s %zu rows</summary>\n",
                shown < t->rows ? "The first" : "All", shown);
    char caption[64];
    snprintf(caption, sizeof caption, "%zu of %zu rows, in the file's order", shown, t->rows);
    dsc_put_html_table(w, t, row, shown, r->column, t->columns, caption);
    if (t->rows > BEST_SHOWN)
        dsc_put(w, "</details>\n");
    free(row);
}

void dsc_put_tables(dsc_writer *w, dsc_result_view *r)
{
    const dsc_table *t = &r->table;
    if (!t->rows)
        return;
    dsc_put(w, "<h3>Rows</h3>\n");
    if (t->rows > BEST_SHOWN) {
        size_t columns = dsc_short_columns(r), corner[4], corners = dsc_corner_rows(r, corner);
        char caption[128];
        put_constants(w, t);
        if (dsc_has_best(r)) {
            snprintf(caption, sizeof caption, "The %d best rows by %s", BEST_SHOWN,
                     t->column[r->merit].name);
            dsc_put_html_table(w, t, r->ranked, BEST_SHOWN, r->column, columns, caption);
        }
        if (corners)
            dsc_put_html_table(w, t, corner, corners, r->column, columns,
                               "The corners of the grid: least and most k and n");
    }
    put_whole_table(w, r);
}

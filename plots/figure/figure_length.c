// SPDX-License-Identifier: Apache-2.0
// A result against draft length, a line per method, rule and further parameters, the best length
// of each marked (Ouroboros, Zhao et al. 2024, arXiv 2402.13720, Figure 1); dashed, what i.i.d.
// acceptance of the same mean would have given.
#include "plots/draw/glossary.h"
#include "plots/draw/lines.h"
#include "plots/draw/panel.h"
#include "plots/figure/draft_length.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct lengths {
    dsc_table table; // the selected rows with their draft lengths
    dsc_lines lines;
    const char *column;
    bool less;
    double *value, *predicted; // [lines][nx]; predicted: NULL without a prediction
    size_t best[DSC_STYLES];   // of each line, index into x, SIZE_MAX: none
    double mark[DSC_STYLES];   // NaN: the best is the longest, or the only one
    size_t top;                // index into value of the best of all
    bool rises;                // some line's best is its longest
    char label[DSC_STYLES][DSC_LINE_LABEL + 32];
    dsc_key key[DSC_STYLES];
} lengths;

static void lengths_fini(lengths *l)
{
    free(l->value);
    free(l->predicted);
    dsc_lines_fini(&l->lines);
    dsc_table_fini(&l->table);
}

// The prediction of a quantity that is proportional to block efficiency at the same steps.
static int predict(lengths *l, dsc_error *err)
{
    const dsc_table *t = &l->table;
    int iid = dsc_table_find(t, "iid_block_efficiency"), is = dsc_table_find(t, "block_efficiency");
    bool proportional = !strcmp(l->column, "block_efficiency") || !strcmp(l->column, "speedup") ||
                        !strcmp(l->column, "tokens_per_s");
    double *real = NULL;
    if (iid < 0 || is < 0 || !proportional)
        return DSC_OK;
    int rc = dsc_lines_values(&l->lines, iid, &l->predicted, err);
    if (!rc)
        rc = dsc_lines_values(&l->lines, is, &real, err);
    bool any = false;
    for (size_t i = 0; !rc && i < l->lines.lines * l->lines.nx; i++) {
        double v = l->value[i] * l->predicted[i] / real[i];
        l->predicted[i] = dsc_drawable(v) ? v : NAN;
        any = any || dsc_drawable(v);
    }
    if (!any) {
        free(l->predicted);
        l->predicted = NULL;
    }
    free(real);
    return rc;
}

// Whether the best is the last that there is: then a longer draft may be better still.
static bool is_last(const double *v, size_t n, size_t best)
{
    for (size_t i = best + 1; i < n; i++)
        if (!isnan(v[i]))
            return false;
    return true;
}

// Where line j's best is marked: marks that would hide each other step aside, by less than the
// distance of two lengths.
static double mark_of(const lengths *l, size_t j)
{
    double x = l->lines.x[l->best[j]], range = l->lines.x[l->lines.nx - 1] - l->lines.x[0];
    size_t same = 0;
    for (size_t k = 0; k < j; k++)
        same += l->best[k] == l->best[j] && !isnan(l->mark[k]);
    return x - (double)same * fmin(0.008 * range, 0.04 * fabs(x));
}

static void find_best(lengths *l)
{
    size_t nx = l->lines.nx;
    l->top = dsc_best_of(l->value, l->lines.lines * nx, l->less);
    for (size_t j = 0; j < l->lines.lines; j++) {
        const double *v = l->value + j * nx;
        size_t best = dsc_best_of(v, nx, l->less);
        const char *name = l->lines.label[j], *gap = *name ? " " : "";
        l->best[j] = best;
        l->mark[j] = NAN;
        if (best == SIZE_MAX || nx == 1) {
            snprintf(l->label[j], sizeof l->label[j], "%s", name);
        } else {
            bool last = is_last(v, nx, best);
            l->rises = l->rises || last;
            l->mark[j] = last ? NAN : mark_of(l, j);
            snprintf(l->label[j], sizeof l->label[j], "%s%s(%g%s)", name, gap, l->lines.x[best],
                     last ? "+" : "");
        }
        l->key[j] = (dsc_key){l->label[j], (int)j};
    }
}

// The column to draw: the user's, or the first of these with any number.
static int choose_column(lengths *l, const dsc_table *t, const dsc_figure_options *o, int *column,
                         dsc_error *err)
{
    l->column = o->column                           ? o->column
                : dsc_table_find(t, "speedup") >= 0 ? "speedup"
                                                    : "block_efficiency";
    const dsc_term *term = dsc_term_find(l->column);
    l->less = term && term->less_is_better;
    int rc = dsc_need_column(t, "length", l->column, column, err);
    if (!rc &&
        (t->column[*column].type == DSC_CELL_TEXT || t->column[*column].type == DSC_CELL_LIST))
        rc = dsc_fail(err, DSC_EUSAGE, "length: column '%.60s' is not numeric", l->column);
    return rc;
}

static int lengths_init(lengths *l, const dsc_table *t, const dsc_figure_options *o, dsc_error *err)
{
    static const dsc_figure_options all = {0};
    int unused[2], column;
    dsc_selection s = {0};
    int rc = dsc_need_columns(t, "length", dsc_figure_length.needs, unused, err);
    if (!rc)
        rc = choose_column(l, t, o, &column, err);
    if (!rc)
        rc = dsc_select(&s, t, o, NULL, err);
    if (!rc)
        rc = dsc_length_table(&l->table, &s, o->x, err);
    dsc_lines_of of = {
        .table = &l->table, .x = 0, .less_is_better = l->less, .what = "configurations"};
    of.y = rc ? 0 : dsc_table_find(&l->table, l->column);
    if (!rc)
        rc = dsc_lines_init(&l->lines, of, &all, err);
    if (!rc)
        rc = dsc_lines_values(&l->lines, of.y, &l->value, err);
    if (!rc)
        rc = predict(l, err);
    if (!rc)
        find_best(l);
    if (!rc && l->top == SIZE_MAX)
        rc = dsc_fail(err, DSC_EUSAGE, "column '%s' has no finite number to draw", l->column);
    dsc_selection_fini(&s);
    return rc;
}

static bool is_ratio(const lengths *l)
{
    return !strcmp(l->column, "speedup") || !strcmp(l->column, "block_efficiency");
}

// "best 2.31× at draft length 5 (chain, single)"
static void put_best(dsc_writer *w, const lengths *l, size_t at)
{
    size_t nx = l->lines.nx;
    const char *name = l->lines.label[at / nx];
    dsc_put(w, is_ratio(l) && l->value[at] < 1e4 ? "best %.2f%s" : "best %.4g%s", l->value[at],
            strcmp(l->column, "speedup") ? "" : "×");
    dsc_put(w, " at draft length %g", l->lines.x[at % nx]);
    if (*name)
        dsc_put(w, " (%s)", name);
}

static int put_finding(const lengths *l, dsc_buffer *to, dsc_error *err)
{
    dsc_writer w = {.to = to, .err = err};
    size_t nx = l->lines.nx;
    double worst = 0;
    dsc_put(&w, "Line chart: %s by draft length (%g to %g)", dsc_term_title(l->column),
            l->lines.x[0], l->lines.x[nx - 1]);
    for (size_t j = 0; j < l->lines.lines; j++) {
        if (l->best[j] == SIZE_MAX)
            continue;
        dsc_put(&w, "%s", j ? "; " : ": ");
        put_best(&w, l, j * nx + l->best[j]);
        if (nx > 1 && is_last(l->value + j * nx, nx, l->best[j]))
            dsc_put(&w, ", the longest");
    }
    dsc_put(&w, ".");
    for (size_t i = 0; l->predicted && i < l->lines.lines * nx; i++) {
        double error = l->predicted[i] / l->value[i] - 1;
        worst = fabs(error) > fabs(worst) ? error : worst; // false for NaN
    }
    if (l->predicted)
        dsc_put(&w,
                " Acceptance independent of the position, with the same mean, would give up to "
                "%.1f %% %s.",
                100 * fabs(worst), worst < 0 ? "less" : "more");
    return w.rc;
}

static void put_subtitle(dsc_writer *w, const lengths *l)
{
    put_best(w, l, l->top);
    if (l->lines.nx > 1)
        dsc_put(w, "; brackets and ticks: best length%s", l->rises ? " (+: still rising)" : "");
    if (l->lines.note[0])
        dsc_put(w, "; %s", l->lines.note);
}

static int compose(const lengths *l, const dsc_table *t, const dsc_figure_options *o,
                   const char *terminal, dsc_drawing *out, dsc_error *err)
{
    dsc_canvas canvas;
    char heading[100], title[128];
    bool narrow = o->width > 0 && o->width < 520;
    const char *cost = strcmp(l->column, "speedup") ? NULL : dsc_table_get_comment(t, "cost");
    size_t nx = l->lines.nx;
    int rc = dsc_canvas_init(&canvas, terminal, o, 720,
                             (narrow ? 420 : 470) + 10 * (double)l->lines.lines, err);
    if (rc)
        return rc;
    dsc_buffer subtitle = {0}, label = {0};
    dsc_writer sub = {.to = &subtitle, .err = err}, y = {.to = &label, .err = err};
    dsc_term_heading(l->column, heading, sizeof heading);
    snprintf(title, sizeof title, "%s by draft length", heading);
    put_subtitle(&sub, l);
    dsc_put(&y, "%s%s%s%s", dsc_term_title(l->column), cost ? " (cost: " : "", cost ? cost : "",
            cost ? ")" : "");
    dsc_panel panel = {"", label.data, l->value, 0};
    dsc_panels p = {
        .title = o->title ? o->title : title,
        .subtitle = subtitle.data,
        .x_label = o->x ? dsc_term_title(o->x) : "draft length (tokens)",
        .x = l->lines.x,
        .nx = nx,
        .key = l->key,
        .lines = l->lines.lines,
        .panel = &panel,
        .panels = 1,
        .columns = 1,
        .reference_label = is_ratio(l) ? "no speculation" : NULL,
        .mark = l->mark,
        .predicted = l->predicted,
        .predicted_label = "were acceptance i.i.d.",
        .best_panel = 0,
        .best_line = l->top / nx,
        .best_x = l->top % nx,
    };
    dsc_writer w = {.to = &out->script, .err = err, .rc = sub.rc ? sub.rc : y.rc};
    if (!w.rc)
        dsc_put_panels(&w, &canvas, "length", &p);
    dsc_buffer_fini(&subtitle);
    dsc_buffer_fini(&label);
    return w.rc;
}

static int script(const dsc_table *t, const dsc_figure_options *o, const char *terminal,
                  dsc_drawing *out, dsc_error *err)
{
    lengths l = {.column = NULL};
    int rc = lengths_init(&l, t, o, err);
    if (!rc)
        rc = compose(&l, t, o, terminal, out, err);
    if (!rc)
        rc = put_finding(&l, &out->finding, err);
    double *const value[] = {l.value, l.predicted};
    const char *const name[] = {l.column, "iid"};
    if (!rc)
        rc = dsc_lines_data(&l.lines, DSC_DRAFT_LENGTH, name, value, l.predicted ? 2 : 1,
                            &out->data, err);
    lengths_fini(&l);
    return rc;
}

// Lengths that differ, and more than LLMA's copy length alone, which has its own figure.
static bool fits(const dsc_table *t)
{
    static const dsc_figure_options all = {0};
    dsc_selection s = {0};
    dsc_table copy = {0};
    double *x = NULL;
    size_t nx = 0;
    bool llma = dsc_table_find(t, "num_speculative_tokens") >= 0 && dsc_table_find(t, "n") >= 0;
    int m = dsc_table_find(t, "method");
    for (size_t i = 0; i < t->rows && m >= 0 && t->column[m].type == DSC_CELL_TEXT; i++)
        llma = llma && !strcmp(dsc_table_at(t, i, (size_t)m)->text, "llma");
    if (llma || dsc_select(&s, t, &all, NULL, NULL))
        return false;
    if (!dsc_length_table(&copy, &s, NULL, NULL)) {
        dsc_selection again = {0};
        if (!dsc_select(&again, &copy, &all, NULL, NULL) && dsc_distinct(&again, 0, &x, &nx, NULL))
            nx = 0;
        dsc_selection_fini(&again);
        dsc_table_fini(&copy);
    }
    free(x);
    dsc_selection_fini(&s);
    return nx > 1;
}

const dsc_figure_type dsc_figure_length = {
    .name = "length",
    .summary = "speed-up or another result against draft length, a line per configuration",
    .needs = "method block_efficiency",
    .fits = fits,
    .compares = true,
    .script = script,
};

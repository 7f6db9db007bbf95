// SPDX-License-Identifier: Apache-2.0
// Draws a result by draft length, one line per method, rule and further parameters, with the best
// length of each marked (as in Ouroboros, Zhao et al. 2024, arXiv 2402.13720, Figure 1). Dashed
// curves show the result under i.i.d. acceptance with the same mean, as a reference.
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
    dsc_bests bests;           // of each line
    size_t top;                // index into value of the best of all
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

// Predicts a quantity that is proportional to block efficiency for the same number of steps.
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

static void find_best(lengths *l)
{
    size_t nx = l->lines.nx;
    l->top = dsc_best_of(l->value, l->lines.lines * nx, l->less);
    dsc_find_bests(&l->bests, l->value, l->lines.lines, l->lines.x, nx, l->less);
    for (size_t j = 0; j < l->lines.lines; j++) {
        dsc_label_best(l->label[j], sizeof l->label[j], l->lines.label[j], &l->bests, j, l->lines.x,
                       nx);
        l->key[j] = (dsc_key){l->label[j], (int)j};
    }
}

// Chooses the column to draw: the option's, else speedup, else block efficiency.
static int choose_column(lengths *l, const dsc_table *t, const dsc_figure_options *o, int *column,
                         dsc_error *err)
{
    l->column = o->column                           ? o->column
                : dsc_table_find(t, "speedup") >= 0 ? "speedup"
                                                    : "block_efficiency";
    l->less = dsc_term_less_is_better(l->column);
    return dsc_need_number(t, "length", l->column, column, err);
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
        .table = &l->table, .x = 0, .less_is_better = l->less, .noun = "configurations"};
    of.y = rc ? 0 : dsc_table_find(&l->table, l->column);
    if (!rc)
        rc = dsc_lines_init(&l->lines, of, &all, err);
    if (!rc)
        rc = dsc_lines_values(&l->lines, of.y, &l->value, err);
    if (!rc)
        rc = predict(l, err);
    if (!rc)
        rc = dsc_check_any(l->value, l->lines.lines * l->lines.nx, l->column, err);
    if (!rc)
        find_best(l);
    dsc_selection_fini(&s);
    return rc;
}

static bool is_ratio(const lengths *l)
{
    return !strcmp(l->column, "speedup") || !strcmp(l->column, "block_efficiency");
}

// "best 2.31× at draft length 5 (draft-model, greedy)"
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
        if (l->bests.best[j] == SIZE_MAX)
            continue;
        dsc_put(&w, "%s", j ? "; " : ": ");
        put_best(&w, l, j * nx + l->bests.best[j]);
        if (nx > 1 && l->bests.last[j])
            dsc_put(&w, ", the longest");
    }
    dsc_put(&w, ".");
    for (size_t i = 0; l->predicted && i < l->lines.lines * nx; i++) {
        double error = l->predicted[i] / l->value[i] - 1;
        worst = fabs(error) > fabs(worst) ? error : worst; // false for NaN
    }
    if (l->predicted)
        dsc_put(&w,
                " Under i.i.d. acceptance with the same mean the result would be up to %.1f %% %s.",
                100 * fabs(worst), worst < 0 ? "lower" : "higher");
    return w.rc;
}

static void put_subtitle(dsc_writer *w, const lengths *l)
{
    put_best(w, l, l->top);
    if (l->lines.nx > 1)
        dsc_put(w, "; ticks and parentheses: best length%s",
                l->bests.rises ? " (+: still rising)" : "");
    if (l->lines.note[0])
        dsc_put(w, "; %s", l->lines.note);
}

static int compose(const lengths *l, const dsc_table *t, const dsc_figure_options *o,
                   const char *terminal, dsc_drawing *out, dsc_error *err)
{
    char heading[100], title[128];
    const char *cost = strcmp(l->column, "speedup") ? NULL : dsc_table_get_comment(t, "cost");
    double height = (dsc_is_narrow(o, terminal) ? 420 : 470) + 10 * (double)l->lines.lines;
    dsc_buffer subtitle = {0}, label = {0};
    dsc_writer sub = {.to = &subtitle, .err = err}, y = {.to = &label, .err = err};
    dsc_term_heading(l->column, heading, sizeof heading);
    snprintf(title, sizeof title, "%s by draft length", heading);
    put_subtitle(&sub, l);
    dsc_put(&y, "%s%s%s%s", dsc_term_title(l->column), cost ? " (cost: " : "", cost ? cost : "",
            cost ? ")" : "");
    dsc_panel panel = {"", label.data, l->value, 0};
    dsc_panels p = {
        .title = title,
        .subtitle = subtitle.data,
        .x_label = o->x ? dsc_term_title(o->x) : "draft length (tokens)",
        .x = l->lines.x,
        .nx = l->lines.nx,
        .key = l->key,
        .lines = l->lines.lines,
        .panel = &panel,
        .panels = 1,
        .reference_label = is_ratio(l) ? "no speculation" : NULL,
        .mark = l->bests.mark,
        .predicted = l->predicted,
        .predicted_label = "i.i.d. acceptance (reference)",
        .ring = true,
        .best = l->top,
    };
    int rc = sub.rc ? sub.rc : y.rc;
    if (!rc)
        rc = dsc_draw_panels(&p, "length", o, terminal, 720, height, &out->script, err);
    dsc_buffer_fini(&subtitle);
    dsc_buffer_fini(&label);
    return rc;
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

// Whether draft lengths differ. A table of LLMA alone has its own figures.
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
    .summary = "speedup or another result by draft length, one line per configuration",
    .needs = "method block_efficiency",
    .fits = fits,
    .compares = true,
    .script = script,
};

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
#include <string.h>

typedef struct lengths {
    dsc_lines lines;
    const char *column;
    bool less;
    double *predicted;       // [lines][nx]; NULL: no prediction
    dsc_bests bests;         // of each line
    size_t top;              // index into value of the best of all
    dsc_key key[DSC_STYLES]; // with the best lengths
} lengths;

// Predicts a quantity that is proportional to block efficiency for the same number of steps.
static void predict(dsc_plot *p, lengths *l, const dsc_table *t)
{
    int iid = dsc_table_find(t, "iid_block_efficiency"), is = dsc_table_find(t, "block_efficiency");
    bool proportional = !strcmp(l->column, "block_efficiency") || !strcmp(l->column, "speedup") ||
                        !strcmp(l->column, "tokens_per_s");
    bool any = false;
    if (iid < 0 || is < 0 || !proportional)
        return;
    double *predicted = dsc_lines_values(p, &l->lines, iid);
    const double *real = dsc_lines_values(p, &l->lines, is);
    for (size_t i = 0; !p->rc && i < l->lines.lines * l->lines.nx; i++) {
        double v = l->lines.value[i] * predicted[i] / real[i];
        predicted[i] = dsc_drawable(v) ? v : NAN;
        any = any || dsc_drawable(v);
    }
    l->predicted = any ? predicted : NULL;
}

static void find_best(dsc_plot *p, lengths *l)
{
    size_t nx = l->lines.nx;
    l->top = dsc_best_of(l->lines.value, l->lines.lines * nx, l->less);
    dsc_find_bests(&l->bests, l->lines.value, l->lines.lines, l->lines.x, nx, l->less);
    for (size_t j = 0; j < l->lines.lines; j++)
        l->key[j] =
            (dsc_key){dsc_label_best(p, l->lines.label[j], &l->bests, j, l->lines.x, nx), (int)j};
}

static void read_lengths(dsc_plot *p, lengths *l)
{
    static const dsc_figure_options all = {0};
    int unused[2];
    dsc_need_columns(p, p->needs, unused);
    l->column = dsc_result_column(p);
    l->less = dsc_term_less_is_better(l->column);
    dsc_need(p, l->column, DSC_NUMBERS);
    dsc_selection s = dsc_select(p, p->table, p->options, NULL);
    const dsc_table *t = dsc_length_table(p, &s);
    int y = dsc_table_find(t, l->column);
    dsc_lines_of of = {.table = t,
                       .options = &all,
                       .x = 0,
                       .y = y,
                       .less_is_better = l->less,
                       .noun = "configurations"};
    dsc_lines_init(p, &l->lines, of);
    predict(p, l, t);
    if (!p->rc)
        find_best(p, l);
}

// "best 2.31× at draft length 5 (draft-model, greedy)"
static void put_best(dsc_writer *w, const lengths *l, size_t at)
{
    size_t nx = l->lines.nx;
    const char *name = l->lines.label[at / nx];
    dsc_put(w, dsc_is_ratio(l->column) && l->lines.value[at] < 1e4 ? "best %.2f%s" : "best %.4g%s",
            l->lines.value[at], strcmp(l->column, "speedup") ? "" : "×");
    dsc_put(w, " at draft length %g", l->lines.x[at % nx]);
    if (*name)
        dsc_put(w, " (%s)", name);
}

static void put_finding(dsc_writer *w, const lengths *l)
{
    size_t nx = l->lines.nx;
    double worst = 0;
    dsc_put(w, "Line chart: %s by draft length (%g to %g)", dsc_term_title(l->column),
            l->lines.x[0], l->lines.x[nx - 1]);
    for (size_t j = 0; j < l->lines.lines; j++) {
        if (l->bests.best[j] == SIZE_MAX)
            continue;
        dsc_put(w, "%s", j ? "; " : ": ");
        put_best(w, l, j * nx + l->bests.best[j]);
        if (nx > 1 && l->bests.last[j])
            dsc_put(w, ", the longest");
    }
    dsc_put(w, ".");
    for (size_t i = 0; l->predicted && i < l->lines.lines * nx; i++) {
        double error = l->predicted[i] / l->lines.value[i] - 1;
        worst = fabs(error) > fabs(worst) ? error : worst; // false for NaN
    }
    if (l->predicted)
        dsc_put(w,
                " Under i.i.d. acceptance with the same mean the result would be up to %.1f %% %s.",
                100 * fabs(worst), worst < 0 ? "lower" : "higher");
}

static void put_subtitle(dsc_writer *w, const lengths *l)
{
    put_best(w, l, l->top);
    if (l->lines.nx > 1)
        dsc_put(w, "; ticks and parentheses: best length%s",
                l->bests.rises ? " (+: still rising)" : "");
    if (*l->lines.note)
        dsc_put(w, "; %s", l->lines.note);
}

static void draw(dsc_plot *plot)
{
    lengths l = {.column = NULL};
    read_lengths(plot, &l);
    if (plot->rc)
        return;
    const dsc_figure_options *o = plot->options;
    const char *cost =
        strcmp(l.column, "speedup") ? NULL : dsc_table_get_comment(plot->table, "cost");
    const char *y = dsc_term_title(l.column);
    double height = (dsc_is_narrow(plot) ? 420 : 470) + 10 * (double)l.lines.lines;
    dsc_panel panel = {"", cost ? dsc_text(plot, "%s (cost: %s)", y, cost) : y, l.lines.value, 0};
    put_subtitle(dsc_text_begin(plot), &l);
    const char *subtitle = dsc_text_end(plot);
    dsc_panels p = {
        .title = dsc_text(plot, "%s by draft length", dsc_term_heading(plot, l.column)),
        .subtitle = subtitle,
        .x_label = o->x ? dsc_term_title(o->x) : "draft length (tokens)",
        .x = l.lines.x,
        .nx = l.lines.nx,
        .key = l.key,
        .lines = l.lines.lines,
        .panel = &panel,
        .panels = 1,
        .reference_label = dsc_is_ratio(l.column) ? "no speculation" : NULL,
        .mark = l.bests.mark,
        .predicted = l.predicted,
        .predicted_label = "i.i.d. acceptance (reference)",
        .ring = true,
        .best = l.top,
    };
    dsc_draw_panels(plot, &p, "length", 720, height);
    put_finding(&plot->finding, &l);
    dsc_lines_data(plot, &l.lines, DSC_DRAFT_LENGTH, (const char *[]){l.column, "iid"},
                   (double *const[]){l.lines.value, l.predicted}, l.predicted ? 2 : 1);
}

// Whether draft lengths differ. A table of LLMA alone has its own figures.
static bool fits(dsc_plot *p)
{
    const dsc_table *t = p->table;
    size_t nx = 0;
    bool llma = dsc_table_find(t, "num_speculative_tokens") >= 0 && dsc_table_find(t, "n") >= 0;
    for (size_t i = 0; i < t->rows; i++)
        llma = llma && !strcmp(dsc_text_at(t, i, "method"), "llma");
    if (llma)
        return false;
    dsc_selection s = dsc_select(p, t, p->options, NULL);
    s = dsc_select(p, dsc_length_table(p, &s), p->options, NULL);
    dsc_distinct(p, &s, 0, &nx);
    return nx > 1;
}

const dsc_figure_type dsc_figure_length = {
    .name = "length",
    .summary = "speedup or another result by draft length, one line per configuration",
    .needs = "method block_efficiency",
    .fits = fits,
    .compares = true,
    .draw = draw,
};

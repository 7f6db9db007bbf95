// SPDX-License-Identifier: Apache-2.0
// Draws a result by draft length with the best length of each line marked (as in Ouroboros, Zhao et
// al. 2024, arXiv 2402.13720, Figure 1). A few configurations under one condition are a line each,
// and dashed curves show the result under i.i.d. acceptance with the same mean, as a reference. Of
// many, or under several batch sizes, which are a panel each, each method and rule is the envelope
// of its configurations.
#include "plots/draw/glossary.h"
#include "plots/draw/lines.h"
#include "plots/draw/panel.h"
#include "plots/figure/draft_length.h"
#include "plots/figure/envelope.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <string.h>

typedef struct lengths {
    dsc_lines lines;
    const char *column;
    bool less;
    const char *axis;        // axis_of
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

// What the x axis is: "draft length", or the words of another column.
static const char *axis_of(const dsc_plot *p)
{
    const char *x = p->options->x;
    return x && strcmp(x, DSC_DRAFT_LENGTH) ? dsc_term_title(x) : "draft length";
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

static void read_lengths(dsc_plot *p, lengths *l, const dsc_table *t)
{
    static const dsc_figure_options all = {0};
    l->column = dsc_result_column(p);
    l->axis = axis_of(p);
    l->less = dsc_term_less_is_better(l->column);
    dsc_need(p, l->column, DSC_NUMBERS);
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
    dsc_put(w, " at %s %g", l->axis, l->lines.x[at % nx]);
    if (*name)
        dsc_put(w, " (%s)", name);
}

static void put_finding(dsc_writer *w, const lengths *l)
{
    size_t nx = l->lines.nx;
    double worst = 0;
    dsc_put(w, "Line chart: %s by %s (%g to %g)", dsc_term_title(l->column), l->axis, l->lines.x[0],
            l->lines.x[nx - 1]);
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
        dsc_put(w, "; ticks and parentheses: best %s%s",
                strcmp(l->axis, "draft length") ? l->axis : "length",
                l->bests.rises ? " (+: still rising)" : "");
    if (*l->lines.note)
        dsc_put(w, "; %s", l->lines.note);
}

// --- envelopes -----------------------------------------------------------------------------------

enum { FEW = 6 }; // more lines than these cross too often to be readable

// Whether the rows are of several batch sizes, or of more than a few configurations.
static bool needs_envelope(dsc_plot *p, const dsc_selection *s)
{
    int batch = dsc_table_find(s->table, "batch");
    bool several = false;
    for (size_t i = 1; batch >= 0 && i < s->rows; i++)
        several = several || !dsc_same_cell(dsc_table_at(s->table, s->row[0], (size_t)batch),
                                            dsc_table_at(s->table, s->row[i], (size_t)batch));
    return several || dsc_group(p, s, 0, -1).groups > FEW;
}

static void put_envelope_finding(dsc_writer *w, const dsc_envelope *e, const char *column,
                                 const char *axis, bool less)
{
    dsc_put(w, "Line chart: %s by %s (%g to %g), best configuration of each method",
            dsc_term_title(column), axis, e->x[0], e->x[e->nx - 1]);
    for (size_t i = 0; i < e->panels; i++) {
        size_t at = i * e->lines * e->nx, count = e->lines * e->nx;
        size_t best = dsc_best_of(e->value + at, count, less);
        if (best == SIZE_MAX)
            continue;
        dsc_put(w, "%s", i ? "; " : ": ");
        if (!isnan(e->panel[i]))
            dsc_put(w, "at batch size %g ", e->panel[i]);
        dsc_put(w, "best %.4g at %s %g (%s)", e->value[at + best], axis, e->x[best % e->nx],
                e->label[best / e->nx]);
    }
    dsc_put(w, ".");
}

static void put_envelope_data(dsc_plot *p, const dsc_envelope *e, const char *column)
{
    dsc_data_text(p, "line", "method and rule");
    dsc_data_text(p, "best_with", "further parameters of the best configuration");
    dsc_data_number(p, "batch", NULL);
    dsc_data_number(p, DSC_DRAFT_LENGTH, NULL);
    dsc_data_number(p, column, NULL);
    for (size_t i = 0; i < e->panels * e->lines * e->nx; i++) {
        const char *label = e->label[i / e->nx % e->lines], *with = e->detail[i];
        if (!isnan(e->value[i]))
            dsc_data_row(p, (const char *[]){*label ? label : "all", with ? with : ""},
                         (double[]){e->panel[i / e->nx / e->lines], e->x[i % e->nx], e->value[i]});
    }
}

static void draw_envelope(dsc_plot *plot, const dsc_selection *s)
{
    const char *column = dsc_result_column(plot), *title = dsc_term_title(column);
    int y = dsc_table_find(s->table, column), batch = dsc_table_find(s->table, "batch");
    bool less = dsc_term_less_is_better(column);
    dsc_envelope e;
    dsc_envelope_init(plot, &e, s, 0, y, batch, less);
    if (plot->rc)
        return;
    dsc_key key[DSC_STYLES];
    dsc_panel panel[DSC_ENVELOPE_PANELS];
    const char *cost =
        strcmp(column, "speedup") ? NULL : dsc_table_get_comment(plot->table, "cost");
    for (size_t j = 0; j < e.lines; j++)
        key[j] = (dsc_key){e.label[j], (int)j};
    for (size_t i = 0; i < e.panels; i++)
        panel[i] = (dsc_panel){e.conditions > 1 ? dsc_text(plot, "batch size %g", e.panel[i]) : "",
                               i || !cost ? title : dsc_text(plot, "%s (cost: %s)", title, cost),
                               e.value + i * e.lines * e.nx, 0};
    size_t columns = e.panels < 3 ? e.panels : 3, rows = (e.panels + columns - 1) / columns;
    const char *less_lines = dsc_left_out(plot, e.lines, e.methods, "lines", s->dropped);
    const char *less_panels = dsc_left_out(plot, e.panels, e.conditions, "batch sizes", 0);
    dsc_panels p = {
        .title = dsc_text(plot, "%s by %s", dsc_term_heading(plot, column), axis_of(plot)),
        .subtitle =
            dsc_text(plot, "best configuration of each method at each %s%s%s%s%s", axis_of(plot),
                     *less_lines ? "; " : "", less_lines, *less_panels ? "; " : "", less_panels),
        .x_label = plot->options->x ? dsc_term_title(plot->options->x) : "draft length (tokens)",
        .x = e.x,
        .nx = e.nx,
        .key = key,
        .lines = e.lines,
        .detail = e.detail,
        .panel = panel,
        .panels = e.panels,
        .columns = columns,
        .reference_label = dsc_is_ratio(column) ? "no speculation" : NULL,
    };
    double height = dsc_is_narrow(plot) ? 150 + 220 * (double)e.panels
                    : rows > 1          ? 130 + 300 * (double)rows
                                        : 470;
    dsc_draw_panels(plot, &p, "length", e.panels > 1 ? 1000 : 720, height);
    put_envelope_finding(&plot->finding, &e, column, axis_of(plot), less);
    put_envelope_data(plot, &e, column);
}

// --- lines ---------------------------------------------------------------------------------------

static void draw(dsc_plot *plot)
{
    lengths l = {.column = NULL};
    int unused[2];
    dsc_need_columns(plot, plot->needs, unused);
    dsc_selection s = dsc_select(plot, plot->table, plot->options, NULL);
    const dsc_table *t = dsc_length_table(plot, &s);
    const dsc_figure_options all = {0};
    s = dsc_select(plot, t, &all, NULL);
    bool envelope = !plot->rc && needs_envelope(plot, &s);
    if (envelope) {
        dsc_need(plot, dsc_result_column(plot), DSC_NUMBERS);
        if (!plot->rc)
            draw_envelope(plot, &s);
    } else if (!plot->rc) {
        read_lengths(plot, &l, t);
    }
    if (plot->rc || envelope)
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
        .title = dsc_text(plot, "%s by %s", dsc_term_heading(plot, l.column), l.axis),
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
    .summary =
        "speedup or another result by draft length, per configuration, or per method and batch "
        "size",
    .needs = "method block_efficiency",
    .fits = fits,
    .compares = true,
    .draw = draw,
};

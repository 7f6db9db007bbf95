// SPDX-License-Identifier: Apache-2.0
// Draws the speedup of parallel drafting by window (PEARL, Liu et al. 2024, arXiv 2408.11850), one
// line per acceptance rate, which is its color, and speed ratio, which is its dashes. The best
// window is marked: the ratio (Theorem 1), or the better of its two neighboring integers. A table
// of published figures is drawn as predicted and published tokens per second by window, one panel
// per pair of models.
#include "plots/draw/lines.h"
#include "plots/draw/panel.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <string.h>

enum { PANELS = 6, FILTERS = 32, PREDICTED = 0, PUBLISHED, SIDES };
enum { ALPHAS = 6, RATIOS = 4, LINES = ALPHAS * RATIOS };

// The lines of either kind of table.
typedef struct windows {
    dsc_selection selection;
    dsc_groups groups; // lines, or panels of a published table
    dsc_plot_grid grid;
    size_t line[LINES]; // group of each line
    size_t lines, panels;
    const double *x; // [nx]
    size_t nx;
    double *value; // [panels][lines][nx]
    double mark[LINES];
    const char *group[PANELS];
    const char *kind; // form or quantity of the rows, owned by the table
    dsc_key key[LINES], legend[ALPHAS + RATIOS];
    size_t legends;        // 0: the keys of the lines
    const char *end_title; // lines of one parameter are labeled at their ends
    const char *hover[LINES];
    dsc_panel panel[PANELS];
} windows;

// Returns `value` if a row has it, else the value of the first row.
static const char *value_or_first(const dsc_table *t, const char *column, const char *value)
{
    int c = dsc_table_find(t, column);
    if (c < 0 || t->column[c].type != DSC_CELL_TEXT || !t->rows)
        return value;
    for (size_t i = 0; i < t->rows; i++)
        if (!strcmp(dsc_table_at(t, i, (size_t)c)->text, value))
            return value;
    return dsc_table_at(t, 0, (size_t)c)->text;
}

// Selects by the user's filters, and by `column` = `value` unless a filter names that column or no
// row has the value; groups the rows over the windows.
static void start(dsc_plot *p, windows *d, int window, const char *column, const char *value)
{
    dsc_figure_filter filter[FILTERS];
    dsc_figure_options mine = *p->options;
    bool named = dsc_table_find(p->table, column) < 0;
    if (mine.filters >= FILTERS) {
        dsc_refuse(p, "more than %d filters", FILTERS - 1);
        return;
    }
    for (size_t i = 0; i < mine.filters; i++) {
        filter[i] = mine.filter[i];
        named = named || !strcmp(filter[i].column, column);
    }
    if (!named)
        filter[mine.filters++] =
            (dsc_figure_filter){column, value_or_first(p->table, column, value)};
    mine.filter = filter;
    d->selection = dsc_select(p, p->table, &mine, NULL);
    d->groups = dsc_group(p, &d->selection, window, -1);
    d->grid = dsc_grid(p, &d->selection, &d->groups, window, -1);
    d->x = d->grid.x;
    d->nx = d->grid.nx;
}

// Writes the values of a group to line[nx]; NaN where there is no row.
static void fill_line(const windows *d, size_t group, int column, double *line)
{
    for (size_t i = 0; i < d->nx; i++)
        line[i] =
            dsc_value_at(d->selection.table, dsc_plot_grid_row(&d->grid, group, i, 0), column);
}

static double group_real(const windows *d, size_t group, const char *column)
{
    return dsc_number_at(d->selection.table, d->groups.first[group], column);
}

// Whether the lines differ in both parameters; then thinning them would mislead.
static bool two_parameters(const windows *d)
{
    bool alpha = false, ratio = false;
    for (size_t g = 1; g < d->groups.groups; g++) {
        alpha = alpha || group_real(d, g, "alpha") != group_real(d, 0, "alpha");
        ratio = ratio || group_real(d, g, "ratio") != group_real(d, 0, "ratio");
    }
    return alpha && ratio;
}

// The value of text column `name`, which is the same in all selected rows: they are filtered by it.
static const char *kind_of(const windows *d, const char *name, const char *otherwise)
{
    const char *kind = dsc_text_at(d->selection.table, d->selection.row[0], name);
    return *kind ? kind : otherwise;
}

// Places a tick at the best window of each line, only one if lines share it.
static void mark_best(windows *d)
{
    for (size_t j = 0; j < d->lines; j++) {
        double best = group_real(d, d->line[j], "best_window");
        d->mark[j] = best >= d->x[0] && best <= d->x[d->nx - 1] ? best : NAN; // NaN for NaN
        for (size_t k = 0; k < j; k++)
            if (d->mark[k] == best)
                d->mark[j] = NAN;
    }
}

// The lines of one parameter: colors of the ramp, labeled at their ends.
static void choose_one(dsc_plot *p, windows *d)
{
    bool ratio = false;
    d->lines = dsc_thin(d->groups.groups, DSC_STYLES, d->groups.groups - 1, d->line);
    for (size_t g = 1; g < d->groups.groups; g++)
        ratio = ratio || group_real(d, g, "ratio") != group_real(d, 0, "ratio");
    d->end_title = ratio ? "ratio" : "alpha";
    for (size_t j = 0; j < d->lines; j++)
        d->key[j] = (dsc_key){
            d->lines > 1 ? dsc_text(p, "%g", group_real(d, d->line[j], d->end_title)) : "speedup",
            dsc_ramp_style(j, d->lines)};
}

// The distinct values of a parameter, thinned to `most`; returns their number.
static size_t values_of(dsc_plot *p, const windows *d, const char *column, size_t most, double *v)
{
    size_t n = 0, chosen[ALPHAS];
    const double *all =
        dsc_distinct(p, &d->selection, dsc_table_find(d->selection.table, column), &n);
    if (p->rc)
        return 0;
    n = dsc_thin(n, most, n - 1, chosen);
    for (size_t i = 0; i < n; i++)
        v[i] = all[chosen[i]];
    return n;
}

// The lines of both parameters: the acceptance rate is the color, the ratio the dashes.
static void choose_both(dsc_plot *p, windows *d)
{
    static const int dashes[RATIOS] = {0, 1, 2, 4};
    double alpha[ALPHAS], ratio[RATIOS];
    size_t alphas = values_of(p, d, "alpha", ALPHAS, alpha);
    size_t ratios = values_of(p, d, "ratio", RATIOS, ratio);
    for (size_t g = 0; g < d->groups.groups && d->lines < LINES; g++) {
        size_t a = 0, r = 0;
        while (a < alphas && alpha[a] != group_real(d, g, "alpha"))
            a++;
        while (r < ratios && ratio[r] != group_real(d, g, "ratio"))
            r++;
        if (a == alphas || r == ratios)
            continue;
        d->key[d->lines] = (dsc_key){d->groups.label[g],
                                     dsc_ramp_style(a, alphas) + DSC_STYLE_DASH * (dashes[r] + 1)};
        d->line[d->lines++] = g;
    }
    for (size_t a = 0; a < alphas; a++)
        d->legend[d->legends++] =
            (dsc_key){dsc_text(p, "alpha %g", alpha[a]), dsc_ramp_style(a, alphas)};
    for (size_t r = 0; r < ratios; r++)
        d->legend[d->legends++] =
            (dsc_key){dsc_text(p, "ratio %g", ratio[r]), 3 + DSC_STYLE_DASH * (dashes[r] + 1)};
}

// Reads a table of the closed form: one line per group.
static void read_closed_form(dsc_plot *p, windows *d, int window)
{
    int speedup = dsc_need(p, "speedup", DSC_ANYTHING);
    start(p, d, window, "form", "pearl");
    if (p->rc)
        return;
    d->kind = kind_of(d, "form", "pearl");
    if (two_parameters(d))
        choose_both(p, d);
    else
        choose_one(p, d);
    d->panels = 1;
    d->value = dsc_plot_numbers(p, d->lines * d->nx);
    for (size_t j = 0; j < d->lines && !p->rc; j++) {
        const char *label = d->groups.label[d->line[j]];
        d->hover[j] = *label ? label : "speedup";
        fill_line(d, d->line[j], speedup, d->value + j * d->nx);
    }
    dsc_check_any(p, d->value, d->lines * d->nx, "speedup");
    mark_best(d);
    d->panel[0] = (dsc_panel){"", "speedup over decoding without speculation", d->value, 0};
}

static const char *unit_of(const char *quantity)
{
    return !strcmp(quantity, "tokens_per_s") ? "tokens per second" : quantity;
}

// Reads a table of published figures: one panel per pair of models, with a predicted and a
// published line.
static void read_published(dsc_plot *p, windows *d, int window)
{
    int column[4]; // pair quantity predicted published
    dsc_need_columns(p, "pair quantity predicted published", column);
    dsc_need(p, "pair", DSC_NAMES);
    start(p, d, window, "quantity", "tokens_per_s");
    dsc_check_groups(p, &d->groups, PANELS);
    d->lines = SIDES;
    d->panels = p->rc ? 0 : d->groups.groups;
    d->value = dsc_plot_numbers(p, d->panels * SIDES * d->nx);
    if (p->rc)
        return;
    d->kind = kind_of(d, "quantity", "tokens_per_s");
    d->key[PREDICTED] = (dsc_key){"predicted", 0};
    d->key[PUBLISHED] = (dsc_key){"published", 1};
    for (size_t g = 0; g < d->panels; g++) {
        double *side = d->value + g * SIDES * d->nx, ratio = group_real(d, g, "ratio");
        const char *pair = dsc_text_at(p->table, d->groups.first[g], "pair");
        fill_line(d, g, column[2], side);
        fill_line(d, g, column[3], side + d->nx);
        d->group[g] = isnan(ratio) ? pair : dsc_text(p, "%.100s (%.2f)", pair, ratio);
        d->panel[g] = (dsc_panel){d->group[g], unit_of(d->kind), side, 0};
    }
    dsc_check_any(p, d->value, d->panels * SIDES * d->nx, "predicted");
}

static void put_finding(dsc_writer *w, const windows *d, bool published)
{
    dsc_put(w, "Line chart: %s by window (%g to %g)",
            published                         ? "PEARL, predicted and published,"
            : !strcmp(d->kind, "speculative") ? "speedup of speculative decoding"
                                              : "speedup of parallel drafting",
            d->x[0], d->x[d->nx - 1]);
    for (size_t i = 0; i < d->panels * d->lines; i++) {
        const double *v = d->value + i * d->nx;
        size_t best = dsc_best_of(v, d->nx, false);
        const char *name = published ? d->group[i / SIDES] : d->hover[i];
        if (best == SIZE_MAX)
            continue;
        dsc_put(w, "%s %s%s%s best %.*f at %g", i ? ";" : ":", name, published ? ", " : "",
                published ? d->key[i % SIDES].label : "", published ? 1 : 2, v[best], d->x[best]);
    }
    dsc_put(w, ".");
}

static void put_data(dsc_plot *p, const windows *d, bool published)
{
    size_t step = published ? SIDES : 1;
    dsc_data_text(p, published ? "pair" : "line", NULL);
    dsc_data_numbers(p, published ? "window predicted published" : "window speedup");
    for (size_t i = 0; i < d->panels * d->lines; i += step)
        for (size_t j = 0; j < d->nx; j++) {
            const double *v = d->value + i * d->nx;
            const double number[] = {d->x[j], v[j], published ? v[d->nx + j] : NAN};
            if (!isnan(number[1]) || !isnan(number[2]))
                dsc_data_row(p, published ? &d->group[i / SIDES] : &d->hover[i], number);
        }
}

static const char *note_of(dsc_plot *p, const windows *d, bool published)
{
    if (published)
        return "in parentheses: target time over draft time, the best window (Theorem 1)";
    const char *less = dsc_left_out(p, d->lines, d->groups.groups, "lines", 0);
    return dsc_text(p, "ticks at the top: best %s%s%s%s",
                    strcmp(d->kind, "speculative") ? "windows" : "lengths",
                    strcmp(d->kind, "pearl") ? "" : " (Theorem 1: next to the ratio)",
                    *less ? "; " : "", less);
}

static void draw(dsc_plot *plot)
{
    windows d = {.lines = 0};
    bool published = dsc_table_find(plot->table, "published") >= 0;
    int window = dsc_need(plot, "window", DSC_ANYTHING);
    if (published)
        read_published(plot, &d, window);
    else
        read_closed_form(plot, &d, window);
    if (plot->rc)
        return;
    bool narrow = dsc_is_narrow(plot), pearl = !published && !strcmp(d.kind, "pearl");
    bool speculative = !published && !strcmp(d.kind, "speculative");
    double rows = (double)(narrow ? d.panels : (d.panels + 2) / 3),
           keys = (double)(d.legends ? d.legends / 3 : 1);
    double height = published ? (narrow ? 110 : 90) + (narrow ? 230 : 290) * rows
                              : 440 + (narrow ? 18 * keys : 9 * keys);
    dsc_panels p = {
        .title = published     ? "PEARL by window: predicted and published"
                 : speculative ? "Speedup of speculative decoding by draft length"
                               : dsc_text(plot, "Speedup of parallel drafting by window%s%.40s",
                                          pearl ? "" : ", ", pearl ? "" : d.kind),
        .subtitle = note_of(plot, &d, published),
        .x_label = published     ? "window (draft tokens)"
                   : speculative ? "draft length (tokens per target call)"
                                 : "window (draft tokens per iteration)",
        .x = d.x,
        .nx = d.nx,
        .key = d.key,
        .legend = d.legends ? d.legend : NULL,
        .legends = d.legends,
        .end_title = d.end_title,
        .hover = published ? NULL : d.hover,
        .lines = d.lines,
        .panel = d.panel,
        .panels = d.panels,
        .columns = d.panels < 3 ? d.panels : 3,
        .reference_label = published ? NULL : "no speculation",
        .mark = published ? NULL : d.mark,
        .common_marks = d.legends > 0,
    };
    dsc_draw_panels(plot, &p, "pearl_window", published && d.panels > 1 ? 1000 : 720, height);
    put_finding(&plot->finding, &d, published);
    put_data(plot, &d, published);
}

const dsc_figure_type dsc_figure_pearl_window = {
    .name = "pearl-window",
    .summary = "speedup of parallel drafting (PEARL) by window, the optimum marked",
    .needs = "alpha ratio window",
    .draw = draw,
};

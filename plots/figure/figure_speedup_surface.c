// SPDX-License-Identifier: Apache-2.0
// Speed-up of speculative decoding against draft length, a line per acceptance rate, the best
// length of each marked (Leviathan, Kalman and Matias 2023, Theorem 3.8 and section 3.5).
#include "plots/draw/panel.h"
#include "plots/draw/select.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <stdlib.h>

enum { PANELS = 4 }; // groups of costs; more are refused

typedef struct surface {
    dsc_selection selection;
    dsc_groups groups;
    dsc_plot_grid grid; // x = length, y = alpha
    size_t line[DSC_STYLES], lines;
    double *value;           // [groups][lines][nx]
    size_t best[DSC_STYLES]; // of each line in the first group, index into grid.x
    double mark[DSC_STYLES]; // NaN: no optimum among the lengths drawn
    bool rises;              // that is so of some line: its best length is the longest
    char label[DSC_STYLES][64];
    dsc_key key[DSC_STYLES];
} surface;

static void surface_fini(surface *s)
{
    free(s->value);
    dsc_plot_grid_fini(&s->grid);
    dsc_groups_fini(&s->groups);
    dsc_selection_fini(&s->selection);
}

static int fill(surface *s, int column, dsc_error *err)
{
    size_t per_panel = s->lines * s->grid.nx, count = s->groups.groups * per_panel;
    bool any = false;
    int rc = dsc_new(&s->value, count, err);
    for (size_t i = 0; i < count && !rc; i++) {
        size_t line = s->line[i / s->grid.nx % s->lines];
        size_t row = dsc_plot_grid_row(&s->grid, i / per_panel, i % s->grid.nx, line);
        double v = row == SIZE_MAX ? NAN : dsc_table_real(s->selection.table, row, (size_t)column);
        s->value[i] = dsc_drawable(v) ? v : NAN;
        any = any || dsc_drawable(v);
    }
    if (!rc && !any)
        rc = dsc_fail(err, DSC_EUSAGE, "column 'speedup' has no finite number to draw");
    return rc;
}

static size_t best_of(const double *v, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (v[i] > v[best] || isnan(v[best]))
            best = i;
    return best;
}

// Whether the best is the last that there is: then a longer draft may be better still.
static bool rises_to_the_end(const double *v, size_t n, size_t best)
{
    for (size_t i = best + 1; i < n; i++)
        if (!isnan(v[i]))
            return false;
    return true;
}

// The best length of each line; marks that would hide each other step aside, by less than the
// distance of two lengths.
static void find_best(surface *s)
{
    double range = s->grid.x[s->grid.nx - 1] - s->grid.x[0];
    for (size_t j = 0; j < s->lines; j++) {
        const double *v = s->value + j * s->grid.nx;
        size_t best = best_of(v, s->grid.nx), same = 0;
        s->best[j] = best;
        s->mark[j] = NAN;
        if (rises_to_the_end(v, s->grid.nx, best))
            continue;
        for (size_t k = 0; k < j; k++)
            same += s->best[k] == best && !isnan(s->mark[k]);
        s->mark[j] = s->grid.x[best] - (double)same * fmin(0.008 * range, 0.04 * s->grid.x[best]);
    }
}

static void label_lines(surface *s)
{
    for (size_t j = 0; j < s->lines; j++) {
        double alpha = s->grid.y[s->line[j]], best = s->grid.x[s->best[j]];
        bool none = isnan(s->value[j * s->grid.nx + s->best[j]]) || s->grid.nx == 1;
        bool rises = !none && isnan(s->mark[j]);
        s->rises = s->rises || rises;
        if (s->groups.groups == 1 && !none)
            snprintf(s->label[j], sizeof s->label[j], "%.3g (%g%s)", alpha, best, rises ? "+" : "");
        else
            snprintf(s->label[j], sizeof s->label[j], "%.3g", alpha);
        s->key[j] = (dsc_key){s->label[j], (int)j};
    }
}

static int surface_init(surface *s, const dsc_table *t, const dsc_figure_options *o, dsc_error *err)
{
    int column[3]; // alpha length speedup
    int rc = dsc_need_columns(t, "speedup-surface", dsc_figure_speedup_surface.needs, column, err);
    if (!rc)
        rc = dsc_select(&s->selection, t, o, NULL, err);
    if (!rc)
        rc = dsc_group(&s->groups, &s->selection, (int[]){column[1], column[0]}, err);
    if (!rc && s->groups.groups > PANELS)
        rc = dsc_fail(err, DSC_EUSAGE,
                      "the table holds %zu groups of rows, a figure at most %d: filter by %.500s",
                      s->groups.groups, PANELS, s->groups.varying);
    if (!rc)
        rc = dsc_plot_grid_init(&s->grid, &s->selection, &s->groups, column[1], column[0], err);
    if (rc)
        return rc;
    s->lines = dsc_thin(s->grid.ny, DSC_STYLES, s->grid.ny - 1, s->line);
    rc = fill(s, column[2], err);
    if (!rc) {
        find_best(s);
        label_lines(s);
    }
    return rc;
}

// "Line chart: ... at 0.5 best 1.63× with 3, at 0.95 best 6.46× with 16, the longest. ..."
static int put_finding(const surface *s, dsc_buffer *to, dsc_error *err)
{
    dsc_writer w = {.to = to, .err = err};
    dsc_put(&w,
            "Line chart: speed-up by draft length (%g to %g), a line per acceptance rate (%g to "
            "%g)",
            s->grid.x[0], s->grid.x[s->grid.nx - 1], s->grid.y[0], s->grid.y[s->grid.ny - 1]);
    for (size_t g = 0; g < s->groups.groups; g++) {
        const char *separator = ": ";
        if (s->groups.groups > 1)
            dsc_put(&w, "; %s", s->groups.label[g]);
        for (size_t j = 0; j < s->lines; j++) {
            const double *v = s->value + (g * s->lines + j) * s->grid.nx;
            size_t best = best_of(v, s->grid.nx);
            if (isnan(v[best]))
                continue;
            dsc_put(&w, "%sat %.3g best %.2f× with %g%s", separator, s->grid.y[s->line[j]], v[best],
                    s->grid.x[best], rises_to_the_end(v, s->grid.nx, best) ? ", the longest" : "");
            separator = ", ";
        }
    }
    dsc_put(&w, ". Without speculation the speed-up is 1.");
    return w.rc;
}

static int put_data(const surface *s, dsc_table *data, dsc_error *err)
{
    int rc = dsc_table_add_column(data, "group", DSC_CELL_TEXT, "rows of one panel", err);
    if (!rc)
        rc = dsc_table_add_column(data, "alpha", DSC_CELL_REAL, "acceptance rate", err);
    if (!rc)
        rc = dsc_table_add_column(data, "length", DSC_CELL_REAL, "draft length", err);
    if (!rc)
        rc = dsc_table_add_column(data, "speedup", DSC_CELL_REAL, NULL, err);
    for (size_t i = 0; !rc && i < s->groups.groups * s->lines * s->grid.nx; i++) {
        const char *group = s->groups.label[i / s->grid.nx / s->lines];
        dsc_cell cell[4] = {
            {.type = DSC_CELL_TEXT, .text = group[0] ? group : "all"},
            {.type = DSC_CELL_REAL, .r = s->grid.y[s->line[i / s->grid.nx % s->lines]]},
            {.type = DSC_CELL_REAL, .r = s->grid.x[i % s->grid.nx]},
            {.type = DSC_CELL_REAL, .r = s->value[i]},
        };
        if (!isnan(s->value[i]))
            rc = dsc_table_add_row(data, cell, err);
    }
    return rc;
}

static int compose(const surface *s, const dsc_figure_options *o, const char *terminal,
                   dsc_drawing *out, dsc_error *err)
{
    dsc_canvas canvas;
    dsc_panel panel[PANELS];
    size_t panels = s->groups.groups;
    bool narrow = o->width > 0 && o->width < 520;
    char subtitle[160];
    int used = 0, rc = dsc_canvas_init(&canvas, terminal, o, panels > 1 ? 1000 : 720,
                                       narrow ? 120 + 14 * (double)s->lines + 250 * (double)panels
                                       : panels > 3 ? 780
                                                    : 480,
                                       err);
    if (rc)
        return rc;
    if (panels == 1 && s->grid.nx > 1)
        used = snprintf(subtitle, sizeof subtitle, "ticks and brackets: best draft length%s",
                        s->rises ? " (+: still rising)" : "");
    else
        subtitle[0] = '\0';
    if (s->lines < s->grid.ny)
        snprintf(subtitle + used, sizeof subtitle - (size_t)used, "%s%zu of %zu rates drawn",
                 used ? "; " : "", s->lines, s->grid.ny);
    for (size_t g = 0; g < panels; g++)
        panel[g] = (dsc_panel){s->groups.label[g], "speed-up over one token per call",
                               s->value + g * s->lines * s->grid.nx, 0};
    dsc_panels p = {
        .title = o->title ? o->title : "Speed-up by acceptance rate and draft length",
        .subtitle = subtitle,
        .x_label = "draft length (tokens per target call)",
        .key_title = "acceptance rate:",
        .x = s->grid.x,
        .nx = s->grid.nx,
        .key = s->key,
        .lines = s->lines,
        .panel = panel,
        .panels = panels,
        .columns = panels < 4 ? panels : 2,
        .reference_label = "no speculation",
        .mark = panels > 1 ? NULL : s->mark,
        .best_panel = SIZE_MAX,
    };
    dsc_writer w = {.to = &out->script, .err = err};
    dsc_put_panels(&w, &canvas, "speedup_surface", &p);
    return w.rc;
}

static int script(const dsc_table *t, const dsc_figure_options *o, const char *terminal,
                  dsc_drawing *out, dsc_error *err)
{
    surface s = {.lines = 0};
    int rc = surface_init(&s, t, o, err);
    if (!rc)
        rc = compose(&s, o, terminal, out, err);
    if (!rc)
        rc = put_finding(&s, &out->finding, err);
    if (!rc)
        rc = put_data(&s, &out->data, err);
    surface_fini(&s);
    return rc;
}

const dsc_figure_type dsc_figure_speedup_surface = {
    .name = "speedup-surface",
    .summary = "speed-up against draft length, a line per acceptance rate, the best lengths marked",
    .needs = "alpha length speedup",
    .script = script,
};

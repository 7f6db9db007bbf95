// SPDX-License-Identifier: Apache-2.0
// Draws a measured cost table: the latency of a forward pass by its number of tokens, one line per
// context length and batch size, in one panel for the target and one for the draft model if the
// table contains it. Bands are the quartiles of the repeats. Verification is free as long as a line
// is flat.
#include "plots/draw/lines.h"
#include "plots/draw/panel.h"
#include "plots/figure/figures.h"

#include <math.h>

enum { MODELS = 2 };

typedef struct costs {
    dsc_lines lines;
    double *value[MODELS]; // [lines][nx], in units of `unit`
    double *low, *high;    // [models][lines][nx] quartiles, NaN where there are none
    bool quartiles;        // there are some
    size_t models;         // target, and the draft model if there is any
    const char *unit;
    double hi, spread; // the longest time; the largest ratio of times of one model
} costs;

static void read_quartiles(dsc_plot *p, costs *c, const dsc_table *t, double scale)
{
    static const char *const name[MODELS][2] = {{"target_s_low", "target_s_high"},
                                                {"draft_s_low", "draft_s_high"}};
    size_t count = c->lines.lines * c->lines.nx;
    double *end[] = {dsc_plot_numbers(p, MODELS * count), dsc_plot_numbers(p, MODELS * count)};
    for (size_t m = 0; m < c->models; m++)
        for (int k = 0; k < 2 && !p->rc; k++) {
            const double *v = dsc_lines_values(p, &c->lines, dsc_table_find(t, name[m][k]));
            for (size_t i = 0; !p->rc && i < count; i++) {
                end[k][m * count + i] = v[i] * scale;
                c->quartiles = c->quartiles || !isnan(v[i]);
            }
        }
    c->low = end[0];
    c->high = end[1];
}

// Reads the times of both models; the longest time determines the unit.
static void read_times(dsc_plot *p, costs *c, const dsc_table *t)
{
    size_t count = c->lines.lines * c->lines.nx;
    for (size_t m = 0; m < MODELS && !p->rc; m++) {
        double *v =
            m ? dsc_lines_values(p, &c->lines, dsc_table_find(t, "draft_s")) : c->lines.value;
        double lo = INFINITY, hi = 0;
        if (p->rc || dsc_best_of(v, count, true) == SIZE_MAX)
            continue;
        for (size_t i = 0; i < count; i++) {
            lo = v[i] > 0 ? fmin(lo, v[i]) : lo;
            hi = v[i] > 0 ? fmax(hi, v[i]) : hi;
        }
        c->hi = fmax(c->hi, hi);
        c->spread = fmax(c->spread, hi / lo);
        c->value[m] = v;
        c->models = m + 1;
    }
    double scale = c->hi < 1e-3 ? 1e6 : c->hi < 1 ? 1e3 : 1; // units per second
    c->unit = c->hi < 1e-3 ? "µs" : c->hi < 1 ? "ms" : "s";
    for (size_t m = 0; m < c->models; m++)
        for (size_t i = 0; i < count; i++)
            c->value[m][i] *= scale;
    read_quartiles(p, c, t, scale);
}

// Writes up to four points of a line: "12.1 ms with 1 token, 1.04 times that with 16, ...".
static void put_line(dsc_writer *w, const costs *c, size_t model, size_t line)
{
    size_t nx = c->lines.nx, chosen[4], n = dsc_thin(nx, 4, 0, chosen);
    const double *v = c->value[model] + line * nx;
    double first = NAN;
    for (size_t i = 0; i < n; i++) {
        double y = v[chosen[i]], x = c->lines.x[chosen[i]];
        if (isnan(y))
            continue;
        if (isnan(first))
            dsc_put(w, "%.3g %s with %g token%s", y, c->unit, x, x == 1 ? "" : "s");
        else
            dsc_put(w, ", %.2f times that with %g", y / first, x);
        first = isnan(first) ? y : first;
    }
}

static void put_finding(dsc_writer *w, const costs *c)
{
    static const char *const model[MODELS] = {"target", "draft model"};
    dsc_put(w, "Line chart%s: latency of a forward pass by its number of tokens (%g to %g)",
            c->models > 1 ? "s" : "", c->lines.x[0], c->lines.x[c->lines.nx - 1]);
    for (size_t m = 0; m < c->models; m++)
        for (size_t j = 0; j < c->lines.lines; j++) {
            const char *name = c->lines.label[j];
            dsc_put(w, "%s%s%s%s: ", m + j ? "; " : ". ", model[m], *name ? ", " : "", name);
            put_line(w, c, m, j);
        }
    dsc_put(w, ".");
}

// Leaves out rows with prefill tokens, which are measured at the ends of the other axes only.
static void keep_decode_rows(dsc_plot *p)
{
    const dsc_table *t = p->table;
    const int chunk = dsc_table_find(t, "prefill_tokens");
    dsc_cell *cell = dsc_plot_new(p, dsc_cell, t->columns);
    if (p->rc || chunk < 0)
        return;
    for (size_t c = 0; !p->rc && c < t->columns; c++)
        if ((int)c != chunk)
            p->rc =
                dsc_table_add_column(&p->made, t->column[c].name, t->column[c].type, NULL, p->err);
    for (size_t r = 0; !p->rc && r < t->rows; r++) {
        size_t n = 0;
        for (size_t c = 0; c < t->columns; c++)
            if ((int)c != chunk)
                cell[n++] = *dsc_table_at(t, r, c);
        if (dsc_table_real(t, r, (size_t)chunk) == 0)
            p->rc = dsc_table_add_row(&p->made, cell, p->err);
    }
    p->table = &p->made;
}

static void draw(dsc_plot *plot)
{
    static const char *const model[MODELS] = {"target", "draft"};
    costs c = {.models = 0};
    int column[2];
    keep_decode_rows(plot);
    dsc_need_columns(plot, plot->needs, column);
    dsc_lines_init(plot, &c.lines,
                   (dsc_lines_of){.table = plot->table,
                                  .options = plot->options,
                                  .x = column[0],
                                  .y = column[1],
                                  .noun = "lines",
                                  .any = true});
    read_times(plot, &c, plot->table);
    if (plot->rc)
        return;
    bool narrow = dsc_is_narrow(plot), log_y = c.spread >= 10;
    double height = (narrow ? 150 + 270 * (double)c.models : 440) + 10 * (double)c.lines.lines;
    const char *name[MODELS];
    dsc_panel panel[MODELS];
    for (size_t m = 0; m < c.models; m++) {
        const char *label = dsc_text(plot, "latency of a %s forward pass (%s%s)", model[m], c.unit,
                                     log_y ? ", log scale" : "");
        panel[m] = (dsc_panel){"", label, c.value[m], (int)m};
        name[m] = dsc_text(plot, "%s_%s", model[m], c.unit);
    }
    dsc_panels p = {
        .title = "Forward-pass latency by number of tokens",
        .subtitle = dsc_text(plot, "%s%s%s", c.quartiles ? "bands: quartiles of the repeats" : "",
                             c.quartiles && *c.lines.note ? "; " : "", c.lines.note),
        .x_label = "tokens per sequence in the forward pass",
        .x = c.lines.x,
        .nx = c.lines.nx,
        .key = c.lines.key,
        .lines = c.lines.lines,
        .panel = panel,
        .panels = c.models,
        .low = c.quartiles ? c.low : NULL,
        .high = c.high,
        .interval = true,
        .log_y = log_y,
        .log_x = c.lines.x[0] > 0 && c.lines.x[c.lines.nx - 1] >= 16 * c.lines.x[0],
    };
    dsc_draw_panels(plot, &p, "cost", c.models > 1 ? 1000 : 720, height);
    put_finding(&plot->finding, &c);
    dsc_lines_data(plot, &c.lines, "tokens", name, c.value, c.models);
}

const dsc_figure_type dsc_figure_cost = {
    .name = "cost",
    .summary =
        "forward-pass latency by number of tokens, one line per context length and batch size",
    .needs = "tokens target_s",
    .draw = draw,
};

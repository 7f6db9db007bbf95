// SPDX-License-Identifier: Apache-2.0
// Draws a simulated server over time (draftscope serve --occupancy): running and waiting requests,
// and below them the draft tokens that a decoding request verifies and accepts in a step. A column
// of panels for each run.
#include "plots/draw/label.h"
#include "plots/draw/panel.h"
#include "plots/figure/figures.h"

#include <math.h>

enum { REQUESTS, TOKENS, ROWS };
enum { LINES = 4, MOST_RUNS = 4 };

static const struct {
    const char *column, *label, *help;
    int row;
} line[LINES] = {
    {"running", "running", "mean number of running requests", REQUESTS},
    {"waiting", "waiting", "mean number of waiting requests", REQUESTS},
    {"draft_length", "drafted (k)", "draft tokens of a request in a step", TOKENS},
    {"accepted_length", "accepted", "accepted draft tokens of a request in a step", TOKENS},
};
static const char *const row_label[ROWS] = {"requests", "draft tokens per request and step"};

typedef struct drawn {
    dsc_selection rows;
    dsc_groups runs;
    dsc_plot_grid grid;
    const char *label[MOST_RUNS];   // "ngram, adaptive", "" for a single run
    double *value[ROWS][MOST_RUNS]; // [LINES][grid.nx], NaN in the other row of panels
} drawn;

static void read_runs(dsc_plot *p, drawn *d)
{
    const int start = dsc_need(p, "start_s", DSC_NUMBERS);
    d->rows = dsc_select(p, p->table, p->options, NULL);
    if (p->rc)
        return;
    d->runs = dsc_group(p, &d->rows, start, -1);
    dsc_check_groups(p, &d->runs, MOST_RUNS);
    if (!p->rc)
        d->grid = dsc_grid(p, &d->rows, &d->runs, start, -1);
    bool *skip = dsc_plot_new(p, bool, p->table->columns);
    for (size_t i = 0; i < d->runs.groups && !p->rc; i++)
        d->label[i] = d->runs.groups < 2
                          ? ""
                          : dsc_distinct_label(p, p->table, d->runs.first, d->runs.groups, i, skip);
    for (size_t i = 0; i < LINES && !p->rc; i++)
        dsc_need(p, line[i].column, DSC_NUMBERS);
    for (size_t i = 0; i < ROWS * d->runs.groups && !p->rc; i++) {
        const size_t row = i / d->runs.groups, run = i % d->runs.groups;
        double *v = d->value[row][run] = dsc_plot_numbers(p, LINES * d->grid.nx);
        for (size_t k = 0; k < LINES * d->grid.nx && !p->rc; k++)
            if ((int)row == line[k / d->grid.nx].row)
                v[k] = dsc_number_at(p->table, dsc_plot_grid_row(&d->grid, run, k % d->grid.nx, 0),
                                     line[k / d->grid.nx].column);
    }
}

static double largest(const double *v, size_t n)
{
    double most = NAN;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, v[i]);
    return most;
}

static void put_finding(dsc_writer *w, const drawn *d)
{
    const size_t nx = d->grid.nx;
    dsc_put(w,
            "Line chart over %g s: running and waiting requests, and draft tokens per request "
            "and step.",
            d->grid.x[nx - 1]);
    for (size_t i = 0; i < d->runs.groups; i++) {
        const char *label = d->label[i];
        dsc_put(w, " %s%sAt most %.4g running, %.4g waiting, %.3g drafted.", label,
                *label ? ": " : "", largest(d->value[REQUESTS][i], nx),
                largest(d->value[REQUESTS][i] + nx, nx), largest(d->value[TOKENS][i] + 2 * nx, nx));
    }
}

static void put_data(dsc_plot *p, const drawn *d)
{
    const size_t nx = d->grid.nx;
    dsc_data_text(p, "run", "parameters of the run");
    dsc_data_number(p, "start_s", "begin of a bin of time, in seconds after the first arrival");
    for (size_t i = 0; i < LINES; i++)
        dsc_data_number(p, line[i].column, line[i].help);
    for (size_t k = 0; k < d->runs.groups * nx; k++) {
        const size_t run = k / nx, x = k % nx;
        double v[1 + LINES] = {d->grid.x[x]};
        if (dsc_plot_grid_row(&d->grid, run, x, 0) == SIZE_MAX)
            continue;
        for (size_t i = 0; i < LINES; i++)
            v[1 + i] = d->value[line[i].row][run][i * nx + x];
        dsc_data_row(p, &(const char *){*d->label[run] ? d->label[run] : "all"}, v);
    }
}

static void draw(dsc_plot *plot)
{
    drawn d = {.rows = {0}};
    dsc_panel panel[ROWS * MOST_RUNS];
    dsc_key key[LINES];
    read_runs(plot, &d);
    if (plot->rc)
        return;
    const size_t runs = d.runs.groups;
    for (size_t i = 0; i < ROWS * runs; i++)
        panel[i] = (dsc_panel){i < runs ? d.label[i] : "", row_label[i / runs],
                               d.value[i / runs][i % runs], (int)(i / runs)};
    for (size_t i = 0; i < LINES; i++)
        key[i] = (dsc_key){line[i].label, (int)i};
    const dsc_panels p = {
        .title = "Requests and draft length over time",
        .subtitle = "",
        .x_label = "time since the first arrival (s)",
        .x = d.grid.x,
        .nx = d.grid.nx,
        .key = key,
        .lines = LINES,
        .panel = panel,
        .panels = ROWS * runs,
        .from_zero = true,
        .columns = runs,
    };
    dsc_draw_panels(plot, &p, "occupancy", 800,
                    dsc_is_narrow(plot) ? 90 + 200 * (double)p.panels : 560);
    put_finding(&plot->finding, &d);
    put_data(plot, &d);
}

const dsc_figure_type dsc_figure_occupancy = {
    .name = "occupancy",
    .summary = "running and waiting requests and draft length over time (serve --occupancy)",
    .needs = "start_s running waiting draft_length accepted_length",
    .draw = draw,
};

// SPDX-License-Identifier: Apache-2.0
// Draws latencies or throughput of a simulated server by load (draftscope serve): of each method,
// the best configuration at each load, and no speculation. Ticks mark the load from which on a
// method is worse than no speculation by its judge: mean end-to-end time, or tokens per second.
// Measured rows, from a table joined to the simulated one, are points next to the lines.
#include "plots/draw/glossary.h"
#include "plots/draw/lines.h"
#include "plots/figure/figures.h"
#include "plots/figure/loads.h"

#include <math.h>

enum { PANELS = 4 };

typedef struct load_spec {
    const char *title, *word;
    const char *column[PANELS];
    int quantity[PANELS];
    size_t panels;
    const char *column_judged, *verdict; // column that crossings are found in; what they mean
    dsc_loads_judge judge;
} load_spec;

typedef struct drawn {
    const load_spec *spec;
    dsc_loads loads;
    dsc_envelope lines[PANELS], judge;
    double even[DSC_STYLES]; // load at which a line crosses no speculation, NaN: it does not
    bool crosses;
    dsc_key key[DSC_STYLES];
} drawn;

static void find_crossings(dsc_plot *p, drawn *d)
{
    const dsc_envelope *e = &d->judge;
    for (size_t j = 0; j < e->lines; j++) {
        d->even[j] = dsc_loads_crossing(p, e, e->value, j, d->spec->judge);
        d->key[j] = (dsc_key){e->label[j], (int)j};
        if (isnan(d->even[j]))
            continue;
        d->crosses = true;
        d->key[j].label = dsc_text(p, "%s (%.3g)", e->label[j], d->even[j]);
    }
}

static void read_panel(dsc_plot *p, drawn *d, size_t i)
{
    const load_spec *spec = d->spec;
    const int column = dsc_need(p, spec->column[i], DSC_NUMBERS);
    dsc_envelope *e = &d->lines[i];
    if (p->rc)
        return;
    dsc_envelope_init(p, e, &d->loads.rows, d->loads.x, column, -1, spec->judge.less_is_better);
    if (!p->rc && (e->lines != d->judge.lines || e->nx != d->judge.nx))
        dsc_refuse(p, "column %s lacks values that %s has", spec->column[i], spec->column_judged);
    if (!p->rc)
        dsc_loads_split(p, &d->loads, i, e, e->value);
    if (!p->rc)
        dsc_loads_add_measured(p, &d->loads, i, e, spec->column[i]);
}

static void read_loads(dsc_plot *p, drawn *d)
{
    const load_spec *spec = d->spec;
    const int judge = dsc_need(p, spec->column_judged, DSC_NUMBERS);
    dsc_loads_read(p, &d->loads, spec->panels);
    if (!p->rc)
        dsc_envelope_init(p, &d->judge, &d->loads.rows, d->loads.x, judge, -1,
                          spec->judge.less_is_better);
    for (size_t i = 0; i < spec->panels && !p->rc; i++)
        read_panel(p, d, i);
    if (!p->rc)
        find_crossings(p, d);
}

// The finding speaks of the loads that have a steady state.
static void put_line(dsc_writer *w, const drawn *d, size_t j)
{
    const dsc_envelope *e = &d->lines[0];
    const double *v = e->value + j * e->nx;
    size_t first = 0, last = e->nx;
    while (first < e->nx && isnan(v[first]))
        first++;
    while (last && isnan(v[last - 1]))
        last--;
    if (!last) {
        dsc_put(w, "%s: no load has a steady state", e->label[j]);
        return;
    }
    dsc_put(w, "%s: %.4g at %g", e->label[j], v[first], e->x[first]);
    if (last - 1 > first)
        dsc_put(w, ", %.4g at %g", v[last - 1], e->x[last - 1]);
    if (last < e->nx)
        dsc_put(w, ", no steady state at %g", e->x[last]);
    if (!isnan(d->even[j]))
        dsc_put(w, ", worse than no speculation from %.3g on", d->even[j]);
}

static void put_finding(dsc_writer *w, const drawn *d)
{
    const dsc_envelope *e = &d->lines[0];
    dsc_put(w, "Line chart: %s by %s (%g to %g). ", dsc_term_title(d->spec->column[0]),
            dsc_loads_label(&d->loads), e->x[0], e->x[e->nx - 1]);
    for (size_t j = 0; j < e->lines; j++) {
        dsc_put(w, "%s", j ? "; " : "");
        put_line(w, d, j);
    }
    dsc_put(w, ".");
    if (d->loads.measured_rows)
        dsc_put(w, " Points: %zu measured loads.", d->loads.measured_rows - d->loads.outside);
}

// A row per point of the first panel, with the values of the others.
static void put_data(dsc_plot *p, const drawn *d)
{
    const load_spec *spec = d->spec;
    const dsc_envelope *e = &d->lines[0];
    dsc_data_text(p, "line", "method and rule");
    dsc_data_text(p, "kind", "steady, not steady or measured");
    dsc_data_number(p, "load", dsc_loads_label(&d->loads));
    for (size_t c = 0; c < spec->panels; c++)
        dsc_data_number(p, spec->column[c], NULL);
    for (size_t i = 0; i < e->lines * e->nx; i++) {
        double v[1 + PANELS] = {e->x[i % e->nx]};
        const char *line = e->label[i / e->nx];
        if (e->row[i] == SIZE_MAX)
            continue;
        for (size_t c = 0; c < spec->panels; c++)
            v[1 + c] = dsc_number_at(p->table, d->lines[c].row[i], spec->column[c]);
        dsc_data_row(
            p, (const char *[]){*line ? line : "all", isnan(e->value[i]) ? "not steady" : "steady"},
            v);
    }
    for (size_t i = 0; i < d->loads.measured_rows; i++) {
        const size_t row = d->loads.measured[i];
        double v[1 + PANELS] = {dsc_value_at(p->table, row, d->loads.x)};
        for (size_t c = 0; c < spec->panels; c++)
            v[1 + c] = dsc_number_at(p->table, row, spec->column[c]);
        dsc_data_row(p, (const char *[]){dsc_text_at(p->table, row, "method"), "measured"}, v);
    }
}

static void draw(dsc_plot *plot)
{
    drawn d = {.spec = plot->spec};
    dsc_panel panel[PANELS];
    read_loads(plot, &d);
    if (plot->rc)
        return;
    for (size_t i = 0; i < d.spec->panels; i++)
        panel[i] = (dsc_panel){"", dsc_term_title(d.spec->column[i]), d.lines[i].value,
                               d.spec->quantity[i]};
    const dsc_panels p = {
        .title = d.spec->title,
        .subtitle = dsc_loads_subtitle(plot, &d.loads, &d.lines[0],
                                       &(const char *){d.crosses ? d.spec->verdict : ""}, 1),
        .x_label = dsc_loads_label(&d.loads),
        .x = d.lines[0].x,
        .nx = d.lines[0].nx,
        .key = d.key,
        .lines = d.lines[0].lines,
        .panel = panel,
        .panels = d.spec->panels,
        .columns = 2,
        .log_y = d.spec->judge.less_is_better,
        .from_zero = !d.spec->judge.less_is_better,
        .mark = d.even,
        .point = d.loads.point,
        .points = d.loads.points,
        .bare = d.loads.measured_rows > 0,
    };
    const double narrow = 160 + 200 * (double)p.panels, wide = p.panels > 2 ? 660 : 440;
    dsc_draw_panels(plot, &p, d.spec->word, 800, dsc_is_narrow(plot) ? narrow : wide);
    put_finding(&plot->finding, &d);
    put_data(plot, &d);
}

static bool fits(dsc_plot *p)
{
    return dsc_varies(p->table, (size_t)dsc_table_find(p->table, "qps")) ||
           dsc_varies(p->table, (size_t)dsc_table_find(p->table, "clients"));
}

static const load_spec latency = {
    .title = "Latency by load",
    .word = "load_latency",
    .column = {"ttft_p50_s", "ttft_p99_s", "tpot_p50_s", "tpot_p99_s"},
    .quantity = {0, 0, 1, 1},
    .panels = 4,
    .column_judged = "e2e_mean_s",
    .verdict = "ticks and parentheses: load from which on the mean end-to-end time is above that "
               "of no speculation",
    .judge = {.less_is_better = true},
};
static const load_spec throughput = {
    .title = "Throughput by load",
    .word = "load_throughput",
    .column = {"tokens_per_s", "goodput"},
    .quantity = {0, 1},
    .panels = 2,
    .column_judged = "tokens_per_s",
    .verdict = "ticks and parentheses: load from which on there are fewer tokens per second than "
               "without speculation, by 1 % or more",
    // Below saturation an open loop serves what arrives, and the rest is noise.
    .judge = {.margin = 0.01, .unsteady = true},
};

const dsc_figure_type dsc_figure_load_latency = {
    .name = "load-latency",
    .summary = "time to first token and per output token by load, crossovers marked",
    .needs = "qps clients ttft_p50_s ttft_p99_s tpot_p50_s tpot_p99_s e2e_mean_s",
    .spec = &latency,
    .fits = fits,
    .draw = draw,
};
const dsc_figure_type dsc_figure_load_throughput = {
    .name = "load-throughput",
    .summary = "tokens per second and goodput of a server by load",
    .needs = "qps clients tokens_per_s goodput",
    .spec = &throughput,
    .fits = fits,
    .draw = draw,
};

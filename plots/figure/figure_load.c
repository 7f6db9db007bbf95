// SPDX-License-Identifier: Apache-2.0
// Draws latencies or throughput of a simulated server by load (draftscope serve): of each method,
// the best configuration at each load, and no speculation. Ticks mark the load from which on a
// method is worse than no speculation by its judge: mean end-to-end time, or tokens per second.
#include "plots/draw/glossary.h"
#include "plots/draw/lines.h"
#include "plots/draw/panel.h"
#include "plots/figure/envelope.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <string.h>

enum { PANELS = 4 };

typedef struct load_spec {
    const char *title, *word;
    const char *column[PANELS], *label[PANELS];
    int quantity[PANELS];
    size_t panels;
    const char *judge, *verdict; // column that crossings are found in; what they mean
    bool less_is_better;
} load_spec;

typedef struct loads {
    const load_spec *spec;
    bool clients; // the load is a number of clients, not a rate
    dsc_envelope lines[PANELS], judge;
    double even[DSC_STYLES]; // load at which a line crosses no speculation, NaN: it does not
    bool crosses;
    dsc_key key[DSC_STYLES];
} loads;

static bool is_none(const dsc_table *t, size_t row)
{
    return !strcmp(dsc_text_at(t, row, "method"), "none");
}

// The selected rows, and those of no speculation, which dsc_select leaves out.
static dsc_selection select_rows(dsc_plot *p)
{
    dsc_selection s = dsc_select(p, p->table, p->options, NULL), all = s;
    if (p->rc)
        return s;
    all.row = dsc_plot_new(p, size_t, p->table->rows);
    all.rows = 0;
    for (size_t i = 0, next = 0; i < p->table->rows && !p->rc; i++) {
        const bool selected = next < s.rows && s.row[next] == i;
        next += selected;
        if (selected || is_none(p->table, i))
            all.row[all.rows++] = i;
    }
    return all;
}

static size_t line_of_none(const dsc_plot *p, const dsc_envelope *e)
{
    size_t j = 0;
    while (j < e->lines && !is_none(p->table, e->first[j]))
        j++;
    return j;
}

// The first load from which on a line is worse than no speculation up to the last load,
// interpolated; NaN: it is better at the last one, or worse at every one.
static double crossing(const dsc_envelope *e, size_t line, size_t none, bool less)
{
    double at = NAN, even = NAN, before = NAN;
    for (size_t i = 0; i < e->nx; i++) {
        const double gain = e->value[line * e->nx + i] / e->value[none * e->nx + i],
                     worse = less ? log(gain) : -log(gain);
        if (!isfinite(worse))
            continue;
        if (before <= 0 && worse > 0)
            even = at + (e->x[i] - at) * before / (before - worse);
        else if (worse <= 0)
            even = NAN;
        before = worse;
        at = e->x[i];
    }
    return even;
}

static void find_crossings(dsc_plot *p, loads *l)
{
    const dsc_envelope *e = &l->judge;
    const size_t none = line_of_none(p, e);
    for (size_t j = 0; j < e->lines; j++) {
        l->even[j] = none < e->lines ? crossing(e, j, none, l->spec->less_is_better) : NAN;
        l->key[j] = (dsc_key){e->label[j], (int)j};
        if (isnan(l->even[j]))
            continue;
        l->crosses = true;
        l->key[j].label = dsc_text(p, "%s (%.3g)", e->label[j], l->even[j]);
    }
}

static void read_loads(dsc_plot *p, loads *l)
{
    const dsc_table *t = p->table;
    int x = dsc_need(p, "qps", DSC_NUMBERS);
    const int clients = dsc_need(p, "clients", DSC_NUMBERS);
    dsc_selection s = select_rows(p);
    l->clients = true;
    for (size_t i = 0; i < s.rows && !p->rc; i++)
        l->clients = l->clients && isnan(dsc_value_at(t, s.row[i], x));
    x = l->clients ? clients : x;
    for (size_t i = 0; i < l->spec->panels && !p->rc; i++)
        dsc_envelope_init(p, &l->lines[i], &s, x, dsc_need(p, l->spec->column[i], DSC_NUMBERS), -1,
                          l->spec->less_is_better);
    if (!p->rc)
        dsc_envelope_init(p, &l->judge, &s, x, dsc_need(p, l->spec->judge, DSC_NUMBERS), -1,
                          l->spec->less_is_better);
    for (size_t i = 0; i < l->spec->panels && !p->rc; i++)
        if (l->lines[i].lines != l->judge.lines || l->lines[i].nx != l->judge.nx)
            dsc_refuse(p, "column %s lacks values that %s has", l->spec->column[i], l->spec->judge);
    if (!p->rc)
        find_crossings(p, l);
}

static const char *load_of(const loads *l)
{
    return l->clients ? "clients of a closed loop" : "requests per second";
}

static void put_finding(dsc_writer *w, const loads *l)
{
    const dsc_envelope *e = &l->lines[0];
    dsc_put(w, "Line chart: %s by load (%g to %g %s). ", l->spec->label[0], e->x[0],
            e->x[e->nx - 1], load_of(l));
    for (size_t j = 0; j < e->lines; j++) {
        const double *v = e->value + j * e->nx;
        dsc_put(w, "%s%s: %.4g at %g, %.4g at %g", j ? "; " : "", e->label[j], v[0], e->x[0],
                v[e->nx - 1], e->x[e->nx - 1]);
        if (!isnan(l->even[j]))
            dsc_put(w, ", worse than no speculation from %.3g on", l->even[j]);
    }
    dsc_put(w, ".");
}

static void put_data(dsc_plot *p, const loads *l)
{
    const dsc_envelope *e = &l->lines[0];
    dsc_data_text(p, "line", "method and rule");
    dsc_data_number(p, "load", load_of(l));
    for (size_t i = 0; i < l->spec->panels; i++)
        dsc_data_number(p, l->spec->column[i], NULL);
    for (size_t i = 0; i < e->lines * e->nx; i++) {
        double v[1 + PANELS] = {e->x[i % e->nx]};
        const char *line = e->label[i / e->nx];
        for (size_t c = 0; c < l->spec->panels; c++)
            v[1 + c] = l->lines[c].value[i];
        if (!isnan(v[1]))
            dsc_data_row(p, &(const char *){*line ? line : "all"}, v);
    }
}

static void draw(dsc_plot *plot)
{
    loads l = {.spec = plot->spec};
    dsc_panel panel[PANELS];
    read_loads(plot, &l);
    if (plot->rc)
        return;
    for (size_t i = 0; i < l.spec->panels; i++)
        panel[i] = (dsc_panel){"", l.spec->label[i], l.lines[i].value, l.spec->quantity[i]};
    const char *several =
                   l.lines[0].several ? "best configuration of each method at each load" : "",
               *ticks = l.crosses ? l.spec->verdict : "";
    const dsc_panels p = {
        .title = l.spec->title,
        .subtitle = dsc_text(plot, "%s%s%s", several, *several && *ticks ? "; " : "", ticks),
        .x_label = load_of(&l),
        .x = l.lines[0].x,
        .nx = l.lines[0].nx,
        .key = l.key,
        .lines = l.lines[0].lines,
        .panel = panel,
        .panels = l.spec->panels,
        .columns = 2,
        .log_y = l.spec->less_is_better,
        .mark = l.even,
    };
    dsc_draw_panels(plot, &p, l.spec->word, 800, l.spec->panels > 2 ? 640 : 420);
    put_finding(&plot->finding, &l);
    put_data(plot, &l);
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
    .label = {"median time to first token (s)", "p99 time to first token (s)",
              "median time per output token (s)", "p99 time per output token (s)"},
    .quantity = {0, 0, 1, 1},
    .panels = 4,
    .judge = "e2e_mean_s",
    .verdict = "ticks: mean end-to-end time above that of no speculation from there on",
    .less_is_better = true,
};
static const load_spec throughput = {
    .title = "Throughput by load",
    .word = "load_throughput",
    .column = {"tokens_per_s", "goodput"},
    .label = {"output tokens per second", "requests per second within the SLO"},
    .quantity = {0, 1},
    .panels = 2,
    .judge = "tokens_per_s",
    .verdict = "ticks: fewer tokens per second than without speculation from there on",
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

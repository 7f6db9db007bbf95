// SPDX-License-Identifier: Apache-2.0
// Draws goodput of a simulated server by load (draftscope serve --slo): requests per second within
// the limits on time to first token and per output token, and their share. Of each method and
// policy, the best configuration at each load. Rings mark the largest load at which 90 % of the
// requests are within the limits, the attainment that Zhong et al. define goodput by ("DistServe",
// OSDI 2024); ticks mark where a method falls below no speculation.
#include "plots/draw/glossary.h"
#include "plots/draw/lines.h"
#include "plots/figure/figures.h"
#include "plots/figure/loads.h"

#include <math.h>
#include <string.h>

enum { GOODPUT, SHARE, PANELS };
enum { ATTAINED = 90 }; // percent

typedef struct drawn {
    dsc_loads loads;
    dsc_envelope lines;      // of goodput
    double *value[PANELS];   // [lines][nx]
    double even[DSC_STYLES]; // load at which a line crosses no speculation, NaN: it does not
    size_t most[DSC_STYLES]; // index of the largest load with goodput, or SIZE_MAX
    bool crosses, any_most;
    dsc_key key[DSC_STYLES];
} drawn;

static void find_shares(dsc_plot *p, drawn *d)
{
    const dsc_envelope *e = &d->lines;
    bool all = true;
    for (int i = 0; i < PANELS; i++)
        d->value[i] = dsc_plot_numbers(p, e->lines * e->nx);
    for (size_t i = 0; i < e->lines * e->nx && !p->rc; i++) {
        d->value[GOODPUT][i] = e->value[i];
        if (e->row[i] != SIZE_MAX)
            d->value[SHARE][i] =
                100 * (e->value[i] / dsc_number_at(p->table, e->row[i], "requests_per_s"));
        all = all && !(d->value[SHARE][i] < 100);
    }
    if (all && !p->rc && !dsc_table_get_comment(p->table, "slo"))
        dsc_refuse(p, "goodput: every request counts, as the table has no limits; run draftscope "
                      "serve with --slo ttft=S,tpot=S");
}

static void find_marks(dsc_plot *p, drawn *d)
{
    const dsc_envelope *e = &d->lines;
    // A closed loop has no offered rate, so only what it completes can be compared.
    const double *judged = d->value[d->loads.clients ? GOODPUT : SHARE];
    for (size_t j = 0; j < e->lines; j++) {
        d->even[j] = dsc_loads_crossing(p, e, judged, j, (dsc_loads_judge){.margin = 0});
        d->crosses = d->crosses || !isnan(d->even[j]);
        d->most[j] = SIZE_MAX;
        for (size_t i = 0; i < e->nx; i++)
            if (d->value[SHARE][j * e->nx + i] >= ATTAINED)
                d->most[j] = i;
        d->key[j] = (dsc_key){e->label[j], (int)j};
        if (d->most[j] == SIZE_MAX)
            continue;
        d->any_most = true;
        d->key[j].label = dsc_text(p, "%s (%s%.3g)", e->label[j],
                                   d->most[j] + 1 == e->nx ? "\u2265 " : "", e->x[d->most[j]]);
    }
}

static void add_rings(dsc_plot *p, drawn *d)
{
    const dsc_envelope *e = &d->lines;
    for (size_t j = 0; j < e->lines; j++)
        for (size_t i = 0; i < PANELS && d->most[j] != SIZE_MAX; i++)
            dsc_loads_add(p, &d->loads,
                          (dsc_panel_point){.panel = i,
                                            .line = j,
                                            .x = e->x[d->most[j]],
                                            .y = d->value[i][j * e->nx + d->most[j]],
                                            .glyph = DSC_GLYPH_RING,
                                            .note = ""});
}

static void read_goodput(dsc_plot *p, drawn *d)
{
    const int goodput = dsc_need(p, "goodput", DSC_NUMBERS);
    dsc_need(p, "requests_per_s", DSC_NUMBERS);
    dsc_loads_read(p, &d->loads, PANELS);
    if (!p->rc)
        dsc_envelope_init(p, &d->lines, &d->loads.rows, d->loads.x, goodput, -1, false);
    if (!p->rc)
        find_shares(p, d);
    if (!p->rc)
        find_marks(p, d);
    if (!p->rc)
        dsc_loads_add_measured(p, &d->loads, GOODPUT, &d->lines, "goodput");
    if (!p->rc)
        add_rings(p, d);
}

static void put_finding(dsc_writer *w, const drawn *d)
{
    const dsc_envelope *e = &d->lines;
    dsc_put(w, "Line chart: requests per second within the SLO, by %s (%g to %g). ",
            dsc_loads_label(&d->loads), e->x[0], e->x[e->nx - 1]);
    for (size_t j = 0; j < e->lines; j++) {
        dsc_put(w, "%s%s: ", j ? "; " : "", e->label[j]);
        if (d->most[j] == SIZE_MAX)
            dsc_put(w, "less than %d %% within the SLO at every load", ATTAINED);
        else
            dsc_put(w, "%d %% within the SLO up to a load of %g", ATTAINED, e->x[d->most[j]]);
        if (!isnan(d->even[j]))
            dsc_put(w, ", fewer than without speculation from %.3g on", d->even[j]);
    }
    dsc_put(w, ".");
}

static void put_data(dsc_plot *p, const drawn *d)
{
    const dsc_envelope *e = &d->lines;
    dsc_data_text(p, "line", "method and policy");
    dsc_data_text(p, "saturated",
                  "yes: the queue grows; unknown: the run is too short for a steady state");
    dsc_data_number(p, "load", dsc_loads_label(&d->loads));
    dsc_data_number(p, "goodput", "requests per second within the SLO");
    dsc_data_number(p, "share", "requests within the SLO, percent");
    for (size_t i = 0; i < e->lines * e->nx; i++)
        if (e->row[i] != SIZE_MAX)
            dsc_data_row(p,
                         (const char *[]){*e->label[i / e->nx] ? e->label[i / e->nx] : "all",
                                          dsc_text_at(p->table, e->row[i], "saturated")},
                         (double[]){e->x[i % e->nx], e->value[i], d->value[SHARE][i]});
}

static void draw(dsc_plot *plot)
{
    drawn d = {.crosses = false};
    read_goodput(plot, &d);
    if (plot->rc)
        return;
    put_data(plot, &d);
    put_finding(&plot->finding, &d);
    for (size_t i = 0; i < PANELS; i++)
        dsc_loads_split(plot, &d.loads, i, &d.lines, d.value[i]);
    const char *slo = dsc_table_get_comment(plot->table, "slo");
    const char *const part[] = {
        d.any_most ? dsc_text(plot, "rings and parentheses: largest load with %d %% within the SLO",
                              ATTAINED)
                   : "",
        d.crosses ? "ticks: fewer within the SLO than without speculation from there on" : ""};
    const dsc_panel panel[PANELS] = {{"", dsc_term_title("goodput"), d.value[GOODPUT], 0},
                                     {"", "requests within the SLO (%)", d.value[SHARE], 1}};
    const dsc_panels p = {
        .title = slo ? dsc_text(plot, "Goodput by load, SLO %s", slo) : "Goodput by load",
        .subtitle = dsc_loads_subtitle(plot, &d.loads, &d.lines, part, 2),
        .x_label = dsc_loads_label(&d.loads),
        .x = d.lines.x,
        .nx = d.lines.nx,
        .key = d.key,
        .lines = d.lines.lines,
        .panel = panel,
        .panels = PANELS,
        .columns = 2,
        .from_zero = true,
        .mark = d.even,
        .point = d.loads.point,
        .points = d.loads.points,
    };
    dsc_draw_panels(plot, &p, "goodput", 800, dsc_is_narrow(plot) ? 640 : 460);
}

static bool fits(dsc_plot *p)
{
    return dsc_table_get_comment(p->table, "slo") &&
           (dsc_varies(p->table, (size_t)dsc_table_find(p->table, "qps")) ||
            dsc_varies(p->table, (size_t)dsc_table_find(p->table, "clients")));
}

const dsc_figure_type dsc_figure_goodput = {
    .name = "goodput",
    .summary = "requests per second within the SLO by load, largest loads and crossovers marked",
    .needs = "qps clients goodput requests_per_s",
    .fits = fits,
    .draw = draw,
};

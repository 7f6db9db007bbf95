// SPDX-License-Identifier: Apache-2.0
// Draws what a published measurement of a server says and what is predicted for it, by number of
// clients (draftscope validate serving --published): lines for the simulation with measured step
// times, short dashes for the one with the roofline's, points for the measurement. A row of panels
// for each workload.
#include "plots/draw/panel.h"
#include "plots/draw/select.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <string.h>

enum { TTFT, E2E, RATE, QUANTITIES };
enum { MOST_WORKLOADS = 4 };

static const struct {
    const char *name, *label;
    double scale; // from the unit of the table to that of the axis
} quantity[QUANTITIES] = {
    {"ttft_p50_ms", "median time to first token (s)", 1e-3},
    {"e2e_p50_ms", "median end-to-end time (s)", 1e-3},
    {"tokens_per_s", "throughput (output tokens/s)", 1},
};
static const char roofline[] = "_roofline";

typedef struct columns {
    int row, where, quantity, at, published, predicted;
} columns;

// A row of the table that is drawn.
typedef struct figure {
    size_t workload, method, quantity;
    double at, published, predicted;
    bool by_steps, by_roofline;
} figure;

typedef struct drawn {
    const char *workload[MOST_WORKLOADS], *method[DSC_STYLES];
    size_t workloads, methods;
    figure *figure; // [figures]
    size_t figures;
    double *x; // [nx] clients
    size_t nx;
    double *steps, *roofline, *measured; // [workloads][QUANTITIES][methods][nx]
    dsc_panel_point *point;
    size_t points;
    size_t rings;
} drawn;

// The index of a name in a list, to which it is added; `most` if there is no room.
static size_t index_of(const char **list, size_t *count, size_t most, const char *name)
{
    size_t i = 0;
    while (i < *count && strcmp(list[i], name) != 0)
        i++;
    if (i == *count && i < most)
        list[(*count)++] = name;
    return i;
}

// Reads the quantity of a row: false if the figure does not draw it. Other predictions of the same
// figure (tokens_per_s_closed_form) still tell what was measured.
static bool read_quantity(figure *f, const char *name)
{
    for (size_t q = 0; q < QUANTITIES; q++) {
        const size_t n = strlen(quantity[q].name);
        if (strncmp(name, quantity[q].name, n) != 0 || (name[n] && name[n] != '_'))
            continue;
        f->quantity = q;
        f->by_steps = !name[n];
        f->by_roofline = !strcmp(name + n, roofline);
        return true;
    }
    return false;
}

// A case is "workload, method".
static void read_row(dsc_plot *p, drawn *d, const columns *c, size_t row)
{
    const dsc_table *t = p->table;
    const char *where = dsc_table_at(t, row, (size_t)c->where)->text, *comma = strrchr(where, ',');
    figure f = {.at = dsc_value_at(t, row, c->at)};
    if (strncmp(dsc_table_at(t, row, (size_t)c->row)->text, "serving", 7) != 0 || !comma ||
        isnan(f.at) || !read_quantity(&f, dsc_table_at(t, row, (size_t)c->quantity)->text))
        return;
    const char *workload = dsc_text(p, "%.*s", (int)(comma - where), where),
               *method = dsc_text(p, "%s", comma + 1 + strspn(comma + 1, " "));
    f.workload = index_of(d->workload, &d->workloads, MOST_WORKLOADS, workload);
    f.method = index_of(d->method, &d->methods, DSC_STYLES, method);
    f.published = dsc_value_at(t, row, c->published) * quantity[f.quantity].scale;
    f.predicted = dsc_value_at(t, row, c->predicted) * quantity[f.quantity].scale;
    if (f.workload < MOST_WORKLOADS && f.method < DSC_STYLES)
        d->figure[d->figures++] = f;
}

static size_t cell_of(const drawn *d, size_t workload, size_t q, size_t method, size_t x)
{
    return ((workload * QUANTITIES + q) * d->methods + method) * d->nx + x;
}

static void place_figures(dsc_plot *p, drawn *d)
{
    const size_t cells = d->workloads * QUANTITIES * d->methods * d->nx;
    d->steps = dsc_plot_numbers(p, cells);
    d->roofline = dsc_plot_numbers(p, cells);
    d->measured = dsc_plot_numbers(p, cells);
    for (size_t i = 0; i < d->figures && !p->rc; i++) {
        const figure *f = &d->figure[i];
        size_t x = 0;
        while (d->x[x] != f->at)
            x++;
        const size_t at = cell_of(d, f->workload, f->quantity, f->method, x);
        d->measured[at] = f->published;
        if (f->by_steps)
            d->steps[at] = f->predicted;
        if (f->by_roofline)
            d->roofline[at] = f->predicted;
    }
    // The throughput that the prefill time is fitted to is given, not predicted; the fit meets it.
    for (size_t i = 0; i < cells && !p->rc; i++)
        if (i / (d->methods * d->nx) % QUANTITIES == RATE && isnan(d->steps[i]))
            d->steps[i] = d->measured[i];
}

static void add_point(drawn *d, dsc_panel_point point)
{
    d->point[d->points++] = point;
}

// Rings the last place at which the throughput of a method falls below that of `none`.
static void add_ring(drawn *d, size_t workload, size_t none, size_t method)
{
    const double *plain = d->steps + cell_of(d, workload, RATE, none, 0),
                 *v = d->steps + cell_of(d, workload, RATE, method, 0);
    for (size_t i = d->nx; method != none && i-- > 1;) {
        const double before = v[i - 1] - plain[i - 1], after = v[i] - plain[i];
        if (!(before > 0 && after <= 0))
            continue;
        const double share = before / (before - after);
        add_point(d, (dsc_panel_point){.panel = workload * QUANTITIES + RATE,
                                       .line = method,
                                       .x = d->x[i - 1] + share * (d->x[i] - d->x[i - 1]),
                                       .y = v[i - 1] + share * (v[i] - v[i - 1]),
                                       .glyph = DSC_GLYPH_RING,
                                       .note = "crossover"});
        d->rings++;
        return;
    }
}

static void add_points(dsc_plot *p, drawn *d)
{
    const size_t lines = d->methods * d->nx, cells = d->workloads * QUANTITIES * lines;
    size_t none = 0;
    d->point = dsc_plot_new(p, dsc_panel_point, cells + d->workloads * d->methods);
    for (size_t i = 0; i < cells && !p->rc; i++)
        if (!isnan(d->measured[i]))
            add_point(d, (dsc_panel_point){.panel = i / lines,
                                           .line = i / d->nx % d->methods,
                                           .x = d->x[i % d->nx],
                                           .y = d->measured[i],
                                           .glyph = DSC_GLYPH_FILLED,
                                           .note = "measured"});
    while (none < d->methods && strcmp(d->method[none], "none") != 0)
        none++;
    for (size_t w = 0; w < d->workloads && none < d->methods && !p->rc; w++)
        for (size_t m = 0; m < d->methods; m++)
            add_ring(d, w, none, m);
}

static void read_figures(dsc_plot *p, drawn *d)
{
    const dsc_table *t = p->table;
    const columns c = {
        dsc_need(p, "row", DSC_NAMES),         dsc_need(p, "case", DSC_NAMES),
        dsc_need(p, "quantity", DSC_NAMES),    dsc_need(p, "at", DSC_NUMBERS),
        dsc_need(p, "published", DSC_NUMBERS), dsc_need(p, "predicted", DSC_NUMBERS)};
    const dsc_selection s = dsc_select(p, t, p->options, NULL);
    d->figure = dsc_plot_new(p, figure, s.rows);
    d->x = dsc_plot_new(p, double, s.rows);
    for (size_t i = 0; i < s.rows && !p->rc; i++)
        read_row(p, d, &c, s.row[i]);
    for (size_t i = 0; i < d->figures && !p->rc; i++)
        d->x[i] = d->figure[i].at;
    if (!p->rc && !d->figures)
        dsc_refuse(p,
                   "%s: the table has no figures of a server; it draws the table of draftscope "
                   "validate serving --published",
                   p->name);
    if (p->rc)
        return;
    d->nx = dsc_sort_distinct(d->x, d->figures);
    place_figures(p, d);
    add_points(p, d);
}

static void put_data(dsc_plot *p, const drawn *d)
{
    dsc_data_text(p, "workload", NULL);
    dsc_data_text(p, "method", NULL);
    dsc_data_text(p, "quantity", NULL);
    dsc_data_number(p, "clients", "clients of a closed loop");
    dsc_data_number(p, "measured", "published value");
    dsc_data_number(p, "by_steps", "simulated with measured step times");
    dsc_data_number(p, "by_roofline", "simulated with the roofline's step times");
    for (size_t i = 0; i < d->workloads * QUANTITIES * d->methods * d->nx; i++) {
        const size_t line = i / d->nx, panel = line / d->methods;
        const char *const text[] = {d->workload[panel / QUANTITIES], d->method[line % d->methods],
                                    quantity[panel % QUANTITIES].label};
        if (!isnan(d->measured[i]))
            dsc_data_row(p, text,
                         (double[]){d->x[i % d->nx], d->measured[i], d->steps[i], d->roofline[i]});
    }
}

static void put_finding(dsc_writer *w, const drawn *d)
{
    dsc_put(w, "Predicted lines and measured points of a server with %g to %g clients:", d->x[0],
            d->x[d->nx - 1]);
    for (size_t i = 0; i < d->workloads; i++)
        dsc_put(w, "%s %s", i ? "," : "", d->workload[i]);
    dsc_put(w, ".");
    for (size_t i = 0; i < d->points; i++)
        if (d->point[i].glyph == DSC_GLYPH_RING)
            dsc_put(w, " %s: %s falls below no speculation at %.3g clients.",
                    d->workload[d->point[i].panel / QUANTITIES], d->method[d->point[i].line],
                    d->point[i].x);
}

static void draw(dsc_plot *plot)
{
    drawn d = {.figures = 0};
    dsc_panel panel[MOST_WORKLOADS * QUANTITIES];
    dsc_key key[DSC_STYLES];
    read_figures(plot, &d);
    if (plot->rc)
        return;
    for (size_t i = 0; i < d.workloads * QUANTITIES; i++)
        panel[i] = (dsc_panel){d.workload[i / QUANTITIES], quantity[i % QUANTITIES].label,
                               d.steps + i * d.methods * d.nx, (int)(i % QUANTITIES)};
    for (size_t j = 0; j < d.methods; j++)
        key[j] = (dsc_key){d.method[j], (int)j};
    const dsc_panels p = {
        .title = "A server by load, predicted and measured",
        .subtitle = dsc_text(plot, "points: measured; lines: predicted with measured step times%s",
                             d.rings ? "; rings: predicted load from which on speculation does not "
                                       "pay"
                                     : ""),
        .x_label = "clients of a closed loop",
        .x = d.x,
        .nx = d.nx,
        .key = key,
        .lines = d.methods,
        .panel = panel,
        .panels = d.workloads * QUANTITIES,
        .columns = QUANTITIES,
        .from_zero = true,
        .predicted = d.roofline,
        .predicted_label = "predicted with the roofline",
        .point = d.point,
        .points = d.points,
        .bare = true,
    };
    const double narrow = 140 + 200 * (double)p.panels, wide = 100 + 260 * (double)d.workloads;
    dsc_draw_panels(plot, &p, "load_published", 860, dsc_is_narrow(plot) ? narrow : wide);
    put_finding(&plot->finding, &d);
    put_data(plot, &d);
}

static bool fits(dsc_plot *p)
{
    return p->table->rows && !strcmp(dsc_text_at(p->table, 0, "row"), "serving");
}

const dsc_figure_type dsc_figure_load_published = {
    .name = "load-published",
    .summary = "latency and throughput by clients, predicted next to a published measurement",
    .needs = "row case quantity at published predicted",
    .fits = fits,
    .draw = draw,
};

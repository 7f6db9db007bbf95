// SPDX-License-Identifier: Apache-2.0
// Reads the loads of a simulated server, compares methods with no speculation, and sets the points
// of loads without a steady state and of measurements apart from the lines.
#include "plots/figure/loads.h"

#include "plots/draw/glossary.h"

#include <math.h>
#include <string.h>

static bool is_none(const dsc_table *t, size_t row)
{
    return !strcmp(dsc_text_at(t, row, "method"), "none");
}

static bool says_yes(const dsc_table *t, size_t row, const char *column)
{
    return !strcmp(dsc_text_at(t, row, column), "yes");
}

// --- rows ----------------------------------------------------------------------------------------

// Whether a row is of no speculation and at the loads that are drawn: it passes the filters on
// columns in which it has a value, but for the method.
static bool is_reference(const dsc_plot *p, size_t row)
{
    const dsc_table *t = p->table;
    bool passes = is_none(t, row);
    for (size_t i = 0; i < p->options->filters && passes; i++) {
        const dsc_figure_filter *f = &p->options->filter[i];
        const int column = dsc_table_find(t, f->column);
        passes = !strcmp(f->column, "method") ||
                 (column >= 0 && dsc_is_missing(dsc_table_at(t, row, (size_t)column))) ||
                 dsc_passes(t, row, f);
    }
    return passes;
}

// The rows of dsc_select and those of no speculation, which it leaves out; the measured ones apart.
static void select_rows(dsc_plot *p, dsc_loads *l)
{
    const dsc_selection s = dsc_select(p, p->table, p->options, NULL);
    l->rows = s;
    l->rows.rows = l->measured_rows = 0;
    l->rows.row = dsc_plot_new(p, size_t, p->table->rows);
    l->measured = dsc_plot_new(p, size_t, p->table->rows);
    for (size_t i = 0, next = 0; i < p->table->rows && !p->rc; i++) {
        const bool selected = next < s.rows && s.row[next] == i;
        next += selected;
        if (!selected && !is_reference(p, i))
            continue;
        if (says_yes(p->table, i, "measured"))
            l->measured[l->measured_rows++] = i;
        else
            l->rows.row[l->rows.rows++] = i;
    }
    if (!p->rc && !l->rows.rows)
        dsc_refuse(p,
                   "every row is measured; add a table of draftscope serve, as in draftscope "
                   "plot %s PREDICTED.tsv MEASURED.tsv",
                   p->name);
}

// The letters of "poisson:4" up to the colon.
static size_t process_length(const char *arrivals)
{
    return strcspn(arrivals, ":");
}

// A rate says nothing without its process.
static void check_processes(dsc_plot *p, const dsc_loads *l)
{
    const char *first = NULL;
    for (size_t i = 0; i < l->rows.rows && !p->rc; i++) {
        const size_t row = l->rows.row[i];
        const char *arrivals = dsc_text_at(p->table, row, "arrivals");
        if (!*arrivals || isnan(dsc_value_at(p->table, row, l->x)))
            continue;
        const size_t n = process_length(arrivals);
        first = first ? first : arrivals;
        if (n != process_length(first) || strncmp(first, arrivals, n) != 0)
            dsc_refuse(p,
                       "%s: '%.60s' and '%.60s' are loads of different processes; draw a table "
                       "of draftscope serve with one process in --arrivals",
                       p->name, first, arrivals);
    }
}

void dsc_loads_read(dsc_plot *p, dsc_loads *l, size_t panels)
{
    const dsc_table *t = p->table;
    const int qps = dsc_need(p, "qps", DSC_NUMBERS), clients = dsc_need(p, "clients", DSC_NUMBERS);
    *l = (dsc_loads){.clients = true, .x = clients};
    select_rows(p, l);
    for (size_t i = 0; i < l->rows.rows && !p->rc; i++)
        l->clients = l->clients && isnan(dsc_value_at(t, l->rows.row[i], qps));
    l->x = l->clients ? clients : qps;
    check_processes(p, l);
    l->room = panels * ((DSC_STYLES + 1) * l->rows.rows + l->measured_rows);
    l->point = dsc_plot_new(p, dsc_panel_point, l->room);
}

const char *dsc_loads_label(const dsc_loads *l)
{
    return dsc_term_title(l->clients ? "clients" : "qps");
}

size_t dsc_loads_none(const dsc_plot *p, const dsc_envelope *e)
{
    size_t j = 0;
    while (j < e->lines && !is_none(p->table, e->first[j]))
        j++;
    return j;
}

// --- comparison with no speculation --------------------------------------------------------------

static bool is_unsteady(const dsc_table *t, const dsc_envelope *e, size_t line, size_t i)
{
    const size_t row = e->row[line * e->nx + i];
    return row != SIZE_MAX && dsc_envelope_is_unsteady(t, row);
}

double dsc_loads_crossing(const dsc_plot *p, const dsc_envelope *e, const double *value,
                          size_t line, dsc_loads_judge judge)
{
    const size_t none = dsc_loads_none(p, e);
    double at = NAN, even = NAN, before = NAN;
    for (size_t i = 0; none < e->lines && i < e->nx; i++) {
        const double v = value[line * e->nx + i], plain = value[none * e->nx + i],
                     more = (judge.less_is_better ? v - plain : plain - v) / fmax(v, plain),
                     worse = more - judge.margin;
        if (!isfinite(worse) || (!judge.unsteady && is_unsteady(p->table, e, line, i) &&
                                 is_unsteady(p->table, e, none, i)))
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

// --- points --------------------------------------------------------------------------------------

void dsc_loads_add(dsc_plot *p, dsc_loads *l, dsc_panel_point point)
{
    if (!p->rc && l->points < l->room)
        l->point[l->points++] = point;
}

void dsc_loads_split(dsc_plot *p, dsc_loads *l, size_t panel, const dsc_envelope *e, double *value)
{
    for (size_t i = 0; i < e->lines * e->nx && !p->rc; i++) {
        if (!is_unsteady(p->table, e, i / e->nx, i % e->nx) || isnan(value[i]))
            continue;
        dsc_loads_add(p, l,
                      (dsc_panel_point){.panel = panel,
                                        .line = i / e->nx,
                                        .x = e->x[i % e->nx],
                                        .y = value[i],
                                        .glyph = DSC_GLYPH_HOLLOW,
                                        .note = "no steady state"});
        value[i] = NAN;
        l->unsteady = true;
    }
}

// Whether a measured row has the method of a line, and its rule and policy where it names them.
static bool is_of(const dsc_table *t, size_t row, size_t line_row)
{
    static const char *const name[] = {"rule", "speculation"};
    bool same = !strcmp(dsc_text_at(t, row, "method"), dsc_text_at(t, line_row, "method"));
    for (size_t i = 0; i < sizeof name / sizeof *name && same; i++) {
        const char *text = dsc_text_at(t, row, name[i]);
        same = !*text || !strcmp(text, dsc_text_at(t, line_row, name[i]));
    }
    return same;
}

void dsc_loads_add_measured(dsc_plot *p, dsc_loads *l, size_t panel, const dsc_envelope *e,
                            const char *column)
{
    const dsc_table *t = p->table;
    for (size_t i = 0; i < l->measured_rows && !p->rc; i++) {
        const size_t row = l->measured[i];
        const double x = dsc_value_at(t, row, l->x), y = dsc_number_at(t, row, column);
        size_t j = 0;
        while (j < e->lines && !is_of(t, row, e->first[j]))
            j++;
        if (j == e->lines)
            dsc_refuse(p, "%s: no predicted row has the method '%.60s' of a measured one", p->name,
                       dsc_text_at(t, row, "method"));
        else if (!(x >= e->x[0] && x <= e->x[e->nx - 1]))
            l->outside += panel == 0;
        else if (!isnan(y))
            dsc_loads_add(p, l,
                          (dsc_panel_point){.panel = panel,
                                            .line = j,
                                            .x = x,
                                            .y = y,
                                            .glyph = DSC_GLYPH_FILLED,
                                            .note = "measured"});
    }
}

const char *dsc_loads_subtitle(dsc_plot *p, const dsc_loads *l, const dsc_envelope *e,
                               const char *const *part, size_t parts)
{
    const char *const own[] = {
        e->several ? "best configuration of each method at each load" : "",
        l->measured_rows ? "lines: predicted, filled points: measured" : "",
        l->outside ? dsc_text(p, "%zu measured load%s outside the predicted range left out",
                              l->outside, l->outside > 1 ? "s" : "")
                   : "",
        l->unsteady ? "hollow points: no steady state, the queue grows or the run is too short"
                    : ""};
    const char *separator = "";
    dsc_writer *w = dsc_text_begin(p);
    for (size_t i = 0; i < sizeof own / sizeof *own + parts; i++) {
        const size_t mine = sizeof own / sizeof *own;
        const char *text = i < mine ? own[i] : part[i - mine];
        dsc_put(w, "%s%s", *text ? separator : "", text);
        separator = *text ? "; " : separator;
    }
    return dsc_text_end(p);
}

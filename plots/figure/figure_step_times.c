// SPDX-License-Identifier: Apache-2.0
// Draws residuals of step times by draft length: measured over predicted seconds per call of the
// draft model and of the target. A slope indicates that the cost table misjudges the number of
// tokens of a pass; an offset, that it was measured on another machine or under another load.
#include "plots/draw/data.h"
#include "plots/draw/glossary.h"
#include "plots/figure/checks.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const usual[] = {"draft_s_per_call", "verify_s_per_call", NULL};

typedef struct residuals {
    dsc_checks checks;
    double *length; // [checks] draft length; NaN: the parameters contain none
    double *x;      // [nx] distinct lengths, ascending
    size_t nx;
    bool other; // some have no length; they are drawn left of the shortest
} residuals;

// The number after "NAME=" in text such as "drafts=4 length=2"; NaN: none.
static double parameter(const char *text, const char *name)
{
    size_t n = strlen(name);
    for (const char *s = text; (s = strstr(s, name)); s += n)
        if (s[n] == '=' && (s == text || strchr(" ,;", s[-1]))) {
            double v;
            return sscanf(s + n + 1, "%lf", &v) == 1 && dsc_drawable(v) ? v : NAN;
        }
    return NAN;
}

static double draft_length(const char *parameters)
{
    static const char *const name[] = {"num-speculative-tokens", "window", "max", "budget",
                                       "depth"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        double v = parameter(parameters, name[i]);
        if (!isnan(v))
            return v;
    }
    return NAN;
}

static int ascending(const void *pa, const void *pb)
{
    double a = *(const double *)pa, b = *(const double *)pb;
    return (a > b) - (a < b);
}

static double residual(const dsc_check *k)
{
    double v = k->predicted > 0 ? 100 * (k->measured / k->predicted - 1) : NAN;
    return dsc_drawable(v) ? v : NAN;
}

static int residuals_init(residuals *r, const dsc_table *t, const dsc_figure_options *o,
                          dsc_error *err)
{
    const char *const own[] = {o->column, NULL};
    bool any = false;
    int rc = dsc_checks_init(&r->checks, t, dsc_figure_step_times.name, o, o->column ? own : usual,
                             DSC_STYLES, err);
    size_t n = r->checks.checks;
    if (!rc)
        rc = dsc_new(&r->length, n, err);
    if (!rc)
        rc = dsc_new(&r->x, n, err);
    for (size_t i = 0; i < n && !rc; i++) {
        size_t column = (size_t)dsc_table_find(t, "parameters");
        const dsc_cell *cell = dsc_table_at(t, r->checks.check[i].row, column);
        r->length[i] = draft_length(cell->type == DSC_CELL_TEXT ? cell->text : "");
        any = any || !isnan(residual(&r->checks.check[i]));
        if (isnan(r->length[i]))
            r->other = true;
        else
            r->x[r->nx++] = r->length[i];
    }
    if (rc)
        return rc;
    if (!any)
        return dsc_fail(err, DSC_EUSAGE, "step-time-residuals: no prediction is greater than 0");
    qsort(r->x, r->nx, sizeof *r->x, ascending);
    size_t distinct = 0;
    for (size_t i = 0; i < r->nx; i++)
        if (!distinct || r->x[distinct - 1] != r->x[i])
            r->x[distinct++] = r->x[i];
    r->nx = distinct;
    return DSC_OK;
}

// The x of a configuration: the rank of its length, with groups side by side.
static double across(const residuals *r, size_t i)
{
    size_t at = 0;
    while (at < r->nx && r->x[at] != r->length[i])
        at++;
    double aside = ((double)r->checks.check[i].group + 0.5) / (double)r->checks.groups - 0.5;
    return (at < r->nx ? (double)at : -1) + 0.6 * aside;
}

// --- drawing -----------------------------------------------------------------------------------

static dsc_axis axis_of(const residuals *r, int tics)
{
    double lo = 0, hi = 0;
    for (size_t i = 0; i < r->checks.checks; i++) {
        lo = fmin(lo, residual(&r->checks.check[i])); // fmin and fmax ignore NaN
        hi = fmax(hi, residual(&r->checks.check[i]));
    }
    for (size_t q = 0; q < r->checks.quantities; q++) {
        double percent = dsc_checks_percent(&r->checks, q, NULL) / 100;
        if (percent < 1) {
            lo = fmin(lo, 100 / (1 + percent) - 100);
            hi = fmax(hi, 100 / (1 - percent) - 100);
        }
    }
    return lo == 0 && hi == 0 ? dsc_axis_fit(-1, 1, tics) : dsc_axis_fit(lo, hi, tics);
}

// Writes $pointsQ: x, residual, group.
static void put_data(dsc_writer *w, const residuals *r)
{
    for (size_t q = 0; q < r->checks.quantities; q++) {
        dsc_put(w, "$points%zu << EOD\n", q + 1);
        for (size_t i = 0; i < r->checks.checks; i++) {
            const dsc_check *k = &r->checks.check[i];
            if (k->quantity == q && !isnan(residual(k)))
                dsc_put(w, "%.12g %.12g %zu\n", across(r, i), residual(k), k->group);
        }
        dsc_put(w, "EOD\n");
    }
}

// Writes the unit and the band of a panel.
static void put_tolerance(const residuals *r, size_t q, bool dumb, char text[120])
{
    double percent = dsc_checks_percent(&r->checks, q, NULL);
    int n = snprintf(text, 120, "measured / predicted - 1 (%%)");
    if (!isnan(percent) && !dumb)
        snprintf(text + n, 120 - (size_t)n, "; band: error of %g %%", percent);
}

static void put_band(dsc_writer *w, const dsc_axis *a, double percent)
{
    if (percent < 100)
        dsc_put(w,
                "set object 1 rectangle from graph 0, first %.12g to graph 1, first %.12g "
                "behind fs solid 1 noborder fc rgb '#ececec'\n",
                fmax(a->lo, 100 / (1 + percent / 100) - 100),
                fmin(a->hi, 100 / (1 - percent / 100) - 100));
}

static void put_plot(dsc_writer *w, const dsc_canvas *c, const residuals *r, size_t q)
{
    dsc_put(w, "plot 0 with lines lt %s notitle",
            c->terminal == DSC_TERM_DUMB ? "0" : "1 lw 1.5 dt (6,4) lc rgb '" DSC_INK_SOFT "'");
    dsc_put_check_points(w, c, &r->checks, q, residual);
}

// Writes the x axis with one step per length, because a few long ones would crowd the others.
static void put_x_axis(dsc_writer *w, const dsc_canvas *c, const residuals *r, double width)
{
    enum { MOST = 40 };
    size_t chosen[MOST], room = (size_t)fmax(2, fmin(MOST, width / (4 * c->char_width)));
    size_t n = dsc_thin(r->nx, room, 0, chosen);
    const char *separator = r->other ? ", " : "";
    dsc_put(w, "set xrange [%g:%g]\nset xtics (%s", r->other ? -1.5 : -0.5, (double)r->nx - 0.5,
            r->other ? "'–' -1" : "");
    for (size_t i = 0; i < n; i++) {
        dsc_put(w, "%s'%g' %zu", separator, r->x[chosen[i]], chosen[i]);
        separator = ", ";
    }
    dsc_put(w, ")\n");
}

static void put_panel(dsc_writer *w, const dsc_canvas *c, const residuals *r, size_t q, dsc_place p)
{
    bool dumb = c->terminal == DSC_TERM_DUMB;
    char text[120];
    dsc_axis a = axis_of(r, 6);
    put_tolerance(r, q, dumb, text);
    dsc_place box =
        dsc_put_check_axes(w, c, p, 0, r->checks.quantity[q], text, &a, "draft length (tokens)");
    put_x_axis(w, c, r, box.right - box.left);
    if (!dumb)
        put_band(w, &a, dsc_checks_percent(&r->checks, q, NULL));
    put_plot(w, c, r, q);
    dsc_put(w, "unset label\nunset arrow\nunset object\n");
}

static int compose(const residuals *r, const dsc_figure_options *o, const char *terminal,
                   dsc_drawing *out, dsc_error *err)
{
    dsc_canvas c;
    const dsc_checks *checks = &r->checks;
    dsc_key key[DSC_STYLES + 1];
    double panels = (double)checks->quantities;
    int rc = dsc_canvas_init(&c, terminal, o, panels > 1 ? 1000 : 720,
                             dsc_is_narrow(o, terminal) ? 150 + 300 * panels : 460, err);
    if (rc)
        return rc;
    size_t keys = dsc_check_key(checks, "measured = predicted", key);
    dsc_writer w = {.to = &out->script, .err = err};
    dsc_put_terminal(&w, &c, "step_times");
    put_data(&w, r);
    dsc_put(&w, "set multiplot\n");
    double top = dsc_put_heading(
        &w, &c, o->title ? o->title : "Step times: measured over predicted",
        "points above the line took longer than the cost table predicts", NULL, key, keys);
    for (size_t q = 0; q < checks->quantities; q++)
        put_panel(&w, &c, r, q,
                  dsc_panel_place(&c, top + (c.terminal == DSC_TERM_DUMB ? 0 : 6),
                                  checks->quantities, c.narrow ? 1 : checks->quantities, q));
    dsc_put(&w, "unset multiplot\n");
    return w.rc;
}

// --- words -------------------------------------------------------------------------------------

static void put_range(dsc_writer *w, const residuals *r, size_t q)
{
    const dsc_checks *c = &r->checks;
    size_t low = SIZE_MAX, high = SIZE_MAX, n = 0;
    for (size_t i = 0; i < c->checks; i++) {
        double v = residual(&c->check[i]);
        if (c->check[i].quantity != q || isnan(v))
            continue;
        n++;
        low = low == SIZE_MAX || v < residual(&c->check[low]) ? i : low;
        high = high == SIZE_MAX || v > residual(&c->check[high]) ? i : high;
    }
    if (!n) {
        dsc_put(w, "no prediction is greater than 0");
        return;
    }
    dsc_put(w, "measured times differ from predicted ones by between ");
    dsc_put_percent(w, residual(&c->check[low]));
    dsc_put(w, " (");
    dsc_put_check(w, c, &c->check[low]);
    dsc_put(w, ") and ");
    dsc_put_percent(w, residual(&c->check[high]));
    dsc_put(w, " (");
    dsc_put_check(w, c, &c->check[high]);
    dsc_put(w, "), over %zu configuration%s", n, n == 1 ? "" : "s");
}

static int put_finding(const residuals *r, dsc_buffer *to, dsc_error *err)
{
    dsc_writer w = {.to = to, .err = err};
    dsc_put(&w, "Dot plot%s by draft length.", r->checks.quantities > 1 ? "s" : "");
    for (size_t q = 0; q < r->checks.quantities; q++) {
        char heading[100];
        dsc_term_heading(r->checks.quantity[q], heading, sizeof heading);
        dsc_put(&w, " %s: ", heading);
        put_range(&w, r, q);
        dsc_put(&w, ".");
    }
    return w.rc;
}

static int put_data_table(const residuals *r, dsc_table *data, dsc_error *err)
{
    static const dsc_column column[] = {
        {"group", DSC_CELL_TEXT, "method, and rule if the method has several"},
        {"quantity", DSC_CELL_TEXT, NULL},
        {"draft_length", DSC_CELL_REAL, NULL},
        {"predicted", DSC_CELL_REAL, NULL},
        {"measured", DSC_CELL_REAL, NULL},
        {"residual_percent", DSC_CELL_REAL, "100 (measured / predicted - 1)"},
    };
    enum { DATA = sizeof column / sizeof *column };
    const dsc_checks *c = &r->checks;
    int rc = dsc_data_columns(data, column, DATA, err);
    for (size_t i = 0; i < c->checks && !rc; i++) {
        const dsc_check *k = &c->check[i];
        const dsc_cell cell[DATA] = {
            {.type = DSC_CELL_TEXT, .text = c->name[k->group]},
            {.type = DSC_CELL_TEXT, .text = c->quantity[k->quantity]},
            {.type = DSC_CELL_REAL, .r = r->length[i]},
            {.type = DSC_CELL_REAL, .r = k->predicted},
            {.type = DSC_CELL_REAL, .r = k->measured},
            {.type = DSC_CELL_REAL, .r = residual(k)},
        };
        rc = dsc_table_add_row(data, cell, err);
    }
    return rc;
}

static int script(const dsc_table *t, const dsc_figure_options *o, const char *terminal,
                  dsc_drawing *out, dsc_error *err)
{
    residuals r = {.length = NULL};
    int rc = residuals_init(&r, t, o, err);
    if (!rc)
        rc = compose(&r, o, terminal, out, err);
    if (!rc)
        rc = put_finding(&r, &out->finding, err);
    if (!rc)
        rc = put_data_table(&r, &out->data, err);
    free(r.length);
    free(r.x);
    dsc_checks_fini(&r.checks);
    return rc;
}

static bool fits(const dsc_table *t)
{
    return dsc_checks_fit(t, usual);
}

const dsc_figure_type dsc_figure_step_times = {
    .name = "step-time-residuals",
    .summary = "measured over predicted seconds per draft and target call, by draft length",
    .needs = DSC_CHECK_NEEDS,
    .fits = fits,
    .script = script,
};

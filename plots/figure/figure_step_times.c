// SPDX-License-Identifier: Apache-2.0
// Draws residuals of step times by draft length: measured over predicted seconds per call of the
// draft model and of the target. A slope indicates that the cost table misjudges the number of
// tokens of a pass; an offset, that it was measured on another machine or under another load.
#include "plots/figure/checks.h"
#include "plots/figure/figures.h"

#include <math.h>
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

static double residual(const dsc_check *k)
{
    double v = k->predicted > 0 ? 100 * (k->measured / k->predicted - 1) : NAN;
    return dsc_drawable(v) ? v : NAN;
}

static void read_residuals(dsc_plot *p, residuals *r)
{
    bool any = false;
    dsc_checks_of_figure(p, &r->checks, DSC_STYLES);
    size_t n = r->checks.checks;
    r->length = dsc_plot_new(p, double, n);
    r->x = dsc_plot_new(p, double, n);
    if (p->rc)
        return;
    for (size_t i = 0; i < n; i++) {
        r->length[i] = draft_length(dsc_text_at(p->table, r->checks.check[i].row, "parameters"));
        any = any || !isnan(residual(&r->checks.check[i]));
        if (isnan(r->length[i]))
            r->other = true;
        else
            r->x[r->nx++] = r->length[i];
    }
    if (!any)
        dsc_refuse(p, "step-time-residuals: no prediction is greater than 0");
    r->nx = dsc_sort_distinct(r->x, r->nx);
}

// The x of a configuration: the rank of its length, with groups side by side.
static double across(const residuals *r, const dsc_check *k)
{
    size_t at = 0;
    while (at < r->nx && r->x[at] != r->length[k - r->checks.check])
        at++;
    double aside = ((double)k->group + 0.5) / (double)r->checks.groups - 0.5;
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
static void put_data(dsc_writer *w, const void *of)
{
    const residuals *r = of;
    for (size_t q = 0; q < r->checks.quantities; q++) {
        dsc_put(w, "$points%zu << EOD\n", q + 1);
        for (const dsc_check *k = NULL; (k = dsc_next_check(&r->checks, q, k));)
            if (!isnan(residual(k)))
                dsc_put(w, "%.12g %.12g %zu\n", across(r, k), residual(k), k->group);
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
            c->dumb ? "0" : "1 lw 1.5 dt (6,4) lc rgb '" DSC_INK_SOFT "'");
    dsc_put_check_points(w, c, &r->checks, q, residual);
}

// The axis of ranks; its lower end has room for configurations without a length.
static dsc_axis rank_axis(const residuals *r)
{
    return (dsc_axis){.lo = r->other ? -1.5 : -0.5, .hi = (double)r->nx - 0.5};
}

// Writes the x axis with one step per length, because a few long ones would crowd the others.
static void put_x_axis(dsc_writer *w, const dsc_canvas *c, const residuals *r, double width)
{
    enum { MOST = 40 };
    size_t chosen[MOST], room = (size_t)fmax(2, fmin(MOST, width / (4 * c->char_width)));
    size_t n = dsc_thin(r->nx, room, 0, chosen);
    const char *separator = r->other ? ", " : "";
    const dsc_axis a = rank_axis(r);
    dsc_put(w, "set xrange [%g:%g]\nset xtics (%s", a.lo, a.hi, r->other ? "'–' -1" : "");
    for (size_t i = 0; i < n; i++) {
        dsc_put(w, "%s'%g' %zu", separator, r->x[chosen[i]], chosen[i]);
        separator = ", ";
    }
    dsc_put(w, ")\n");
}

static void mark_points(dsc_plot *plot, const residuals *r, size_t q, const dsc_axis *y,
                        dsc_place b)
{
    const dsc_axis x = rank_axis(r);
    for (const dsc_check *k = NULL; (k = dsc_next_check(&r->checks, q, k));)
        dsc_mark(
            plot, dsc_axis_place(&x, b.left, b.right, across(r, k)),
            dsc_axis_place(y, b.bottom, b.top, residual(k)), dsc_check_text(plot, &r->checks, k),
            "%+.3g %% (measured %.4g s, predicted %.4g s)", residual(k), k->measured, k->predicted);
}

static void put_panel(dsc_plot *plot, const dsc_canvas *c, const void *of, size_t q, dsc_place p)
{
    dsc_writer *w = &plot->script;
    const residuals *r = of;
    char text[120];
    dsc_axis a = axis_of(r, 6);
    put_tolerance(r, q, c->dumb, text);
    dsc_place box =
        dsc_put_check_axes(w, c, p, 0, r->checks.heading[q], text, &a, "draft length (tokens)");
    put_x_axis(w, c, r, box.right - box.left);
    if (!c->dumb)
        put_band(w, &a, dsc_checks_percent(&r->checks, q, NULL));
    mark_points(plot, r, q, &a, box);
    put_plot(w, c, r, q);
    dsc_put(w, "unset label\nunset arrow\nunset object\n");
}

// --- words -------------------------------------------------------------------------------------

static void put_range(dsc_writer *w, const residuals *r, size_t q)
{
    const dsc_checks *c = &r->checks;
    const dsc_check *low = NULL, *high = NULL;
    size_t n = 0;
    for (const dsc_check *k = NULL; (k = dsc_next_check(c, q, k));) {
        if (isnan(residual(k)))
            continue;
        n++;
        low = !low || residual(k) < residual(low) ? k : low;
        high = !high || residual(k) > residual(high) ? k : high;
    }
    if (!n) {
        dsc_put(w, "no prediction is greater than 0");
        return;
    }
    dsc_put(w, "measured times differ from predicted ones by between ");
    dsc_put_percent(w, residual(low));
    dsc_put(w, " (");
    dsc_put_check(w, c, low);
    dsc_put(w, ") and ");
    dsc_put_percent(w, residual(high));
    dsc_put(w, " (");
    dsc_put_check(w, c, high);
    dsc_put(w, "), over %zu configuration%s", n, n == 1 ? "" : "s");
}

static void put_finding(dsc_writer *w, const residuals *r)
{
    dsc_put(w, "Dot plot%s by draft length.", r->checks.quantities > 1 ? "s" : "");
    for (size_t q = 0; q < r->checks.quantities; q++) {
        dsc_put(w, " %s: ", r->checks.heading[q]);
        put_range(w, r, q);
        dsc_put(w, ".");
    }
}

static void put_numbers(dsc_plot *p, const residuals *r)
{
    const dsc_checks *c = &r->checks;
    dsc_data_text(p, "group", "method, and rule if the method has several");
    dsc_data_text(p, "quantity", NULL);
    dsc_data_numbers(p, "draft_length predicted measured");
    dsc_data_number(p, "residual_percent", "100 (measured / predicted - 1)");
    for (size_t i = 0; i < c->checks; i++) {
        const dsc_check *k = &c->check[i];
        dsc_data_row(p, (const char *[]){c->name[k->group], c->quantity[k->quantity]},
                     (double[]){r->length[i], k->predicted, k->measured, residual(k)});
    }
}

static void draw(dsc_plot *p)
{
    residuals r = {.length = NULL};
    read_residuals(p, &r);
    if (p->rc)
        return;
    double panels = (double)r.checks.quantities;
    const dsc_check_chart chart = {
        .word = "step_times",
        .title = "Step times: measured over predicted",
        .subtitle = "points above the line took longer than the cost table predicts",
        .reference = "measured = predicted",
        .width = panels > 1 ? 1000 : 720,
        .height = dsc_is_narrow(p) ? 150 + 300 * panels : 460,
        .put_data = put_data,
        .put_panel = put_panel,
    };
    dsc_draw_checks(p, &r.checks, &chart, &r);
    put_finding(&p->finding, &r);
    put_numbers(p, &r);
}

const dsc_figure_type dsc_figure_step_times = {
    .name = "step-time-residuals",
    .summary = "measured over predicted seconds per draft and target call, by draft length",
    .needs = DSC_CHECK_NEEDS,
    .spec = usual,
    .fits = dsc_checks_fit,
    .draw = draw,
};

// SPDX-License-Identifier: Apache-2.0
// Draws measured against predicted values, one point per configuration, and the line on which they
// are equal. A tolerance in percent is drawn as a band around the line; a tolerance in standard
// errors is a bar through the point, which must reach the line. Only points that fail are labeled.
#include "plots/figure/checks.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <stdlib.h>

enum { NAMED = 6 }; // most labels in a panel; more would cover the points

static const char *const usual[] = {"block_efficiency", "speedup", NULL};

// The axis of both directions of a panel.
static dsc_axis axis_of(const dsc_checks *c, size_t quantity, int tics)
{
    double lo = INFINITY, hi = -INFINITY;
    for (const dsc_check *k = NULL; (k = dsc_next_check(c, quantity, k));) {
        lo = fmin(lo, fmin(k->predicted, k->measured));
        hi = fmax(hi, fmax(k->predicted, k->measured));
    }
    return dsc_axis_fit(lo, hi, tics);
}

// The limit of |z| that bars show; NaN: no bars.
static double bar_limit(const dsc_checks *c, size_t quantity)
{
    for (const dsc_check *k = NULL; (k = dsc_next_check(c, quantity, k));)
        if (k->z_limit * k->se > 0)
            return k->z_limit;
    return NAN;
}

// --- data --------------------------------------------------------------------------------------

static double within(const dsc_axis *a, double v)
{
    return fmax(a->lo, fmin(a->hi, v));
}

// Draws the band between measured = predicted / (1 +- limit), clipped to the box. It is a polygon
// and not a curve, so that it lies below the labels.
static void put_band(dsc_writer *w, const dsc_axis *a, double limit)
{
    double x[] = {a->lo, 0, 0, 0, 0, 0, a->hi};
    enum { CORNERS = sizeof x / sizeof *x };
    for (int i = 0; i < 2; i++) { // where either edge passes the bottom or the top
        x[1 + i] = within(a, a->lo * (i ? 1 + limit : 1 - limit));
        x[3 + i] = within(a, a->hi * (i ? 1 + limit : 1 - limit));
    }
    x[5] = within(a, 0); // where the edges cross
    for (int i = 1; i < CORNERS; i++)
        for (int j = i; j > 0 && x[j - 1] > x[j]; j--) {
            double swapped = x[j];
            x[j] = x[j - 1];
            x[j - 1] = swapped;
        }
    dsc_put(w, "set object 1 polygon from ");
    for (int i = 0; i < 2 * CORNERS; i++) { // along the lower edge, and back along the upper
        double at = x[i < CORNERS ? i : 2 * CORNERS - 1 - i];
        double one = within(a, at / (1 + limit)), other = within(a, at / (1 - limit));
        dsc_put(w, "%s%.12g,%.12g", i ? " to " : "", at,
                i < CORNERS ? fmin(one, other) : fmax(one, other));
    }
    dsc_put(w, " behind fs solid 1 noborder fc rgb '#e6e6e6'\n");
}

// Writes $pointsQ: predicted, measured, group, low end and length of the bar.
static void put_data(dsc_writer *w, const void *of)
{
    const dsc_checks *c = of;
    for (size_t q = 0; q < c->quantities; q++) {
        dsc_axis a = axis_of(c, q, 5);
        dsc_put(w, "$points%zu << EOD\n", q + 1);
        for (const dsc_check *k = NULL; (k = dsc_next_check(c, q, k));) {
            double reach = k->z_limit * k->se;
            reach = reach > 0 ? reach : 0;
            double low = within(&a, k->measured - reach), high = within(&a, k->measured + reach);
            dsc_put(w, "%.12g %.12g %zu %.12g %.12g\n", k->predicted, k->measured, k->group, low,
                    high - low);
        }
        dsc_put(w, "EOD\n");
    }
}

// --- labels of points that fail ------------------------------------------------------------------

static int worse_first(const void *pa, const void *pb)
{
    const dsc_check *a = *(const dsc_check *const *)pa, *b = *(const dsc_check *const *)pb;
    double x = isnan(a->error) ? INFINITY : fabs(a->error);
    double y = isnan(b->error) ? INFINITY : fabs(b->error);
    return x != y ? (x < y) - (x > y) : (a->row > b->row) - (a->row < b->row);
}

// The space for labels in a panel.
typedef struct crowd {
    const dsc_checks *checks;
    size_t quantity;
    dsc_axis axis;
    dsc_place box;
    dsc_place name[NAMED]; // the labels placed so far
    size_t names;
} crowd;

static void locate(const crowd *in, const dsc_check *k, double *x, double *y)
{
    const dsc_axis *a = &in->axis;
    const dsc_place *b = &in->box;
    *x = b->left + (k->predicted - a->lo) / (a->hi - a->lo) * (b->right - b->left);
    *y = b->bottom - (k->measured - a->lo) / (a->hi - a->lo) * (b->bottom - b->top);
}

static bool is_free(const crowd *in, dsc_place p)
{
    enum { POINT = 5 }; // pixels from the middle of a point to its edge
    if (p.left < in->box.left || p.right > in->box.right + 12 || p.top < in->box.top ||
        p.bottom > in->box.bottom)
        return false;
    for (size_t i = 0; i < in->names; i++)
        if (p.left < in->name[i].right && p.right > in->name[i].left &&
            p.top < in->name[i].bottom && p.bottom > in->name[i].top)
            return false;
    for (const dsc_check *k = NULL; (k = dsc_next_check(in->checks, in->quantity, k));) {
        double x, y;
        locate(in, k, &x, &y);
        if (x > p.left - POINT && x < p.right + POINT && y > p.top - POINT && y < p.bottom + POINT)
            return false;
    }
    return true;
}

// Labels a point to its right or left, or not at all if both places are taken: further away, the
// label might be read as another point's.
static void put_name(dsc_writer *w, const dsc_canvas *c, crowd *in, const dsc_check *k)
{
    const char *name = dsc_text_at(in->checks->selection.table, k->row, "parameters");
    name = *name ? name : in->checks->name[k->group];
    double scale = (double)DSC_FONT_SMALL / DSC_FONT_BODY, line = c->line_height * scale, x, y;
    double room = (double)dsc_text_length(name) * c->char_width * scale;
    locate(in, k, &x, &y);
    for (int i = 0; i < 2 && in->names < NAMED; i++) {
        double left = i ? x - 9 - room : x + 9;
        dsc_place p = {left, y - line / 2, left + room, y + line / 2};
        if (!is_free(in, p))
            continue;
        in->name[in->names++] = p;
        dsc_put_paragraph(w, c, p.left, p.top, room + 2 * c->char_width, DSC_FONT_SMALL, DSC_INK, 1,
                          name);
        return;
    }
}

static void put_names(dsc_writer *w, const dsc_canvas *c, crowd *in)
{
    const dsc_checks *checks = in->checks;
    const dsc_check **fail;
    size_t n = 0;
    if (w->rc || (w->rc = dsc_new(&fail, checks->checks, w->err)))
        return;
    for (const dsc_check *k = NULL; (k = dsc_next_check(checks, in->quantity, k));)
        if (k->fails)
            fail[n++] = k;
    qsort(fail, n, sizeof *fail, worse_first);
    for (size_t i = 0; i < n && i < NAMED; i++)
        put_name(w, c, in, fail[i]);
    free(fail);
}

// --- panels ------------------------------------------------------------------------------------

// Describes the tolerances of a panel.
static void put_tolerances(const dsc_checks *checks, size_t q, bool dumb, char text[160])
{
    bool pooled;
    double percent = dsc_checks_percent(checks, q, &pooled), z = bar_limit(checks, q);
    int n = snprintf(text, 160, "measured");
    if (!isnan(percent) && !dumb)
        n += snprintf(text + n, 160 - (size_t)n, "; band: ±%g %%%s", percent,
                      pooled ? " (pooled)" : "");
    if (!isnan(z) && !dumb)
        snprintf(text + n, 160 - (size_t)n, "; bars: ±%g standard errors", z);
}

static double measured(const dsc_check *k)
{
    return k->measured;
}

static void put_plot(dsc_writer *w, const dsc_canvas *c, const dsc_checks *checks, size_t q,
                     const dsc_axis *a)
{
    bool dumb = c->dumb;
    const char *separator = "plot ";
    if (!dumb && !isnan(bar_limit(checks, q))) {
        dsc_put(w,
                "%s$points%zu using 1:4:(0):5 with vectors nohead lt 1 lw 1.5 lc rgb '#a0a0a0' "
                "notitle",
                separator, q + 1);
        separator = ", \\\n     ";
    }
    dsc_put(w, "%s[%.12g:%.12g] x with lines lt %s notitle", separator, a->lo, a->hi,
            dumb ? "0" : "1 lw 1.5 dt (6,4) lc rgb '" DSC_INK_SOFT "'");
    dsc_put_check_points(w, c, checks, q, measured);
}

static void mark_points(dsc_plot *plot, const crowd *in)
{
    double x, y;
    for (const dsc_check *k = NULL; (k = dsc_next_check(in->checks, in->quantity, k));) {
        locate(in, k, &x, &y);
        dsc_mark(plot, x, y, dsc_check_text(plot, in->checks, k), "predicted %.4g, measured %.4g",
                 k->predicted, k->measured);
    }
}

static void put_panel(dsc_plot *plot, const dsc_canvas *c, const void *of, size_t q, dsc_place p)
{
    dsc_writer *w = &plot->script;
    const dsc_checks *checks = of;
    bool dumb = c->dumb;
    char text[160];
    dsc_axis a = axis_of(checks, q, 5);
    put_tolerances(checks, q, dumb, text);
    // 12: half of the last label of the x axis
    dsc_place box =
        dsc_put_check_axes(w, c, p, dumb ? 1 : 12, checks->heading[q], text, &a, "predicted");
    dsc_put_number_axis(w, &a);
    double percent = dsc_checks_percent(checks, q, NULL);
    if (!dumb && !isnan(percent))
        put_band(w, &a, percent / 100);
    crowd in = {.checks = checks, .quantity = q, .axis = a, .box = box};
    if (!dumb)
        put_names(w, c, &in);
    mark_points(plot, &in);
    put_plot(w, c, checks, q, &a);
    dsc_put(w, "unset label\nunset object\n"); // the next plot has its own
}

static void put_subtitle(dsc_writer *w, const dsc_checks *c)
{
    size_t judged = 0, fail = 0;
    for (size_t i = 0; i < c->checks; i++) {
        judged += c->check[i].judged;
        fail += c->check[i].fails;
    }
    if (judged)
        dsc_put(w, "%zu of %zu predictions within their tolerance", judged - fail, judged);
    else
        dsc_put(w, "%zu predictions without a tolerance", c->checks);
    if (c->unpredicted)
        dsc_put(w, "; %zu measurement%s without a prediction", c->unpredicted,
                c->unpredicted == 1 ? "" : "s");
}

// --- words -------------------------------------------------------------------------------------

static void put_finding(dsc_writer *w, const dsc_checks *c)
{
    enum { LISTED = 8 };
    dsc_put(w,
            "Scatter plot%s of measured against predicted values: ", c->quantities > 1 ? "s" : "");
    put_subtitle(w, c);
    for (size_t q = 0; q < c->quantities; q++) {
        dsc_put(w, ". %s: ", c->heading[q]);
        dsc_put_check_errors(w, c, q);
    }
    size_t listed = 0, fail = 0;
    for (size_t i = 0; i < c->checks; i++) {
        const dsc_check *k = &c->check[i];
        fail += k->fails;
        if (!k->fails || listed == LISTED)
            continue;
        dsc_put(w, "%s%s of ",
                listed++ ? "; " : ". Outside the tolerance: ", c->quantity[k->quantity]);
        dsc_put_check(w, c, k);
        dsc_put(w, ", %.4g predicted and %.4g measured", k->predicted, k->measured);
    }
    dsc_put(w, fail > listed ? "; %zu more are not listed." : ".", fail - listed);
}

void dsc_draw_predicted(dsc_plot *p)
{
    dsc_checks c;
    dsc_checks_of_figure(p, &c, DSC_STYLES);
    if (p->rc)
        return;
    double panels = (double)c.quantities;
    put_subtitle(dsc_text_begin(p), &c);
    const dsc_check_chart chart = {
        .word = "predicted",
        .title = "Measured against predicted",
        .subtitle = dsc_text_end(p),
        .reference = "predicted = measured",
        .width = 480 * fmin(panels, 2) + 40,
        .height = dsc_is_narrow(p) ? 150 + 340 * panels : 560,
        .put_data = put_data,
        .put_panel = put_panel,
    };
    dsc_draw_checks(p, &c, &chart, &c);
    put_finding(&p->finding, &c);
    dsc_checks_data(p, &c);
}

const dsc_figure_type dsc_figure_predicted = {
    .name = "predicted-vs-measured",
    .summary = "measured against predicted, one point per configuration, and the line of equality",
    .needs = DSC_CHECK_NEEDS,
    .spec = usual,
    .fits = dsc_checks_fit,
    .draw = dsc_draw_predicted,
};

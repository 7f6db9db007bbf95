// SPDX-License-Identifier: Apache-2.0
// Draws prediction errors by method: a dot per configuration, their mean as a tick, the pooled
// error as a diamond, and the tolerance if it is a percentage. Methods are sorted by mean error,
// the largest first.
#include "base/columns.h"
#include "plots/figure/checks.h"
#include "plots/figure/figures.h"

#include <math.h>

static const char *const usual[] = {"block_efficiency", DSC_COL_DRAFT_ACCEPTANCE_RATE, "speedup",
                                    NULL};

enum { DOT, FAIL = 4, POOLED = 3 }; // line styles
enum { ROW = 44 };                  // pixels of a row

typedef struct errors {
    dsc_checks checks;
    size_t order[DSC_CHECK_GROUPS]; // groups from top to bottom
    size_t rows;
    double *height; // [all] of each check, in rows from the top
} errors;

// The mean error of the configurations of a group; NaN: none has an error.
static double mean_of(const dsc_checks *c, size_t group, size_t quantity)
{
    double sum = 0, n = 0;
    for (const dsc_check *k = NULL; (k = dsc_next_check(c, quantity, k));) {
        if (k->group != group || isnan(k->error))
            continue;
        sum += k->error;
        n++;
    }
    return n > 0 ? sum / n : NAN;
}

// The absolute mean error by which groups are sorted, of the first quantity that the group has.
static double size_of(const dsc_checks *c, size_t group)
{
    for (size_t q = 0; q < c->quantities; q++) {
        double mean = mean_of(c, group, q);
        if (!isnan(mean))
            return fabs(mean);
    }
    return NAN;
}

static void sort_groups(dsc_plot *p, errors *e)
{
    const dsc_checks *c = &e->checks;
    for (size_t g = 0; g < c->groups; g++) {
        double size = size_of(c, g);
        if (isnan(size))
            continue;
        size_t at = e->rows++;
        while (at && size_of(c, e->order[at - 1]) < size) {
            e->order[at] = e->order[at - 1];
            at--;
        }
        e->order[at] = g;
    }
    if (!e->rows)
        dsc_refuse(p, "error-by-method: all measurements are 0, so relative errors do not exist");
}

static dsc_axis axis_of(const dsc_checks *c, size_t quantity, int tics)
{
    double percent = dsc_checks_percent(c, quantity, NULL), lo = 0, hi = 0;
    for (size_t i = 0; i < c->all; i++) {
        const dsc_check *k = &c->check[i];
        if (k->quantity != quantity)
            continue;
        lo = fmin(lo, k->error); // fmin and fmax ignore NaN
        hi = fmax(hi, k->error);
    }
    lo = fmin(lo, -percent);
    hi = fmax(hi, percent);
    return lo == 0 && hi == 0 ? dsc_axis_fit(-1, 1, tics) : dsc_axis_fit(lo, hi, tics);
}

// --- drawing -----------------------------------------------------------------------------------

// One unit of height is a row with its name above; dots are spread so that equal errors do not hide
// each other.
static void find_heights(dsc_plot *p, errors *e)
{
    const dsc_checks *c = &e->checks;
    e->height = dsc_plot_numbers(p, c->all);
    for (size_t q = 0; q < c->quantities && !p->rc; q++)
        for (size_t r = 0; r < e->rows; r++) {
            size_t n = 0, at = 0;
            for (int pass = 0; pass < 2; pass++)
                for (const dsc_check *k = NULL; (k = dsc_next_check(c, q, k));) {
                    if (k->group != e->order[r] || isnan(k->error))
                        continue;
                    if (!pass)
                        n++;
                    else
                        e->height[k - c->check] =
                            (double)r + 0.56 + 0.3 * ((double)at++ + 0.5) / (double)n;
                }
            for (size_t i = c->checks; i < c->all; i++)
                if (c->check[i].group == e->order[r])
                    e->height[i] = (double)r + 0.71;
        }
}

// Writes $dotsQ: error, height, whether it fails; $meansQ: mean, top, height; $pooledQ: error,
// height.
static void put_data(dsc_writer *w, const errors *e)
{
    const dsc_checks *c = &e->checks;
    for (size_t q = 0; q < c->quantities; q++) {
        dsc_put(w, "$dots%zu << EOD\n", q + 1);
        for (size_t r = 0; r < e->rows; r++)
            for (const dsc_check *k = NULL; (k = dsc_next_check(c, q, k));)
                if (k->group == e->order[r] && !isnan(k->error))
                    dsc_put(w, "%.12g %.6g %d\n", k->error, e->height[k - c->check], k->fails);
        dsc_put(w, "EOD\n$means%zu << EOD\n", q + 1);
        for (size_t r = 0; r < e->rows; r++)
            if (!isnan(mean_of(c, e->order[r], q)))
                dsc_put(w, "%.12g %g %g\n", mean_of(c, e->order[r], q), (double)r + 0.5, 0.42);
        dsc_put(w, "EOD\n$pooled%zu << EOD\n", q + 1);
        for (size_t r = 0; r < e->rows; r++)
            for (size_t i = c->checks; i < c->all; i++) {
                const dsc_check *k = &c->check[i];
                if (k->group == e->order[r] && k->quantity == q && !isnan(k->error))
                    dsc_put(w, "%.12g %g\n", k->error, e->height[i]);
            }
        dsc_put(w, "EOD\n");
    }
}

static bool any_pooled(const dsc_checks *c, size_t quantity)
{
    for (size_t i = c->checks; i < c->all; i++)
        if (c->check[i].quantity == quantity && !isnan(c->check[i].error))
            return true;
    return false;
}

static bool any_dot(const dsc_checks *c, size_t quantity, bool fails)
{
    for (const dsc_check *k = NULL; (k = dsc_next_check(c, quantity, k));)
        if (k->fails == fails && !isnan(k->error))
            return true;
    return false;
}

static void put_plot(dsc_writer *w, const dsc_canvas *c, const dsc_checks *checks, size_t q)
{
    dsc_put(w, "plot NaN notitle");
    for (int fails = 0; fails < 2; fails++)
        if (any_dot(checks, q, fails)) {
            dsc_put(w, ", \\\n     $dots%zu using ($3 == %d ? $1 : NaN):2 with points ", q + 1,
                    fails);
            dsc_put_line_style(w, c, fails ? FAIL : DOT, 0.9);
            dsc_put(w, " notitle");
        }
    if (any_dot(checks, q, false) || any_dot(checks, q, true))
        dsc_put(
            w,
            ", \\\n     $means%zu using 1:2:(0):3 with vectors nohead lt 1 lw 2.5 lc rgb '" DSC_INK
            "' notitle",
            q + 1);
    if (any_pooled(checks, q)) {
        dsc_put(w, ", \\\n     $pooled%zu using 1:2 with points ", q + 1);
        dsc_put_line_style(w, c, POOLED, 1.2);
        dsc_put(w, " notitle");
    }
    dsc_put(w, "\n");
}

static void put_mean(dsc_writer *w, double mean)
{
    if (mean == 0)
        dsc_put(w, "0 %%");
    else
        dsc_put_percent(w, mean);
}

static void put_names(dsc_plot *p, const dsc_canvas *c, const errors *e, size_t q, dsc_place box)
{
    double slot = (box.bottom - box.top) / (double)e->rows;
    for (size_t r = 0; r < e->rows; r++) {
        dsc_writer *w = dsc_text_begin(p);
        double mean = mean_of(&e->checks, e->order[r], q);
        dsc_put(w, "%s: %s", e->checks.name[e->order[r]],
                isnan(mean) ? "no error defined" : "mean ");
        if (!isnan(mean))
            put_mean(w, mean);
        dsc_put_paragraph(&p->script, c, box.left, box.top + (double)r * slot, box.right - box.left,
                          DSC_FONT_SMALL, DSC_INK, 1, dsc_text_end(p));
    }
}

// Draws the zero line and the tolerance in each row, but not through the names.
static void put_zero(dsc_writer *w, const dsc_axis *a, size_t rows, double percent)
{
    for (size_t r = 0; r < rows; r++) {
        double top = (double)r + 0.47, bottom = (double)r + 0.95;
        if (!isnan(percent))
            dsc_put(w,
                    "set object %zu rectangle from first %.12g, first %g to first %.12g, first %g "
                    "behind fs solid 1 noborder fc rgb '#e6e6e6'\n",
                    r + 1, fmax(a->lo, -percent), top, fmin(a->hi, percent), bottom);
        dsc_put(w,
                "set arrow from first 0, first %g to first 0, first %g nohead back lt 1 lw 1.5 dt "
                "(6,4) lc rgb '" DSC_INK_SOFT "'\n",
                top, bottom);
    }
}

static void mark_dots(dsc_plot *plot, const errors *e, size_t q, const dsc_axis *a, dsc_place b)
{
    const dsc_checks *c = &e->checks;
    const dsc_axis rows = {.lo = 0, .hi = (double)e->rows};
    for (size_t i = 0; i < c->all; i++) {
        const dsc_check *k = &c->check[i];
        if (k->quantity == q)
            dsc_mark(plot, dsc_axis_place(a, b.left, b.right, k->error),
                     dsc_axis_place(&rows, b.top, b.bottom, e->height[i]),
                     dsc_check_text(plot, c, k), "%+.3g %%%s", k->error,
                     i < c->checks ? "" : " (pooled)");
    }
}

static void put_panel(dsc_plot *plot, const dsc_canvas *c, const errors *e, size_t q, dsc_place p)
{
    dsc_writer *w = &plot->script;
    bool pooled;
    double percent = dsc_checks_percent(&e->checks, q, &pooled), width = p.right - p.left;
    dsc_axis a = axis_of(&e->checks, q, width > 400 ? 7 : 4);
    dsc_place box = {p.left + 12, p.top, p.right - 14, p.bottom - (2.4 * c->line_height + 6)};
    box.top += dsc_put_paragraph(w, c, p.left, p.top, width, DSC_FONT_BODY, DSC_INK, 1,
                                 e->checks.heading[q]);
    box.top += 6;
    dsc_put_margins(w, c, box.left, box.top, box.right, box.bottom);
    // A name and its dots need 32 pixels.
    dsc_check_room(w, c, box.right - box.left, (box.bottom - box.top) / (double)e->rows * 1.6);
    dsc_put(w,
            "set yrange [%zu:0]\nunset ytics\n"
            "set grid noytics xtics back lt 1 lw 1 lc rgb '" DSC_GRID "'\nset border 1\n",
            e->rows);
    dsc_put_number_axis(w, &a);
    put_zero(w, &a, e->rows, percent);
    put_names(plot, c, e, q, box);
    const char *text = "error (%)";
    if (!isnan(percent))
        text = dsc_text(plot, "error (%%); band: ±%g%s", percent, pooled ? " (pooled)" : "");
    if (pooled && (double)dsc_text_length(text) * c->char_width > width)
        text = dsc_text(plot, "(%%); pooled: ±%g", percent);
    dsc_put_x_label(w, c, box, p.left, width, text);
    mark_dots(plot, e, q, &a, box);
    put_plot(w, c, &e->checks, q);
    dsc_put(w, "unset label\nunset arrow\nunset object\n");
}

// On a terminal of characters, dots would lie on each other: writes a row of numbers per method.
static void put_dumb(dsc_writer *w, const dsc_canvas *c, const errors *e, double top)
{
    const dsc_checks *checks = &e->checks;
    size_t name = 6;
    for (size_t r = 0; r < e->rows; r++)
        name = fmax((double)name, (double)dsc_text_length(checks->name[e->order[r]]));
    name = fmin((double)name, c->width / 3);
    double step = floor((c->width - (double)name - 3) / (double)checks->quantities);
    for (size_t q = 0; q < checks->quantities; q++) {
        double x = (double)name + 3 + step * (double)q;
        char text[100];
        dsc_put_paragraph(w, c, x, top + 1, step, DSC_FONT_BODY, DSC_INK, 1, checks->heading[q]);
        for (size_t r = 0; r < e->rows; r++) {
            double mean = mean_of(checks, e->order[r], q), worst = 0;
            for (const dsc_check *k = NULL; (k = dsc_next_check(checks, q, k));)
                if (k->group == e->order[r] && fabs(k->error) > fabs(worst))
                    worst = k->error;
            snprintf(text, sizeof text, "%+.2g (%+.2g)", mean == 0 ? 0 : mean, worst);
            if (!isnan(mean))
                dsc_put_paragraph(w, c, x, top + 2 + (double)r, step, DSC_FONT_BODY, DSC_INK, 1,
                                  text);
        }
    }
    for (size_t r = 0; r < e->rows; r++)
        dsc_put_paragraph(w, c, 1, top + 2 + (double)r, (double)name, DSC_FONT_BODY, DSC_INK, 1,
                          checks->name[e->order[r]]);
    dsc_put_empty_plot(w);
}

static void put_subtitle(dsc_writer *w, const errors *e, bool dumb)
{
    dsc_put(w, "predicted - measured, in %% of measured; %s",
            dumb ? "mean (largest)" : "each dot is a configuration");
    if (e->checks.unpredicted)
        dsc_put(w, "; %zu measurement%s without a prediction", e->checks.unpredicted,
                e->checks.unpredicted == 1 ? "" : "s");
}

static size_t make_key(const dsc_checks *checks, bool dumb, dsc_key key[4])
{
    size_t keys = 0;
    bool fails = false, pooled = false;
    for (size_t q = 0; q < checks->quantities; q++) {
        fails = fails || any_dot(checks, q, true);
        pooled = pooled || any_pooled(checks, q);
    }
    if (dumb)
        return 0;
    key[keys++] = (dsc_key){fails ? "within tolerance" : "configuration", DOT | DSC_KEY_POINT};
    if (fails)
        key[keys++] = (dsc_key){"outside tolerance", FAIL | DSC_KEY_POINT};
    key[keys++] = (dsc_key){"mean", DSC_KEY_TICK};
    if (pooled)
        key[keys++] = (dsc_key){"pooled", POOLED | DSC_KEY_POINT};
    return keys;
}

static void put_finding(dsc_writer *w, const errors *e)
{
    const dsc_checks *c = &e->checks;
    dsc_put(w, "Dot plot%s: prediction errors in %% of the measured value, by method.",
            c->quantities > 1 ? "s" : "");
    for (size_t q = 0; q < c->quantities; q++) {
        const char *separator = "; mean by method: ";
        dsc_put(w, " %s: ", c->heading[q]);
        dsc_put_check_errors(w, c, q);
        for (size_t r = 0; r < e->rows; r++) {
            double mean = mean_of(c, e->order[r], q);
            if (isnan(mean))
                continue;
            dsc_put(w, "%s%s ", separator, c->name[e->order[r]]);
            put_mean(w, mean);
            separator = ", ";
        }
        dsc_put(w, ".");
    }
}

static void draw(dsc_plot *p)
{
    errors e = {.rows = 0};
    const dsc_checks *checks = &e.checks;
    dsc_checks_of_figure(p, &e.checks, DSC_CHECK_GROUPS);
    sort_groups(p, &e);
    find_heights(p, &e);
    size_t panels = checks->quantities;
    double height = ROW * (double)e.rows + 76;
    height = dsc_is_narrow(p) ? (double)panels * (height + 8) : height;
    dsc_canvas c = dsc_canvas_of(p, fmin(1000, 180 + 360 * (double)panels), fmax(220, 100 + height),
                                 e.rows + 6);
    if (p->rc)
        return;
    dsc_key key[4];
    size_t keys = make_key(checks, c.dumb, key);
    dsc_writer *w = &p->script;
    put_subtitle(dsc_text_begin(p), &e, c.dumb);
    const char *subtitle = dsc_text_end(p);
    dsc_put_terminal(w, &c, "errors");
    put_data(w, &e);
    double top = dsc_put_heading(w, &c, "Prediction errors by method", subtitle, NULL, key, keys);
    if (c.dumb && top + 3 + (double)e.rows > c.height)
        dsc_check_room(w, &c, 0, 0);
    else if (c.dumb)
        put_dumb(w, &c, &e, top);
    else
        dsc_put(w, "set multiplot\n");
    for (size_t q = 0; q < panels && !c.dumb; q++)
        put_panel(p, &c, &e, q, dsc_panel_place(&c, top + 6, panels, c.narrow ? 1 : panels, q));
    dsc_put(w, c.dumb ? "" : "unset multiplot\n");
    put_finding(&p->finding, &e);
    dsc_checks_data(p, checks);
}

const dsc_figure_type dsc_figure_errors = {
    .name = "error-by-method",
    .summary = "prediction errors in percent, one dot per configuration, one row per method",
    .needs = DSC_CHECK_NEEDS,
    .spec = usual,
    .fits = dsc_checks_fit,
    .draw = draw,
};

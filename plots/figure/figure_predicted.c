// SPDX-License-Identifier: Apache-2.0
// Predicted against measured: a point per configuration, the line on which the two are equal, and
// what the tolerances allow: a band around the line where they are percentages, a bar through the
// point where they are standard errors, which must reach the line. Only points that fail are named.
#include "plots/draw/glossary.h"
#include "plots/figure/checks.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <stdlib.h>

enum { NAMED = 6 }; // in a panel; more would cover the points

static const char *const usual[] = {"block_efficiency", "speedup", NULL};

// The axis of both directions.
static dsc_axis axis_of(const dsc_checks *c, size_t quantity, int tics)
{
    double lo = INFINITY, hi = -INFINITY;
    for (size_t i = 0; i < c->checks; i++)
        if (c->check[i].quantity == quantity) {
            lo = fmin(lo, fmin(c->check[i].predicted, c->check[i].measured));
            hi = fmax(hi, fmax(c->check[i].predicted, c->check[i].measured));
        }
    return dsc_axis_fit(lo, hi, tics);
}

// The limit of |z| that bars show, NaN: no bars.
static double bar_limit(const dsc_checks *c, size_t quantity)
{
    for (size_t i = 0; i < c->checks; i++)
        if (c->check[i].quantity == quantity && c->check[i].z_limit * c->check[i].se > 0)
            return c->check[i].z_limit;
    return NAN;
}

// --- data --------------------------------------------------------------------------------------

static double within(const dsc_axis *a, double v)
{
    return fmax(a->lo, fmin(a->hi, v));
}

// Where measured = predicted / (1 +- limit), cut at the box, corners included; behind the names, as
// a curve would not be.
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

// $pointsQ: predicted, measured, group, low end and length of the bar; $bandQ: predicted, low,
// high.
static void put_data(dsc_writer *w, const dsc_checks *c)
{
    for (size_t q = 0; q < c->quantities; q++) {
        dsc_axis a = axis_of(c, q, 5);
        dsc_put(w, "$points%zu << EOD\n", q + 1);
        for (size_t i = 0; i < c->checks; i++) {
            const dsc_check *k = &c->check[i];
            if (k->quantity != q)
                continue;
            double reach = k->z_limit * k->se;
            reach = reach > 0 ? reach : 0;
            double low = within(&a, k->measured - reach), high = within(&a, k->measured + reach);
            dsc_put(w, "%.12g %.12g %zu %.12g %.12g\n", k->predicted, k->measured, k->group, low,
                    high - low);
        }
        dsc_put(w, "EOD\n");
    }
}

// --- names of points that fail -------------------------------------------------------------------

static int worse_first(const void *pa, const void *pb)
{
    const dsc_check *a = *(const dsc_check *const *)pa, *b = *(const dsc_check *const *)pb;
    double x = isnan(a->error) ? INFINITY : fabs(a->error);
    double y = isnan(b->error) ? INFINITY : fabs(b->error);
    return x != y ? (x < y) - (x > y) : (a->row > b->row) - (a->row < b->row);
}

// Where names may stand in a panel.
typedef struct crowd {
    const dsc_checks *checks;
    size_t quantity;
    dsc_axis axis;
    dsc_place box;
    dsc_place name[NAMED]; // that stand there already
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
    for (size_t i = 0; i < in->checks->checks; i++) {
        double x, y;
        if (in->checks->check[i].quantity != in->quantity)
            continue;
        locate(in, &in->checks->check[i], &x, &y);
        if (x > p.left - POINT && x < p.right + POINT && y > p.top - POINT && y < p.bottom + POINT)
            return false;
    }
    return true;
}

// Beside the point; further off it might be taken for another's. Nothing where that is taken.
static void put_name(dsc_writer *w, const dsc_canvas *c, crowd *in, const dsc_check *k)
{
    const dsc_table *t = in->checks->selection.table;
    const dsc_cell *cell = dsc_table_at(t, k->row, (size_t)dsc_table_find(t, "parameters"));
    const char *name =
        cell->type == DSC_CELL_TEXT && *cell->text ? cell->text : in->checks->name[k->group];
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
    if (w->rc || (w->rc = dsc_alloc(&fail, checks->checks, sizeof *fail, w->err)))
        return;
    for (size_t i = 0; i < checks->checks; i++)
        if (checks->check[i].quantity == in->quantity && checks->check[i].fails)
            fail[n++] = &checks->check[i];
    qsort(fail, n, sizeof *fail, worse_first);
    for (size_t i = 0; i < n && i < NAMED; i++)
        put_name(w, c, in, fail[i]);
    free(fail);
}

// --- panels ------------------------------------------------------------------------------------

static double put_panel_title(dsc_writer *w, const dsc_canvas *c, const dsc_checks *checks,
                              size_t q, dsc_place p)
{
    bool dumb = c->terminal == DSC_TERM_DUMB, pooled;
    char heading[100], text[160];
    double percent = dsc_checks_percent(checks, q, &pooled), width = p.right - p.left;
    double z = bar_limit(checks, q);
    int n = snprintf(text, sizeof text, "measured");
    if (!isnan(percent) && !dumb)
        n += snprintf(text + n, sizeof text - (size_t)n, "; band: ±%g %%%s", percent,
                      pooled ? " (of the sum)" : "");
    if (!isnan(z) && !dumb)
        snprintf(text + n, sizeof text - (size_t)n, "; bars: ±%g standard errors", z);
    dsc_term_heading(checks->quantity[q], heading, sizeof heading);
    double used = dsc_put_paragraph(w, c, p.left, p.top, width, DSC_FONT_BODY, DSC_INK, 1, heading);
    used +=
        dsc_put_paragraph(w, c, p.left, p.top + used, width, DSC_FONT_SMALL, DSC_INK_SOFT, 2, text);
    return used + (dumb ? 0 : 8);
}

static void put_plot(dsc_writer *w, const dsc_canvas *c, const dsc_checks *checks, size_t q,
                     const dsc_axis *a)
{
    bool dumb = c->terminal == DSC_TERM_DUMB;
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
    for (size_t g = 0; g < checks->groups; g++) {
        bool any = false;
        for (size_t i = 0; i < checks->checks; i++)
            any = any || (checks->check[i].quantity == q && checks->check[i].group == g);
        if (!any)
            continue;
        dsc_put(w, ", \\\n     $points%zu using ($3 == %zu ? $1 : NaN):2 with points ", q + 1, g);
        dsc_put_line_style(w, c, (int)g, 1);
        dsc_put(w, " notitle");
    }
    dsc_put(w, "\n");
}

static void put_panel(dsc_writer *w, const dsc_canvas *c, const dsc_checks *checks, size_t q,
                      dsc_place p)
{
    static const char across[] = "predicted";
    bool dumb = c->terminal == DSC_TERM_DUMB;
    dsc_axis a = axis_of(checks, q, 5);
    dsc_place box = p;
    box.left += dsc_axis_label_width(c, &a) + (dumb ? 2 : 12);
    box.top += put_panel_title(w, c, checks, q, p);
    box.right -= dumb ? 1 : 12; // half of the last label across
    box.bottom -= dumb ? 3 : 2.2 * c->line_height + 6;
    dsc_put_margins(w, c, box.left, box.top, box.right, box.bottom);
    dsc_check_room(w, c, box.right - box.left, box.bottom - box.top);
    dsc_put_y_axis(w, &a);
    dsc_put(w, "set xrange [%.12g:%.12g]\nset xtics %.12g,%.12g\n", a.lo, a.hi, a.lo, a.step);
    dsc_put(w,
            fmax(fabs(a.lo), fabs(a.hi)) < 1e7 ? "set format x '%%.%df'\n" : "set format x '%%g'\n",
            a.decimals);
    dsc_put_paragraph(w, c, (box.left + box.right - sizeof across * c->char_width) / 2,
                      box.bottom + (dumb ? 2 : 1.2 * c->line_height + 4), p.right, DSC_FONT_BODY,
                      DSC_INK, 1, across);
    double percent = dsc_checks_percent(checks, q, NULL);
    if (!dumb && !isnan(percent))
        put_band(w, &a, percent / 100);
    crowd in = {.checks = checks, .quantity = q, .axis = a, .box = box};
    if (!dumb)
        put_names(w, c, &in);
    put_plot(w, c, checks, q, &a);
    dsc_put(w, "unset label\nunset object\n"); // they belong to this plot, not to the next
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
        dsc_put(w, "%zu predictions, none of them judged", c->checks);
    if (c->unpredicted)
        dsc_put(w, "; %zu measured but not predicted", c->unpredicted);
}

static int compose(const dsc_checks *checks, const dsc_figure_options *o, const char *terminal,
                   dsc_drawing *out, dsc_error *err)
{
    dsc_canvas c;
    dsc_key key[DSC_STYLES + 1];
    dsc_buffer subtitle = {0};
    dsc_writer sub = {.to = &subtitle, .err = err};
    bool narrow = o->width > 0 && o->width < 520;
    double panels = (double)checks->quantities;
    int rc = dsc_canvas_init(&c, terminal, o, 480 * fmin(panels, 2) + 40,
                             narrow ? 150 + 340 * panels : 560, err);
    if (rc)
        return rc;
    for (size_t g = 0; g < checks->groups; g++)
        key[g] = (dsc_key){checks->name[g], (int)g | DSC_KEY_POINT};
    key[checks->groups] = (dsc_key){"predicted = measured", DSC_KEY_REFERENCE};
    put_subtitle(&sub, checks);
    dsc_writer w = {.to = &out->script, .err = err, .rc = sub.rc};
    if (!w.rc) {
        dsc_put_terminal(&w, &c, "predicted");
        put_data(&w, checks);
        dsc_put(&w, "set multiplot\n");
        double top = dsc_put_heading(&w, &c, o->title ? o->title : "Predicted against measured",
                                     subtitle.data, NULL, key, checks->groups + 1);
        for (size_t q = 0; q < checks->quantities; q++)
            put_panel(&w, &c, checks, q,
                      dsc_panel_place(&c, top + (c.terminal == DSC_TERM_DUMB ? 0 : 6),
                                      checks->quantities, q));
        dsc_put(&w, "unset multiplot\n");
    }
    dsc_buffer_fini(&subtitle);
    return w.rc;
}

// --- words -------------------------------------------------------------------------------------

static int put_finding(const dsc_checks *c, dsc_buffer *to, dsc_error *err)
{
    enum { TOLD = 8 };
    dsc_writer w = {.to = to, .err = err};
    dsc_put(&w, "Scatter plot%s, measured against predicted: ", c->quantities > 1 ? "s" : "");
    put_subtitle(&w, c);
    for (size_t q = 0; q < c->quantities; q++) {
        char heading[100];
        dsc_term_heading(c->quantity[q], heading, sizeof heading);
        dsc_put(&w, ". %s: ", heading);
        dsc_put_check_errors(&w, c, q);
    }
    size_t told = 0, fail = 0;
    for (size_t i = 0; i < c->checks; i++) {
        const dsc_check *k = &c->check[i];
        fail += k->fails;
        if (!k->fails || told == TOLD)
            continue;
        dsc_put(&w, "%s%s of ", told++ ? "; " : ". Outside: ", c->quantity[k->quantity]);
        dsc_put_check(&w, c, k);
        dsc_put(&w, ", %.4g predicted and %.4g measured", k->predicted, k->measured);
    }
    dsc_put(&w, fail > told ? "; and %zu more." : ".", fail - told);
    return w.rc;
}

static int script(const dsc_table *t, const dsc_figure_options *o, const char *terminal,
                  dsc_drawing *out, dsc_error *err)
{
    const char *const own[] = {o->column, NULL};
    dsc_checks c;
    int rc = dsc_checks_init(&c, t, dsc_figure_predicted.name, o, o->column ? own : usual,
                             DSC_STYLES, err);
    if (!rc)
        rc = compose(&c, o, terminal, out, err);
    if (!rc)
        rc = put_finding(&c, &out->finding, err);
    if (!rc)
        rc = dsc_checks_data(&c, &out->data, err);
    dsc_checks_fini(&c);
    return rc;
}

static bool fits(const dsc_table *t)
{
    return dsc_checks_fit(t, usual);
}

const dsc_figure_type dsc_figure_predicted = {
    .name = "predicted-vs-measured",
    .summary = "measured against predicted, a point per configuration, the line where they agree",
    .needs = DSC_CHECK_NEEDS,
    .fits = fits,
    .script = script,
};

// SPDX-License-Identifier: Apache-2.0
// Lays out line charts side by side or stacked, and writes their data, axes, marks, bands and
// lines.
#include "plots/draw/panel.h"

#include <math.h>

#define BARS 0.84 // the width of the bars at one x

static size_t best_panel(const dsc_panels *p)
{
    return p->best / (p->lines * p->nx);
}

static const double *line_of(const dsc_panels *p, size_t panel, size_t line)
{
    return p->panel[panel].y + line * p->nx;
}

static size_t count_finite(const double *v, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += isfinite(v[i]) != 0;
    return count;
}

static bool any_finite(const double *v, size_t n)
{
    return count_finite(v, n) > 0;
}

// The index at which a line begins in low, high and predicted.
static size_t band_of(const dsc_panels *p, size_t panel, size_t line)
{
    return (panel * p->lines + line) * p->nx;
}

static bool has_band(const dsc_panels *p, size_t panel, size_t line)
{
    return p->low && any_finite(p->low + band_of(p, panel, line), p->nx);
}

static double reference_of(const dsc_panels *p)
{
    return p->reference != 0 ? p->reference : 1;
}

// The shared axis of a quantity. It includes the reference line. Nothing that is drawn lies on the
// frame, but for bars.
static dsc_axis axis_of(const dsc_panels *p, int quantity, int tics)
{
    const double reference = reference_of(p);
    double lo = p->reference_label ? reference : INFINITY;
    double hi = p->reference_label ? reference : -INFINITY;
    if (p->bars || p->from_zero)
        lo = hi = 0;
    for (size_t i = 0; i < p->panels; i++)
        for (size_t j = 0; p->panel[i].quantity == quantity && j < p->lines * p->nx; j++) {
            size_t at = band_of(p, i, 0) + j;
            const double y[] = {p->panel[i].y[j], p->low ? p->low[at] : NAN,
                                p->high ? p->high[at] : NAN, p->predicted ? p->predicted[at] : NAN};
            for (size_t n = 0; n < sizeof y / sizeof *y; n++)
                if (isfinite(y[n]) && (y[n] > 0 || !p->log_y)) {
                    lo = fmin(lo, y[n]);
                    hi = fmax(hi, y[n]);
                }
        }
    for (size_t i = 0; i < p->points; i++) {
        const dsc_panel_point *at = &p->point[i];
        if (p->panel[at->panel].quantity == quantity && (at->y > 0 || !p->log_y)) {
            lo = fmin(lo, at->y);
            hi = fmax(hi, at->y);
        }
    }
    if (p->log_y)
        return lo > hi ? dsc_axis_decades(0.1, 1) : dsc_axis_decades(lo, hi);
    dsc_axis a = lo > hi ? dsc_axis_fit(0, 1, tics) : dsc_axis_fit(lo, hi, tics);
    if (p->reference_label && a.lo == reference)
        a.pad = a.step / 3;
    else if (!p->bars && lo - a.lo < a.step / 10)
        a.pad = a.step / 6;
    if (a.hi - hi < a.step / 10)
        a.head = a.step / 6;
    return a;
}

static void put_value(dsc_writer *w, const dsc_panels *p, double y)
{
    if (p->log_y && y <= 0)
        dsc_put(w, " NaN"); // unlike a missing value, a gap in the line
    else if (isfinite(y))
        dsc_put(w, " %.12g", y);
    else
        dsc_put(w, " ?");
}

// --- points without a line -----------------------------------------------------------------------

// Writes the points of a panel, line and glyph that can be drawn (w NULL: nothing); returns their
// number.
static size_t put_points(dsc_writer *w, const dsc_panels *p, size_t panel, size_t line,
                         dsc_glyph glyph)
{
    size_t count = 0;
    for (size_t i = 0; i < p->points; i++) {
        const dsc_panel_point *at = &p->point[i];
        if (at->panel != panel || at->line != line || at->glyph != glyph ||
            (p->log_y && at->y <= 0))
            continue;
        if (w)
            dsc_put(w, "%.12g %.12g\n", at->x, at->y);
        count++;
    }
    return count;
}

// The blocks of data of a panel's points, $points1_2_0 for the first glyph of the second line.
static void put_point_data(dsc_writer *w, const dsc_panels *p)
{
    for (size_t i = 0; i < p->panels; i++)
        for (size_t j = 0; j < p->lines; j++)
            for (int glyph = 0; glyph <= DSC_GLYPH_RING; glyph++) {
                if (!put_points(NULL, p, i, j, (dsc_glyph)glyph))
                    continue;
                dsc_put(w, "$points%zu_%zu_%d << EOD\n", i + 1, j + 1, glyph);
                put_points(w, p, i, j, (dsc_glyph)glyph);
                dsc_put(w, "EOD\n");
            }
}

// The columns are x, the lines, low and high of each line if there are ranges, and predictions.
static void put_data(dsc_writer *w, const dsc_panels *p)
{
    for (size_t i = 0; i < p->panels; i++) {
        dsc_put(w, "$panel%zu << EOD\n", i + 1);
        for (size_t x = 0; x < p->nx; x++) {
            dsc_put(w, "%.12g", p->x[x]);
            for (size_t j = 0; j < p->lines; j++)
                put_value(w, p, line_of(p, i, j)[x]);
            for (size_t j = 0; p->low && j < p->lines; j++) {
                put_value(w, p, p->low[band_of(p, i, j) + x]);
                put_value(w, p, p->high[band_of(p, i, j) + x]);
            }
            for (size_t j = 0; p->predicted && j < p->lines; j++)
                put_value(w, p, p->predicted[band_of(p, i, j) + x]);
            dsc_put(w, "\n");
        }
        dsc_put(w, "EOD\n");
    }
    put_point_data(w, p);
    if (p->ring)
        dsc_put(w, "$best << EOD\n%.12g %.12g\nEOD\n", p->x[p->best % p->nx],
                p->panel[best_panel(p)].y[p->best % (p->lines * p->nx)]);
    dsc_put(w, "set datafile missing '?'\n");
}

// Writes the text above the axes of a panel; returns its height.
static double put_panel_title(dsc_writer *w, const dsc_canvas *c, const dsc_panel *panel,
                              bool any_group, double x, double y, double width)
{
    double used = 0;
    if (any_group) {
        double h = dsc_put_paragraph(w, c, x, y, width, DSC_FONT_BODY, DSC_INK, c->dumb ? 1 : 2,
                                     panel->group);
        used += h > 0 ? h : c->line_height;
    }
    used += dsc_put_paragraph(w, c, x, y + used, width, DSC_FONT_SMALL, DSC_INK_SOFT,
                              c->dumb ? 1 : 2, panel->y_label);
    return used + (c->dumb ? 0 : 8);
}

// --- labels at the right ends of lines -----------------------------------------------------------

static bool has_end_labels(const dsc_canvas *c, const dsc_panels *p)
{
    return p->end_title && !c->dumb && p->lines > 1;
}

static double ends_width(const dsc_canvas *c, const dsc_panels *p)
{
    size_t longest = dsc_text_length(p->end_title);
    for (size_t j = 0; j < p->lines; j++) {
        size_t n = dsc_text_length(p->key[j].label);
        longest = n > longest ? n : longest;
    }
    return ((double)longest + 1) * c->char_width;
}

// Sorts the lines of panel i from the top by their last points; returns their number.
static size_t sort_ends(const dsc_panels *p, size_t i, const dsc_axis *a, dsc_place b,
                        size_t order[DSC_STYLES], double at[DSC_STYLES])
{
    size_t n = 0;
    for (size_t j = 0; j < p->lines && n < DSC_STYLES; j++) {
        const double *v = line_of(p, i, j);
        size_t last = p->nx, k = n;
        while (last && !isfinite(v[last - 1]))
            last--;
        if (!last)
            continue;
        double y = dsc_axis_place(a, b.bottom, b.top, v[last - 1]);
        for (; k && at[k - 1] > y; k--) {
            at[k] = at[k - 1];
            order[k] = order[k - 1];
        }
        at[k] = y;
        order[k] = j;
        n++;
    }
    return n;
}

// Writes the label of each line next to its last point, moved apart where they would touch.
static void put_ends(dsc_writer *w, const dsc_canvas *c, const dsc_panels *p, size_t i,
                     const dsc_axis *a, dsc_place b)
{
    enum { ROUNDS = 50 };
    size_t order[DSC_STYLES];
    double at[DSC_STYLES], line = c->line_height * 0.72;
    size_t n = sort_ends(p, i, a, b, order, at);
    for (int round = 0; round < ROUNDS; round++)
        for (size_t k = 1; k < n; k++) {
            double missing = fmax(0, line - (at[k] - at[k - 1]));
            at[k] += missing / 2;
            at[k - 1] -= missing / 2;
        }
    double x = b.right + c->char_width / 2, width = ends_width(c, p);
    for (size_t k = 0; k < n; k++)
        dsc_put_paragraph(w, c, x, at[k] - 8, width, DSC_FONT_SMALL, DSC_INK, 1,
                          p->key[order[k]].label);
    if (n)
        dsc_put_paragraph(w, c, x, fmin(at[0] - 8, b.top) - 1.1 * c->line_height, width,
                          DSC_FONT_SMALL, DSC_INK_SOFT, 1, p->end_title);
}

// --- lines -----------------------------------------------------------------------------------

static void put_marks(dsc_writer *w, const dsc_canvas *c, const dsc_panels *p)
{
    for (size_t j = 0; p->mark && j < p->lines; j++) {
        if (!isfinite(p->mark[j]))
            continue;
        dsc_put(w, "set arrow from first %.12g, graph 1 to first %.12g, graph 0.93 nohead ",
                p->mark[j], p->mark[j]);
        if (c->dumb)
            dsc_put(w, "\n");
        else
            dsc_put(w, "lt 1 lw 3 lc rgb '%s'\n",
                    p->common_marks ? DSC_INK : dsc_style_color(p->key[j].style));
    }
}

// Draws the range of line j as a band between its two ends. Unless it is an interval, each end is
// also a line with small points.
static void put_band(dsc_writer *w, const dsc_canvas *c, const dsc_panels *p, size_t panel,
                     size_t j, bool any)
{
    size_t low = 2 + p->lines + 2 * j;
    if (!c->dumb)
        dsc_put(w,
                "%s$panel%zu using 1:%zu:%zu with filledcurves fs transparent solid 0.18 noborder "
                "lc rgb '%s' notitle, \\\n     ",
                any ? ", \\\n     " : "", panel + 1, low, low + 1,
                dsc_style_color(p->key[j].style));
    else if (any)
        dsc_put(w, ", \\\n     ");
    if (p->interval)
        dsc_put(w, "NaN notitle");
    for (size_t end = 0; end < 2 && !p->interval; end++) {
        dsc_put(w, "%s$panel%zu using 1:%zu with linespoints ", end ? ", \\\n     " : "", panel + 1,
                low + end);
        dsc_put_line_style(w, c, p->key[j].style, 0.6);
        dsc_put(w, " notitle");
    }
}

static bool has_prediction(const dsc_canvas *c, const dsc_panels *p, size_t panel, size_t line)
{
    return p->predicted && !c->dumb && any_finite(p->predicted + band_of(p, panel, line), p->nx);
}

// The middle of bar j relative to its x.
static double bar_at(const dsc_panels *p, size_t j)
{
    return ((double)j + 0.5) * BARS / (double)p->lines - BARS / 2;
}

// Draws line j with its points, which are `spacing` pixels apart, or as bars.
static void put_line(dsc_writer *w, const dsc_canvas *c, const dsc_panels *p, size_t panel,
                     size_t j, double spacing)
{
    const int style = p->key[j].style;
    if (p->bars && !c->dumb) {
        dsc_put(w,
                "$panel%zu using ($1+%.6g):%zu:(%.6g) with boxes fs solid 1 noborder lc rgb "
                "'%s' notitle",
                panel + 1, bar_at(p, j), j + 2, 0.92 * BARS / (double)p->lines,
                dsc_style_color(style));
        return;
    }
    // Points would hide a line if there were many; labels at its end tell it apart.
    int every = spacing < 9 ? (int)ceil(18 / fmax(spacing, 1)) : 1;
    bool bare = (p->bare && count_finite(line_of(p, panel, j), p->nx) > 1) ||
                (has_end_labels(c, p) && p->nx > 12);
    dsc_put(w, "$panel%zu using 1:%zu with %s ", panel + 1, j + 2, bare ? "lines" : "linespoints");
    dsc_put_line_style(w, c, style, spacing < 12 ? 0.8 : 1);
    if (every > 1 && !bare && !c->dumb)
        dsc_put(w, " pi %d", every);
    if (!c->dumb)
        dsc_put_dash(w, style);
    dsc_put(w, " notitle");
}

static void put_glyphs(dsc_writer *w, const dsc_canvas *c, const dsc_panels *p, size_t panel,
                       bool *any)
{
    for (size_t j = 0; j < p->lines; j++)
        for (int glyph = 0; glyph <= DSC_GLYPH_RING; glyph++) {
            if (!put_points(NULL, p, panel, j, (dsc_glyph)glyph) ||
                (c->dumb && glyph == DSC_GLYPH_RING))
                continue;
            dsc_put(w, "%s$points%zu_%zu_%d using 1:2 with points ", *any ? ", \\\n     " : "",
                    panel + 1, j + 1, glyph);
            if (glyph == DSC_GLYPH_RING)
                dsc_put(w, "pt 6 ps 1.8 lw 1.5 lc rgb '%s'", dsc_style_color(p->key[j].style));
            else
                dsc_put_point_style(w, c, p->key[j].style, glyph == DSC_GLYPH_HOLLOW);
            dsc_put(w, " notitle");
            *any = true;
        }
}

static void put_plot(dsc_writer *w, const dsc_canvas *c, const dsc_panels *p, size_t panel,
                     double width)
{
    bool any = false;
    dsc_put(w, "plot ");
    if (p->reference_label) {
        dsc_put(w, "%.12g with lines lt %s notitle", reference_of(p),
                c->dumb ? "0" : "1 lw 1.5 dt (6,4) lc rgb '" DSC_INK_SOFT "'");
        any = true;
    }
    for (size_t j = 0; j < p->lines; j++) {
        if (has_band(p, panel, j)) {
            put_band(w, c, p, panel, j, any);
            any = true;
        }
        if (has_prediction(c, p, panel, j)) {
            dsc_put(w,
                    "%s$panel%zu using 1:%zu with lines lt 1 lw 1.5 dt (2,3) lc rgb '%s' notitle",
                    any ? ", \\\n     " : "", panel + 1, 2 + p->lines * (p->low ? 3 : 1) + j,
                    dsc_style_color(p->key[j].style));
            any = true;
        }
        if (!any_finite(line_of(p, panel, j), p->nx))
            continue;
        dsc_put(w, "%s", any ? ", \\\n     " : "");
        put_line(w, c, p, panel, j, width / (double)p->nx);
        any = true;
    }
    put_glyphs(w, c, p, panel, &any);
    if (p->ring && panel == best_panel(p) && !c->dumb) {
        dsc_put(w, "%s$best using 1:2 with points pt 6 ps 1.8 lw 1.5 lc rgb '" DSC_INK "' notitle",
                any ? ", \\\n     " : "");
        any = true;
    }
    if (!any)
        dsc_put(w, "NaN notitle");
    dsc_put(w, "\n");
}

// The range of the x axis of bars.
static dsc_axis bars_axis(const dsc_panels *p)
{
    return (dsc_axis){.lo = p->x[0] - 0.6, .hi = p->x[p->nx - 1] + 0.6};
}

static double place_x(const dsc_panels *p, dsc_place b, size_t j, double x)
{
    dsc_axis a = bars_axis(p);
    return p->bars ? dsc_axis_place(&a, b.left, b.right, x + bar_at(p, j))
                   : dsc_x_axis_place(p->x, p->nx, p->log_x, b.left, b.right, x);
}

// Names below the bars, as many as have room.
static void put_names(dsc_writer *w, const dsc_canvas *c, const dsc_panels *p, double width)
{
    size_t longest = 1;
    for (size_t i = 0; i < p->nx; i++)
        longest = dsc_text_length(p->x_name[i]) > longest ? dsc_text_length(p->x_name[i]) : longest;
    const double room = width / (double)p->nx, name = ((double)longest + 1) * c->char_width;
    const size_t every = (size_t)ceil(fmax(name / room, 1));
    dsc_put(w, "set xtics (");
    for (size_t i = 0; i < p->nx; i += every) {
        dsc_put(w, "%s", i ? ", " : "");
        dsc_put_quoted(w, p->x_name[i]);
        dsc_put(w, " %.12g", p->x[i]);
    }
    dsc_put(w, ")\n");
}

// Makes the points of a panel with the axes in box b answer the pointer.
static void mark_points(dsc_plot *plot, const dsc_panels *p, size_t i, const dsc_axis *y,
                        dsc_place b)
{
    const char *what = p->panel[i].group;
    for (size_t j = 0; j < p->lines; j++)
        for (size_t k = 0; k < p->nx; k++) {
            double v = line_of(p, i, j)[k];
            if (!isfinite(v) || (y->log && v <= 0))
                continue;
            const char *more = p->detail ? p->detail[band_of(p, i, j) + k] : NULL;
            const char *at = p->x_name ? p->x_name[k] : dsc_text(plot, "%g", p->x[k]);
            dsc_mark(plot, place_x(p, b, j, p->x[k]), dsc_axis_place(y, b.bottom, b.top, v),
                     p->hover ? p->hover[j] : p->key[j].label, "%s%s%s: %.4g%s%s", what,
                     *what ? ", " : "", at, v, more ? ", " : "", more ? more : "");
        }
}

// The same for its points without a line.
static void mark_loose_points(dsc_plot *plot, const dsc_panels *p, size_t i, const dsc_axis *y,
                              dsc_place b)
{
    for (size_t k = 0; k < p->points; k++) {
        const dsc_panel_point *at = &p->point[k];
        if (at->panel == i && at->glyph != DSC_GLYPH_RING && !(y->log && at->y <= 0))
            dsc_mark(plot, place_x(p, b, at->line, at->x),
                     dsc_axis_place(y, b.bottom, b.top, at->y), p->key[at->line].label,
                     "%g: %.4g, %s", at->x, at->y, at->note);
    }
}

// Draws one panel inside `cell`: title, axes, and the x label if it is the lowest of its column.
// `room`: some panel of its row has an x label.
static void put_panel(dsc_plot *plot, const dsc_canvas *c, const dsc_panels *p, size_t i,
                      dsc_place cell, bool any_group, bool room, bool lowest)
{
    dsc_writer *w = &plot->script;
    const dsc_panel *panel = &p->panel[i];
    double below = c->dumb ? 2 + room : (room ? 2.2 : 1.2) * c->line_height + 6;
    double height = cell.bottom - cell.top - below;
    dsc_axis y = axis_of(p, panel->quantity, c->dumb ? 5 : height > 250 ? 7 : 5);
    dsc_place b = cell;
    b.left += dsc_axis_label_width(c, &y) + (c->dumb ? 2 : 12);
    b.top += put_panel_title(w, c, panel, any_group, cell.left, cell.top, cell.right - cell.left);
    b.bottom -= below;
    if (has_end_labels(c, p))
        b.right -= ends_width(c, p);
    dsc_put_margins(w, c, b.left, b.top, b.right, b.bottom);
    dsc_check_room(w, c, b.right - b.left, b.bottom - b.top);
    dsc_put_y_axis(w, &y);
    dsc_put_x_axis(w, c, p->x, p->nx, p->log_x, b.right - b.left);
    if (p->x_name)
        put_names(w, c, p, b.right - b.left);
    if (p->bars && !c->dumb)
        dsc_put(w, "set xrange [%.12g:%.12g]\n", bars_axis(p).lo, bars_axis(p).hi);
    if (has_end_labels(c, p))
        put_ends(w, c, p, i, &y, b);
    if (lowest)
        dsc_put_x_label(w, c, b, cell.left, cell.right - cell.left, p->x_label);
    put_marks(w, c, p);
    put_plot(w, c, p, i, b.right - b.left);
    mark_points(plot, p, i, &y, b);
    mark_loose_points(plot, p, i, &y, b);
    dsc_put(w, "unset label\nunset arrow\n"); // the next plot has its own
}

static double put_panels_heading(dsc_writer *w, const dsc_canvas *c, const dsc_panels *p)
{
    enum { MOST = 2 * DSC_STYLES };
    dsc_key key[MOST + 3];
    bool legend = p->legend && !c->dumb, ends = has_end_labels(c, p);
    const dsc_key *of = legend ? p->legend : p->key;
    size_t keys = 0, all = legend ? p->legends : p->lines;
    for (size_t i = 0; i < all && i < MOST && !ends; i++)
        key[keys++] = of[i];
    if (p->reference_label)
        key[keys++] = (dsc_key){p->reference_label, DSC_KEY_REFERENCE};
    if (p->predicted && p->predicted_label && !c->dumb)
        key[keys++] = (dsc_key){p->predicted_label, DSC_KEY_PREDICTED};
    return dsc_put_heading(w, c, p->title, p->subtitle, ends ? NULL : p->key_title, key, keys);
}

// Whether a panel of the row that begins with panel `first` has a title.
static bool any_group(const dsc_panels *p, size_t first, size_t columns)
{
    bool any = false;
    for (size_t i = first; i < first + columns && i < p->panels; i++)
        any = any || p->panel[i].group[0];
    return any;
}

static void put_panels(dsc_plot *plot, const dsc_canvas *c, const char *name, const dsc_panels *p)
{
    dsc_writer *w = &plot->script;
    dsc_put_terminal(w, c, name);
    put_data(w, p);
    dsc_put(w, "set multiplot\n");
    double top = put_panels_heading(w, c, p) + (c->dumb ? 0 : 6);
    size_t columns = c->narrow ? 1 : p->columns ? p->columns : p->panels;
    for (size_t i = 0; i < p->panels; i++)
        put_panel(plot, c, p, i, dsc_panel_place(c, top, p->panels, columns, i),
                  any_group(p, i / columns * columns, columns),
                  (i / columns + 2) * columns > p->panels, i + columns >= p->panels);
    dsc_put(w, "unset multiplot\n");
}

void dsc_draw_panels(dsc_plot *plot, const dsc_panels *p, const char *word, double width,
                     double height)
{
    dsc_canvas canvas = dsc_canvas_of(plot, width, height, 0);
    if (!plot->rc)
        put_panels(plot, &canvas, word, p);
}

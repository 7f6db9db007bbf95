// SPDX-License-Identifier: Apache-2.0
// Writes the parts of a gnuplot script that all figures share: terminal, heading, key, text and
// axes.
#include "plots/draw/style.h"

#include <math.h>
#include <string.h>

// The colors of Okabe and Ito (jfly.uni-koeln.de/color) without yellow, which is too light on
// white, and with a wine red; ordered so that neighbors differ in lightness as well as in hue.
// Point types differ too: filled circle, square, up triangle, diamond, down triangle, then hollow.
static const struct {
    const char *color;
    int point;
    double size, width;
} style[DSC_STYLES + 1] = {
    {"#0072B2", 7, 0.75, 2},  {"#E69F00", 5, 0.7, 2},  {"#009E73", 9, 0.9, 2},
    {"#000000", 13, 0.75, 2}, {"#D55E00", 11, 0.9, 2}, {"#56B4E9", 6, 0.75, 2},
    {"#882255", 4, 0.7, 2},   {"#CC79A7", 8, 0.9, 2},  [DSC_STYLE_BOUND] = {"#b4b4b4", 0, 0, 6},
};

static const char *const terminal_name[] = {"svg", "pdf", "png", "dumb"};

enum { NARROW = 520 }; // pixels below which panels are stacked

bool dsc_is_narrow(const dsc_plot *p)
{
    return p->options->width > 0 && p->options->width < NARROW && strcmp(p->terminal, "dumb");
}

dsc_canvas dsc_canvas_of(dsc_plot *p, double width, double height, size_t rows)
{
    int t = 0;
    while (t < 4 && strcmp(p->terminal, terminal_name[t]))
        t++;
    if (t == 4)
        dsc_refuse(p, "unknown terminal '%s': use svg, pdf, png or dumb", p->terminal);
    const dsc_figure_options *o = p->options;
    bool dumb = t == DSC_TERM_DUMB;
    double w = o->width > 0 ? o->width : dumb ? 79 : width;
    double h = o->height > 0 ? o->height : dumb ? fmax(24, (double)rows) : height;
    double least_w = dumb ? 40 : 200, least_h = dumb ? 12 : 200, most_w = dumb ? 400 : 4000;
    double most_h = dumb ? 200 : 4000;
    if (!(w >= least_w && w <= most_w && h >= least_h && h <= most_h))
        dsc_refuse(p, "a %s figure of %g x %g: width must be in [%g, %g], height in [%g, %g]",
                   p->terminal, w, h, least_w, most_w, least_h, most_h);
    return (dsc_canvas){
        .terminal = (dsc_terminal)t,
        .dumb = dumb,
        .title = o->title,
        .width = floor(w),
        .height = floor(h),
        .margin = dumb ? 1 : 12,
        // DejaVu Sans, the widest likely substitute font, averages 0.53 em over text.
        .char_width = dumb ? 1 : 0.56 * DSC_FONT_BODY,
        .line_height = dumb ? 1 : 18,
        .narrow = !dumb && w < NARROW,
    };
}

void dsc_put_terminal(dsc_writer *w, const dsc_canvas *c, const char *name)
{
    switch (c->terminal) {
    case DSC_TERM_SVG:
        dsc_put(w,
                "set terminal svg size %g,%g fixed noenhanced font 'sans-serif,%d' "
                "name '%s' background '#ffffff' solid\n",
                c->width, c->height, DSC_FONT_BODY, name);
        break;
    case DSC_TERM_PDF: // lengths in inches of 96 pixels; a point of pango is 4/3 of a real one
        dsc_put(w,
                "set terminal pdfcairo size %gin,%gin noenhanced font 'sans-serif,%d' "
                "fontscale 0.5625 linewidth 1 background '#ffffff' solid\n",
                c->width / 96, c->height / 96, DSC_FONT_BODY);
        break;
    case DSC_TERM_PNG: // two device pixels per pixel; the terminal counts type in points
        dsc_put(w,
                "set terminal pngcairo size %g,%g noenhanced font 'sans-serif,%d' "
                "fontscale 1.5 linewidth 2 pointscale 2 background '#ffffff' solid\n",
                2 * c->width, 2 * c->height, DSC_FONT_BODY);
        break;
    case DSC_TERM_DUMB:
        dsc_put(w, "set terminal dumb mono noenhanced size %g,%g\n", c->width, c->height);
        break;
    }
    dsc_put(w, "set encoding utf8\n"
               "unset key\n"
               "set border 3 lw 1 lc rgb '#8a8a8a'\n");
    if (!c->dumb)
        dsc_put(w,
                "set tics nomirror out scale 0.5 font ',%d' textcolor rgb '%s'\n"
                "set grid ytics back lt 1 lw 1 lc rgb '%s'\n",
                DSC_FONT_SMALL, DSC_INK, DSC_GRID);
    else
        dsc_put(w, "set tics nomirror scale 0\n");
    if (c->terminal == DSC_TERM_SVG) // its tic labels lie lower than those of cairo
        dsc_put(w, "set xtics offset 0,0.4\n");
}

// viridis (van der Walt and Smith, CC0) without its light end, which is too light on white.
static const char *const ramp[DSC_STYLES] = {"#450155", "#46317e", "#365b8d", "#277f8e",
                                             "#1ea087", "#49c16d", "#86c83c", "#c2b81a"};

const char *dsc_style_color(int i)
{
    i %= DSC_STYLE_DASH;
    return i >= DSC_STYLE_RAMP ? ramp[i - DSC_STYLE_RAMP] : style[i].color;
}

int dsc_ramp_style(size_t i, size_t n)
{
    return DSC_STYLE_RAMP + (n > 1 ? (int)(i * (DSC_STYLES - 1) / (n - 1)) : 2);
}

void dsc_put_dash(dsc_writer *w, int i)
{
    static const char *const dash[DSC_STYLES] = {NULL,  "10,3",        "5,3",  "10,3,2,3",
                                                 "2,2", "6,2,2,2,2,2", "16,3", "3,5"};
    i = i >= DSC_STYLE_DASH ? i / DSC_STYLE_DASH - 1 : i;
    if (i < DSC_STYLES && dash[i])
        dsc_put(w, " dt (%s)", dash[i]);
}

void dsc_put_line_style(dsc_writer *w, const dsc_canvas *c, int i, double scale)
{
    i %= DSC_STYLE_DASH;
    if (c->dumb)
        dsc_put(w, "lt %d pt %d", i % DSC_STYLE_RAMP + 1, i % DSC_STYLE_RAMP + 1);
    else if (i >= DSC_STYLE_RAMP)
        dsc_put(w, "lt 1 lc rgb '%s' lw 2 pt 7 ps %g", dsc_style_color(i), 0.5 * scale);
    else
        dsc_put(w, "lt 1 lc rgb '%s' lw %g pt %d ps %g", style[i].color, style[i].width,
                style[i].point, style[i].size * scale);
}

void dsc_put_point_style(dsc_writer *w, const dsc_canvas *c, int i, bool hollow)
{
    i %= DSC_STYLE_DASH;
    const int point = i < DSC_STYLES ? style[i].point : 7;
    if (c->dumb || !hollow)
        dsc_put_line_style(w, c, i, 1.2);
    else // an even type of gnuplot is the outline of the odd one after it
        dsc_put(w, "lt 1 lc rgb '%s' lw 1.5 pt %d ps %g", dsc_style_color(i), point & ~1,
                1.2 * (i < DSC_STYLES ? style[i].size : 0.5));
}

void dsc_put_at(dsc_writer *w, const dsc_canvas *c, double x, double y)
{
    // positions are characters, 0 .. width - 1
    dsc_put(w, " screen %.6g, screen %.6g", x / (c->width - c->dumb),
            1 - y / (c->height - c->dumb));
}

void dsc_put_margins(dsc_writer *w, const dsc_canvas *c, double left, double top, double right,
                     double bottom)
{
    // 0.98: gnuplot rounds rows down
    dsc_put(w, "set lmargin at screen %.6g\nset rmargin at screen %.6g\n", left / c->width,
            right / c->width);
    dsc_put(w, "set tmargin at screen %.6g\nset bmargin at screen %.6g\n",
            1 - (top + c->dumb * 0.98) / c->height, 1 - (bottom + c->dumb * 0.98) / c->height);
}

void dsc_check_room(dsc_writer *w, const dsc_canvas *c, double width, double height)
{
    if (!w->rc && (width < (c->dumb ? 10 : 60) || height < (c->dumb ? 4 : 50)))
        w->rc = dsc_fail(w->err, DSC_EUSAGE,
                         "%g x %g is too small for the axes of this figure: increase --width or "
                         "--height",
                         c->width, c->height);
}

dsc_place dsc_panel_place(const dsc_canvas *c, double top, size_t panels, size_t columns, size_t i)
{
    double gap = c->dumb ? 2 : 26;
    size_t rows = (panels + columns - 1) / columns;
    double width = (c->width - 2 * c->margin - gap * ((double)columns - 1)) / (double)columns;
    double height = (c->height - top - (c->dumb ? 0 : c->margin / 2)) / (double)rows;
    if (c->dumb)
        width = floor(width), height = floor(height);
    dsc_place p = {.left = c->margin + (double)(i % columns) * (width + gap),
                   .top = top + (double)(i / columns) * height};
    p.right = p.left + width;
    p.bottom = p.top + height - (c->dumb || i / columns + 1 == rows ? 0 : 8);
    return p;
}

static double font_scale(const dsc_canvas *c, int font)
{
    return c->dumb ? 1 : (double)font / DSC_FONT_BODY;
}

size_t dsc_characters(const dsc_canvas *c, double width, int font)
{
    double n = width / (c->char_width * font_scale(c, font));
    return n < 1 ? 1 : (size_t)n;
}

double dsc_put_paragraph(dsc_writer *w, const dsc_canvas *c, double x, double y, double width,
                         int font, const char *color, int max_lines, const char *text)
{
    char line[600];
    size_t cursor = 0, characters = dsc_characters(c, width, font);
    double height = c->line_height * font_scale(c, font), used = 0;
    for (int i = 0; i < max_lines && dsc_text_wrap(text, &cursor, characters, line, sizeof line);
         i++) {
        bool cut = i + 1 == max_lines && text[cursor + strspn(text + cursor, " ")];
        size_t n = strlen(line);
        if (cut && characters > 1) { // an ellipsis replaces the last character
            if (dsc_text_length(line) == characters)
                while (n > 1 && (line[--n] & 0xc0) == 0x80)
                    ;
            memcpy(line + n, "…", sizeof "…");
        }
        dsc_put(w, "set label ");
        dsc_put_quoted(w, line);
        dsc_put(w, " at");
        // The anchor is the middle of the line of text, or the row on dumb.
        dsc_put_at(w, c, x, y + used + (c->dumb ? 0 : height / 2));
        dsc_put(w, " left noenhanced");
        if (!c->dumb)
            dsc_put(w, " font ',%d' textcolor rgb '%s'", font, color);
        dsc_put(w, "\n");
        used += height;
    }
    return used;
}

// Draws the line of an entry's sample at height `middle`, or a box of height `box` instead.
static void put_key_line(dsc_writer *w, const dsc_canvas *c, const dsc_key *k, int kind, double x,
                         double middle, double sample, double box)
{
    bool tick = kind == DSC_KEY_TICK;
    dsc_put(w, "set arrow from");
    dsc_put_at(w, c, tick ? x + sample / 2 : x, tick ? middle - 7 : middle);
    dsc_put(w, " to");
    dsc_put_at(w, c, tick ? x + sample / 2 : x + sample, tick ? middle + 7 : middle);
    if (tick) {
        dsc_put(w, " nohead lt 1 lw 2.5 lc rgb '" DSC_INK "'\n");
    } else if (kind < 0) {
        dsc_put(w, " nohead lt 1 lw 1.5 dt (%s) lc rgb '%s'\n",
                kind == DSC_KEY_REFERENCE ? "6,4" : "2,3", DSC_INK_SOFT);
    } else {
        dsc_put(w, " nohead lt 1 lw %g",
                box > 0                 ? box
                : kind < DSC_STYLE_RAMP ? style[kind].width
                                        : 2);
        if (!(box > 0))
            dsc_put_dash(w, k->style);
        dsc_put(w, " lc rgb '%s'\n", dsc_style_color(kind));
    }
}

// Draws a line sample with its point, or a box, at (x, y .. y + line), and the label to its right.
static void put_key_entry(dsc_writer *w, const dsc_canvas *c, const dsc_key *k, double x, double y,
                          double sample)
{
    int plain = k->style < 0 ? k->style : k->style % DSC_STYLE_DASH;
    bool box = plain >= DSC_KEY_BOX;
    bool lone = !box && plain >= DSC_KEY_POINT;
    int kind = plain - (box ? DSC_KEY_BOX : lone ? DSC_KEY_POINT : 0);
    double middle = c->dumb ? y : y + c->line_height / 2;
    if (!c->dumb && !lone)
        put_key_line(w, c, k, kind, x, middle, sample, box ? 10 : 0);
    if (c->dumb || (kind >= 0 && !box)) {
        dsc_put(w, "set label %s at", kind < 0 ? "'- -'" : "''");
        dsc_put_at(w, c, kind < 0 ? x - 1 : x + sample / 2, middle);
        if (kind >= 0) {
            dsc_put(w, " point ");
            dsc_put_line_style(w, c, kind, 1);
        }
        dsc_put(w, "\n");
    }
    dsc_put_paragraph(w, c, x + sample + c->char_width, y, c->width, DSC_FONT_BODY, DSC_INK, 1,
                      k->label);
}

static double put_key(dsc_writer *w, const dsc_canvas *c, double y, const char *key_title,
                      const dsc_key *key, size_t keys)
{
    double x = c->margin, start = y, sample = c->dumb ? 2 : 26;
    if (key_title) {
        dsc_put_paragraph(w, c, x, y, c->width, DSC_FONT_BODY, DSC_INK_SOFT, 1, key_title);
        x += ((double)dsc_text_length(key_title) + 2) * c->char_width;
    }
    double indent = x < c->width / 2 ? x : c->margin; // further rows start below the first entry
    for (size_t i = 0; i < keys; i++) {
        if (!*key[i].label) // the only line there is
            continue;
        double width = sample + ((double)dsc_text_length(key[i].label) + 1) * c->char_width;
        if (i && x + width > c->width - c->margin) {
            x = indent;
            y += c->line_height;
        }
        put_key_entry(w, c, &key[i], x, y, sample);
        x += width + (c->dumb ? 2 : 1.5) * c->char_width; // whole characters
    }
    return y + c->line_height - start;
}

void dsc_put_x_label(dsc_writer *w, const dsc_canvas *c, dsc_place box, double left, double width,
                     const char *text)
{
    double half = (double)dsc_text_length(text) * c->char_width / 2;
    dsc_put_paragraph(w, c, fmax(left, (box.left + box.right) / 2 - half),
                      box.bottom + (c->dumb ? 2 : 1.2 * c->line_height + 4), width, DSC_FONT_BODY,
                      DSC_INK, 1, text);
}

void dsc_put_empty_plot(dsc_writer *w)
{
    dsc_put(w, "unset border\nunset tics\nset xrange [0:1]\nset yrange [0:1]\nplot NaN notitle\n");
}

double dsc_put_heading(dsc_writer *w, const dsc_canvas *c, const char *title, const char *subtitle,
                       const char *key_title, const dsc_key *key, size_t keys)
{
    double margin = c->margin, y = c->dumb ? 0 : 8, room = c->width - 2 * margin;
    y += dsc_put_paragraph(w, c, margin, y, room, DSC_FONT_TITLE, DSC_INK, c->dumb ? 1 : 2,
                           c->title ? c->title : title);
    if (subtitle && *subtitle)
        y += dsc_put_paragraph(w, c, margin, y, room, DSC_FONT_BODY, DSC_INK_SOFT, c->dumb ? 1 : 3,
                               subtitle);
    if (keys)
        y += put_key(w, c, y + (c->dumb ? 0 : 4), key_title, key, keys) + (c->dumb ? 0 : 4);
    return y;
}

dsc_axis dsc_axis_fit(double lo, double hi, int tics)
{
    if (!(hi - lo > 1e-9 * fmax(fabs(lo), fabs(hi)))) { // one value, or as good as
        double room = lo == 0 ? 1 : fabs(lo) / 2;
        hi = lo + room;
        lo = lo >= 0 ? fmax(0, lo - room) : lo - room;
    }
    static const double nice[] = {1, 2, 2.5, 5, 10};
    double raw = (hi - lo) / tics, power = pow(10, floor(log10(raw))), step = 10 * power;
    for (int i = 4; i >= 0; i--)
        if (nice[i] * power >= raw * (1 - 1e-9))
            step = nice[i] * power;
    dsc_axis a = {
        .lo = floor(lo / step + 1e-9) * step, .hi = ceil(hi / step - 1e-9) * step, .step = step};
    while (a.decimals < 9 &&
           fabs(step * pow(10, a.decimals) - round(step * pow(10, a.decimals))) > 1e-6)
        a.decimals++;
    return a;
}

dsc_axis dsc_axis_decades(double lo, double hi)
{
    double from = floor(log10(lo) + 1e-9), to = ceil(log10(hi) - 1e-9);
    if (to <= from)
        to = from + 1;
    return (dsc_axis){
        .lo = pow(10, from), .hi = pow(10, to), .log = true, .decimals = from < 0 ? (int)-from : 0};
}

// Whether tics are labeled with a fixed number of decimals, not as powers.
static bool is_plain(const dsc_axis *a)
{
    return !a->log && fmax(fabs(a->lo), fabs(a->hi)) < 1e7;
}

// Writes the label format of axis x or y.
static void put_format(dsc_writer *w, const dsc_axis *a, char axis)
{
    if (is_plain(a))
        dsc_put(w, "set format %c '%%.%df'\n", axis, a->decimals);
    else
        dsc_put(w, "set format %c '%%g'\n", axis);
}

double dsc_axis_place(const dsc_axis *a, double from, double to, double v)
{
    double lo = a->lo - a->pad, hi = a->hi + a->head;
    double at = a->log ? log(v / a->lo) / log(hi / a->lo) : (v - lo) / (hi - lo);
    return from + at * (to - from);
}

void dsc_put_y_axis(dsc_writer *w, const dsc_axis *a)
{
    if (a->log)
        dsc_put(w,
                "set logscale y 10\nset yrange [%.12g:%.12g]\nset ytics 10\nset mytics default\n",
                a->lo, a->hi + a->head);
    else
        dsc_put(w, "unset logscale y\nset yrange [%.12g:%.12g]\nset ytics %.12g,%.12g\n",
                a->lo - a->pad, a->hi + a->head, a->lo, a->step);
    put_format(w, a, 'y');
}

void dsc_put_number_axis(dsc_writer *w, const dsc_axis *a)
{
    dsc_put(w, "set xrange [%.12g:%.12g]\nset xtics %.12g,%.12g\n", a->lo, a->hi, a->lo, a->step);
    put_format(w, a, 'x');
}

const char *dsc_axis_text(const dsc_axis *a, double v, char text[DSC_AXIS_TEXT])
{
    if (is_plain(a))
        snprintf(text, DSC_AXIS_TEXT, "%.*f", a->decimals, v);
    else
        snprintf(text, DSC_AXIS_TEXT, "%g", v);
    return text;
}

double dsc_axis_label_width(const dsc_canvas *c, const dsc_axis *a)
{
    char text[DSC_AXIS_TEXT];
    size_t lo = strlen(dsc_axis_text(a, a->lo, text)), hi = strlen(dsc_axis_text(a, a->hi, text));
    return (double)(lo > hi ? lo : hi) * c->char_width;
}

// Whether values (such as 1 2 4 8 16 32) would crowd the left of a linear axis.
static bool spreads_by_powers(const double *value, size_t values)
{
    return values >= 4 && value[0] > 0 && value[values - 1] / value[0] >= 16 &&
           value[values / 2] * 3 <= value[values - 1];
}

// Half the width of the label of x with a gap.
static double label_half(const dsc_canvas *c, double x)
{
    char text[32];
    return (snprintf(text, sizeof text, "%g", x) + 1) * c->char_width / 2;
}

// Writes tics at the values, without those whose labels would touch; the last is always kept.
// Returns the number of tics left out.
static size_t value_tics(dsc_writer *w, const dsc_canvas *c, const double *value, size_t values,
                         double width, bool powers)
{
    double lo = value[0], hi = value[values - 1], last = -INFINITY;
    size_t skipped = 0;
    const char *comma = "";
    dsc_put(w, "set xtics (");
    for (size_t i = 0; i < values; i++) {
        double at = hi <= lo ? 0.5
                    : powers ? log(value[i] / lo) / log(hi / lo)
                             : (value[i] - lo) / (hi - lo);
        double x = at * width, half = label_half(c, value[i]);
        if (x - half < last || (i + 1 < values && x + half > width - label_half(c, hi))) {
            skipped++;
            continue;
        }
        dsc_put(w, "%s'%g' %.12g", comma, value[i], value[i]);
        comma = ", ";
        last = x + half;
    }
    dsc_put(w, ")\n");
    return skipped;
}

// The range of an x axis over the given values, with some room beyond them.
static dsc_axis x_range(const double *value, size_t values, bool powers)
{
    double lo = value[0], hi = value[values - 1];
    powers = hi > lo && (powers || spreads_by_powers(value, values));
    double room = powers ? pow(hi / lo, 0.03) : hi > lo ? (hi - lo) * 0.03 : 1;
    return (dsc_axis){
        .lo = powers ? lo / room : lo - room, .hi = powers ? hi * room : hi + room, .log = powers};
}

double dsc_x_axis_place(const double *value, size_t values, bool powers, double left, double right,
                        double v)
{
    dsc_axis a = x_range(value, values, powers);
    return dsc_axis_place(&a, left, right, v);
}

void dsc_put_x_axis(dsc_writer *w, const dsc_canvas *c, const double *value, size_t values,
                    bool powers, double width)
{
    double lo = value[0], hi = value[values - 1];
    dsc_axis range = x_range(value, values, powers);
    powers = range.log;
    dsc_put(w, "%sset logscale x%s\nset xrange [%.12g:%.12g]\n", powers ? "" : "un",
            powers ? " 2" : "", range.lo, range.hi);
    width *= 0.94; // between the first and the last value
    size_t skipped = value_tics(w, c, value, values, width, powers);
    if (!skipped || powers)
        return;
    // Gaps in a regular row of labels look like gaps in the data, so round steps replace them.
    double longest = label_half(c, lo) > label_half(c, hi) ? label_half(c, lo) : label_half(c, hi);
    dsc_axis a = dsc_axis_fit(lo, hi, (int)fmax(2, width / (2 * longest + c->char_width)));
    double step = lo == floor(lo) && hi == floor(hi) && a.step < 1 ? 1 : a.step;
    dsc_put(w, "set xtics %.12g\nset format x '%%g'\n", step == 2.5 ? 5 : step);
}

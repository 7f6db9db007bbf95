// SPDX-License-Identifier: Apache-2.0
// Draws one numeric column over two parameters as a heat map: a colored cell per configuration,
// with its number if it fits, and a frame around the best cell.
#include "plots/draw/glossary.h"
#include "plots/draw/lines.h"
#include "plots/figure/draft_length.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <string.h>

// Viridis (van der Walt and Smith, 2015; matplotlib's table at eighths). Its lightness grows
// steadily with the value, so it is readable in gray and for the color-blind.
static const unsigned char viridis[9][3] = {
    {68, 1, 84},    {71, 45, 123}, {59, 82, 139},  {44, 114, 142}, {33, 145, 140},
    {40, 174, 128}, {94, 201, 98}, {173, 220, 48}, {253, 231, 37},
};

enum { MOST_CELLS = 20000 };

typedef struct map {
    dsc_plot_grid grid;
    const char *column, *x, *y; // names of columns
    double *value;              // [ny][nx], NaN: no cell
    double lo, hi;
    size_t best; // index into value
    int decimals;
    char number[32];
} map;

// The sRGB color of a value in [lo, hi].
static void color_of(const map *m, double v, int rgb[3])
{
    double t = m->hi > m->lo ? (v - m->lo) / (m->hi - m->lo) * 8 : 4;
    int i = t >= 8 ? 7 : t <= 0 ? 0 : (int)t;
    for (int j = 0; j < 3; j++)
        rgb[j] = (int)lround(viridis[i][j] + (t - i) * (viridis[i + 1][j] - viridis[i][j]));
}

// Whether black text has more contrast than white on a color (relative luminance, WCAG 2.1).
static bool is_light(const int rgb[3])
{
    static const double weight[3] = {0.2126, 0.7152, 0.0722};
    double y = 0;
    for (int j = 0; j < 3; j++) {
        double c = rgb[j] / 255.0;
        y += weight[j] * (c <= 0.03928 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4));
    }
    return y > 0.179;
}

static const char *format_number(map *m, double v)
{
    if (fmax(fabs(m->lo), fabs(m->hi)) < 1e7)
        snprintf(m->number, sizeof m->number, "%.*f", m->decimals, v);
    else
        snprintf(m->number, sizeof m->number, "%.3g", v);
    return m->number;
}

static void fill(dsc_plot *p, map *m, int column)
{
    size_t cells = m->grid.nx * m->grid.ny;
    bool whole = true;
    m->value = dsc_plot_numbers(p, cells);
    m->lo = INFINITY, m->hi = -INFINITY;
    for (size_t i = 0; m->value && i < cells; i++) {
        double v = m->value[i] = dsc_value_at(p->table, m->grid.at[i], column);
        m->lo = fmin(m->lo, v); // fmin and fmax ignore NaN
        m->hi = fmax(m->hi, v);
        whole = whole && (isnan(v) || v == floor(v));
    }
    dsc_check_any(p, m->value, cells, m->column);
    if (p->rc)
        return;
    m->best = dsc_best_of(m->value, cells, dsc_term_less_is_better(m->column));
    double size = fmax(fabs(m->lo), fabs(m->hi));
    m->decimals = whole || size >= 1000 ? 0 : size >= 100 ? 1 : size < 1 ? 3 : 2;
}

static size_t widest(map *m)
{
    size_t most = 1;
    for (size_t i = 0; i < m->grid.nx * m->grid.ny; i++)
        if (isfinite(m->value[i]) && strlen(format_number(m, m->value[i])) > most)
            most = strlen(m->number);
    return most;
}

// Writes the labels of an axis of cells: every value, or every second, fourth, ... if they would
// touch.
static void put_cell_tics(dsc_writer *w, char axis, const double *v, size_t n, double room,
                          double label)
{
    size_t stride = 1, steps[] = {1, 2, 4, 5, 8, 10, 16, 20, 25, 50, 100, 200, 500, 1000};
    for (size_t i = 0;
         i < sizeof steps / sizeof *steps && (double)stride * room / (double)n < label; i++)
        stride = steps[i];
    const char *comma = "";
    dsc_put(w, "set %ctics scale 0 (", axis);
    for (size_t i = 0; i < n; i += stride) {
        dsc_put(w, "%s'%g' %zu", comma, v[i], i);
        comma = ", ";
    }
    dsc_put(w, ")\n");
}

// The character that shades a cell on a terminal without colors, where its number does not fit.
static const char *shade(map *m, size_t i)
{
    static const char *const ramp[] = {".", ":", "-", "=", "+", "*", "#", "%", "@"};
    double t = m->hi > m->lo ? (m->value[i] - m->lo) / (m->hi - m->lo) : 1;
    return ramp[(int)(t * 8)];
}

static void put_cells(dsc_writer *w, const dsc_canvas *c, map *m, bool numbers)
{
    dsc_put(w, "# x, y, color (0xRRGGBB), value\n$cells << EOD\n");
    for (size_t i = 0; i < m->grid.nx * m->grid.ny; i++) {
        if (!isfinite(m->value[i]))
            continue;
        int rgb[3];
        color_of(m, m->value[i], rgb);
        dsc_put(w, "%zu %zu %d %.12g\n", i % m->grid.nx, i / m->grid.nx,
                rgb[0] << 16 | rgb[1] << 8 | rgb[2], m->value[i]);
    }
    dsc_put(w, "EOD\n");
    for (size_t i = 0; (numbers || c->dumb) && i < m->grid.nx * m->grid.ny; i++) {
        bool there = isfinite(m->value[i]);
        int rgb[3] = {255, 255, 255};
        if (there)
            color_of(m, m->value[i], rgb);
        const char *text = !there ? "-" : numbers ? format_number(m, m->value[i]) : shade(m, i);
        dsc_put(w, "set label '%s%s' at %zu, %zu center noenhanced", text,
                c->dumb && numbers && i == m->best ? "*" : "", i % m->grid.nx, i / m->grid.nx);
        if (!c->dumb)
            dsc_put(w, " front font ',%d' textcolor rgb '%s'", DSC_FONT_CELL,
                    is_light(rgb) ? "#000000" : "#ffffff");
        dsc_put(w, "\n");
    }
}

// Draws a color scale of 64 steps to the right of the cells.
static void put_scale(dsc_writer *w, const dsc_canvas *c, map *m, double x, double top,
                      double bottom)
{
    enum { STEPS = 64, WIDTH = 14 };
    if (c->dumb || m->hi <= m->lo)
        return;
    for (int i = 0; i < STEPS; i++) {
        int rgb[3];
        color_of(m, m->lo + (m->hi - m->lo) * (i + 0.5) / STEPS, rgb);
        double y = bottom + (top - bottom) * i / STEPS;
        dsc_put(w, "set object rectangle from");
        dsc_put_at(w, c, x, y);
        dsc_put(w, " to");
        // Half a pixel of overlap avoids seams between the steps.
        dsc_put_at(w, c, x + WIDTH,
                   bottom + (top - bottom) * (i + 1) / STEPS - (i + 1 < STEPS) * 0.5);
        dsc_put(w, " fc rgb '#%02x%02x%02x' fs solid noborder\n", rgb[0], rgb[1], rgb[2]);
    }
    dsc_axis a = dsc_axis_fit(m->lo, m->hi, 5);
    for (int i = 0; a.lo + i * a.step <= m->hi + 1e-9 * a.step && i < STEPS; i++) {
        double v = a.lo + i * a.step;
        char text[DSC_AXIS_TEXT];
        if (v < m->lo)
            continue;
        dsc_put(w, "set label '- %s' at", dsc_axis_text(&a, v, text));
        dsc_put_at(w, c, x + WIDTH + 1, bottom + (top - bottom) * (v - m->lo) / (m->hi - m->lo));
        dsc_put(w, " left font ',%d' textcolor rgb '" DSC_INK "'\n", DSC_FONT_SMALL);
    }
}

// inset_x, inset_y: distance of the frame from the edge of the best cell, in cells.
static void put_plot(dsc_writer *w, const dsc_canvas *c, const map *m, double inset_x,
                     double inset_y)
{
    double bx = (double)(m->best % m->grid.nx), by = (double)(m->best / m->grid.nx);
    dsc_put(w, "set xrange [-0.5:%g]\nset yrange [-0.5:%g]\nunset grid\n", (double)m->grid.nx - 0.5,
            (double)m->grid.ny - 0.5);
    if (c->dumb) {
        dsc_put(w, "plot NaN notitle\n");
        return;
    }
    int rgb[3];
    color_of(m, m->value[m->best], rgb);
    // a cell has its color in dark mode too, so its frame is not a color that changes there
    const char *frame = is_light(rgb) ? "#111111" : "#eeeeee";
    dsc_put(w,
            "set border 0\n"
            "$best << EOD\n%g %g %g %g %g %g\nEOD\n",
            bx, by, bx - 0.5 + inset_x, bx + 0.5 - inset_x, by - 0.5 + inset_y, by + 0.5 - inset_y);
    dsc_put(w,
            "plot $cells using 1:2:($1-0.5):($1+0.5):($2-0.5):($2+0.5):3 with boxxyerror "
            "fs solid 1 border rgb '#ffffff' lc rgb variable notitle, \\\n"
            "     $best using 1:2:3:4:5:6 with boxxyerror fs empty border rgb '%s' lw 2.5 "
            "lc rgb '%s' notitle\n",
            frame, frame);
}

// Makes the cells in a box answer the pointer.
static void mark_cells(dsc_plot *p, map *m, dsc_place b)
{
    double width = (b.right - b.left) / (double)m->grid.nx;
    double height = (b.bottom - b.top) / (double)m->grid.ny;
    for (size_t i = 0; i < m->grid.nx * m->grid.ny; i++) {
        size_t ix = i % m->grid.nx, iy = i / m->grid.nx;
        if (isfinite(m->value[i]))
            dsc_mark(p, b.left + ((double)ix + 0.5) * width, b.bottom - ((double)iy + 0.5) * height,
                     m->y, "%g, %s%s%g: %s", m->grid.y[iy], dsc_term_label(m->x),
                     dsc_term_equals(m->x), m->grid.x[ix], format_number(m, m->value[i]));
    }
}

static void put_map(dsc_plot *p, const dsc_canvas *c, map *m, const char *title,
                    const char *subtitle)
{
    dsc_writer *w = &p->script;
    bool dumb = c->dumb;
    double margin = c->margin, line = c->line_height;
    dsc_put_terminal(w, c, "heatmap");
    double top = dsc_put_heading(w, c, title, subtitle, NULL, NULL, 0) + (dumb ? 0 : 6);
    char text[64];
    double tic = 0;
    for (size_t i = 0; i < m->grid.ny; i++)
        tic = fmax(tic, snprintf(text, sizeof text, "%g", m->grid.y[i]) * c->char_width);
    top += dsc_put_paragraph(w, c, margin, top, c->width / 2, DSC_FONT_BODY, DSC_INK, 1,
                             dsc_term_title(m->y)) +
           (dumb ? 0 : 4);
    double left = margin + tic + (dumb ? 2 : 10);
    double right = c->width - margin - (dumb ? 0 : 24 + (double)(widest(m) + 2) * c->char_width);
    double bottom = c->height - (dumb ? 3 : margin / 2 + 2.4 * line);
    dsc_put_margins(w, c, left, top, right, bottom);
    dsc_check_room(w, c, right - left, bottom - top);
    double half = (double)dsc_text_length(dsc_term_title(m->x)) * c->char_width / 2;
    dsc_put_paragraph(w, c, fmax(margin, (left + right) / 2 - half), bottom + (dumb ? 2 : line + 4),
                      c->width, DSC_FONT_BODY, DSC_INK, 1, dsc_term_title(m->x));
    double cell_w = (right - left) / (double)m->grid.nx,
           cell_h = (bottom - top) / (double)m->grid.ny;
    // A digit is 0.64 em wide, the point half of that; on dumb the best cell has an asterisk.
    double number = dumb ? (double)widest(m) + 2
                         : 0.64 * DSC_FONT_CELL * ((double)widest(m) - 0.5 * (m->decimals > 0)) + 3;
    bool fits = cell_w >= number && cell_h >= (dumb ? 1 : DSC_FONT_CELL + 4);
    double longest = 0;
    for (size_t i = 0; i < m->grid.nx; i++)
        longest =
            fmax(longest, (snprintf(text, sizeof text, "%g", m->grid.x[i]) + 1) * c->char_width);
    put_cell_tics(w, 'x', m->grid.x, m->grid.nx, right - left, longest);
    put_cell_tics(w, 'y', m->grid.y, m->grid.ny, bottom - top, line);
    put_cells(w, c, m, fits);
    put_scale(w, c, m, right + 14, top, bottom);
    mark_cells(p, m, (dsc_place){left, top, right, bottom});
    put_plot(w, c, m, fmin(1.5 / cell_w, 0.4), fmin(1.5 / cell_h, 0.4));
}

// "2.31 at draft length 8, n = 1"
static void put_best(dsc_writer *w, map *m)
{
    dsc_put(w, "%s at %s%s%g, %s%s%g", format_number(m, m->value[m->best]), dsc_term_label(m->x),
            dsc_term_equals(m->x), m->grid.x[m->best % m->grid.nx], dsc_term_label(m->y),
            dsc_term_equals(m->y), m->grid.y[m->best / m->grid.nx]);
}

static void put_finding(dsc_writer *w, map *m)
{
    const char *lo = format_number(m, m->lo);
    dsc_put(w, "Heat map of %s by %s (%g to %g) and %s (%g to %g). Values range from %s", m->column,
            dsc_term_label(m->x), m->grid.x[0], m->grid.x[m->grid.nx - 1], dsc_term_label(m->y),
            m->grid.y[0], m->grid.y[m->grid.ny - 1], lo);
    dsc_put(w, " to %s; the best is ", format_number(m, m->hi));
    put_best(w, m);
    dsc_put(w, ".");
}

static void put_data(dsc_plot *p, const map *m)
{
    dsc_data_number(p, m->x, NULL);
    dsc_data_number(p, m->y, NULL);
    dsc_data_number(p, m->column, NULL);
    for (size_t i = 0; i < m->grid.nx * m->grid.ny; i++)
        if (m->grid.at[i] != SIZE_MAX)
            dsc_data_row(
                p, NULL,
                (double[]){m->grid.x[i % m->grid.nx], m->grid.y[i / m->grid.nx], m->value[i]});
}

static const char *subtitle_of(dsc_plot *p, const dsc_canvas *c, map *m)
{
    const char *cost = dsc_table_get_comment(p->table, "cost");
    dsc_writer *w = dsc_text_begin(p);
    dsc_put(w, "best ");
    put_best(w, m);
    dsc_put(w, " (%s)", c->dumb ? "marked * or @; . is the lowest" : "framed");
    if (cost && !strcmp(m->column, "speedup"))
        dsc_put(w, "; cost: %s", cost);
    return dsc_text_end(p);
}

static void read_map(dsc_plot *p, map *m)
{
    int x = dsc_need(p, m->x, DSC_NUMBERS), y = dsc_need(p, m->y, DSC_NUMBERS);
    int column = dsc_need(p, m->column, DSC_NUMBERS);
    if (!p->rc && (x == y || column == x || column == y))
        dsc_refuse(p, "heatmap: --x %s, --y %s and --column %s must be three columns", m->x, m->y,
                   m->column);
    dsc_selection s = dsc_select(p, p->table, p->options, "llma");
    dsc_groups g = dsc_group(p, &s, x, y);
    dsc_check_groups(p, &g, 1);
    m->grid = dsc_grid(p, &s, &g, x, y);
    if (m->grid.nx * m->grid.ny > MOST_CELLS)
        dsc_refuse(p, "heatmap: %zu x %zu cells are too many to read: select rows with --where",
                   m->grid.nx, m->grid.ny);
    fill(p, m, column);
}

static void draw(dsc_plot *p)
{
    const dsc_figure_options *o = p->options;
    map m = {.column = dsc_result_column(p),
             .x = o->x ? o->x : "num_speculative_tokens",
             .y = o->y ? o->y : "n"};
    read_map(p, &m);
    dsc_canvas c = dsc_canvas_of(p, fmin(1080, fmax(560, 160 + 31 * (double)m.grid.nx)),
                                 fmin(900, fmax(280, 140 + 30 * (double)m.grid.ny)), 0);
    if (p->rc)
        return;
    const char *title = dsc_text(p, "%s by %s and %s", dsc_term_heading(p, m.column),
                                 dsc_term_label(m.x), dsc_term_label(m.y));
    put_map(p, &c, &m, title, subtitle_of(p, &c, &m));
    put_finding(&p->finding, &m);
    put_data(p, &m);
}

const dsc_figure_type dsc_figure_heatmap = {
    .name = "heatmap",
    .summary = "any numeric column over two parameters (default: draft length and n), the best "
               "cell framed",
    .needs = "num_speculative_tokens n speedup",
    .draw = draw,
};

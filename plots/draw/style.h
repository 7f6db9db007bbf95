// SPDX-License-Identifier: Apache-2.0
// How every figure looks: terminals, sizes, type, colours, axes.
//
// Layout is done here and not left to gnuplot, whose guess of text widths differs between
// terminals: a figure says where each box lies, in units of the canvas (pixels at 100 %, or
// characters on the `dumb` terminal), origin at the top left.
#ifndef DSC_PLOTS_STYLE_H
#define DSC_PLOTS_STYLE_H

#include "plots/draw/drawing.h"
#include "plots/draw/text.h"

typedef enum dsc_terminal { DSC_TERM_SVG, DSC_TERM_PDF, DSC_TERM_PNG, DSC_TERM_DUMB } dsc_terminal;

typedef struct dsc_canvas {
    dsc_terminal terminal;
    double width, height; // pixels or characters
    double char_width;    // of an average character of the body size
    double line_height;   // of a line of body text
    bool narrow;          // a phone's width: stack what would stand side by side
} dsc_canvas;

enum {
    DSC_STYLES = 8,               // as many lines as can be told apart
    DSC_STYLE_BOUND = DSC_STYLES, // one more: thick and grey, without points, behind the others
};

// Font sizes, pixels at 100 %.
enum { DSC_FONT_BODY = 13, DSC_FONT_SMALL = 12, DSC_FONT_TITLE = 16, DSC_FONT_CELL = 11 };

#define DSC_INK "#1a1a1a"
#define DSC_INK_SOFT "#555555"
#define DSC_GRID "#e3e3e3"

// The canvas of a figure whose natural size is width x height pixels. DSC_EUSAGE when the
// terminal is unknown or the size in *o is out of range.
int dsc_canvas_init(dsc_canvas *c, const char *terminal, const dsc_figure_options *o, double width,
                    double height, dsc_error *err);

// The head of a script: terminal, encoding, white background, axes' look. `name` is the svg's.
void dsc_put_terminal(dsc_writer *w, const dsc_canvas *c, const char *name);

// "lc rgb '#...' lw 2 pt 7 ps 0.8" for line style i of [0, DSC_STYLES), its points `scale` times
// the usual size, or DSC_STYLE_BOUND; letters A, B, ... on dumb.
void dsc_put_line_style(dsc_writer *w, const dsc_canvas *c, int i, double scale);
const char *dsc_style_colour(int i);

// " screen X, screen Y" of canvas coordinates.
void dsc_put_at(dsc_writer *w, const dsc_canvas *c, double x, double y);

// The box of the axes.
void dsc_put_margins(dsc_writer *w, const dsc_canvas *c, double left, double top, double right,
                     double bottom);

// DSC_EUSAGE into w when so little is left for a pair of axes that nothing could be read.
void dsc_check_room(dsc_writer *w, const dsc_canvas *c, double width, double height);

// Puts `text` at (x, y) (its first baseline is a line below y), broken into at most `max_lines`
// lines of `width`; returns the height used. `font` is a size in pixels, `colour` an #rrggbb.
double dsc_put_paragraph(dsc_writer *w, const dsc_canvas *c, double x, double y, double width,
                         int font, const char *colour, int max_lines, const char *text);

// As many characters of size `font` as fit into `width` (at least 1).
size_t dsc_characters(const dsc_canvas *c, double width, int font);

// One entry of the key, drawn with line style `style`, or as said below.
enum {
    DSC_KEY_REFERENCE = -1, // the dashed reference line
    DSC_KEY_PREDICTED = -2, // what a simpler model says: short dashes
    DSC_KEY_TICK = -3,      // a short upright line
    DSC_KEY_POINT = 256,    // added to a line style: its point without a line
};
typedef struct dsc_key {
    const char *label;
    int style;
} dsc_key;

// Title, subtitle and key across the top of the canvas; returns the height used.
double dsc_put_heading(dsc_writer *w, const dsc_canvas *c, const char *title, const char *subtitle,
                       const char *key_title, const dsc_key *key, size_t keys);

// --- axes ----------------------------------------------------------------------------------

typedef struct dsc_axis {
    double lo, hi, step; // tics at lo, lo + step, ...; decades when log
    double pad;          // room below lo
    int decimals;
    bool log;
} dsc_axis;

// A range that holds [lo, hi] and starts and ends at a tic, with about `tics` tics.
dsc_axis dsc_axis_fit(double lo, double hi, int tics);

// Whole decades that hold [lo, hi], 0 < lo <= hi.
dsc_axis dsc_axis_decades(double lo, double hi);

// "set yrange ..., set ytics ...": tics at step, labels with the decimals needed.
void dsc_put_y_axis(dsc_writer *w, const dsc_axis *a);

// The label of v on the axis; returns text.
enum { DSC_AXIS_TEXT = 32 };
const char *dsc_axis_text(const dsc_axis *a, double v, char text[DSC_AXIS_TEXT]);
double dsc_axis_label_width(const dsc_canvas *c, const dsc_axis *a);

// The x axis over the given values (ascending, at least 1): tics on the values themselves, thinned
// to what `width` holds; powers of two apart when they spread that way, or `powers` (values > 0).
void dsc_put_x_axis(dsc_writer *w, const dsc_canvas *c, const double *value, size_t values,
                    bool powers, double width);

#endif

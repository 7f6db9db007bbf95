// SPDX-License-Identifier: Apache-2.0
// The common look of all figures: terminals, sizes, fonts, colors, axes.
//
// Figures place every box themselves, because gnuplot's estimate of text widths differs between
// terminals. Coordinates are in units of the canvas (pixels at 100 %, or characters on the `dumb`
// terminal) with the origin at the top left.
#ifndef DSC_PLOTS_STYLE_H
#define DSC_PLOTS_STYLE_H

#include "plots/draw/plot.h"

typedef enum dsc_terminal { DSC_TERM_SVG, DSC_TERM_PDF, DSC_TERM_PNG, DSC_TERM_DUMB } dsc_terminal;

typedef struct dsc_canvas {
    dsc_terminal terminal;
    bool dumb;            // characters instead of pixels
    const char *title;    // of the options; NULL: the figure's own
    double width, height; // pixels or characters
    double margin;        // left and right of everything
    double char_width;    // of an average character of the body size
    double line_height;   // of a line of body text
    bool narrow;          // the width of a phone: panels are stacked
} dsc_canvas;

enum {
    DSC_STYLES = 8,               // lines that can be distinguished
    DSC_STYLE_BOUND = DSC_STYLES, // one more: thick and gray, without points, below the others
    DSC_STYLE_RAMP = 16,   // and DSC_STYLES more on the sequential ramp, for an ordered parameter
    DSC_STYLE_DASH = 1024, // times (style + 1) added to another style: with the dashes of that one
};

// Font sizes, pixels at 100 %.
enum { DSC_FONT_BODY = 13, DSC_FONT_SMALL = 12, DSC_FONT_TITLE = 16, DSC_FONT_CELL = 11 };

#define DSC_INK "#1a1a1a"
#define DSC_INK_SOFT "#555555"
#define DSC_GRID "#e3e3e3"

// Whether the options ask for a picture so narrow that panels are stacked.
bool dsc_is_narrow(const dsc_plot *p);

// The canvas of a figure whose natural size is width x height pixels, or at least `rows` rows of
// characters. DSC_EUSAGE: the
// terminal is unknown, or the size in the options is out of range.
dsc_canvas dsc_canvas_of(dsc_plot *p, double width, double height, size_t rows);

// Writes the head of a script: terminal, encoding, white background, style of the axes. `name`
// names the SVG.
void dsc_put_terminal(dsc_writer *w, const dsc_canvas *c, const char *name);

// Writes "lc rgb '#...' lw 2 pt 7 ps 0.8" for a line style in [0, DSC_STYLES), its points `scale`
// times the usual size, or for DSC_STYLE_BOUND; on dumb, the letters A, B, ....
void dsc_put_line_style(dsc_writer *w, const dsc_canvas *c, int i, double scale);
// The same for points alone; `hollow`: outlines.
void dsc_put_point_style(dsc_writer *w, const dsc_canvas *c, int i, bool hollow);
const char *dsc_style_color(int i);
// The style of line i of n whose order means something: a color of the ramp, dark to light.
int dsc_ramp_style(size_t i, size_t n);

// Writes " dt (...)", the dash pattern of line style i; dashes tell lines apart where colors do
// not. Nothing for a solid line, as are those of the ramp.
void dsc_put_dash(dsc_writer *w, int i);

// Writes canvas coordinates as " screen X, screen Y".
void dsc_put_at(dsc_writer *w, const dsc_canvas *c, double x, double y);

// A box on the canvas.
typedef struct dsc_place {
    double left, top, right, bottom; // canvas units, y downwards
} dsc_place;

// The box of panel i of `panels`, of which `columns` stand side by side below `top`.
dsc_place dsc_panel_place(const dsc_canvas *c, double top, size_t panels, size_t columns, size_t i);

// Sets the box of the axes.
void dsc_put_margins(dsc_writer *w, const dsc_canvas *c, double left, double top, double right,
                     double bottom);

// Sets DSC_EUSAGE in w if a pair of axes of this size would be unreadable.
void dsc_check_room(dsc_writer *w, const dsc_canvas *c, double width, double height);

// Writes `text` at (x, y) (the first baseline is one line below y), broken into at most
// `max_lines` lines of `width`; returns the height used. `font` is a size in pixels, `color` an
// #rrggbb.
double dsc_put_paragraph(dsc_writer *w, const dsc_canvas *c, double x, double y, double width,
                         int font, const char *color, int max_lines, const char *text);

// Writes the label of the x axis, centered below the axes in `box` but not left of `left`, in at
// most `width`.
void dsc_put_x_label(dsc_writer *w, const dsc_canvas *c, dsc_place box, double left, double width,
                     const char *text);

// The number of characters of size `font` that fit into `width` (at least 1).
size_t dsc_characters(const dsc_canvas *c, double width, int font);

// Writes an empty plot: pictures that consist of labels and objects alone end with it.
void dsc_put_empty_plot(dsc_writer *w);

// One entry of the key, drawn in line style `style` or one of:
enum {
    DSC_KEY_REFERENCE = -1, // the dashed reference line
    DSC_KEY_PREDICTED = -2, // the reference curve: short dashes
    DSC_KEY_TICK = -3,      // a short upright line
    DSC_KEY_POINT = 256,    // added to a line style: its point without a line
    DSC_KEY_BOX = 512,      // added to a line style: a box of its color
};
typedef struct dsc_key {
    const char *label;
    int style;
} dsc_key;

// Writes title (unless the options replace it), subtitle and key across the top of the canvas;
// returns the height used.
double dsc_put_heading(dsc_writer *w, const dsc_canvas *c, const char *title, const char *subtitle,
                       const char *key_title, const dsc_key *key, size_t keys);

// --- axes ----------------------------------------------------------------------------------

typedef struct dsc_axis {
    double lo, hi, step; // tics at lo, lo + step, ...; decades when log
    double pad, head;    // room below lo and above hi
    int decimals;
    bool log;
} dsc_axis;

// A range that includes [lo, hi], starts and ends at a tic, and has about `tics` tics.
dsc_axis dsc_axis_fit(double lo, double hi, int tics);

// Whole decades that include [lo, hi], 0 < lo <= hi.
dsc_axis dsc_axis_decades(double lo, double hi);

// Where v lies on an axis between the canvas coordinates `from` (at a->lo - a->pad) and `to`.
double dsc_axis_place(const dsc_axis *a, double from, double to, double v);

// Writes range, tics and label format of the y axis.
void dsc_put_y_axis(dsc_writer *w, const dsc_axis *a);
// The same for an x axis of numbers.
void dsc_put_number_axis(dsc_writer *w, const dsc_axis *a);

// Writes the label of v on the axis to `text` and returns it.
enum { DSC_AXIS_TEXT = 32 };
const char *dsc_axis_text(const dsc_axis *a, double v, char text[DSC_AXIS_TEXT]);
double dsc_axis_label_width(const dsc_canvas *c, const dsc_axis *a);

// Writes the x axis over the given values (ascending, at least 1): tics at the values, thinned to
// fit into `width`. The axis is logarithmic if the values spread by powers, or if `powers` is set
// (values > 0).
void dsc_put_x_axis(dsc_writer *w, const dsc_canvas *c, const double *value, size_t values,
                    bool powers, double width);
// Where v lies on that axis between the canvas coordinates `left` and `right`.
double dsc_x_axis_place(const double *value, size_t values, bool powers, double left, double right,
                        double v);

#endif

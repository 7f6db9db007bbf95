// SPDX-License-Identifier: Apache-2.0
// Draws line charts over a shared x axis: panels with one heading and one key.
#ifndef DSC_PLOTS_PANEL_H
#define DSC_PLOTS_PANEL_H

#include "plots/draw/style.h"

typedef struct dsc_panel {
    const char *group;   // the rows of the panel, "" for all
    const char *y_label; // quantity and unit, printed above the y axis
    const double *y;     // [lines][nx], NaN where there is no point
    int quantity;        // panels of one quantity share their y axis
} dsc_panel;

// A point that no line goes through.
typedef enum dsc_glyph {
    DSC_GLYPH_FILLED, // the point of its line
    DSC_GLYPH_HOLLOW, // its outline
    DSC_GLYPH_RING,   // a ring around it
} dsc_glyph;
typedef struct dsc_panel_point {
    size_t panel, line;
    double x, y; // finite; x within the values of the x axis
    dsc_glyph glyph;
    const char *note; // at the pointer, after the value
} dsc_panel_point;

typedef struct dsc_panels {
    const char *title, *subtitle, *x_label, *key_title;
    const double *x;           // [nx] ascending
    const char *const *x_name; // [nx] what is written at each x of bars; NULL: its number
    size_t nx;
    const dsc_key *key; // [lines]
    size_t lines;
    const dsc_key *legend; // [legends] entries to show instead of `key`; NULL: those
    size_t legends;
    // The order of the lines means something: instead of a key, each is labeled at its right end,
    // below `end_title`. Their styles should be those of the ramp. NULL: no such labels. Not on
    // dumb.
    const char *end_title;
    const char *const *hover;  // [lines] the names of lines at the pointer; NULL: those of the key
    const char *const *detail; // [panels][lines][nx] what is added to the value of a point; or NULL
    const dsc_panel *panel;    // [panels], row by row
    size_t panels;
    size_t columns;              // panels side by side, 0: all; one if the canvas is narrow
    const char *reference_label; // key of a dashed line at y = 1; NULL: no such line
    double reference;            // where that line is, 0: at y = 1
    bool log_y;                  // zeros break the line
    bool from_zero;              // the y axes include 0
    bool bars;                   // bars from 0 instead of lines, side by side at each x
    bool log_x;                  // powers of two (x > 0), whatever the spread of the values
    const double *mark; // [lines] an x for each, ticked at the top of the panels; may be NULL
    bool common_marks;  // they belong to no single line
    // [panels][lines][nx]: where only a range of a line is known, it is drawn as a band between two
    // lines with small points; NaN elsewhere. Both may be NULL.
    const double *low, *high;
    bool interval; // low and high are the ends of intervals around y, drawn as bands alone
    // [panels][lines][nx]: a reference curve, in short dashes, with its label; not drawn on dumb.
    // Both may be NULL.
    const double *predicted;
    const char *predicted_label;
    const dsc_panel_point *point; // [points]
    size_t points;
    bool bare;   // lines of several points without these
    bool ring;   // draw a ring around one point:
    size_t best; // index into [panels][lines][nx]
} dsc_panels;

// Writes the whole script of the figure, called `word` in it, whose natural size is width x height.
// Values must be finite or NaN. DSC_EUSAGE: as dsc_canvas_of, or the size leaves too little room.
void dsc_draw_panels(dsc_plot *plot, const dsc_panels *p, const char *word, double width,
                     double height);

#endif

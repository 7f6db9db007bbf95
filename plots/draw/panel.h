// SPDX-License-Identifier: Apache-2.0
// Line panels over a shared x: small multiples with one heading and one key.
#ifndef DSC_PLOTS_PANEL_H
#define DSC_PLOTS_PANEL_H

#include "plots/draw/style.h"

typedef struct dsc_panel {
    const char *group;   // which rows, "" for all
    const char *y_label; // quantity and unit, printed above the y axis
    const double *y;     // [lines][nx], NaN where there is no point
    int quantity;        // panels of one quantity share their y axis
} dsc_panel;

typedef struct dsc_panels {
    const char *title, *subtitle, *x_label, *key_title;
    const double *x; // [nx] ascending
    size_t nx;
    const dsc_key *key; // [lines]
    size_t lines;
    const dsc_panel *panel;      // [panels], row by row
    size_t panels, columns;      // panels side by side; one when the canvas is narrow
    const char *reference_label; // key of a dashed line at y = 1; NULL: no such line
    bool log_y;                  // zeros break the line
    bool log_x;                  // powers of two apart (x > 0), however the values spread
    const double *mark; // [lines] an x for each, ticked at the top of the panels; may be NULL
    // [panels][lines][nx]: where a line is known as a range only, drawn as a band between two
    // lines with small points; NaN where it is not. Both may be NULL.
    const double *low, *high;
    bool interval; // low and high are the ends of intervals around y: bands alone
    // [panels][lines][nx]: what a simpler model says, in short dashes; not drawn on dumb. With the
    // words of the key; both may be NULL.
    const double *predicted;
    const char *predicted_label;
    size_t best_panel, best_line, best_x; // a ring around this point; best_panel SIZE_MAX: none
} dsc_panels;

// Appends the whole script. Values must be finite or NaN; a panel without any says so.
void dsc_put_panels(dsc_writer *w, const dsc_canvas *c, const char *name, const dsc_panels *p);

#endif

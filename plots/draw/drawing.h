// SPDX-License-Identifier: Apache-2.0
// The options of a figure, and a drawn figure.
#ifndef DSC_PLOTS_DRAWING_H
#define DSC_PLOTS_DRAWING_H

#include "base/table.h"

#include <stdbool.h>

// Keeps the rows whose `column` has `value` (as printed in the table; numbers compare as numbers).
typedef struct dsc_figure_filter {
    const char *column, *value;
} dsc_figure_filter;

// Zero-initialized: every default. The caller keeps ownership of all pointers.
typedef struct dsc_figure_options {
    const char *title;    // replaces the figure's own title
    const char *column;   // the quantity, if a figure can show several; NULL: its default
    const char *by;       // field of a table by metadata field: draw the rows of its values instead
                          // of those of all requests; NULL: of all requests
    const char *x, *y;    // the axes, if there is a choice; NULL: the defaults
    double width, height; // pixels at 100 % (svg, png: 200..4000), 1/96 inch (pdf), characters
                          // (dumb: 40..400 x 12..200); 0: the figure's own. Figures under 520
                          // pixels wide stack their panels.
    const dsc_figure_filter *filter; // [filters]; a row must pass all of them
    size_t filters;
    const char *const *input_path; // [inputs] files that the table was read from, never overwritten
    size_t inputs;
} dsc_figure_options;

// A drawn figure. Zero-initialize; dsc_drawing_fini frees.
typedef struct dsc_drawing {
    dsc_buffer script;  // the complete gnuplot script
    dsc_buffer picture; // gnuplot's output
    dsc_buffer finding; // what the figure shows, in words (UTF-8, one paragraph): its alt text
    dsc_table data;     // the plotted numbers
    dsc_table marks;    // where values can be pointed at: x, y (canvas units), line, value
} dsc_drawing;

#endif

// SPDX-License-Identifier: Apache-2.0
// What is asked of a figure, and what a drawn one is.
#ifndef DSC_PLOTS_DRAWING_H
#define DSC_PLOTS_DRAWING_H

#include "base/table.h"

#include <stdbool.h>

// Keeps the rows whose `column` has `value` (as printed in the table; numbers compare as numbers).
typedef struct dsc_figure_filter {
    const char *column, *value;
} dsc_figure_filter;

// Zero-initialised: every default. Nothing here is owned or kept.
typedef struct dsc_figure_options {
    const char *title;    // instead of the figure's own
    const char *column;   // the quantity, where a figure can show several; NULL: the figure's own
    const char *x, *y;    // the axes, where there is a choice; NULL: the figure's own
    double width, height; // pixels at 100 % (svg, png: 200..4000), 1/96 inch (pdf), characters
                          // (dumb: 40..400 x 12..200); 0: the figure's own. Figures under 520
                          // pixels wide stack their panels.
    const dsc_figure_filter *filter; // [filters]; a row must pass all of them
    size_t filters;
    const char *const *input_path; // [inputs] the files the table came from, never overwritten
    size_t inputs;
} dsc_figure_options;

// A drawn figure. Zero-initialise; dsc_drawing_fini frees.
typedef struct dsc_drawing {
    dsc_buffer script;  // the whole gnuplot script
    dsc_buffer picture; // what gnuplot made of it
    dsc_buffer finding; // what the figure shows, in words (UTF-8, one paragraph): its alt text
    dsc_table data;     // the numbers plotted
} dsc_drawing;

#endif

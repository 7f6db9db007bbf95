// SPDX-License-Identifier: Apache-2.0
// Rows of a sweep over two parameters as lines: one line per value of the second, one group (a
// panel) per combination of the other parameters.
#ifndef DSC_PLOTS_SERIES_H
#define DSC_PLOTS_SERIES_H

#include "plots/draw/lines.h"

enum { DSC_PANEL_GROUPS = 4 }; // most groups in a figure

typedef struct dsc_series_of {
    const char *method;   // the method to keep if there are several; NULL: all
    const char *x, *line; // columns
    const char *noun;     // for the note: "values of n"
    int digits;           // significant digits of a line's label
} dsc_series_of;

typedef struct dsc_series {
    dsc_selection selection;
    dsc_groups groups;
    dsc_plot_grid grid;      // y is the parameter of the lines
    size_t line[DSC_STYLES]; // index into grid.y of each line
    size_t lines;
    const char *label[DSC_STYLES]; // "3"
    const char *note;              // the lines and rows that are left out, "" if none are
} dsc_series;

// Selects, groups and indexes. If there are too many lines, they are thinned evenly; the one with
// the greatest speedup is kept. DSC_EUSAGE: as dsc_select, dsc_grid, dsc_check_groups.
void dsc_series_init(dsc_plot *p, dsc_series *s, const dsc_series_of *of);

// value[groups][lines][nx] of a numeric column, divided by column `per` unless that is NULL; NaN
// where there is no row or no finite number. DSC_EUSAGE: there is no finite number at all.
double *dsc_series_values(dsc_plot *p, const dsc_series *s, const char *column, const char *per);

// Builds the data of a drawing: the columns group, line and x, and `values` quantities; one row per
// point.
void dsc_series_data(dsc_plot *p, const dsc_series *s, const dsc_series_of *of,
                     const char *const *column, double *const *value, size_t values);

#endif

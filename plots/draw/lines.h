// SPDX-License-Identifier: Apache-2.0
// What figures of results over one number share: a line for each group of rows that agree in all
// parameters but that one; when there are too many, those that are best somewhere.
#ifndef DSC_PLOTS_LINES_H
#define DSC_PLOTS_LINES_H

#include "plots/draw/select.h"
#include "plots/draw/style.h"

enum { DSC_LINE_LABEL = 120 };

// What to draw: columns by index. `table` must outlive the lines.
typedef struct dsc_lines_of {
    const dsc_table *table;
    int x, y;
    bool less_is_better; // in y
    bool any;            // which lines are drawn does not depend on y
    const char *what;    // of the note: "lines"
} dsc_lines_of;

typedef struct dsc_lines {
    dsc_selection selection;
    dsc_groups groups;
    double *x; // [nx] ascending
    size_t nx;
    size_t *row;                            // [groups][nx] of the table, SIZE_MAX: none
    size_t line[DSC_STYLES], lines;         // groups that are drawn
    char label[DSC_STYLES][DSC_LINE_LABEL]; // "chain, length 4": what tells them apart
    dsc_key key[DSC_STYLES];
    char note[160]; // "8 of 32 lines drawn; ...", "" when nothing is left out
} dsc_lines;

// Selects and groups. DSC_EUSAGE: as dsc_select, two rows of a group meet at one x, or there is no
// finite x.
int dsc_lines_init(dsc_lines *l, dsc_lines_of of, const dsc_figure_options *o, dsc_error *err);
void dsc_lines_fini(dsc_lines *l);

// value[lines][nx] of a column, NaN where there is none; *out owned by the caller.
int dsc_lines_values(const dsc_lines *l, int column, double **out, dsc_error *err);

// The index of the best of v[n], NaN passed over; SIZE_MAX when all are NaN.
size_t dsc_best_of(const double *v, size_t n, bool less_is_better);

// The columns `line`, that of x, and `values` quantities; a row per point that is there.
int dsc_lines_data(const dsc_lines *l, const char *x, const char *const *column,
                   double *const *value, size_t values, dsc_table *data, dsc_error *err);

#endif

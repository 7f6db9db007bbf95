// SPDX-License-Identifier: Apache-2.0
// Lines of results over one parameter: one for each group of rows that agree in all other
// parameters. If there are too many groups, those that are best somewhere are kept.
#ifndef DSC_PLOTS_LINES_H
#define DSC_PLOTS_LINES_H

#include "plots/draw/select.h"
#include "plots/draw/style.h"

// What to draw: columns by index. `table` must outlive the lines.
typedef struct dsc_lines_of {
    const dsc_table *table;
    const dsc_figure_options *options;
    int x, y;
    bool less_is_better; // in y
    bool any;            // the choice of lines does not depend on y
    const char *noun;    // for the note: "lines"
} dsc_lines_of;

typedef struct dsc_lines {
    dsc_selection selection;
    dsc_groups groups;
    dsc_plot_grid grid; // without a y
    const double *x;    // [nx] ascending
    size_t nx;
    double *value;                  // [lines][nx] of y, NaN where there is none
    size_t line[DSC_STYLES], lines; // the groups that are drawn
    const char *label[DSC_STYLES];  // how they differ: "tree, draft length 4"
    dsc_key key[DSC_STYLES];
    const char *note; // "8 of 32 lines drawn; ...", "" if nothing is left out
} dsc_lines;

// Selects, groups and reads y. DSC_EUSAGE: as dsc_select, two rows of a group share one x, or there
// is no finite x or y.
void dsc_lines_init(dsc_plot *p, dsc_lines *l, dsc_lines_of of);

// What a figure leaves out, for its subtitle: "8 of 32 lines drawn; 1 row of other methods left
// out", "" if nothing.
const char *dsc_left_out(dsc_plot *p, size_t drawn, size_t all, const char *noun, size_t dropped);

// The same as `value` for another column.
double *dsc_lines_values(dsc_plot *p, const dsc_lines *l, int column);

// Builds the data of a drawing: the columns `line`, x, and `values` quantities; one row per point.
void dsc_lines_data(dsc_plot *p, const dsc_lines *l, const char *x, const char *const *column,
                    double *const *value, size_t values);

// --- the best points of lines --------------------------------------------------------------

// The index of the best of v[n], ignoring NaN; SIZE_MAX if all are NaN.
size_t dsc_best_of(const double *v, size_t n, bool less_is_better);
// DSC_EUSAGE if v[n] contains no number to draw; `column` names them in the message.
void dsc_check_any(dsc_plot *p, const double *v, size_t n, const char *column);

typedef struct dsc_bests {
    size_t best[DSC_STYLES]; // of each line, index into x; SIZE_MAX: it has no number
    bool last[DSC_STYLES];   // the best is the last point, so a greater x may be better still
    double mark[DSC_STYLES]; // x of a tick at the best; NaN: none, because it is the last
    bool rises;              // some line with several points has its best at the last
} dsc_bests;

// Finds the best point of each line of value[lines][nx]. Ticks that would hide each other are moved
// apart by less than the distance of two x.
void dsc_find_bests(dsc_bests *b, const double *value, size_t lines, const double *x, size_t nx,
                    bool less_is_better);
// The label of line j with its best x in parentheses: "tree (3)", or "tree (8+)" if the best is the
// last.
const char *dsc_label_best(dsc_plot *p, const char *label, const dsc_bests *b, size_t j,
                           const double *x, size_t nx);

#endif

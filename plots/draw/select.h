// SPDX-License-Identifier: Apache-2.0
// Which rows of a table a figure draws, and how they fall into groups.
//
// A column is a parameter (what was set) or a result (what came out). Parameters are the text
// columns and the numeric ones left of the first result known by name (`requests`, ...): that is
// how every command of draftscope orders its columns, but for `batch`, which is one wherever it
// stands. `request` and `id`, which tell the rows of
// one run apart, are neither.
#ifndef DSC_PLOTS_SELECT_H
#define DSC_PLOTS_SELECT_H

#include "plots/draw/drawing.h"
#include "plots/draw/text.h"

enum { DSC_AXES = 2 }; // at most two columns span a figure

// A number that can be placed on an axis: differences of two such do not overflow.
static inline bool dsc_drawable(double v)
{
    return v > -1e300 && v < 1e300; // false for NaN
}

typedef struct dsc_selection {
    const dsc_table *table;
    size_t *row; // [rows] indices into the table, ascending
    size_t rows;
    size_t dropped; // rows left out because their method is no method of this figure
} dsc_selection;

// The rows that pass the filters. When several methods are left and no filter names one, the rows
// of `method` are kept if there are any (NULL: keep all), and "none" (no speculation, the reference
// line of every figure) is left out. DSC_EUSAGE when the table is empty, has a row per request, a
// filter's column is not there, or no row is left (the message lists what the column holds).
int dsc_select(dsc_selection *s, const dsc_table *t, const dsc_figure_options *o,
               const char *method, dsc_error *err);
void dsc_selection_fini(dsc_selection *s);

// The index of a column. DSC_EUSAGE names the one that is missing, who needs it, and what there is.
int dsc_need_column(const dsc_table *t, const char *who, const char *name, int *column,
                    dsc_error *err);
// The same for all of `needs`, our own names separated by spaces: as many indices in column[].
int dsc_need_columns(const dsc_table *t, const char *who, const char *needs, int *column,
                     dsc_error *err);

// Whether column c of the table is a parameter.
bool dsc_is_parameter(const dsc_table *t, size_t c);

// Whether two cells of one column, no lists, hold the same (NaN is NaN).
bool dsc_same_cell(const dsc_cell *a, const dsc_cell *b);
// The distinct values of a column in the order met, "a, b, c", at most 12; over row[rows], or all
// rows when `row` is NULL.
void dsc_put_values(dsc_writer *w, const dsc_table *t, const size_t *row, size_t rows, size_t c);

// The distinct finite values of a numeric column over the selection, ascending.
// *out owned by the caller.
int dsc_distinct(const dsc_selection *s, int column, double **out, size_t *count, dsc_error *err);

// Thins `all` ranks to at most `most` (>= 2), evenly, with the first, the last and `keep` (< all)
// among them, ascending in chosen[most]; returns how many.
size_t dsc_thin(size_t all, size_t most, size_t keep, size_t *chosen);

// Rows that agree in every parameter but the axes.
typedef struct dsc_groups {
    size_t *of;    // [selection rows] group of each
    size_t *first; // [groups] the first selected row of each
    char **label;  // [groups] "semantics = paper, method = ngram": what differs; "" for one group
    char *varying; // "semantics (code, paper)": what differs between groups; "" for one
    size_t groups;
} dsc_groups;

// `axis`: columns that span the figure, -1 for none.
int dsc_group(dsc_groups *g, const dsc_selection *s, const int axis[DSC_AXES], dsc_error *err);
void dsc_groups_fini(dsc_groups *g);

// The rows of one group over x and y. Row of (x[i], y[j]): at[j * nx + i], SIZE_MAX: none.
typedef struct dsc_plot_grid {
    double *x, *y;
    size_t nx, ny;
    size_t *at; // [groups][ny][nx] table rows
} dsc_plot_grid;

// DSC_EUSAGE when two rows of one group meet in one point, or there is no finite x or y.
int dsc_plot_grid_init(dsc_plot_grid *grid, const dsc_selection *s, const dsc_groups *g, int x,
                       int y, dsc_error *err);
size_t dsc_plot_grid_row(const dsc_plot_grid *grid, size_t group, size_t ix,
                         size_t iy); // or SIZE_MAX
void dsc_plot_grid_fini(dsc_plot_grid *grid);

#endif

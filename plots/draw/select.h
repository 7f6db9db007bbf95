// SPDX-License-Identifier: Apache-2.0
// Selects the rows of a result table that a figure draws, and groups them.
//
// A column is a parameter (an input of the run) or a result (an output). Parameters are the text
// columns and the numeric columns to the left of the first known result (`requests`, ...): every
// draftscope command orders its columns that way. `batch` is a parameter wherever it stands.
// `request` and `id`, which identify the requests of one run, are neither; `significant`, which
// tune writes, is a result in words.
#ifndef DSC_PLOTS_SELECT_H
#define DSC_PLOTS_SELECT_H

#include "plots/draw/drawing.h"
#include "plots/draw/text.h"

enum { DSC_AXES = 2 }; // at most two columns span a figure

// Whether a number can be placed on an axis: the difference of two such numbers does not overflow.
static inline bool dsc_drawable(double v)
{
    return v > -1e300 && v < 1e300; // false for NaN
}

typedef struct dsc_selection {
    const dsc_table *table;
    size_t *row; // [rows] indices into the table, ascending
    size_t rows;
    size_t dropped; // rows left out because this figure does not draw their method
} dsc_selection;

// Selects the rows that pass the filters. If several methods remain and no filter names one, the
// rows of `method` are kept if there are any (NULL: keep all), and "none" (no speculation, the
// reference line of every figure) is left out. DSC_EUSAGE: the table is empty or has one row per
// request, a filter names a missing column, or no row remains (the message lists the values that
// exist).
int dsc_select(dsc_selection *s, const dsc_table *t, const dsc_figure_options *o,
               const char *method, dsc_error *err);
void dsc_selection_fini(dsc_selection *s);

// --- columns and cells ---------------------------------------------------------------------

// The index of a column. DSC_EUSAGE: the message names the missing column, the figure or option
// `who` that needs it, and the columns of the table.
int dsc_need_column(const dsc_table *t, const char *who, const char *name, int *column,
                    dsc_error *err);
// The same for every name in `needs`, separated by spaces; writes one index per name.
int dsc_need_columns(const dsc_table *t, const char *who, const char *needs, int *column,
                     dsc_error *err);
// The same for a column that must contain text, numbers, or lists (a list of one element is read as
// an integer). DSC_EUSAGE also when the table has rows and the column is of another type.
int dsc_need_text(const dsc_table *t, const char *who, const char *name, int *column,
                  dsc_error *err);
int dsc_need_number(const dsc_table *t, const char *who, const char *name, int *column,
                    dsc_error *err);
int dsc_need_list(const dsc_table *t, const char *who, const char *name, int *column,
                  dsc_error *err);

// Whether column c of the table is a parameter.
bool dsc_is_parameter(const dsc_table *t, size_t c);

// A number by the name of its column; NaN if there is no such column or no drawable number.
double dsc_number_at(const dsc_table *t, size_t row, const char *column);
// A text by the name of its column; "" if there is no such column or it contains no text.
const char *dsc_text_at(const dsc_table *t, size_t row, const char *column);
// A list cell, or the integer that a list of one element is read as, as a list.
dsc_cell dsc_list_at(const dsc_table *t, size_t row, int column);
// The value that ranks a row: its speedup, or its block efficiency where nothing was priced;
// -INFINITY if it has neither.
double dsc_merit_at(const dsc_table *t, size_t row);

// Whether two cells of one column, which contains no lists, are equal (NaN equals NaN).
bool dsc_same_cell(const dsc_cell *a, const dsc_cell *b);
// Whether two rows agree in every text parameter.
bool dsc_same_texts(const dsc_table *t, size_t a, size_t b);
// Writes the distinct values of a column in order of appearance, "a, b, c", at most 12; over
// row[rows], or over all rows if `row` is NULL.
void dsc_put_values(dsc_writer *w, const dsc_table *t, const size_t *row, size_t rows, size_t c);

// --- distinct values and groups ------------------------------------------------------------

// The distinct finite values of a numeric column over the selection, ascending.
// *out is owned by the caller.
int dsc_distinct(const dsc_selection *s, int column, double **out, size_t *count, dsc_error *err);

// Thins `all` ranks evenly to at most `most` (>= 2) that include the first, the last and `keep`
// (< all); writes them in ascending order to chosen[most] and returns their number.
size_t dsc_thin(size_t all, size_t most, size_t keep, size_t *chosen);

// Groups of rows that agree in every parameter but the axes.
typedef struct dsc_groups {
    size_t *of;    // [selection rows] group of each row
    size_t *first; // [groups] first selected row of each group
    char **label;  // [groups] "semantics = paper, method = ngram": the differing values; "" for one
    char *varying; // "semantics (code, paper)": the differing columns; "" for one group
    size_t groups;
} dsc_groups;

// `axis`: columns that span the figure, -1 for none.
int dsc_group(dsc_groups *g, const dsc_selection *s, const int axis[DSC_AXES], dsc_error *err);
void dsc_groups_fini(dsc_groups *g);
// DSC_EUSAGE when a figure that can show `most` groups is given more.
int dsc_check_groups(const dsc_groups *g, size_t most, dsc_error *err);

// The rows of each group over x and y. The row at (x[i], y[j]) is at[(group * ny + j) * nx + i].
typedef struct dsc_plot_grid {
    double *x, *y; // ascending
    size_t nx, ny;
    size_t *at; // [groups][ny][nx] table rows, SIZE_MAX: none
} dsc_plot_grid;

// DSC_EUSAGE: two rows of one group fall on one point, or there is no finite x or y.
int dsc_plot_grid_init(dsc_plot_grid *grid, const dsc_selection *s, const dsc_groups *g, int x,
                       int y, dsc_error *err);
size_t dsc_plot_grid_row(const dsc_plot_grid *grid, size_t group, size_t ix,
                         size_t iy); // or SIZE_MAX
void dsc_plot_grid_fini(dsc_plot_grid *grid);

#endif

// SPDX-License-Identifier: Apache-2.0
// Selects the rows of a result table that a figure draws, and groups them.
//
// A column is a parameter (an input of the run) or a result (an output). Parameters are the text
// columns and the numeric columns to the left of the first known result (`requests`, ...): every
// draftscope command orders its columns that way. `batch` is a parameter wherever it stands.
// `request` and `id`, which identify the requests of one run, are neither; `significant`, which
// tune writes, and `saturated`, which serve writes, are results in words.
#ifndef DSC_PLOTS_SELECT_H
#define DSC_PLOTS_SELECT_H

#include "plots/draw/plot.h"

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
dsc_selection dsc_select(dsc_plot *p, const dsc_table *t, const dsc_figure_options *o,
                         const char *method);

// The rows that pass the filters of a table with one row per request. DSC_EUSAGE: the table is
// empty or has totals, or as dsc_select.
dsc_selection dsc_select_requests(dsc_plot *p, const dsc_table *t, const dsc_figure_options *o);

// Whether a row has the value of a filter.
bool dsc_passes(const dsc_table *t, size_t row, const dsc_figure_filter *f);

// Of a table by a metadata field (its comment `by`) dsc_select keeps the rows of all requests, or,
// where the options name the field as `by` or x or filter by it, those of its values. This keeps
// both.
dsc_selection dsc_select_groups(dsc_plot *p, const dsc_table *t, const dsc_figure_options *o);

// --- columns and cells ---------------------------------------------------------------------

// What a column must contain; a list of one element is read as an integer.
enum {
    DSC_NAMES = 1 << DSC_CELL_TEXT,
    DSC_NUMBERS = 1 << DSC_CELL_INT | 1 << DSC_CELL_REAL,
    DSC_LISTS = 1 << DSC_CELL_INT | 1 << DSC_CELL_LIST,
    DSC_ANYTHING = DSC_NAMES | DSC_NUMBERS | DSC_LISTS,
};
// The index of a column of the plot's table. DSC_EUSAGE: it is missing (the message names the
// columns of the table), or the table has rows and the column contains something else; -1 then.
int dsc_need(dsc_plot *p, const char *name, unsigned what);
// The same for every name in `needs`, at most DSC_NEEDS, separated by spaces; writes one index per
// name.
enum { DSC_NEEDS = 16 };
void dsc_need_columns(dsc_plot *p, const char *needs, int *column);
// Fails as dsc_need for a missing column; `who` needs it.
void dsc_refuse_column(dsc_plot *p, const dsc_table *t, const char *who, const char *name);

// Whether column c of the table is a parameter.
bool dsc_is_parameter(const dsc_table *t, size_t c);

// The number in a column; NaN if it is not drawable, the row is SIZE_MAX or the column negative.
double dsc_value_at(const dsc_table *t, size_t row, int column);
// A number by the name of its column; NaN if there is no such column or no drawable number.
double dsc_number_at(const dsc_table *t, size_t row, const char *column);
// A text by the name of its column; "" if there is no such column or it contains no text.
const char *dsc_text_at(const dsc_table *t, size_t row, const char *column);
// A list cell, or the integer that a list of one element is read as, as a list.
dsc_cell dsc_list_at(const dsc_table *t, size_t row, int column);
// The value that ranks a row: its speedup, or its block efficiency where nothing was priced;
// -INFINITY if it has neither.
double dsc_merit_at(const dsc_table *t, size_t row);

// Whether two cells of one column are equal (NaN equals NaN).
bool dsc_same_cell(const dsc_cell *a, const dsc_cell *b);
// Whether a column contains different values.
bool dsc_varies(const dsc_table *t, size_t column);
// Whether two rows agree in the columns marked[columns].
bool dsc_rows_agree(const dsc_table *t, const bool *marked, size_t a, size_t b);
// Whether two rows agree in every text parameter.
bool dsc_same_texts(const dsc_table *t, size_t a, size_t b);
// Writes the distinct values of a column in order of appearance, "a, b, c", at most 12; over
// row[rows], or over all rows if `row` is NULL.
void dsc_put_values(dsc_writer *w, const dsc_table *t, const size_t *row, size_t rows, size_t c);

// --- distinct values and groups ------------------------------------------------------------

// Sorts v[n], without NaN, in ascending order and drops what is equal; returns how many remain.
size_t dsc_sort_distinct(double *v, size_t n);
// The distinct finite values of a numeric column over the selection, ascending.
double *dsc_distinct(dsc_plot *p, const dsc_selection *s, int column, size_t *count);

// Thins `all` ranks evenly to at most `most` (>= 2) that include the first, the last and `keep`
// (< all); writes them in ascending order to chosen[most] and returns their number.
size_t dsc_thin(size_t all, size_t most, size_t keep, size_t *chosen);

// Groups of rows that agree in every parameter but the axes.
typedef struct dsc_groups {
    size_t *of;          // [selection rows] group of each row
    size_t *first;       // [groups] first selected row of each group
    const char **label;  // [groups] "semantics = paper, method = ngram": the differing values
    const char *varying; // "semantics (code, paper)": the differing columns; "" for one group
    size_t groups;
} dsc_groups;

// `x`, `y`: the columns that span the figure, -1 for none.
dsc_groups dsc_group(dsc_plot *p, const dsc_selection *s, int x, int y);
// DSC_EUSAGE when a figure that can show `most` groups is given more.
void dsc_check_groups(dsc_plot *p, const dsc_groups *g, size_t most);

// The rows of each group over x and y. The row at (x[i], y[j]) is at[(group * ny + j) * nx + i].
typedef struct dsc_plot_grid {
    double *x, *y; // ascending
    size_t nx, ny;
    size_t *at; // [groups][ny][nx] table rows, SIZE_MAX: none
} dsc_plot_grid;

// Column y may be -1: there is one y then, 0. DSC_EUSAGE: two rows of one group fall on one point,
// or there is no finite x or y.
dsc_plot_grid dsc_grid(dsc_plot *p, const dsc_selection *s, const dsc_groups *g, int x, int y);
size_t dsc_plot_grid_row(const dsc_plot_grid *grid, size_t group, size_t ix,
                         size_t iy); // or SIZE_MAX

#endif

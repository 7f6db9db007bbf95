// SPDX-License-Identifier: Apache-2.0
// The values and the columns of a result table (base/table.h).
#ifndef DSC_BASE_CELL_H
#define DSC_BASE_CELL_H

#include <stdbool.h>
#include <stdint.h>

typedef enum dsc_cell_type {
    DSC_CELL_INT,
    DSC_CELL_REAL,
    DSC_CELL_TEXT,
    DSC_CELL_LIST
} dsc_cell_type;

// A value. A list is a histogram: counts ("28;14;3" in TSV, an array in JSON), or expected counts,
// which need not be integers.
typedef struct dsc_cell {
    dsc_cell_type type;
    int64_t i;           // DSC_CELL_INT
    double r;            // DSC_CELL_REAL; NaN is "nan" in TSV, null in JSON
    const char *text;    // DSC_CELL_TEXT, UTF-8, owned by the table's arena once added
    const int64_t *list; // DSC_CELL_LIST [i]; i is the length
    const double *reals; // DSC_CELL_LIST of real numbers [i], and `list` is NULL; else NULL
    // There is no value, as of a parameter that a method lacks: empty in TSV, null in JSON. The
    // cell is a NaN of DSC_CELL_REAL in a column of INT or REAL.
    bool absent;
} dsc_cell;

// Element i of a list.
static inline double dsc_cell_element(const dsc_cell *c, int64_t i)
{
    return c->reals ? c->reals[i] : (double)c->list[i];
}

typedef struct dsc_column {
    const char *name; // the printed name: lower case, the field's own term
    dsc_cell_type type;
    const char *help; // one line: meaning, unit, whether the bonus token counts; may be NULL
} dsc_column;

#endif

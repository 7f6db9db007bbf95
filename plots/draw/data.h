// SPDX-License-Identifier: Apache-2.0
// The table of plotted numbers that accompanies a drawing.
#ifndef DSC_PLOTS_DATA_H
#define DSC_PLOTS_DATA_H

#include "base/table.h"

enum { DSC_DATA_NUMBERS = 16 }; // most numbers in a row

// Adds `n` columns.
int dsc_data_columns(dsc_table *data, const dsc_column *column, size_t n, dsc_error *err);
// Adds columns of numbers, whose names are separated by spaces.
int dsc_data_numbers(dsc_table *data, const char *names, dsc_error *err);
// Adds a row: `text` (NULL: the table has no text column) and n <= DSC_DATA_NUMBERS numbers.
int dsc_data_row(dsc_table *data, const char *text, const double *number, size_t n, dsc_error *err);

#endif

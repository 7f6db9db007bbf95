// SPDX-License-Identifier: Apache-2.0
// Builds the table of plotted numbers: rows of one text and several numbers.
#include "plots/draw/data.h"

#include <stdio.h>
#include <string.h>

int dsc_data_columns(dsc_table *data, const dsc_column *column, size_t n, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = 0; !rc && i < n; i++)
        rc = dsc_table_add_column(data, column[i].name, column[i].type, column[i].help, err);
    return rc;
}

int dsc_data_numbers(dsc_table *data, const char *names, dsc_error *err)
{
    char name[128];
    int rc = DSC_OK;
    while (!rc && *names) {
        size_t n = strcspn(names, " ");
        snprintf(name, sizeof name, "%.*s", (int)n, names);
        rc = dsc_table_add_column(data, name, DSC_CELL_REAL, NULL, err);
        names += n + strspn(names + n, " ");
    }
    return rc;
}

int dsc_data_row(dsc_table *data, const char *text, const double *number, size_t n, dsc_error *err)
{
    dsc_cell cell[1 + DSC_DATA_NUMBERS] = {{.type = DSC_CELL_TEXT, .text = text}};
    for (size_t i = 0; i < n; i++)
        cell[1 + i] = (dsc_cell){.type = DSC_CELL_REAL, .r = number[i]};
    return dsc_table_add_row(data, text ? cell : cell + 1, err);
}

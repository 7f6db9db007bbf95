// SPDX-License-Identifier: Apache-2.0
// Finds the parameter that sets the draft length of each method, and copies it to one column.
#include "plots/figure/draft_length.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const length_name[] = {
    "num_speculative_tokens", "length", "gamma", "window", "max", "budget", "depth"};
enum { LENGTHS = sizeof length_name / sizeof *length_name, CERTAIN = 4 };

static bool same_method(const dsc_table *t, size_t a, size_t b)
{
    int m = dsc_table_find(t, "method");
    return m < 0 || dsc_same_cell(dsc_table_at(t, a, (size_t)m), dsc_table_at(t, b, (size_t)m));
}

// Whether the rows of row's method have a number in column c, or several different numbers.
static bool has_numbers(const dsc_selection *s, size_t row, int c, bool several)
{
    double first = NAN;
    for (size_t i = 0; c >= 0 && i < s->rows; i++) {
        double v = same_method(s->table, row, s->row[i])
                       ? dsc_table_real(s->table, s->row[i], (size_t)c)
                       : NAN;
        if (!dsc_drawable(v))
            continue;
        if (!several || (!isnan(first) && v != first))
            return true;
        first = v;
    }
    return false;
}

// The column that contains a row's draft length, or -1.
static int length_column(const dsc_selection *s, size_t row, const char *x)
{
    if (x)
        return dsc_table_find(s->table, x);
    for (int several = 1; several >= 0; several--)
        for (size_t i = 0; i < (several ? LENGTHS : CERTAIN); i++) {
            int c = dsc_table_find(s->table, length_name[i]);
            if (has_numbers(s, row, c, several) && dsc_is_parameter(s->table, (size_t)c))
                return c;
        }
    return -1;
}

// Finds the column of each selected row; all rows of a method share that of its first row.
static int length_columns(const dsc_selection *s, const char *x, int *column, dsc_error *err)
{
    enum { METHODS = 64 };
    size_t known[METHODS], n = 0;
    for (size_t i = 0; i < s->rows; i++) {
        size_t j = 0;
        while (j < n && !same_method(s->table, s->row[known[j]], s->row[i]))
            j++;
        if (j == METHODS)
            return dsc_fail(err, DSC_EUSAGE, "the table has more than %d methods: filter by method",
                            METHODS);
        column[i] = j < n ? column[known[j]] : length_column(s, s->row[i], x);
        if (j == n)
            known[n++] = i;
    }
    return DSC_OK;
}

static bool is_copied(const dsc_table *t, size_t c)
{
    const char *name = t->column[c].name;
    return t->column[c].type != DSC_CELL_LIST && strcmp(name, "request") && strcmp(name, "id");
}

static int add_length_columns(dsc_table *out, const dsc_table *t, dsc_error *err)
{
    int rc = dsc_table_add_column(out, DSC_DRAFT_LENGTH, DSC_CELL_REAL, NULL, err);
    for (size_t c = 0; c < t->columns && !rc; c++) {
        dsc_cell_type type = t->column[c].type;
        if (is_copied(t, c))
            rc = dsc_table_add_column(out, t->column[c].name,
                                      type == DSC_CELL_INT ? DSC_CELL_REAL : type, NULL, err);
    }
    return rc;
}

int dsc_length_table(dsc_table *out, const dsc_selection *s, const char *x, dsc_error *err)
{
    const dsc_table *t = s->table;
    int *column = NULL, unused;
    dsc_cell *cell = NULL;
    *out = (dsc_table){0};
    int rc = x ? dsc_need_column(t, "--x", x, &unused, err) : DSC_OK;
    if (!rc)
        rc = dsc_new(&column, s->rows, err);
    if (!rc)
        rc = length_columns(s, x, column, err);
    if (!rc)
        rc = dsc_new(&cell, t->columns + 1, err);
    if (!rc)
        rc = add_length_columns(out, t, err);
    for (size_t i = 0; i < s->rows && !rc; i++) {
        size_t n = 0;
        double length = column[i] < 0 ? NAN : dsc_table_real(t, s->row[i], (size_t)column[i]);
        cell[n++] = (dsc_cell){.type = DSC_CELL_REAL, .r = length};
        for (size_t c = 0; c < t->columns; c++) {
            const dsc_cell *from = dsc_table_at(t, s->row[i], c);
            if (!is_copied(t, c))
                continue;
            if (from->type == DSC_CELL_TEXT)
                cell[n++] = *from;
            else
                cell[n++] = (dsc_cell){.type = DSC_CELL_REAL,
                                       .r = (int)c == column[i] ? (double)NAN
                                                                : dsc_table_real(t, s->row[i], c)};
        }
        rc = dsc_table_add_row(out, cell, err);
    }
    free(cell);
    free(column);
    if (rc)
        dsc_table_fini(out);
    return rc;
}

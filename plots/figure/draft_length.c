// SPDX-License-Identifier: Apache-2.0
// Finds the parameter that sets the draft length of each method, and copies it to one column.
#include "plots/figure/draft_length.h"

#include <math.h>
#include <string.h>

static const char *const length_name[] = {
    "num_speculative_tokens", "length", "gamma", "window", "max", "budget", "depth"};
enum { LENGTHS = sizeof length_name / sizeof *length_name, CERTAIN = 4 };

static bool same_method(const dsc_table *t, size_t a, size_t b)
{
    return !strcmp(dsc_text_at(t, a, "method"), dsc_text_at(t, b, "method"));
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
static int *length_columns(dsc_plot *p, const dsc_selection *s)
{
    enum { METHODS = 64 };
    size_t known[METHODS], n = 0;
    int *column = dsc_plot_new(p, int, s->rows);
    for (size_t i = 0; i < s->rows && !p->rc; i++) {
        size_t j = 0;
        while (j < n && !same_method(s->table, s->row[known[j]], s->row[i]))
            j++;
        if (j < n) {
            column[i] = column[known[j]];
        } else if (n < METHODS) {
            column[i] = length_column(s, s->row[i], p->options->x);
            known[n++] = i;
        } else {
            dsc_refuse(p, "the table has more than %d methods: filter by method", METHODS);
        }
    }
    return column;
}

static bool is_copied(const dsc_table *t, size_t c)
{
    const char *name = t->column[c].name;
    return t->column[c].type != DSC_CELL_LIST && strcmp(name, "request") && strcmp(name, "id");
}

// Writes the cells of a copied row without its length.
static void copy_cells(const dsc_table *t, size_t row, int length, dsc_cell *cell)
{
    for (size_t c = 0; c < t->columns; c++) {
        const dsc_cell *from = dsc_table_at(t, row, c);
        if (!is_copied(t, c))
            continue;
        double v = (int)c == length ? (double)NAN : dsc_table_real(t, row, c);
        *cell++ = from->type == DSC_CELL_TEXT ? *from : (dsc_cell){.type = DSC_CELL_REAL, .r = v};
    }
}

const dsc_table *dsc_length_table(dsc_plot *p, const dsc_selection *s)
{
    const dsc_table *t = s->table;
    const char *x = p->options->x;
    if (!p->rc && x && dsc_table_find(t, x) < 0)
        dsc_refuse_column(p, t, "--x", x);
    const int *column = length_columns(p, s);
    dsc_cell *cell = dsc_plot_new(p, dsc_cell, t->columns + 1);
    if (!p->rc)
        p->rc = dsc_table_add_column(&p->made, DSC_DRAFT_LENGTH, DSC_CELL_REAL, NULL, p->err);
    for (size_t c = 0; !p->rc && c < t->columns; c++)
        if (is_copied(t, c))
            p->rc = dsc_table_add_column(
                &p->made, t->column[c].name,
                t->column[c].type == DSC_CELL_TEXT ? DSC_CELL_TEXT : DSC_CELL_REAL, NULL, p->err);
    for (size_t i = 0; !p->rc && i < s->rows; i++) {
        double length = column[i] < 0 ? NAN : dsc_table_real(t, s->row[i], (size_t)column[i]);
        cell[0] = (dsc_cell){.type = DSC_CELL_REAL, .r = length};
        copy_cells(t, s->row[i], column[i], cell + 1);
        p->rc = dsc_table_add_row(&p->made, cell, p->err);
    }
    return &p->made;
}

bool dsc_is_priced(const dsc_table *t)
{
    const char *cost = dsc_table_get_comment(t, "cost");
    return !cost || strcmp(cost, "unit") != 0;
}

const char *dsc_result_column(const dsc_plot *p)
{
    bool other = dsc_table_find(p->table, "block_efficiency") >= 0;
    if (p->options->column)
        return p->options->column;
    return dsc_table_find(p->table, "speedup") >= 0 && (dsc_is_priced(p->table) || !other)
               ? "speedup"
               : "block_efficiency";
}

bool dsc_is_ratio(const char *column)
{
    return !strcmp(column, "speedup") || !strcmp(column, "block_efficiency");
}

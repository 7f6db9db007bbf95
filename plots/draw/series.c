// SPDX-License-Identifier: Apache-2.0
// Groups and indexes the rows of a sweep over two parameters, and reads their quantities.
#include "plots/draw/series.h"

#include "plots/draw/glossary.h"

#include <math.h>

// The rank of the line with the greatest speedup; the last in a table without one.
static size_t best_rank(const dsc_series *s)
{
    size_t best = s->grid.ny - 1, cells = s->groups.groups * s->grid.nx * s->grid.ny;
    double most = -INFINITY;
    for (size_t i = 0; i < cells; i++) {
        size_t row = s->grid.at[i];
        double v = row == SIZE_MAX ? NAN : dsc_number_at(s->selection.table, row, "speedup");
        if (v > most) { // false for NaN
            most = v;
            best = i / s->grid.nx % s->grid.ny;
        }
    }
    return best;
}

void dsc_series_init(dsc_plot *p, dsc_series *s, const dsc_series_of *of)
{
    int x = dsc_table_find(p->table, of->x), line = dsc_table_find(p->table, of->line);
    *s = (dsc_series){.selection = dsc_select(p, p->table, p->options, of->method)};
    s->groups = dsc_group(p, &s->selection, x, line);
    dsc_check_groups(p, &s->groups, DSC_PANEL_GROUPS);
    s->grid = dsc_grid(p, &s->selection, &s->groups, x, line);
    if (p->rc)
        return;
    s->lines = dsc_thin(s->grid.ny, DSC_STYLES, best_rank(s), s->line);
    for (size_t i = 0; i < s->lines; i++)
        s->label[i] = dsc_text(p, "%.*g", of->digits, s->grid.y[s->line[i]]);
    s->note = dsc_left_out(p, s->lines, s->grid.ny, of->noun, s->selection.dropped);
}

// The table row of a point of [groups][lines][nx], SIZE_MAX: none.
static size_t row_of(const dsc_series *s, size_t i)
{
    size_t nx = s->grid.nx;
    return dsc_plot_grid_row(&s->grid, i / nx / s->lines, i % nx, s->line[i / nx % s->lines]);
}

double *dsc_series_values(dsc_plot *p, const dsc_series *s, const char *column, const char *per)
{
    const dsc_table *t = s->selection.table;
    size_t count = s->groups.groups * s->lines * s->grid.nx;
    bool any = false;
    double *out = dsc_plot_numbers(p, count);
    for (size_t i = 0; out && i < count; i++) {
        size_t row = row_of(s, i);
        double v = row == SIZE_MAX ? NAN : dsc_number_at(t, row, column);
        if (per && row != SIZE_MAX)
            v /= dsc_number_at(t, row, per);
        out[i] = dsc_drawable(v) ? v : NAN;
        any = any || dsc_drawable(v);
    }
    if (!any)
        dsc_refuse(p, "column '%s'%s%s has no finite number to draw", column, per ? " per " : "",
                   per ? per : "");
    return out;
}

void dsc_series_data(dsc_plot *p, const dsc_series *s, const dsc_series_of *of,
                     const char *const *column, double *const *value, size_t values)
{
    dsc_data_text(p, "group", "rows of one panel");
    dsc_data_number(p, of->line, dsc_term_title(of->line));
    dsc_data_number(p, of->x, dsc_term_title(of->x));
    for (size_t i = 0; i < values; i++)
        dsc_data_number(p, column[i], NULL);
    for (size_t i = 0; i < s->groups.groups * s->lines * s->grid.nx; i++) {
        const char *group = s->groups.label[i / s->grid.nx / s->lines];
        double number[DSC_DATA_COLUMNS] = {s->grid.y[s->line[i / s->grid.nx % s->lines]],
                                           s->grid.x[i % s->grid.nx]};
        for (size_t j = 0; j < values; j++)
            number[2 + j] = value[j][i];
        if (row_of(s, i) != SIZE_MAX)
            dsc_data_row(p, &(const char *){*group ? group : "all"}, number);
    }
}

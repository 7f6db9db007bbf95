// SPDX-License-Identifier: Apache-2.0
// Groups and indexes the rows of a sweep over two parameters, and reads their quantities.
#include "plots/draw/series.h"

#include "plots/draw/data.h"
#include "plots/draw/glossary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static void choose_lines(dsc_series *s, const dsc_series_of *of)
{
    size_t all = s->grid.ny;
    int used = 0;
    s->lines = dsc_thin(all, DSC_STYLES, best_rank(s), s->line);
    for (size_t i = 0; i < s->lines; i++)
        snprintf(s->label[i], sizeof s->label[i], "%.*g", of->digits, s->grid.y[s->line[i]]);
    if (s->lines < all)
        used = snprintf(s->note, sizeof s->note, "%zu of %zu %s drawn", s->lines, all, of->noun);
    if (s->selection.dropped)
        snprintf(s->note + used, sizeof s->note - (size_t)used,
                 "%s%zu row%s of other methods left out", used ? "; " : "", s->selection.dropped,
                 s->selection.dropped == 1 ? "" : "s");
}

int dsc_series_init(dsc_series *s, const dsc_table *t, const dsc_figure_options *o,
                    const dsc_series_of *of, dsc_error *err)
{
    int x = dsc_table_find(t, of->x), line = dsc_table_find(t, of->line);
    *s = (dsc_series){0};
    int rc = dsc_select(&s->selection, t, o, of->method, err);
    if (!rc)
        rc = dsc_group(&s->groups, &s->selection, (int[]){x, line}, err);
    if (!rc)
        rc = dsc_check_groups(&s->groups, DSC_PANEL_GROUPS, err);
    if (!rc)
        rc = dsc_plot_grid_init(&s->grid, &s->selection, &s->groups, x, line, err);
    if (rc)
        dsc_series_fini(s);
    else
        choose_lines(s, of);
    return rc;
}

void dsc_series_fini(dsc_series *s)
{
    dsc_plot_grid_fini(&s->grid);
    dsc_groups_fini(&s->groups);
    dsc_selection_fini(&s->selection);
}

// The table row of a point of [groups][lines][nx], SIZE_MAX: none.
static size_t row_of(const dsc_series *s, size_t i)
{
    size_t nx = s->grid.nx;
    return dsc_plot_grid_row(&s->grid, i / nx / s->lines, i % nx, s->line[i / nx % s->lines]);
}

int dsc_series_values(const dsc_series *s, const char *column, const char *per, double **out,
                      dsc_error *err)
{
    const dsc_table *t = s->selection.table;
    size_t count = s->groups.groups * s->lines * s->grid.nx;
    bool any = false;
    int rc = dsc_new(out, count, err);
    for (size_t i = 0; !rc && i < count; i++) {
        size_t row = row_of(s, i);
        double v = row == SIZE_MAX ? NAN : dsc_number_at(t, row, column);
        if (per && row != SIZE_MAX)
            v /= dsc_number_at(t, row, per);
        (*out)[i] = dsc_drawable(v) ? v : NAN;
        any = any || dsc_drawable(v);
    }
    return rc || any ? rc
                     : dsc_fail(err, DSC_EUSAGE, "column '%s'%s%s has no finite number to draw",
                                column, per ? " per " : "", per ? per : "");
}

int dsc_series_data(const dsc_series *s, const dsc_series_of *of, const char *const *column,
                    double *const *value, size_t values, dsc_table *data, dsc_error *err)
{
    int rc = dsc_table_add_column(data, "group", DSC_CELL_TEXT, "rows of one panel", err);
    if (!rc)
        rc = dsc_table_add_column(data, of->line, DSC_CELL_REAL, dsc_term_title(of->line), err);
    if (!rc)
        rc = dsc_table_add_column(data, of->x, DSC_CELL_REAL, dsc_term_title(of->x), err);
    for (size_t i = 0; !rc && i < values; i++)
        rc = dsc_data_numbers(data, column[i], err);
    for (size_t i = 0; !rc && i < s->groups.groups * s->lines * s->grid.nx; i++) {
        const char *group = s->groups.label[i / s->grid.nx / s->lines];
        double number[DSC_DATA_NUMBERS] = {s->grid.y[s->line[i / s->grid.nx % s->lines]],
                                           s->grid.x[i % s->grid.nx]};
        for (size_t j = 0; j < values; j++)
            number[2 + j] = value[j][i];
        if (row_of(s, i) != SIZE_MAX)
            rc = dsc_data_row(data, *group ? group : "all", number, 2 + values, err);
    }
    return rc;
}

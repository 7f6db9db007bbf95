// SPDX-License-Identifier: Apache-2.0
#include "plots/draw/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// The rank of the n with the greatest speed-up; 0 in a table without.
static size_t best_rank(const dsc_series *s)
{
    int column = dsc_table_find(s->selection.table, "speedup");
    size_t best = 0, cells = s->groups.groups * s->grid.nx * s->grid.ny;
    double most = -INFINITY;
    for (size_t i = 0; column >= 0 && i < cells; i++) {
        size_t row = s->grid.at[i];
        double v = row == SIZE_MAX ? NAN : dsc_table_real(s->selection.table, row, (size_t)column);
        if (isfinite(v) && v > most) {
            most = v;
            best = i / s->grid.nx % s->grid.ny;
        }
    }
    return best;
}

static void choose_lines(dsc_series *s)
{
    size_t all = s->grid.ny;
    s->lines = dsc_thin(all, DSC_STYLES, best_rank(s), s->line);
    for (size_t i = 0; i < s->lines; i++) {
        snprintf(s->label[i], sizeof s->label[i], "%g", s->grid.y[s->line[i]]);
        s->key[i] = (dsc_key){s->label[i], (int)i};
    }
    int used = 0;
    if (s->lines < all)
        used = snprintf(s->note, sizeof s->note, "%zu of %zu values of n drawn", s->lines, all);
    if (s->selection.dropped)
        snprintf(s->note + used, sizeof s->note - (size_t)used,
                 "%s%zu row%s of other methods left out", used ? "; " : "", s->selection.dropped,
                 s->selection.dropped == 1 ? "" : "s");
}

int dsc_series_init(dsc_series *s, const dsc_table *t, const dsc_figure_options *o, int k, int n,
                    dsc_error *err)
{
    *s = (dsc_series){0};
    int rc = dsc_select(&s->selection, t, o, "llma", err);
    if (!rc)
        rc = dsc_group(&s->groups, &s->selection, (int[]){k, n}, err);
    if (!rc && s->groups.groups > DSC_PANEL_GROUPS)
        rc = dsc_fail(err, DSC_EUSAGE,
                      "the table holds %zu groups of rows, a figure at most %d: filter by %.500s",
                      s->groups.groups, DSC_PANEL_GROUPS, s->groups.varying);
    if (!rc)
        rc = dsc_plot_grid_init(&s->grid, &s->selection, &s->groups, k, n, err);
    if (rc)
        dsc_series_fini(s);
    else
        choose_lines(s);
    return rc;
}

void dsc_series_fini(dsc_series *s)
{
    dsc_plot_grid_fini(&s->grid);
    dsc_groups_fini(&s->groups);
    dsc_selection_fini(&s->selection);
}

int dsc_series_values(const dsc_series *s, int column, int per, double **out, dsc_error *err)
{
    const dsc_table *t = s->selection.table;
    size_t count = s->groups.groups * s->lines * s->grid.nx;
    int rc = dsc_new(out, count, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < count; i++) {
        size_t group = i / (s->lines * s->grid.nx), line = i / s->grid.nx % s->lines;
        size_t row = dsc_plot_grid_row(&s->grid, group, i % s->grid.nx, s->line[line]);
        double v = row == SIZE_MAX ? NAN : dsc_table_real(t, row, (size_t)column);
        if (per >= 0 && row != SIZE_MAX)
            v /= dsc_table_real(t, row, (size_t)per);
        (*out)[i] = dsc_drawable(v) ? v : NAN;
    }
    return DSC_OK;
}

static int add_columns(const char *const *column, size_t values, dsc_table *data, dsc_error *err)
{
    int rc = dsc_table_add_column(data, "group", DSC_CELL_TEXT, "rows of one panel", err);
    if (!rc)
        rc = dsc_table_add_column(data, "n", DSC_CELL_REAL, "match length", err);
    if (!rc)
        rc = dsc_table_add_column(data, "k", DSC_CELL_REAL, "copy length", err);
    for (size_t i = 0; !rc && i < values; i++)
        rc = dsc_table_add_column(data, column[i], DSC_CELL_REAL, NULL, err);
    return rc;
}

int dsc_series_data(const dsc_series *s, const char *const *column, double *const *value,
                    size_t values, dsc_table *data, dsc_error *err)
{
    enum { MOST = 8 };
    if (values > MOST)
        return dsc_fail(err, DSC_EUSAGE, "more than %d quantities", MOST);
    int rc = add_columns(column, values, data, err);
    size_t count = s->groups.groups * s->lines * s->grid.nx;
    for (size_t i = 0; !rc && i < count; i++) {
        size_t group = i / (s->lines * s->grid.nx), line = i / s->grid.nx % s->lines;
        dsc_cell cell[MOST + 3] = {
            {.type = DSC_CELL_TEXT,
             .text = s->groups.label[group][0] ? s->groups.label[group] : "all"},
            {.type = DSC_CELL_REAL, .r = s->grid.y[s->line[line]]},
            {.type = DSC_CELL_REAL, .r = s->grid.x[i % s->grid.nx]},
        };
        for (size_t j = 0; j < values; j++)
            cell[3 + j] = (dsc_cell){.type = DSC_CELL_REAL, .r = value[j][i]};
        if (dsc_plot_grid_row(&s->grid, group, i % s->grid.nx, s->line[line]) != SIZE_MAX)
            rc = dsc_table_add_row(data, cell, err);
    }
    return rc;
}

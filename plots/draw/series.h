// SPDX-License-Identifier: Apache-2.0
// What the figures of LLMA's parameter study share: rows of a sweep over copy length k and match
// length n, a line per n, a group per semantics, references or method.
#ifndef DSC_PLOTS_SERIES_H
#define DSC_PLOTS_SERIES_H

#include "plots/draw/select.h"
#include "plots/draw/style.h"

enum { DSC_PANEL_GROUPS = 4 }; // more groups than this are refused, with the filter to give

typedef struct dsc_series {
    dsc_selection selection;
    dsc_groups groups;
    dsc_plot_grid grid;      // x = k, y = n
    size_t line[DSC_STYLES]; // index into grid.y of each line
    size_t lines;
    char label[DSC_STYLES][32]; // "3"
    dsc_key key[DSC_STYLES];
    char note[192]; // which n are left out and which rows, "" when all are drawn
} dsc_series;

// Selects, groups and indexes. DSC_EUSAGE as dsc_select, dsc_plot_grid_init, or too many groups.
int dsc_series_init(dsc_series *s, const dsc_table *t, const dsc_figure_options *o, int k, int n,
                    dsc_error *err);
void dsc_series_fini(dsc_series *s);

// value[groups][lines][nx] of a numeric column, divided by column `per` unless that is -1; NaN
// where there is no row or no finite number. *out owned by the caller.
int dsc_series_values(const dsc_series *s, int column, int per, double **out, dsc_error *err);

// Adds the columns (the group's, n, k) and a row per point to the data of a drawing. `column` are
// the names of `values` quantities, value[i] as from dsc_series_values.
int dsc_series_data(const dsc_series *s, const char *const *column, double *const *value,
                    size_t values, dsc_table *data, dsc_error *err);

#endif

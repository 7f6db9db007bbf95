// SPDX-License-Identifier: Apache-2.0
// What the report knows of one result table, and the sections it writes about it.
#ifndef DSC_PLOTS_REPORT_RESULT_H
#define DSC_PLOTS_REPORT_RESULT_H

#include "base/sha256.h"
#include "plots/figure.h"
#include "plots/text.h"

// One result and what the page says of it.
typedef struct dsc_result_view {
    const char *path;
    dsc_table table;
    char sha256[DSC_SHA256_HEX];
    int merit;      // column by which rows are ranked, or -1
    size_t *ranked; // [rows] the best first, rows without a merit last
    size_t *column; // [columns] indices of columns: see each use
    dsc_figure_filter
        *filter; // [filters] what singles out the best row's group; texts are the table's
    size_t filters;
} dsc_result_view;

// Reads and ranks; *r is to be freed by dsc_result_view_fini, also on failure.
int dsc_result_view_read(dsc_result_view *r, const char *path, dsc_error *err);
void dsc_result_view_fini(dsc_result_view *r);

// What a row is ranked by; -INFINITY when that is no finite number.
double dsc_merit(const dsc_result_view *r, size_t row);
bool dsc_has_best(const dsc_result_view *r); // whether any row has a finite merit
bool dsc_varies(const dsc_table *t, size_t column);
// Columns worth comparing in a short table, into r->column: those that vary, no lists.
size_t dsc_short_columns(dsc_result_view *r);
// The rows at the ends of k and n in the group of the best row; returns how many of the four.
size_t dsc_corner_rows(const dsc_result_view *r, size_t row[4]);

// The configurations of several results of one source (trace, or models) as one result without a
// path: those of the first result that can be compared. Results without configurations, of single
// requests, or of several batch sizes cannot. in_it[n] tells which ones; with fewer than two *r is
// empty.
int dsc_result_view_join(dsc_result_view *r, const dsc_result_view *in, size_t n, bool *in_it,
                         dsc_error *err);

// Sections of the page (report_section.c). Figures, those that compare or all of them, stand below
// `heading`, which is left out when there are none; they are numbered on from *number, and their
// failure is the only one that does not stay in w.
void dsc_put_best(dsc_writer *w, const dsc_result_view *r);
int dsc_put_figures(dsc_writer *w, const dsc_result_view *r, bool compare, const char *heading,
                    size_t *number, dsc_error *err);
void dsc_put_tables(dsc_writer *w, dsc_result_view *r);

#endif

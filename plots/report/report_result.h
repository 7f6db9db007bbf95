// SPDX-License-Identifier: Apache-2.0
// What the report knows of one result table, and the sections it writes about it.
#ifndef DSC_PLOTS_REPORT_RESULT_H
#define DSC_PLOTS_REPORT_RESULT_H

#include "base/sha256.h"
#include "plots/report/report_page.h"

// What a result is about, in the order of the story.
typedef enum dsc_result_kind {
    DSC_RESULT_WORKLOAD,  // a trace: its manifest, or trace info --json
    DSC_RESULT_METHODS,   // rows of configurations, or of requests
    DSC_RESULT_TUNED,     // the best configuration, or several batch sizes
    DSC_RESULT_BOUNDS,    // theory
    DSC_RESULT_VALIDATED, // predictions beside what they are held against
    DSC_RESULT_COSTS,     // times of forward passes
    DSC_RESULT_OTHER,
    DSC_RESULT_KINDS
} dsc_result_kind;

typedef struct dsc_fact {
    char *key, *value;
} dsc_fact;

// One result and what the page says of it.
typedef struct dsc_result_view {
    const char *path;
    dsc_table table;
    char sha256[DSC_SHA256_HEX]; // of a trace: of its manifest
    dsc_result_kind kind;
    dsc_fact *fact; // [facts] of a trace
    size_t facts, fact_capacity;
    int merit;      // column by which rows are ranked, or -1
    size_t *ranked; // [rows] the best first, rows without a merit last
    size_t *column; // [columns] indices of columns: see each use
    dsc_figure_filter
        *filter; // [filters] what singles out the best row's group; texts are the table's
    size_t filters;
} dsc_result_view;

// Reads and ranks a result table, a trace (a folder NAME.dst) or what trace info --json printed; *r
// is to be freed by dsc_result_view_fini, also on failure.
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

bool dsc_same_comment(const dsc_table *a, const dsc_table *b, const char *key);

// The configurations of several results of one source (trace, or models) as one result without a
// path: of those from `first` on that can be compared with it. Results without configurations, of
// single requests, or of several batch sizes cannot. in_it[n] tells which ones; with fewer than two
// *r is empty.
int dsc_result_view_join(dsc_result_view *r, const dsc_result_view *in, size_t n, size_t first,
                         bool *in_it, dsc_error *err);

// Of trace info --json or a manifest: every number and text, one level deep (report_facts.c).
// DSC_EINPUT when it is no JSON object.
int dsc_read_facts(dsc_result_view *r, const char *json, dsc_error *err);
const char *dsc_fact_find(const dsc_result_view *r, const char *key); // or NULL

// Sections of the page (report_section.c). Figures, those that compare or all of them, stand below
// `heading`, which is left out when there are none; their failure is the only one that does not
// stay in the page's writer.
void dsc_put_best(dsc_page *p, const dsc_result_view *r);
int dsc_put_figures(dsc_page *p, const dsc_result_view *r, bool compare, const char *heading,
                    dsc_error *err);
void dsc_put_tables(dsc_page *p, dsc_result_view *r);
// Not escaped; nothing is said of column `but`, which may be NULL.
void dsc_put_configuration(dsc_writer *w, const dsc_table *t, size_t row, const char *but);

// Chapters over all results (report_story.c).
void dsc_put_summary(dsc_page *p, const dsc_result_view *r, size_t n);
void dsc_put_workload(dsc_page *p, const dsc_result_view *r, size_t n);
void dsc_put_batches(dsc_page *p, const dsc_result_view *r);
void dsc_put_bounds(dsc_page *p, const dsc_result_view *r, size_t n);
void dsc_put_verdicts(dsc_page *p, const dsc_result_view *r);
void dsc_put_uncertain(dsc_page *p, const dsc_result_view *r, size_t n);
bool dsc_any_bounds(const dsc_result_view *r, size_t n); // whether dsc_put_bounds has anything

#endif

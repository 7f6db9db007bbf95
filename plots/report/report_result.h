// SPDX-License-Identifier: Apache-2.0
// One result of a report: its table, kind and ranking; and the sections written about it.
#ifndef DSC_PLOTS_REPORT_RESULT_H
#define DSC_PLOTS_REPORT_RESULT_H

#include "base/sha256.h"
#include "plots/draw/select.h"
#include "plots/report/report_page.h"

// The kind of a result, in the order of the chapters.
typedef enum dsc_result_kind {
    DSC_RESULT_WORKLOAD,  // a trace: its manifest, or the output of trace info --json
    DSC_RESULT_METHODS,   // one row per configuration, or per request
    DSC_RESULT_TUNED,     // from tune, or with several batch sizes
    DSC_RESULT_SERVED,    // from serve: one row per configuration and load
    DSC_RESULT_BOUNDS,    // theory
    DSC_RESULT_VALIDATED, // predictions with measured or published values
    DSC_RESULT_COSTS,     // times of forward passes
    DSC_RESULT_OTHER,
    DSC_RESULT_KINDS
} dsc_result_kind;

typedef struct dsc_fact {
    const char *key, *value;
} dsc_fact;

typedef struct dsc_result_view {
    const char *path;
    dsc_table table;
    dsc_table values;            // of a table by a metadata field: the rows of its values, which
                                 // `table` lacks
    dsc_plot memory;             // of what follows
    char sha256[DSC_SHA256_HEX]; // of the file; for a trace, of its manifest
    dsc_result_kind kind;
    dsc_fact *fact; // [facts] the scalars of a trace
    size_t facts, fact_capacity;
    int merit;                 // column by which rows are ranked, or -1
    size_t *ranked;            // [rows] best first, upper bounds last
    size_t *column;            // [columns] scratch: indices of columns
    dsc_figure_filter *filter; // [filters] select the best row's group; the table owns the text
    size_t filters;
} dsc_result_view;

// Reads and ranks a result table, a trace (a folder NAME.dst) or the output of trace info --json.
// The caller frees *r with dsc_result_view_fini, also on failure.
int dsc_result_view_read(dsc_result_view *r, const char *path, dsc_error *err);
void dsc_result_view_fini(dsc_result_view *r);

// The value by which rows are ranked; -INFINITY if it is not finite.
double dsc_merit(const dsc_result_view *r, size_t row);
// Whether a row comes before another: methods before upper bounds, then the higher merit.
bool dsc_is_better(const dsc_result_view *r, size_t row, size_t than);
bool dsc_has_best(const dsc_result_view *r); // whether any row has a finite merit
// Writes the columns of a short table to r->column: those that vary and are not lists; returns
// their number.
size_t dsc_short_columns(dsc_result_view *r);
// Finds the rows with the least and greatest draft length and n in the group of the best row;
// returns how many of the four exist.
size_t dsc_corner_rows(const dsc_result_view *r, size_t row[4]);

bool dsc_same_comment(const dsc_table *a, const dsc_table *b, const char *key);

// Whether two results, which may be the same, can be drawn together: they are of the same trace or
// models and have the same cost model. Results without configurations, with one row per request, or
// with several batch sizes cannot be compared.
bool dsc_are_comparable(const dsc_result_view *a, const dsc_result_view *b);
// Joins the results from `first` on that are comparable with it into one result without a path;
// with fewer than two, *r is empty.
int dsc_result_view_join(dsc_result_view *r, const dsc_result_view *in, size_t n, size_t first,
                         dsc_error *err);

// Reads every number and text, one level deep, of a manifest or of the output of trace info --json
// (report_facts.c). DSC_EINPUT: it is not a JSON object.
int dsc_read_facts(dsc_result_view *r, const char *json, dsc_error *err);
const char *dsc_fact_find(const dsc_result_view *r, const char *key); // or NULL

// Sections about one result (report_section.c). dsc_put_figures writes `heading` and all figures,
// or those that compare results; without a figure there is no heading. Errors stay in the page's
// writer.
void dsc_put_best(dsc_page *p, const dsc_result_view *r);
void dsc_put_figures(dsc_page *p, const dsc_result_view *r, bool compare, const char *heading);
// Draws the figure of the first screen: the first that fits a tuned result, or else results that
// can be compared, or else any result. dsc_put_figures does not draw it again.
void dsc_put_first_figure(dsc_page *p, const dsc_result_view *r, size_t n);
void dsc_put_tables(dsc_page *p, dsc_result_view *r);
// Writes the parameters of a row without escaping; column `but`, which may be NULL, is left out.
void dsc_put_configuration(dsc_writer *w, const dsc_table *t, size_t row, const char *but);

// The rows by a metadata field, if the result has any (report_by.c).
void dsc_put_by(dsc_page *p, const dsc_result_view *r);
// Verdicts (report_verdict.c). dsc_put_recommendation returns whether there is any verdict or best
// observed row.
bool dsc_put_recommendation(dsc_page *p, const dsc_result_view *r, size_t n);
void dsc_put_engine_lines(dsc_page *p, const dsc_result_view *r, size_t n);
// Whether the best row is a configuration that was selected on the requests it is reported on.
bool dsc_was_chosen_here(const dsc_result_view *r);
// The number of batch sizes that the best configuration of a result slows down.
size_t dsc_count_slow(const dsc_result_view *r);

// The parts of a verdict that tune or serve wrote: "run X: 2.3795 times ... (95 %: 1.9687 to
// 3.0609); rest", or "leave speculation off: X is 0.9 times ...". One without a number is `verdict`
// as a whole, and the other parts are "". Texts are the verdict's or in `memory`.
typedef struct dsc_verdict_words {
    const char *verdict, *gain, *interval, *rest;
} dsc_verdict_words;
dsc_verdict_words dsc_split_verdict(dsc_plot *memory, const char *verdict);

// A simulated server (report_load.c): its answers, and whether there is any; the verdict at each
// load; the rows of each load.
bool dsc_put_load_answers(dsc_page *p, const dsc_result_view *r, size_t n);
void dsc_put_load_verdicts(dsc_page *p, const dsc_result_view *r);
void dsc_put_load_rows(dsc_page *p, dsc_result_view *r);

// Chapters over all results (report_story.c).
void dsc_put_summary(dsc_page *p, const dsc_result_view *r, size_t n);
void dsc_put_workload(dsc_page *p, const dsc_result_view *r, size_t n);
void dsc_put_bounds(dsc_page *p, const dsc_result_view *r, size_t n);
void dsc_put_verdicts(dsc_page *p, const dsc_result_view *r);
void dsc_put_limitations(dsc_page *p, const dsc_result_view *r, size_t n);
bool dsc_any_bounds(const dsc_result_view *r, size_t n); // whether there is any

#endif

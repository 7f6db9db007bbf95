// SPDX-License-Identifier: Apache-2.0
// What the figures of a validation share: rows of `draftscope validate`, each a quantity of a
// configuration as it was predicted and as it was measured.
#ifndef DSC_PLOTS_CHECKS_H
#define DSC_PLOTS_CHECKS_H

#include "plots/draw/select.h"
#include "plots/draw/style.h"

enum { DSC_CHECK_GROUPS = 24, DSC_CHECK_NAME = 96, DSC_CHECK_QUANTITIES = 4 };

#define DSC_CHECK_NEEDS "method rule parameters quantity predicted measured se tolerance verdict"

// A row that has both numbers.
typedef struct dsc_check {
    size_t row, quantity, group; // of the table; indices into dsc_checks
    double predicted, measured;
    double error;       // 100 (predicted - measured) / |measured|; NaN where measured is 0
    double z_limit, se; // may be z_limit se apart; z_limit is NaN when z does not judge
    double percent;     // may be this many % of measured apart; NaN when percent do not judge
    bool judged, fails;
} dsc_check;

typedef struct dsc_checks {
    dsc_selection selection;
    const char *quantity[DSC_CHECK_QUANTITIES]; // those that any row has
    size_t quantities;
    dsc_check *check; // [checks] configurations
    size_t checks;
    dsc_check *pooled; // [pools] sums over the configurations of a method and rule
    size_t pools;
    size_t unpredicted;                          // rows of these quantities without a prediction
    char name[DSC_CHECK_GROUPS][DSC_CHECK_NAME]; // "spectr, kseq"
    size_t groups;
    bool temperatures; // several
} dsc_checks;

// The rows of `wanted` (NULL-terminated, at most DSC_CHECK_QUANTITIES) in groups of one method and
// rule, or of one method when there are more than `most` <= DSC_CHECK_GROUPS such groups; further
// methods share the last. DSC_EUSAGE: a column is missing, no row has both numbers.
int dsc_checks_init(dsc_checks *c, const dsc_table *t, const char *who, const dsc_figure_options *o,
                    const char *const *wanted, size_t most, dsc_error *err);
void dsc_checks_fini(dsc_checks *c);

// Whether dsc_checks_init would find something: what a report asks.
bool dsc_checks_fit(const dsc_table *t, const char *const *wanted);

// The limit in percent that judges the configurations of a quantity, or else, *pooled, what all of
// a method come to together; NaN: none. `pooled` may be NULL.
double dsc_checks_percent(const dsc_checks *c, size_t quantity, bool *pooled);

// "spectr, kseq, drafts=4 length=2"
void dsc_put_check(dsc_writer *w, const dsc_checks *c, const dsc_check *check);

// "off by 0.41 % on average, at most by -1.2 % (chain, length=8); 1 of 20 outside its tolerance" of
// a quantity's configurations.
void dsc_put_check_errors(dsc_writer *w, const dsc_checks *c, size_t quantity);

// Columns and a row for each configuration, then for each pooled row.
int dsc_checks_data(const dsc_checks *c, dsc_table *data, dsc_error *err);

// Panel i of `panels` beside each other below `top`, above each other on a narrow canvas.
typedef struct dsc_place {
    double left, top, right, bottom; // canvas units, y downwards
} dsc_place;
dsc_place dsc_panel_place(const dsc_canvas *c, double top, size_t panels, size_t i);

#endif

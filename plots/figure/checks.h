// SPDX-License-Identifier: Apache-2.0
// Reads the table of `draftscope validate`, in which each row contains the predicted and the
// measured value of one quantity of one configuration; and draws the parts that its figures share.
#ifndef DSC_PLOTS_CHECKS_H
#define DSC_PLOTS_CHECKS_H

#include "plots/draw/select.h"
#include "plots/draw/style.h"

enum { DSC_CHECK_GROUPS = 24, DSC_CHECK_QUANTITIES = 4 };

#define DSC_CHECK_NEEDS "method rule parameters quantity predicted measured se tolerance verdict"

// A row that has both numbers.
typedef struct dsc_check {
    size_t row, quantity, group; // row of the table; indices into dsc_checks
    double predicted, measured;
    double error;       // 100 (predicted - measured) / |measured|; NaN if measured is 0
    double z_limit, se; // tolerance z_limit standard errors; z_limit is NaN without a z test
    double percent;     // tolerance in percent of measured; NaN without one
    bool judged, fails;
} dsc_check;

typedef struct dsc_checks {
    dsc_selection selection;
    const char *quantity[DSC_CHECK_QUANTITIES]; // the quantities that some row has
    const char *heading[DSC_CHECK_QUANTITIES];
    size_t quantities;
    // [all] the configurations, of which there are `checks`, and then the pooled ones: sums over
    // all configurations of a method and rule.
    dsc_check *check;
    size_t checks, all;
    size_t unpredicted;                 // rows of these quantities without a prediction
    const char *name[DSC_CHECK_GROUPS]; // "spectr, kseq"
    size_t groups;
    bool temperatures; // there are several temperatures
} dsc_checks;

// Reads the rows of the quantities `wanted` (NULL-terminated, at most DSC_CHECK_QUANTITIES). They
// are grouped by method and rule, or by method if that gives more than `most` <= DSC_CHECK_GROUPS
// groups; further methods share the last group. DSC_EUSAGE: a column is missing, or no row has both
// numbers.
void dsc_checks_init(dsc_plot *p, dsc_checks *c, const char *const *wanted, size_t most);
// The same for the quantity of the options or, without one, the usual ones of the figure: its spec.
void dsc_checks_of_figure(dsc_plot *p, dsc_checks *c, size_t most);
// Whether a table has rows of the usual quantities of the figure.
bool dsc_checks_fit(dsc_plot *p);

// The configuration of a quantity after `k`, or the first after NULL; NULL after the last.
const dsc_check *dsc_next_check(const dsc_checks *c, size_t quantity, const dsc_check *k);

// The tolerance in percent for the configurations of a quantity or, if they have none, for the
// pooled rows (*pooled is set then); NaN: none. `pooled` may be NULL.
double dsc_checks_percent(const dsc_checks *c, size_t quantity, bool *pooled);

// Writes a signed percentage with two digits, or with all digits before the point.
void dsc_put_percent(dsc_writer *w, double percent);
// Writes the configuration of a check: "spectr, kseq, drafts=4 length=2".
void dsc_put_check(dsc_writer *w, const dsc_checks *c, const dsc_check *check);

// The same as a text of the plot, for dsc_mark and data.
const char *dsc_check_text(dsc_plot *p, const dsc_checks *c, const dsc_check *check);

// Summarizes the errors of a quantity: "mean |error| 0.41 %, largest -1.2 % (tree,
// num-speculative-tokens=8); 1 of 20 outside the tolerance".
void dsc_put_check_errors(dsc_writer *w, const dsc_checks *c, size_t quantity);

// Builds the data of a drawing: one row for each configuration, then for each pooled row.
void dsc_checks_data(dsc_plot *p, const dsc_checks *c);

// --- drawing -------------------------------------------------------------------------------

// A scatter plot with a panel for each quantity, and a key of the groups and a reference line.
typedef struct dsc_check_chart {
    const char *word, *title, *subtitle, *reference;
    double width, height;
    void (*put_data)(dsc_writer *w, const void *of);
    void (*put_panel)(dsc_plot *plot, const dsc_canvas *c, const void *of, size_t quantity,
                      dsc_place p);
} dsc_check_chart;

// Draws the chart; `of` is passed to its functions.
void dsc_draw_checks(dsc_plot *p, const dsc_checks *c, const dsc_check_chart *chart,
                     const void *of);

// The drawing of the figure predicted-vs-measured, of the quantities that the spec names
// (figure_predicted.c).
void dsc_draw_predicted(dsc_plot *p);

// Writes heading, `text` and axes of the panel of a quantity inside `p`, which ends `right` before
// its edge; returns the box of the axes.
dsc_place dsc_put_check_axes(dsc_writer *w, const dsc_canvas *c, dsc_place p, double right,
                             const char *heading, const char *text, const dsc_axis *y,
                             const char *x_label);

// Continues a plot command with the points of each group: columns 1 and 2 of $pointsQ, whose column
// 3 is the group. Checks for which `value` is NaN are not in that data.
void dsc_put_check_points(dsc_writer *w, const dsc_canvas *c, const dsc_checks *checks,
                          size_t quantity, double (*value)(const dsc_check *));

#endif

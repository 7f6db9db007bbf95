// SPDX-License-Identifier: Apache-2.0
// What the figures of acceptance share: rows of `draftscope theory accept`, the acceptance of four
// rules by number of drafts k, for each pair of distributions.
#ifndef DSC_PLOTS_ACCEPT_SERIES_H
#define DSC_PLOTS_ACCEPT_SERIES_H

#include "plots/draw/select.h"

// The rules, best first: their lines have the same order and look in every figure.
enum { DSC_ACCEPT_OTM, DSC_ACCEPT_KSEQ, DSC_ACCEPT_SPECINFER, DSC_ACCEPT_SINGLE, DSC_ACCEPT_RULES };
#define DSC_ACCEPT_NEEDS "pair k rejection specinfer kseq otm"

typedef struct dsc_accept_series {
    dsc_selection selection;
    const char **pair; // [pairs] in the table's order, owned by the table
    size_t pairs;
    double *k; // [nk] ascending
    size_t nk;
    // [pairs][DSC_ACCEPT_RULES][nk]: the number, or, where the table gives a range instead, NaN
    // and its ends; NaN where there is no row.
    double *value, *low, *high;
    bool ranges; // there is any
} dsc_accept_series;

// Reads the rows that pass the filters. DSC_EUSAGE: `who` needs a column, k is not a number, two
// rows are one point, or nothing is finite.
int dsc_accept_series_init(dsc_accept_series *s, const dsc_table *t, const dsc_figure_options *o,
                           const char *who, dsc_error *err);
void dsc_accept_series_fini(dsc_accept_series *s);

// Where value, low and high have rule `rule` of pair `pair`: [nk].
static inline size_t dsc_accept_at(const dsc_accept_series *s, size_t pair, size_t rule)
{
    return (pair * DSC_ACCEPT_RULES + rule) * s->nk;
}

// The common part of the two figures with a panel per pair: fills script, finding and data.
// `title` and `subtitle` are the figure's own; `name` its name as a word. At most
// DSC_ACCEPT_PANELS pairs, else DSC_EUSAGE with the filter to give.
enum { DSC_ACCEPT_PANELS = 6 };
int dsc_accept_draw(const dsc_accept_series *s, const dsc_figure_options *o, const char *terminal,
                    const char *name, const char *title, const char *subtitle, dsc_drawing *out,
                    dsc_error *err);

// Columns pair, k, the rules and, where there are ranges, their ends; a row per pair and k.
int dsc_accept_data(const dsc_accept_series *s, dsc_table *data, dsc_error *err);

#endif

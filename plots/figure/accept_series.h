// SPDX-License-Identifier: Apache-2.0
// Reads the table of `draftscope theory accept`: the acceptance probability of four verification
// rules by number of drafts K, for each pair of draft and target distributions.
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
    // [pairs][DSC_ACCEPT_RULES][nk]: a number, or NaN and the ends of a range if the table contains
    // a range instead; NaN where there is no row.
    double *value, *low, *high;
    bool ranges; // there is at least one
} dsc_accept_series;

// Reads the rows that pass the filters. DSC_EUSAGE: a column that the figure needs is missing, k is
// not a number, two rows share one point, or no value is finite.
void dsc_accept_series_init(dsc_plot *p, dsc_accept_series *s);

// The index of value, low and high at which rule `rule` of pair `pair` begins: [nk].
static inline size_t dsc_accept_at(const dsc_accept_series *s, size_t pair, size_t rule)
{
    return (pair * DSC_ACCEPT_RULES + rule) * s->nk;
}

// The name of a rule for a key.
const char *dsc_accept_rule(size_t rule);

// Builds the data of a drawing: the columns pair, k, the rules, and the ends of ranges if there are
// any; one row per pair and k.
void dsc_accept_data(dsc_plot *p, const dsc_accept_series *s);

#endif

// SPDX-License-Identifier: Apache-2.0
// The quantities of `draftscope theory accept` for a pair of distributions.
#ifndef DSC_CLI_THEORY_QUANTITIES_H
#define DSC_CLI_THEORY_QUANTITIES_H

#include "base/table.h"
#include "cli/theory/theory_rows.h"
#include "theory/acceptance.h"

enum {
    CLI_SINGLE,
    CLI_SPECINFER,
    CLI_SPECINFER_WOR,
    CLI_KSEQ,
    CLI_KSEQ_RHO,
    CLI_OTM,
    CLI_OTM_WOR,
    CLI_LEMMA3_UPPER,
    CLI_GAP,
    CLI_OTM_GREEDY,
    CLI_QUANTITIES
};

// Names and descriptions, in the order of the columns.
extern const dsc_column cli_quantity[CLI_QUANTITIES];

// The formula of each quantity and its source, then the functions that the formulas use.
enum { CLI_FORMULAS = CLI_QUANTITIES + 1 };
extern const dsc_column cli_formula[CLI_FORMULAS];

// Returns whether dsc_acceptance_of_rows computes it, in one pass over the vocabulary.
static inline bool cli_quantity_is_quick(int q)
{
    return q == CLI_SINGLE || q == CLI_SPECINFER || q == CLI_KSEQ || q == CLI_KSEQ_RHO ||
           q == CLI_OTM;
}

// Computes x[count][CLI_QUANTITIES] for k[count] drafts per position, each in [1, DSC_MAX_DRAFTS].
// A quantity that is undefined for the pair is {NaN, NaN}.
int cli_quantities(const cli_pair *p, const int *k, size_t count, dsc_interval *x, dsc_error *err);

// Computes the quick quantities only; the others are {NaN, NaN}. One `work` per thread.
int cli_quick_quantities(const cli_pair *p, const int *k, size_t count, dsc_interval *x,
                         dsc_acceptance_work *work, dsc_error *err);

#endif

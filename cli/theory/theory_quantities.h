// SPDX-License-Identifier: Apache-2.0
// What `draftscope theory accept` says of a pair of distributions.
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

// Names and meanings, in the order of the columns.
extern const dsc_column cli_quantity[CLI_QUANTITIES];

// The formula of each and its source, then what they stand on.
extern const dsc_column cli_formula[];
extern const size_t cli_formulas;

// Those that dsc_acceptance_of_rows gives, in one pass over rows of any length.
static inline bool cli_quantity_is_quick(int q)
{
    return q == CLI_SINGLE || q == CLI_SPECINFER || q == CLI_KSEQ || q == CLI_KSEQ_RHO ||
           q == CLI_OTM;
}

// x[count][CLI_QUANTITIES] for k[count] drafts per position, each in [1, DSC_MAX_DRAFTS]. What is
// not defined for the pair is {NaN, NaN}.
int cli_quantities(const cli_pair *p, const int *k, size_t count, dsc_interval *x, dsc_error *err);

// The quick ones only, the others {NaN, NaN}. `work` is the caller's thread's.
int cli_quick_quantities(const cli_pair *p, const int *k, size_t count, dsc_interval *x,
                         dsc_acceptance_work *work, dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// Unifies the draft length of different methods, which have different names for it.
#ifndef DSC_PLOTS_DRAFT_LENGTH_H
#define DSC_PLOTS_DRAFT_LENGTH_H

#include "plots/draw/select.h"

// Copies the selected rows, without lists and the names of requests, and adds DSC_DRAFT_LENGTH as
// the first column: the parameter that sets the length of the row's drafts, which is NaN in its own
// column. That is the option --x or, without it, the first of num_speculative_tokens, length,
// gamma, window, max, budget, depth that varies within the row's method, else the first of the
// first four that is present. The plot owns the table.
#define DSC_DRAFT_LENGTH "draft_length"
const dsc_table *dsc_length_table(dsc_plot *p, const dsc_selection *s);

// Whether times were priced. Under the cost `unit` drafting is free, and a speedup means nothing.
bool dsc_is_priced(const dsc_table *t);
// The result that a figure shows: the option --column, else speedup if it is priced, else block
// efficiency.
const char *dsc_result_column(const dsc_plot *p);
// Whether that result is a ratio to decoding without speculation.
bool dsc_is_ratio(const char *column);

#endif

// SPDX-License-Identifier: Apache-2.0
// Unifies the draft length of different methods, which have different names for it.
#ifndef DSC_PLOTS_DRAFT_LENGTH_H
#define DSC_PLOTS_DRAFT_LENGTH_H

#include "plots/draw/select.h"

// Copies the selected rows, without lists and the names of requests, and adds DSC_DRAFT_LENGTH as
// the first column: the parameter that sets the length of the row's drafts, which is NaN in its own
// column. That is column `x` or, if x is NULL, the first of num_speculative_tokens, length, gamma,
// window, max, budget, depth that varies within the row's method, else the first of the first four
// that is present.
#define DSC_DRAFT_LENGTH "draft_length"
int dsc_length_table(dsc_table *out, const dsc_selection *s, const char *x, dsc_error *err);

#endif

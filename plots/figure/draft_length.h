// SPDX-License-Identifier: Apache-2.0
// The draft length of rows of different methods, each of which has its own name for it.
#ifndef DSC_PLOTS_DRAFT_LENGTH_H
#define DSC_PLOTS_DRAFT_LENGTH_H

#include "plots/draw/select.h"

// A copy of `s`'s rows without lists and names of requests, in front of them the column
// DSC_DRAFT_LENGTH: of each row the parameter that sets the length of its drafts, which is NaN in
// its own column. That is column `x` (NULL: the first of length, k, gamma, window, most, budget,
// depth that varies within the row's method, else the first of the first four that is there).
#define DSC_DRAFT_LENGTH "draft_length"
int dsc_length_table(dsc_table *out, const dsc_selection *s, const char *x, dsc_error *err);

#endif

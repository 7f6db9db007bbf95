// SPDX-License-Identifier: Apache-2.0
// Draft trees and acceptance rates as options give them: by name, as a list, or in a file.
#ifndef DSC_SIM_TREE_FILE_H
#define DSC_SIM_TREE_FILE_H

#include "theory/tree.h"

// The tree called `name` (dsc_tree_named), or, if it contains a / or a ., of that file
// (dsc_tree_parse). *t is owned by the caller (dsc_tree_fini). DSC_EUSAGE: no such tree;
// DSC_EINPUT: the file.
int dsc_tree_load(dsc_tree *t, const char *name, dsc_error *err);

// Acceptance rates by rank: "P0,P1,..." with a / before the next depth, or the name of a file with
// a depth per line ('#' starts a comment). A text of digits, signs, '.', ',', '/' and blanks is a
// list. Missing ranks are 0. *rate, which out->rate points to, is owned by the caller (free).
// DSC_EUSAGE: a bad list; DSC_EINPUT: a bad file.
int dsc_tree_acceptance_load(dsc_tree_acceptance *out, double **rate, const char *text,
                             dsc_error *err);

#endif

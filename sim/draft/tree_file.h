// SPDX-License-Identifier: Apache-2.0
// Draft trees and acceptances as a person names them: by name, in a list, or in a file.
#ifndef DSC_SIM_TREE_FILE_H
#define DSC_SIM_TREE_FILE_H

#include "theory/tree.h"

// The tree of a name (dsc_tree_named), or, when a / or a . is in it, of a file (dsc_tree_parse).
// DSC_EUSAGE, DSC_EINPUT. *t is owned by the caller (dsc_tree_fini).
DSC_API int dsc_tree_load(dsc_tree *t, const char *name, dsc_error *err);

// Acceptances by rank: "P0,P1,..." with a / before the next depth, or the name of a file with a
// depth per line ('#' opens a comment). Depths with fewer ranks than others are filled with 0.
// A text of digits, signs, '.', ',', '/' and blanks is a list. DSC_EUSAGE, DSC_EINPUT. *rate, which
// out->rate points to, is owned by the caller.
DSC_API int dsc_tree_acceptance_load(dsc_tree_acceptance *out, double **rate, const char *text,
                                     dsc_error *err);

#endif

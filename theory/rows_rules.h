// SPDX-License-Identifier: Apache-2.0
// Internal: the rules for i.i.d. drafts, computed from the curve of a pair of rows.
#ifndef DSC_THEORY_ROWS_RULES_H
#define DSC_THEORY_ROWS_RULES_H

#include "theory/kseq.h"
#include "theory/otm_internal.h"

// Looks up, in one pass, the cells that the functions below and dsc_otm_levels need for 1, .., K
// drafts. K in [1, DSC_MAX_DRAFTS]. DSC_ENOMEM.
int dsc_rows_prepare(dsc_rows_curve *c, int K, dsc_otm_fit *scratch, dsc_error *err);

// SpecInfer rejection (theory/specinfer.h): at[i] = c_{i+1} and w[i] = W(c_{i+1}) for i = 0, .., K.
void dsc_rows_specinfer(dsc_rows_curve *c, int K, double *at, double *w);

// dsc_kseq_best for 1, .., K drafts, into out[K].
void dsc_rows_kseq(dsc_rows_curve *c, int K, dsc_kseq *out);

#endif

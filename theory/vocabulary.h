// SPDX-License-Identifier: Apache-2.0
// Drafts from a subset S of the vocabulary (EAGLE-3, Li et al. 2025, with d2t and t2d maps;
// FR-Spec, Zhao et al. 2025, arXiv 2502.14856): acceptance at one position.
//
// The token that a lossless rule emits is a sample of the target, and an accepted one is in S. So
// no rule, and no number or distribution of drafts, accepts more than target(S). With S the support
// of the draft this is dsc_otm_limit, Lemma 1 of SpecTr (Sun et al. 2023). The draft target
// restricted to S reaches it with one token: sum over S of min(target/target(S), target).
#ifndef DSC_THEORY_VOCABULARY_H
#define DSC_THEORY_VOCABULARY_H

#include "base/memory.h"

#include <stdbool.h>
#include <stdint.h>

// Number of the tokens token[count], each in [0, vocab), that are in S. A draft that is accepted is
// one of them, whatever the rule.
int64_t dsc_vocabulary_covered(const int32_t *token, int64_t count, const bool *in);

// target(S). in[vocab]: whether a token is in S. NaN: an argument is NULL.
double dsc_vocabulary_limit(const double *target, size_t vocab, const bool *in);

// accept[i] becomes the optimal acceptance (theory/otm.h) with k[i] i.i.d. drafts from the draft
// distribution restricted to S and normalized; 0 where the draft has no mass in S. room[vocab] is
// scratch. DSC_EUSAGE: an argument is NULL, or the rows are no distributions. DSC_ENOMEM.
int dsc_vocabulary_otm(const double *draft, const double *target, size_t vocab, const bool *in,
                       const int *k, size_t count, double *room, double *accept, dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// SpecTr's information-theoretic bounds on alpha_k (Sun et al. 2023, Lemma 3): (1 - (1 - 1/k)^k)
// upper <= alpha_k <= upper. The upper bound equals alpha_k itself; lemma3.c contains the proof.
#ifndef DSC_THEORY_LEMMA3_H
#define DSC_THEORY_LEMMA3_H

#include "theory/curve.h"

typedef struct dsc_lemma3 {
    int k;
    double lower; // k-Seq reaches at least this
    double upper;
} dsc_lemma3;

// Exact bounds for k >= 1 i.i.d. drafts. O(atoms).
dsc_lemma3 dsc_lemma3_bounds(const dsc_curve *c, int k);

#endif

// SPDX-License-Identifier: Apache-2.0
// Ouroboros (Zhao et al. 2024, "Ouroboros: Generating Longer Drafts Phrase by Phrase for Faster
// Speculative Decoding", arXiv 2402.13720): with phrases the draft model writes several tokens per
// forward pass, and phrases extend the finished draft at no cost.
#ifndef DSC_THEORY_OUROBOROS_H
#define DSC_THEORY_OUROBOROS_H

#include "base/status.h"

typedef struct dsc_ouroboros {
    int length; // gamma: tokens that the draft model writes, >= 0
    int phrase; // beta: tokens that phrases append to them, >= 0
    double
        per_forward; // c: draft tokens per forward pass of the draft model, > 0; 1: without phrases
    double draft;    // t_S/t_T: draft forward pass in units of a target call, >= 0
} dsc_ouroboros;

// Speedup by Eq. (6), (A(gamma + beta) + 1)/(gamma/c t_S/t_T + 1). `accepted` is A(gamma + beta),
// the expected number of accepted tokens among gamma + beta draft tokens (block.h). With phrase = 0
// and per_forward = 1 it is Eq. (5), speculative decoding. gamma/c is an average and need not be an
// integer.
double dsc_ouroboros_speedup(const dsc_ouroboros *o, double accepted);

#endif

// SPDX-License-Identifier: Apache-2.0
// The optimal-transport value with membership cost: the largest acceptance that any lossless rule
// can reach with k drafts (SpecTr Eq. (4), there a linear program of V^(k+1) variables).
//
// By Hall's theorem (Strassen) it is 1 - max over token sets A of Pr(all drafts in A) - target(A).
// For i.i.d. drafts Pr = draft(A)^k is convex in draft(A), so the best A is a prefix of the tokens
// sorted by ratio target/draft.
#ifndef DSC_THEORY_OTM_H
#define DSC_THEORY_OTM_H

#include "theory/curve.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dsc_otm {
    int k;
    double accept; // alpha_k
    size_t cut;    // A is the first `cut` atoms of the curve, the smallest maximizer; 0: A is empty
    double draft_in;  // draft(A)
    double target_in; // target(A)
} dsc_otm;

// alpha_k = 1 - max over prefixes A of draft(A)^k - target(A), exact. k >= 1. O(atoms). Here and in
// dsc_otm_limit NaN: k is smaller, or the curve is NULL or was not initialized.
DSC_API dsc_otm dsc_otm_value(const dsc_curve *c, int k);

// Lemma 1: alpha_k grows with k to target(support of the draft).
DSC_API double dsc_otm_limit(const dsc_curve *c);

// The optimal acceptance for drafts sampled without replacement (successive sampling): 1 - max over
// prefixes A of Pr(all k in A) - target(A), the optimum for such drafts (Hu et al. 2025, arXiv
// 2502.18779), for k = 1..kmax into accept[kmax]. When fewer than k tokens have positive
// probability, all of them are drafts. Absolute error below 1e-10. O(V kmax nodes). DSC_EUSAGE:
// kmax is outside [1, 64], a row is NULL or no distribution, or `accept` is NULL. DSC_ENOMEM.
DSC_API int dsc_otm_wor(const double *draft, const double *target, size_t vocab, int kmax,
                        double *accept, dsc_error *err);

// The optimum for the greedy draft set, the k - 1 most probable tokens of the draft and one sampled
// from the others (Hu et al. 2025): target(T) + sum outside T of min(draft/(1 - draft(T)), target).
// O(V kmax). The errors are those of dsc_otm_wor.
DSC_API int dsc_otm_greedy(const double *draft, const double *target, size_t vocab, int kmax,
                           double *accept, dsc_error *err);

#ifdef __cplusplus
}
#endif

#endif

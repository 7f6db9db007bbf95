// SPDX-License-Identifier: Apache-2.0
// k-Seq, SpecTr Alg. 2: k i.i.d. drafts in order, each accepted with probability
// min(1, target/(rho draft)); the first accepted one is the output.
//
// Outside their domains (curves that were initialized, k >= 1, rho >= 1, probabilities in [0, 1])
// the functions return NaN, or NaN in rho, beta and accept, and fill arrays with NaN.
// dsc_kseq_survivors writes nothing when the dsc_kseq, which has the length of its array, is NULL.
#ifndef DSC_THEORY_KSEQ_H
#define DSC_THEORY_KSEQ_H

#include "theory/curve.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dsc_kseq {
    int k;         // drafts, >= 1
    double rho;    // in [1, k]
    double beta;   // Pr(one draft is accepted) = sum min(draft, target/rho) = (1 - W(rho))/rho
    double accept; // Pr(any is accepted) = 1 - (1 - beta)^k
} dsc_kseq;

// The best valid rho (SpecTr Eq. (6)), which solves 1 - (1 - beta(rho))^k = rho beta(rho) on [1,
// min(k, largest ratio)], to rounding. The upper end of the final bracket is returned, because the
// residual is a distribution only for rho >= rho*. 1 when the distributions are equal or k = 1. k
// >= 1.
DSC_API dsc_kseq dsc_kseq_best(const dsc_curve *c, int k);

// k-Seq with a given rho >= 1. If rho < rho*, it is not valid: the residual has negative entries.
DSC_API dsc_kseq dsc_kseq_at(const dsc_curve *c, int k, double rho);

// Pr(a draft token x is accepted) = min(1, target(x)/(rho draft(x))); draft_x > 0.
DSC_API double dsc_kseq_token(const dsc_kseq *s, double draft_x, double target_x);

// Pr(accepted | the output is y) = accept/beta min(draft(y)/target(y), 1/rho); target_y > 0.
DSC_API double dsc_kseq_given(const dsc_kseq *s, double draft_y, double target_y);

// Joint distribution given the output y: dist[0] = Pr(rejected | y); dist[m] = Pr(accepted and
// exactly m of the k drafts are y | y), m = 1..k. These m survivors continue in SpecTr Alg. 3. k <=
// 1000, target_y > 0.
DSC_API void dsc_kseq_survivors(const dsc_kseq *s, double draft_y, double target_y, double *dist);

// The residual distribution, sampled when all k are rejected: [target - min(draft, target/rho)
// accept/beta] / (1 - accept), into residual[vocab]; all zero when accept is 1.
DSC_API void dsc_kseq_residual(const dsc_kseq *s, const double *draft, const double *target,
                               size_t vocab, double *residual);

#ifdef __cplusplus
}
#endif

#endif

// SPDX-License-Identifier: Apache-2.0
// Block verification (Sun, Mendlovic, Leviathan et al. 2024, "Block Verification Accelerates
// Speculative Decoding", Alg. 2): the drafts of one path X_1 .. X_L are accepted or not as a whole
// prefix, and never fewer of them on average than token by token.
//
//   p_0 = 1, p_i = min(p_{i-1} target(X_i | X^{i-1}) / draft(X_i | X^{i-1}), 1)
//   left_i = sum over x of (p_i target(x | X^i) - draft(x | X^i))+
//   h_i = left_i / (left_i + 1 - p_i) for i < L, h_L = p_L
//
// Accepted is X^tau with tau the largest i whose coin h_i comes up (tau = 0 needs none); the token
// after it is drawn from (p_tau target - draft)+ normalised, or from the target when tau = L.
// Pr(tau >= i | X^i) = p_i.
#ifndef DSC_THEORY_BLOCK_VERIFY_H
#define DSC_THEORY_BLOCK_VERIFY_H

#include "theory/curve.h"
#include "theory/interval.h"

// p_i from p = p_{i-1} and the distributions' elements at X_i; draft_x > 0.
DSC_API double dsc_block_ratio(double p, double draft_x, double target_x);

// left_i from p = p_i and the curve of the distributions of the next token. O(log atoms).
DSC_API double dsc_block_left(const dsc_curve *next, double p);

// h_i, i < L. 0 when p = 1 and left = 0 (the distributions are equal: a longer prefix is then
// accepted).
DSC_API double dsc_block_coin(double p, double left);

// The distribution of the token after tau < L accepted drafts, p = p_tau, into residual[vocab]; all
// zero when left is 0 (no block ends there).
DSC_API void dsc_block_residual(double p, const double *draft, const double *target, size_t vocab,
                                double *residual);

// Conditional replay: at_least[i] = Pr(tau >= i | the output begins y_1 .. y_length), 0 <= i <=
// length, from draft_y[i] and target_y[i], the distributions' elements at y_{i+1} given y_1 .. y_i;
// target_y > 0. It is the smallest over j <= i of the product of the first j draft/target.
DSC_API void dsc_block_given(const double *draft_y, const double *target_y, int length,
                             double *at_least);
// The same token by token: the product of the first i min(draft/target, 1).
DSC_API void dsc_block_given_token(const double *draft_y, const double *target_y, int length,
                                   double *at_least);

// What dsc_block_expected aims at by itself, and the most bins that it takes for it.
#define DSC_BLOCK_WIDTH 1e-6
enum { DSC_BLOCK_BINS = 32768 };

// Expected accepted drafts, sum of E[p_i], of blocks whose distributions do not depend on the path:
// curve[i], 0 <= i < length, for draft i + 1; length >= 1. accepted[i] is that of the block of the
// positions i .. length - 1, so for one curve at every position accepted[length - n] is for length
// n.
//
// bins = 0: exact to rounding when the p_i take few values, else certified bounds (up to 1e-12 of
// rounding), as many bins as it takes for high - low <= DSC_BLOCK_WIDTH. bins in [64, 1 << 20]:
// the bounds with so many; the distance falls as 1/bins^2, and the time is at most
// O(length bins^2). DSC_ENOMEM.
DSC_API int dsc_block_expected(const dsc_curve *const *curve, int length, int bins,
                               dsc_interval *accepted, dsc_error *err);
// Token by token: the sum of the products of the single-draft acceptances, likewise.
DSC_API void dsc_block_expected_token(const dsc_curve *const *curve, int length, double *accepted);

#endif

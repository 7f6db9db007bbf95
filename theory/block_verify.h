// SPDX-License-Identifier: Apache-2.0
// Block verification (Sun, Mendlovic, Leviathan et al. 2024, "Block Verification Accelerates
// Speculative Decoding", Alg. 2) decides on the drafts X_1 .. X_L of one path together and accepts
// a prefix. On average it never accepts fewer tokens than token-by-token verification.
//
//   p_0 = 1, p_i = min(p_{i-1} target(X_i | X^{i-1}) / draft(X_i | X^{i-1}), 1)
//   left_i = sum over x of (p_i target(x | X^i) - draft(x | X^i))+
//   h_i = left_i / (left_i + 1 - p_i) for i < L, h_L = p_L
//
// The accepted prefix is X^tau with tau the largest i at which a coin of probability h_i comes up
// (tau = 0 needs none). The token after it is sampled from (p_tau target - draft)+ normalized, or
// from the target when tau = L. Pr(tau >= i | X^i) = p_i.
#ifndef DSC_THEORY_BLOCK_VERIFY_H
#define DSC_THEORY_BLOCK_VERIFY_H

#include "theory/curve.h"
#include "theory/interval.h"

// p_i from p = p_{i-1} and the two probabilities of X_i; draft_x > 0.
double dsc_block_ratio(double p, double draft_x, double target_x);

// left_i from p = p_i and the curve of the next token's distributions. O(log atoms).
double dsc_block_left(const dsc_curve *next, double p);

// h_i, i < L. 0 when p = 1 and left = 0 (the distributions are equal: a longer prefix is then
// accepted).
double dsc_block_coin(double p, double left);

// The distribution of the token after tau < L accepted drafts, p = p_tau, into residual[vocab]; all
// zero when left is 0 (no block ends there).
void dsc_block_residual(double p, const double *draft, const double *target, size_t vocab,
                        double *residual);

// Conditional replay: at_least[i] = Pr(tau >= i | the output begins y_1 .. y_length), 0 <= i <=
// length. draft_y[i] and target_y[i] > 0 are the probabilities of y_{i+1} given y_1 .. y_i.
// at_least[i] is the minimum over j <= i of the product of the first j ratios draft/target.
void dsc_block_given(const double *draft_y, const double *target_y, int length, double *at_least);
// Conditional replay of token-by-token verification: at_least[i] is the product of the first i
// min(draft/target, 1).
void dsc_block_given_token(const double *draft_y, const double *target_y, int length,
                           double *at_least);

// Target accuracy of dsc_block_expected with bins = 0, and the most bins that it uses for that.
#define DSC_BLOCK_WIDTH 1e-6
enum { DSC_BLOCK_BINS = 32768 };

// Expected accepted drafts, the sum of E[p_i], of blocks whose distributions do not depend on the
// path. curve[i], 0 <= i < length, is the curve of draft i + 1; length >= 1. accepted[i] is for the
// block of positions i .. length - 1, so with one curve at every position accepted[length - n] is
// for draft length n.
//
// bins = 0: exact to rounding when the p_i take few values. Otherwise certified bounds (up to 1e-12
// of rounding) with as many bins as high - low <= DSC_BLOCK_WIDTH needs. bins in [64, 1 << 20]: the
// bounds with that number of bins; their distance falls as 1/bins^2, and the time is at most
// O(length bins^2). DSC_ENOMEM.
int dsc_block_expected(const dsc_curve *const *curve, int length, int bins, dsc_interval *accepted,
                       dsc_error *err);
// The expected number of accepted tokens under token-by-token verification: the sum of the products
// of the acceptance probabilities of one draft.
void dsc_block_expected_token(const dsc_curve *const *curve, int length, double *accepted);

#endif

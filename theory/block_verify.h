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
// from the target when tau = L. Pr(tau >= i | X^i) = p_i. Conditional replay: given that the output
// begins y_1 .. y_L, Pr(tau >= i) is the minimum over j <= i of the product of the first j ratios
// draft/target (block_verify.c has the proof).
#ifndef DSC_THEORY_BLOCK_VERIFY_H
#define DSC_THEORY_BLOCK_VERIFY_H

#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// p_i from p = p_{i-1} and the two probabilities of X_i; draft_x > 0. NaN for other
// arguments.
DSC_API double dsc_block_ratio(double p, double draft_x, double target_x);

// h_i, i < L, from p = p_i and left = left_i. 0 when p = 1 and left = 0 (the distributions are
// equal: a longer prefix is then accepted). NaN for other arguments.
DSC_API double dsc_block_coin(double p, double left);

#ifdef __cplusplus
}
#endif

#endif

// SPDX-License-Identifier: Apache-2.0
// SpecInfer rejection without replacement (recursive rejection: EAGLE-1, Li et al. 2024; RSD, Jeon
// et al. 2024). r_1 = target, draft_1 = draft; X_i ~ draft_i is accepted with probability min(1,
// r_i/draft_i), else r_{i+1} = (r_i - draft_i)+ normalized, and draft_{i+1} is draft_i without X_i,
// normalized.
//
// On the curve r_i = (target - c_i draft)+ / W(c_i), with c_1 = 0, c_{i+1} = c_i +
// W(c_i)/remaining_i, where remaining_i is the draft mass of the tokens that were not removed
// before round i. So a round is two scalars, c and remaining. Acceptance is never below that with
// replacement, where remaining is always 1.
#ifndef DSC_THEORY_SPECINFER_WOR_H
#define DSC_THEORY_SPECINFER_WOR_H

#include "theory/curve.h"

// Pr(some round accepts) for k = 1..kmax, kmax in [1, 64], as an interval low[k - 1] .. high[k -
// 1]. When the support of the draft has fewer than k tokens, all of them are drafts.
//
// The sets of tokens that can be removed in the first k - 1 rounds are enumerated, where tokens of
// equal draft mass count as one. When that takes at most `budget` steps (a fraction of a
// microsecond each), the value is exact: high - low is rounding, below 1e-12. For k <= 2 this is
// always so. Otherwise the interval provably contains the value and narrows as the budget grows. It
// may also be wide when only draft masses below 1e-300 are left (c does not fit in a double).
// DSC_ENOMEM.
int dsc_specinfer_wor(const dsc_curve *curve, const double *draft, const double *target,
                      size_t vocab, int kmax, int64_t budget, double *low, double *high,
                      dsc_error *err);

#endif

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

typedef struct dsc_wor_round {
    double c; // c_i
    double w; // W(c_i), the product of Pr(rejected | tokens removed before) over earlier rounds
    double
        remaining; // draft mass of the tokens not removed; a draft is sampled from draft/remaining
} dsc_wor_round;

// The first round: nothing removed.
dsc_wor_round dsc_wor_first(void);

// The round after a token of mass draft_x, sampled in `round`, was rejected. If that token was the
// last one, there is no further round: the output is sampled from dsc_wor_residual at the c and w
// returned here.
dsc_wor_round dsc_wor_next(const dsc_curve *curve, const dsc_wor_round *round, double draft_x);

// Pr(accept draft token x in this round) = min(1, r_i/draft_i); draft_x > 0, x not removed.
double dsc_wor_token(const dsc_wor_round *round, double draft_x, double target_x);

// r_i(x). The acceptance test compares it with draft_i; when no round is left, the output is
// sampled from it. 0 for a removed token, and 0 when w is 0.
double dsc_wor_residual(const dsc_wor_round *round, double draft_x, double target_x);

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

// SPDX-License-Identifier: Apache-2.0
// Multi-round rejection WITHOUT replacement (recursive rejection: EAGLE-1, Li et al. 2024; RSD,
// Jeon et al. 2024): r_1 = target, draft_1 = draft; X_i ~ draft_i is accepted with probability
// min(1, r_i/draft_i), else r_{i+1} = (r_i - draft_i)+ normalised, and draft_{i+1} is draft_i
// without X_i, normalised.
//
// On the curve r_i = (target - c_i draft)+ / W(c_i), with c_1 = 0, c_{i+1} = c_i + W(c_i)/rest_i
// and rest_i the draft mass that was not removed before round i: a round is the scalars (c, rest).
// Drafts never do worse than with replacement (there rest stays 1).
#ifndef DSC_THEORY_SPECINFER_WOR_H
#define DSC_THEORY_SPECINFER_WOR_H

#include "theory/curve.h"

typedef struct dsc_wor_round {
    double c; // c_i
    double w; // W(c_i), the product of Pr(rejected | tokens removed before) of earlier rounds
    double
        residual; // draft mass of the tokens not removed; the distribution drawn from is draft/rest
} dsc_wor_round;

// The first round: nothing removed.
DSC_API dsc_wor_round dsc_wor_first(void);

// The round after a token of mass draft_x, drawn in `round`, was rejected. There is none when that
// token was the last: the output is then drawn from dsc_wor_residual at the c and w returned here.
DSC_API dsc_wor_round dsc_wor_next(const dsc_curve *curve, const dsc_wor_round *round,
                                   double draft_x);

// Pr(accept draft token x in this round) = min(1, r_i/draft_i); draft_x > 0, x not removed.
DSC_API double dsc_wor_token(const dsc_wor_round *round, double draft_x, double target_x);

// r_i(x): what draft_i is compared with, and the distribution to draw from when no round is left.
// Of a removed token it is 0. 0 when w is 0.
DSC_API double dsc_wor_residual(const dsc_wor_round *round, double draft_x, double target_x);

// Pr(some round accepts) for k = 1..kmax, kmax in [1, 64], within low[k - 1] .. high[k - 1]. When
// the support of the draft has fewer than k tokens, all of them are drafts.
//
// What can be removed in the first k - 1 rounds is enumerated, tokens of one draft mass as one.
// When that takes no more than `budget` steps (a fraction of a microsecond each) the value is
// exact: high - low is rounding, below 1e-12. So it is for k <= 2 whatever the budget. Otherwise
// the interval is proved to hold the value, and narrows as the budget grows. It may also be wide
// when draft masses below 1e-300 are all that is left (c does not fit in a double). DSC_ENOMEM.
DSC_API int dsc_specinfer_wor(const dsc_curve *curve, const double *draft, const double *target,
                              size_t vocab, int kmax, int64_t budget, double *low, double *high,
                              dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// Rejection sampling with one draft token: the maximal coupling of draft and target. Acceptance and
// residual: SpecTr (Sun et al. 2023) Eq. (1) and Alg. 1 = Leviathan et al. 2023 Alg. 1.
#include "theory/single.h"

#include "theory/domain.h"

#include <math.h>

double dsc_single_acceptance(const dsc_curve *c)
{
    if (!dsc_is_curve(c))
        return (double)NAN;
    // 1 - W(1) without cancellation: tokens of ratio > 1 add their draft mass, the others their
    // target mass.
    size_t i = dsc_curve_count(c, 1);
    return fmin(c->draft_above[i] + c->target_below[i], 1);
}

double dsc_single_token(double draft_x, double target_x)
{
    return dsc_is_given(target_x, draft_x) ? fmin(target_x / draft_x, 1) : (double)NAN;
}

double dsc_single_given(double draft_y, double target_y)
{
    // Bayes: Pr(draft is y) Pr(accept y) / Pr(output is y) = min(draft, target) / target.
    return dsc_is_given(draft_y, target_y) ? fmin(draft_y / target_y, 1) : (double)NAN;
}

void dsc_single_survivors(double draft_y, double target_y, double dist[2])
{
    if (!dist)
        return;
    dist[1] = dsc_single_given(draft_y, target_y);
    dist[0] = 1 - dist[1];
}

void dsc_single_residual(const double *draft, const double *target, size_t vocab, double *residual)
{
    double sum = 0;
    if (!residual || !dsc_is_distribution(draft, vocab) || !dsc_is_distribution(target, vocab)) {
        dsc_fill_nan(residual, vocab);
        return;
    }
    for (size_t x = 0; x < vocab; x++)
        sum += residual[x] = fmax(target[x] - draft[x], 0);
    for (size_t x = 0; x < vocab && sum > 0; x++)
        residual[x] /= sum;
}

// SPDX-License-Identifier: Apache-2.0
// The optimal acceptance with k i.i.d. drafts, SpecTr (Sun et al. 2023) Eq. (4), by its minimum
// cut; theory/otm.h.
//
// The best A is a prefix: for fixed draft(A) = P it has the least target mass, which is the
// fractional knapsack filled in order of ratio. P^k - Q is convex along each piece of that filling
// (P^k is convex, Q linear), so its maximum is at an end of a piece. Over the prefixes it is not
// unimodal, so all are tried.
#include "theory/otm.h"

#include "theory/domain.h"

#include <math.h>

// draft(A)^k - target(A) for A = the first i atoms. A whole distribution sums to 1, so the suffix
// sums give the same value where they are the smaller ones, and exactly 0 for all tokens.
static double excess(const dsc_curve *c, size_t i, int k)
{
    if (c->draft_above[i] < .5)
        return c->target_above[i] + expm1(k * log1p(-c->draft_above[i]));
    return pow(c->draft_below[i], k) - c->target_below[i];
}

dsc_otm dsc_otm_value(const dsc_curve *c, int k)
{
    if (!dsc_is_curve(c) || k < 1)
        return (dsc_otm){k, (double)NAN, 0, (double)NAN, (double)NAN};
    double most = 0;
    size_t cut = 0;
    for (size_t i = 1; i <= c->atoms; i++) {
        double e = excess(c, i, k);
        if (e > most) {
            most = e;
            cut = i;
        }
    }
    return (dsc_otm){k, fmax(1 - most, 0), cut, c->draft_below[cut], c->target_below[cut]};
}

double dsc_otm_limit(const dsc_curve *c)
{
    return dsc_is_curve(c) ? fmin(1 - dsc_curve_w(c, INFINITY), 1) : (double)NAN;
}

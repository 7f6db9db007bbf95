// SPDX-License-Identifier: Apache-2.0
// k-Seq: SpecTr (Sun et al. 2023) Alg. 2, Theorem 1 and Eq. (6); theory/kseq.h.
//
// The rule is valid iff the accepted mass of a token never exceeds its target mass. With
// accept/beta = (1 - (1 - beta)^k)/beta, the condition is accept/beta min(draft, target/rho) <=
// target, so accept/beta <= rho. accept/beta - rho has one sign change on [1, k] (SpecTr Lemma 4),
// at rho*.
#include "theory/kseq.h"

#include "theory/domain.h"
#include "theory/survivors.h"

#include <math.h>
#include <stdbool.h>

dsc_kseq dsc_kseq_at(const dsc_curve *c, int k, double rho)
{
    if (!dsc_is_curve(c) || k < 1 || !(rho >= 1 && rho < (double)INFINITY))
        return (dsc_kseq){k, (double)NAN, (double)NAN, (double)NAN};
    // (1 - W(rho))/rho without cancellation.
    size_t i = dsc_curve_count(c, rho);
    double beta = fmin(c->draft_above[i] + c->target_below[i] / rho, 1);
    return (dsc_kseq){k, rho, beta, -expm1(k * log1p(-beta))};
}

// accept/beta; its limit k when nothing can be accepted.
static double gain(const dsc_kseq *s)
{
    return s->beta > 0 ? s->accept / s->beta : s->k;
}

// accept/beta > rho, which is equivalent to W(rho) > (1 - beta)^k: the form that does not cancel.
static bool too_small(const dsc_curve *c, const dsc_kseq *s)
{
    if (s->accept < .5)
        return gain(s) > s->rho;
    return dsc_curve_w(c, s->rho) > exp(s->k * log1p(-s->beta));
}

dsc_kseq dsc_kseq_best(const dsc_curve *c, int k)
{
    double lo = 1;
    dsc_kseq s = dsc_kseq_at(c, k, lo);
    if (isnan(s.rho) || k == 1)
        return s;
    double largest = c->atoms ? c->ratio[c->atoms - 1] : 1, hi = fmin(k, largest);
    if (hi <= lo || !too_small(c, &s))
        return s;
    for (;;) {
        double middle = lo + (hi - lo) / 2;
        if (middle <= lo || middle >= hi)
            return dsc_kseq_at(c, k, hi);
        s = dsc_kseq_at(c, k, middle);
        if (too_small(c, &s))
            lo = middle;
        else
            hi = middle;
    }
}

static bool is_kseq(const dsc_kseq *s)
{
    return s && s->k >= 1 && s->rho >= 1 && dsc_is_probability(s->beta) &&
           dsc_is_probability(s->accept);
}

double dsc_kseq_token(const dsc_kseq *s, double draft_x, double target_x)
{
    if (!is_kseq(s) || !dsc_is_given(target_x, draft_x))
        return (double)NAN;
    return fmin(target_x / draft_x / s->rho, 1);
}

double dsc_kseq_given(const dsc_kseq *s, double draft_y, double target_y)
{
    if (!is_kseq(s) || !dsc_is_given(draft_y, target_y))
        return (double)NAN;
    return fmin(gain(s) * fmin(draft_y / target_y, 1 / s->rho), 1);
}

void dsc_kseq_survivors(const dsc_kseq *s, double draft_y, double target_y, double *dist)
{
    if (!s || s->k < 1 || !dist)
        return;
    if (isnan(dsc_kseq_given(s, draft_y, target_y)) || s->k > DSC_SURVIVORS) {
        dsc_fill_nan(dist, (size_t)s->k + 1);
        return;
    }
    double rejected = fmax(draft_y - target_y / s->rho, 0);
    dsc_round round = {.accept = fmin(draft_y / target_y, 1 / s->rho),
                       .reject_y = rejected,
                       .reject_another = fmax(1 - s->beta - rejected, 0)};
    dist[0] = 0;
    for (int later = 0; later < s->k; later++)
        dsc_survivors_before(&round, later, draft_y, dist);
    dist[0] = 1 - dsc_kseq_given(s, draft_y, target_y);
}

void dsc_kseq_residual(const dsc_kseq *s, const double *draft, const double *target, size_t vocab,
                       double *residual)
{
    double sum = 0;
    if (!residual || !is_kseq(s) || !dsc_is_distribution(draft, vocab) ||
        !dsc_is_distribution(target, vocab)) {
        dsc_fill_nan(residual, vocab);
        return;
    }
    for (size_t x = 0; x < vocab; x++) {
        double accepted = gain(s) * fmin(draft[x], target[x] / s->rho);
        sum += residual[x] = s->accept < 1 ? fmax(target[x] - accepted, 0) : 0;
    }
    for (size_t x = 0; x < vocab && sum > 0; x++)
        residual[x] /= sum;
}

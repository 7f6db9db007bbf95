// SPDX-License-Identifier: Apache-2.0
// k-Seq (SpecTr Alg. 2): of k i.i.d. drafts, in order, each is accepted with probability
// min(1, target/(rho draft)); when none is, the output is drawn from
// [target - min(draft, target/rho) accept/beta] / (1 - accept). rho is the least valid one, SpecTr
// Eq. (6), for the number of drafts that are live at the position; any rho above it is valid too,
// so the upper end of its bracket is taken.
#include "sim/verify/walk.h"

#include "theory/fast_exp.h"

#include <math.h>

DSC_FOR_EVERY_PROCESSOR
static double sum_of_least(const double *draft, const double *target, double by, size_t n)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t x = 0; x < n; x++) {
        const double t = target[x] * by, d = draft[x];
        sum += d < t ? d : t;
    }
    return sum;
}

// beta(rho) = sum min(draft, target/rho).
static double beta_at(const dsc_position *at, double rho)
{
    return fmin(sum_of_least(at->draft, at->target, 1 / rho, at->vocab), 1);
}

// 1 - (1 - beta)^k - rho beta, falling in rho; rho is valid where this is at most 0.
static double excess(double beta, double rho, int k)
{
    double accept = -expm1(k * log1p(-beta));
    return (beta < 1 ? accept : 1) - rho * beta;
}

// The Illinois variant of false position on [1, k]; returns the valid end.
static double least_rho(const dsc_position *at, double *beta)
{
    int k = at->count;
    double low = 1, high = k, beta_low = beta_at(at, low), beta_high = beta_at(at, high);
    double f_low = excess(beta_low, low, k), f_high = excess(beta_high, high, k);
    double slow_low = f_low, slow_high = f_high;
    *beta = beta_low;
    if (!(f_low > 0)) // one draft, equal laws, or laws apart
        return low;
    for (int i = 0; i < 100 && high - low > 1e-12 * high; i++) {
        double middle = high - slow_high * (high - low) / (slow_high - slow_low);
        if (!(middle > low && middle < high) || i % 8 == 7)
            middle = 0.5 * (low + high);
        double b = beta_at(at, middle), f = excess(b, middle, k);
        if (f > 0) {
            low = middle;
            slow_low = f;
            slow_high *= 0.5;
        } else {
            high = middle;
            beta_high = b;
            slow_high = f;
            slow_low *= 0.5;
            if (f == 0)
                break;
        }
    }
    *beta = beta_high;
    return high;
}

// target - min(draft, target/rho) factor, where that is more than 0; returns the sum.
DSC_FOR_EVERY_PROCESSOR
static double fill_residual(const double *draft, const double *target, double rho, double factor,
                            size_t n, double *out)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t x = 0; x < n; x++) {
        const double t = target[x] / rho, d = draft[x], left = target[x] - (d < t ? d : t) * factor;
        out[x] = left > 0 ? left : 0;
        sum += out[x];
    }
    return sum;
}

static int choose(const dsc_position *at, int *chosen, int32_t *token, dsc_error *err)
{
    dsc_verify_room *r = at->in->room;
    double beta, rho = least_rho(at, &beta);
    *chosen = -1;
    for (int i = 0; i < at->count && *chosen < 0; i++) {
        int32_t x = at->token[i];
        if (dsc_position_uniform(at, (uint32_t)i) * rho * at->draft[x] < at->target[x])
            *chosen = i;
    }
    if (*chosen >= 0)
        return DSC_OK;
    double accept = beta < 1 ? -expm1(at->count * log1p(-beta)) : 1, sum;
    double factor = beta > 0 ? accept / beta : 0;
    void *p = r->residual;
    int rc = dsc_grow(&p, &r->residual_capacity, at->vocab, sizeof *r->residual, err);
    r->residual = p;
    if (rc)
        return rc;
    sum = fill_residual(at->draft, at->target, rho, factor, at->vocab, r->residual);
    *token = dsc_draw(sum > 0 ? r->residual : at->target, at->vocab,
                      dsc_position_uniform(at, (uint32_t)at->count));
    return DSC_OK;
}

static int verify(const dsc_verify_input *in, dsc_verdict *out, dsc_error *err)
{
    return dsc_walk_verify(in, choose, out, err);
}

const dsc_verifier_type dsc_verifier_kseq = {
    .name = "kseq",
    .summary =
        "k-Seq: i.i.d. drafts in order, accepted with probability min(1, target/(rho draft))",
    .source = "SpecTr Algorithms 2 and 3",
    .lossless = true,
    .tree = true,
    .laws = DSC_DRAFT_IID,
    .verify = verify,
};

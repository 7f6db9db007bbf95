// SPDX-License-Identifier: Apache-2.0
// k-Seq (SpecTr Alg. 2): of k i.i.d. drafts, in order, each is accepted with probability
// min(1, target/(rho draft)); when none is, the output is drawn from
// [target - min(draft, target/rho) accept/beta] / (1 - accept). rho is the least valid one, SpecTr
// Eq. (6), for the number of drafts that are live at the position; any rho above it is valid too,
// so the upper end of its bracket is taken.
#include "sim/verify/walk.h"

#include "theory/fast_exp.h"
#include "theory/row_sum.h"

#include <math.h>

enum { LANES = DSC_ROW_LANES }; // sums side by side, as in theory/row_sum.h

// Draft mass of the tokens with rho draft < target, target mass of the others.
typedef struct masses {
    double draft, target;
} masses;

DSC_FOR_EVERY_PROCESSOR
static masses masses_at(const double *draft, const double *target, double rho, size_t n)
{
    double d[LANES] = {0}, t[LANES] = {0};
    size_t x = 0;
    for (; x + LANES <= n; x += LANES)
#pragma omp simd
        for (size_t j = 0; j < LANES; j++) {
            const double in = rho * draft[x + j] < target[x + j] ? 1. : 0.;
            d[j] += in * draft[x + j];
            t[j] += (1 - in) * target[x + j];
        }
    for (; x < n; x++) {
        const double in = rho * draft[x] < target[x] ? 1. : 0.;
        d[x % LANES] += in * draft[x];
        t[x % LANES] += (1 - in) * target[x];
    }
    return (masses){dsc_add_lanes(d), dsc_add_lanes(t)};
}

// sum min(draft, target/rho), as long as the same tokens are on the same sides.
static double beta_of(const masses *m, double rho)
{
    return fmin(m->draft + m->target / rho, 1);
}

// 1 - (1 - beta)^k - rho beta; rho is valid where this is at most 0.
static double excess(double beta, double rho, int k)
{
    double accept = -expm1(k * log1p(-beta));
    return (beta < 1 ? accept : 1) - rho * beta;
}

// Where `excess` would be 0 between low and high if tokens stayed on their sides, on the valid end:
// the Illinois variant of false position. A value outside (low, high) when it would not be.
static double root(const masses *m, double low, double high, int k)
{
    double f_low = excess(beta_of(m, low), low, k), f_high = excess(beta_of(m, high), high, k);
    if (!(f_low > 0 && f_high <= 0))
        return low;
    for (int i = 0; i < 100 && high - low > 1e-15 * high && f_high < 0; i++) {
        double middle = high - f_high * (high - low) / (f_high - f_low);
        if (!(middle > low && middle < high) || i % 8 == 7)
            middle = 0.5 * (low + high);
        const double f = excess(beta_of(m, middle), middle, k);
        if (f > 0) {
            low = middle;
            f_low = f;
            f_high *= 0.5;
        } else {
            high = middle;
            f_high = f;
            f_low *= 0.5;
        }
    }
    return high;
}

// The least valid rho on [1, k], from above. Newton's method on a function of smooth pieces: a pass
// over the rows tells the piece, whose root is tried next; it is right when it has the same piece.
static double least_rho(const dsc_position *at, double *beta)
{
    const int k = at->count;
    double low = 1, high = k;
    masses m = masses_at(at->draft, at->target, low, at->vocab), end = m;
    *beta = beta_of(&m, low);
    if (!(excess(*beta, low, k) > 0)) // one draft, equal laws, or laws apart
        return low;
    for (int i = 0; i < 100 && high - low > 1e-12 * high; i++) {
        double rho = root(&m, low, high, k);
        if (!(rho > low && rho < high))
            rho = 0.5 * (low + high);
        const masses here = masses_at(at->draft, at->target, rho, at->vocab);
        const bool same = here.draft == m.draft && here.target == m.target;
        m = here;
        if (excess(beta_of(&m, rho), rho, k) > 0)
            low = rho;
        else {
            high = rho;
            end = m;
            if (same)
                break;
        }
    }
    if (high == k)
        end = masses_at(at->draft, at->target, high, at->vocab);
    *beta = beta_of(&end, high);
    return high;
}

// target - min(draft, target/rho) factor, where that is more than 0.
DSC_FOR_EVERY_PROCESSOR
static void fill_residual(const double *draft, const double *target, double rho, double factor,
                          size_t n, double *out)
{
#pragma omp simd
    for (size_t x = 0; x < n; x++) {
        const double t = target[x] / rho, d = draft[x], left = target[x] - (d < t ? d : t) * factor;
        out[x] = left > 0 ? left : 0;
    }
}

// The first candidate that is accepted, or -1.
static int accepted(const dsc_position *at, double rho)
{
    for (int i = 0; i < at->count; i++) {
        int32_t x = at->token[i];
        if (dsc_position_uniform(at, (uint32_t)i) * rho * at->draft[x] < at->target[x])
            return i;
    }
    return -1;
}

static int choose(const dsc_position *at, int *chosen, int32_t *token, dsc_error *err)
{
    dsc_verify_room *r = at->in->room;
    double rho, beta;
    *chosen = accepted(at, at->count); // whatever rho is, it is not more
    if (*chosen >= 0 && *chosen == accepted(at, 1))
        return DSC_OK;
    rho = least_rho(at, &beta);
    *chosen = accepted(at, rho);
    if (*chosen >= 0)
        return DSC_OK;
    double accept = beta < 1 ? -expm1(at->count * log1p(-beta)) : 1;
    double factor = beta > 0 ? accept / beta : 0;
    void *p = r->residual;
    int rc = dsc_grow(&p, &r->residual_capacity, at->vocab, sizeof *r->residual, err);
    r->residual = p;
    if (rc)
        return rc;
    fill_residual(at->draft, at->target, rho, factor, at->vocab, r->residual);
    *token = dsc_draw_rest(r->residual, at->target, at->vocab,
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

// SPDX-License-Identifier: Apache-2.0
// k-Seq (SpecTr, Sun et al. 2023, Alg. 2): k i.i.d. drafts are tested in order, each is accepted
// with probability min(1, target/(rho draft)). When none is accepted, the output is sampled from
// [target - min(draft, target/rho) accept/beta] / (1 - accept). rho is the smallest valid value,
// SpecTr Eq. (6), for the number of live drafts at the position. Every larger rho is valid too, so
// the upper end of its bracket is used.
#include "sim/replay_dist.h"
#include "sim/verify/tree_verify.h"
#include "theory/kseq.h"

#include <math.h>

// Draft mass of the tokens with rho draft < target, and target mass of the others.
static dsc_mass masses_at(dsc_overlap *dists, double rho)
{
    const dsc_mass below = dists->type->overlap_below(dists, rho);
    return (dsc_mass){1 - below.draft, below.target};
}

// sum min(draft, target/rho), as long as the same tokens are on the same sides.
static double beta_of(const dsc_mass *m, double rho)
{
    return fmin(m->draft + m->target / rho, 1);
}

// 1 - (1 - beta)^k - rho beta; rho is valid where this is at most 0.
static double excess(double beta, double rho, int k)
{
    double accept = -expm1(k * log1p(-beta));
    return (beta < 1 ? accept : 1) - rho * beta;
}

// The zero of `excess` between low and high for fixed sides of the tokens, rounded to the valid
// end, by the Illinois variant of false position. A value outside (low, high): there is none.
static double root(const dsc_mass *m, double low, double high, int k)
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

// The smallest valid rho on [1, k], approached from above. The function has smooth pieces, which
// the masses identify: the root of the current piece is tried next and is exact if it lies in that
// piece.
static double least_rho(dsc_overlap *dists, int k, double *beta)
{
    double low = 1, high = k;
    dsc_mass m = masses_at(dists, low), end = m;
    *beta = beta_of(&m, low);
    if (!(excess(*beta, low, k) > 0)) // one draft, or equal or disjoint distributions
        return low;
    for (int i = 0; i < 100 && high - low > 1e-12 * high; i++) {
        double rho = root(&m, low, high, k);
        if (!(rho > low && rho < high))
            rho = 0.5 * (low + high);
        const dsc_mass here = masses_at(dists, rho);
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
        end = masses_at(dists, high);
    *beta = beta_of(&end, high);
    return high;
}

// The first candidate that is accepted, or -1.
static int accepted(const dsc_position *at, double rho)
{
    for (int i = 0; i < at->count; i++)
        if (dsc_position_uniform(at, (uint32_t)i) * rho * at->draft_of[i] < at->target_of[i])
            return i;
    return -1;
}

enum { QUESTIONS = 5 }; // of least_rho, approximately

static int choose(dsc_position *at, int *chosen, int32_t *token, dsc_error *err)
{
    const int k = at->count;
    double rho, beta;
    (void)err;
    *chosen = accepted(at, k); // rho is at most k
    if (*chosen >= 0 && *chosen == accepted(at, 1))
        return DSC_OK;
    at->dists->type->prepare(at->dists, QUESTIONS);
    if (at->dists->type->look_up) {
        least_rho(at->dists, k, &beta);
        at->dists->type->look_up(at->dists);
    }
    rho = least_rho(at->dists, k, &beta);
    *chosen = accepted(at, rho);
    if (*chosen >= 0)
        return DSC_OK;
    // target - min(draft, target/rho) factor
    const double accept = beta < 1 ? -expm1(k * log1p(-beta)) : 1;
    const double factor = beta > 0 ? accept / beta : 0;
    const dsc_residual residual = {
        .lines = 2, .from = {0, rho}, .keep = {1 - factor / rho, 1}, .take = {0, factor}};
    *token = dsc_position_draw(at, &residual, dsc_position_uniform(at, (uint32_t)k));
    return DSC_OK;
}

static int verify(const dsc_verify_input *in, dsc_verdict *out, dsc_error *err)
{
    return dsc_tree_verify_run(in, choose, out, err);
}

// --- replay of a recorded output -----------------------------------------------------------------

static void from_statistics(const dsc_sufficient *s, int64_t position, int most,
                            const double y[DSC_SIDES], int drafts, double *dist)
{
    const float *rho_beta = s->kseq + position * 2 * most;
    for (int k = 1; k <= drafts; k++) {
        const double rho = rho_beta[2 * k - 2], beta = rho_beta[2 * k - 1];
        const dsc_kseq kseq = {k, rho, beta, beta < 1 ? -expm1(k * log1p(-beta)) : 1};
        dsc_kseq_survivors(&kseq, y[DSC_SIDE_DRAFT], y[DSC_SIDE_TARGET],
                           dist + dsc_position_dist_at(k));
    }
}

static int from_rows(dsc_position_room *room, size_t vocab, const double y[DSC_SIDES], int drafts,
                     double *dist, dsc_error *err)
{
    dsc_curve curve = {0};
    int rc =
        dsc_curve_init(&curve, room->row[DSC_SIDE_DRAFT], room->row[DSC_SIDE_TARGET], vocab, err);
    for (int k = 1; k <= drafts && !rc; k++) {
        const dsc_kseq kseq = dsc_kseq_best(&curve, k);
        dsc_kseq_survivors(&kseq, y[DSC_SIDE_DRAFT], y[DSC_SIDE_TARGET],
                           dist + dsc_position_dist_at(k));
    }
    dsc_curve_fini(&curve);
    return rc;
}

static const dsc_replay_dist replay = {"kseq", offsetof(dsc_trace_info, has_kseq), from_statistics,
                                       from_rows};

const dsc_verifier_type dsc_verifier_kseq = {
    .name = "kseq",
    .summary =
        "k-Seq: i.i.d. drafts in order, accepted with probability min(1, target/(rho draft))",
    .source = "Sun et al. 2023, SpecTr, Algorithms 2 and 3, arXiv 2310.15141",
    .engines = "none",
    .lossless = true,
    .tree = true,
    .kinds = DSC_DRAFT_SAMPLED,
    .replay = DSC_RULE_REPLAY_TOKEN,
    .replay_dist = &replay,
    .verify = verify,
};

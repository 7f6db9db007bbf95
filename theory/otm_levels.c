// SPDX-License-Identifier: Apache-2.0
// A vocabulary as a handful of super-tokens, at no loss that matters to optimal transport.
//
// Give each draw x a label: with thresholds 0 = c_0 < ... < c_n = k, a token whose ratio
// target/draft lies in [c_j, c_{j+1}] gets label j + 1 with probability
// (ratio - c_j)/(c_{j+1} - c_j) and label j otherwise (beyond k: label n). The labels of i.i.d.
// drafts are i.i.d., and a rule that looks at labels only and accepts label j with probability
// at most m_j c_j (m_j its mass) accepts x with probability at most target(x), because the split
// keeps both masses. So V tokens become n + 1 super-tokens of ratios c_j, exactly. Their curve is W
// interpolated linearly between the c_j, and since alpha_k depends on W only through
//
//   1 - alpha_k = max_c { W(c) + c - 1 - g(c) },   g convex conjugate of u -> u^k on [0, 1],
//
// the super-tokens lose next to nothing once thresholds stand where that maximum is and where the
// interpolation would overtake it. Those are found by cutting planes: the best prefix of the
// super-tokens is an upper bound of 1 - alpha_k, the best prefix {ratio <= c_j} of tokens a lower
// one; a threshold goes to k draft(prefix)^(k-1), the slope at the upper bound, until both meet.
// 5 to 15 thresholds do, each costs one pass over the rows (or a look into rows_curve.h), nothing
// is sorted. What is left, a
// transport problem of that size, is solved by otm_race.c. (Derived for this library.)
#include "theory/otm_internal.h"

#include "theory/rows/fast_exp.h"
#include "theory/rows/row_sum.h"

#include <math.h>
#include <string.h>

#define CLOSE 1e-10 // the two bounds of 1 - alpha_k have met

// --- passes over the rows ------------------------------------------------------------------------

typedef dsc_mass masses;

enum { LANES = DSC_ROW_LANES };

// Masses of the tokens with target <= at draft, in the rows' own units.
DSC_FOR_EVERY_PROCESSOR
static masses below_f32(const float *draft, const float *target, size_t vocab, double at)
{
    double d = 0, t = 0;
#pragma omp simd reduction(+ : d, t)
    for (size_t x = 0; x < vocab; x++) {
        double a = draft[x], b = target[x], in = b <= at * a ? 1 : 0;
        d += in * a;
        t += in * b;
    }
    return (masses){d, t};
}

static masses below(const dsc_otm_rows *r, double at)
{
    dsc_rows_overlap rows;
    if (r->curve)
        return dsc_rows_curve_below(r->curve, at);
    if (r->overlap)
        return r->overlap->type->overlap_below(r->overlap, at);
    if (!r->draft)
        return below_f32(r->draft_f32, r->target_f32, r->vocab, at);
    dsc_rows_overlap_set(&rows, r->draft, r->target, r->vocab, NULL);
    return rows.base.type->overlap_below(&rows.base, at);
}

static double element(const double *f64, const float *f32, size_t x)
{
    return f64 ? f64[x] : (double)f32[x];
}

// The sum, as dsc_row_sum adds, and whether an element is negative.
DSC_FOR_EVERY_PROCESSOR
static double sum_f64(const double *row, size_t vocab, bool *negative)
{
    double lane[LANES] = {0}, below[LANES] = {0};
    size_t x = 0;
    for (; x + LANES <= vocab; x += LANES)
#pragma omp simd
        for (size_t j = 0; j < LANES; j++) {
            lane[j] += row[x + j];
            below[j] += row[x + j] < 0 ? 1. : 0.;
        }
    for (; x < vocab; x++) {
        lane[x % LANES] += row[x];
        below[x % LANES] += row[x] < 0 ? 1. : 0.;
    }
    *negative = dsc_add_lanes(below) > 0;
    return dsc_add_lanes(lane);
}

static double sum_f32(const float *row, size_t vocab, bool *negative)
{
    double s = 0;
    *negative = false;
    for (size_t x = 0; x < vocab; x++) {
        s += (double)row[x];
        *negative |= row[x] < 0;
    }
    return s;
}

static int sum_row(const char *what, const double *f64, const float *f32, size_t vocab, double *sum,
                   dsc_error *err)
{
    bool negative;
    const double s = f64 ? sum_f64(f64, vocab, &negative) : sum_f32(f32, vocab, &negative);
    *sum = s;
    if (!negative && s > 0 && s < INFINITY)
        return DSC_OK;
    for (size_t x = 0; x < vocab; x++) {
        double v = element(f64, f32, x);
        if (!(v >= 0 && v < INFINITY))
            return dsc_fail(err, DSC_EINPUT, "%s: element %zu is %g", what, x, v);
    }
    return dsc_fail(err, DSC_EINPUT, "%s: the sum is %g", what, s);
}

// --- thresholds ----------------------------------------------------------------------------------

typedef struct threshold {
    double at;     // c
    masses tokens; // draft and target mass of the tokens with ratio <= c
    double mass;   // of the super-token
} threshold;

typedef struct thresholds {
    const dsc_otm_rows *rows;
    double factor; // the distributions' ratio over the rows' ratio
    double draft_sum, target_sum;
    int k;
    size_t n;
    threshold t[DSC_RACE_LEVELS]; // ascending; the first at 0, the last at k
} thresholds;

static bool add_threshold(thresholds *h, double at)
{
    size_t i = 0;
    while (i < h->n && h->t[i].at < at)
        i++;
    if (h->n == DSC_RACE_LEVELS || (i < h->n && h->t[i].at == at))
        return false;
    memmove(&h->t[i + 1], &h->t[i], (h->n - i) * sizeof h->t[0]);
    masses m = below(h->rows, at / h->factor);
    h->t[i] = (threshold){at, {m.draft / h->draft_sum, m.target / h->target_sum}, 0};
    h->n++;
    return true;
}

// Mass of each super-token: tokens between two thresholds split so that both masses are kept.
static void split(thresholds *h)
{
    threshold *t = h->t;
    for (size_t j = 0; j < h->n; j++)
        t[j].mass = 0;
    t[0].mass = t[0].tokens.draft;
    t[h->n - 1].mass = fmax(0, 1 - t[h->n - 1].tokens.draft);
    for (size_t j = 0; j + 1 < h->n; j++) {
        double draft = fmax(0, t[j + 1].tokens.draft - t[j].tokens.draft);
        double target = t[j + 1].tokens.target - t[j].tokens.target;
        double up = (target - t[j].at * draft) / (t[j + 1].at - t[j].at);
        up = fmin(fmax(up, 0), draft);
        t[j + 1].mass += up;
        t[j].mass += draft - up;
    }
}

// The best prefix of the super-tokens: their 1 - alpha_k, how many they are, and their mass.
static double best_prefix(const thresholds *h, size_t *count, double *mass)
{
    double draft = 0, target = 0, best = 0;
    *count = 0;
    *mass = 0;
    for (size_t j = 0; j < h->n; j++) {
        draft += h->t[j].mass;
        target += h->t[j].mass * h->t[j].at;
        double v = dsc_power(draft, h->k) - target;
        if (v > best) {
            best = v;
            *count = j + 1;
            *mass = draft;
        }
    }
    return best;
}

// The best {ratio <= c_j} among tokens.
static double best_cut(const thresholds *h)
{
    double best = 0;
    for (size_t j = 0; j < h->n; j++)
        best = fmax(best, dsc_power(h->t[j].tokens.draft, h->k) - h->t[j].tokens.target);
    return best;
}

// Adds a threshold where the super-tokens overtake the tokens; false when there is no room, or no
// number in between.
static bool refine(thresholds *h, size_t count, double mass)
{
    double at = h->k * dsc_power(mass, h->k - 1);
    size_t near = 0;
    if (add_threshold(h, at))
        return true;
    while (near < h->n && h->t[near].at < at)
        near++;
    if (near == h->n) // no room, and at > k by rounding
        near = count - 1;
    double here = h->t[near].at, left = near ? h->t[near - 1].at : here;
    double right = near + 1 < h->n ? h->t[near + 1].at : here;
    bool more = add_threshold(h, (left + here) / 2);
    return add_threshold(h, (here + right) / 2) || more;
}

static int sum_rows(thresholds *h, dsc_error *err)
{
    const dsc_otm_rows *r = h->rows;
    if (r->curve) {
        h->draft_sum = r->curve->cells.draft_sum;
        h->target_sum = r->curve->cells.target_sum;
        return DSC_OK;
    }
    if (r->overlap) {
        h->draft_sum = h->target_sum = 1;
        return DSC_OK;
    }
    int rc = sum_row("draft row", r->draft, r->draft_f32, r->vocab, &h->draft_sum, err);
    return rc ? rc : sum_row("target row", r->target, r->target_f32, r->vocab, &h->target_sum, err);
}

int dsc_otm_levels(dsc_otm_fit *f, const dsc_otm_rows *rows, int k, dsc_error *err)
{
    thresholds h = {.rows = rows, .k = k};
    const size_t vocab = rows->curve     ? rows->curve->vocab
                         : rows->overlap ? rows->overlap->vocab
                                         : rows->vocab;
    size_t count;
    double mass, most, least;
    if (!vocab || k < 1 || k > 64)
        return dsc_fail(err, DSC_EUSAGE, "%d drafts of %zu tokens: 1 to 64 drafts expected", k,
                        vocab);
    int rc = sum_rows(&h, err);
    if (rc)
        return rc;
    h.factor = h.draft_sum / h.target_sum;
    add_threshold(&h, 0);
    add_threshold(&h, k);
    do {
        split(&h);
        most = best_prefix(&h, &count, &mass);
        least = best_cut(&h);
    } while (most - least > CLOSE && refine(&h, count, mass));
    f->draft_sum = h.draft_sum;
    f->target_sum = h.target_sum;
    f->alpha_high = 1 - least;
    f->race.k = k;
    f->race.levels = h.n;
    f->race.inside = most > CLOSE ? count : 1; // ratio 0 is never accepted
    for (size_t j = 0; j < h.n; j++) {
        f->race.level[j].ratio = h.t[j].at;
        f->race.level[j].mass = h.t[j].mass;
    }
    return DSC_OK;
}

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
// 5 to 15 thresholds do, each is one query of the overlap of the rows, nothing is sorted. What is
// left, a transport problem of that size, is solved by otm_race.c. (Derived for this library.)
#include "theory/otm_internal.h"

#include <math.h>
#include <string.h>

#define CLOSE 1e-10 // the two bounds of 1 - alpha_k have met

typedef struct threshold {
    double at;       // c
    dsc_mass tokens; // draft and target mass of the tokens with ratio <= c
    double mass;     // of the super-token
} threshold;

typedef struct thresholds {
    dsc_overlap *rows;
    dsc_mass sum; // of the rows
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
    dsc_mass m = h->rows->type->overlap_below(h->rows, at / (h->sum.draft / h->sum.target));
    h->t[i] = (threshold){at, {m.draft / h->sum.draft, m.target / h->sum.target}, 0};
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

int dsc_otm_levels(dsc_otm_fit *f, dsc_overlap *rows, dsc_mass sum, int k, dsc_error *err)
{
    thresholds h = {.rows = rows, .sum = sum, .k = k};
    size_t count;
    double mass, most, least;
    if (!rows->vocab || k < 1 || k > 64)
        return dsc_fail(err, DSC_EUSAGE, "%d drafts of %zu tokens: 1 to 64 drafts expected", k,
                        rows->vocab);
    add_threshold(&h, 0);
    add_threshold(&h, k);
    do {
        split(&h);
        most = best_prefix(&h, &count, &mass);
        least = best_cut(&h);
    } while (most - least > CLOSE && refine(&h, count, mass));
    f->sum = sum;
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

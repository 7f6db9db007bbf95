// SPDX-License-Identifier: Apache-2.0
// SpecInfer rejection without replacement; theory/specinfer_wor.h has the equations.
//
// A round is the pair (c, remaining), for this reason. Let r = (target - c draft)+/W(c), and 0 on
// removed tokens. On the others (r - draft/remaining)+ = (target - c' draft)+/W(c) with c' = c +
// W(c)/remaining. The token removed now was rejected, so target < c' draft: the formula gives 0 for
// it from here on.
//
// Pr(the draft of this round is x and is rejected) times W(c) is
//   m_x = min(draft(x) (c' - c), (c' draft(x) - target(x))+),
// and its sum over the tokens not removed is W(c'). So Pr(all k rejected) = E W(c_{k+1}) for the
// chain that removes x with probability m_x/W(c'). c_{k+1} depends on the first k - 1 removals,
// which are enumerated. The later rounds do not depend on which token of a given draft mass was
// removed, since it would have m = draft (c' - c). So tokens of one draft mass are one branch, a
// bucket B, whose sum of m is (c' - c) draft(B) - W_B(c) + W_B(c'), with W_B the curve of B alone.
//
// If there are too many paths, buckets are ranges of draft mass, and c and remaining are intervals.
// Let V(c) be the part of W(c) from tokens that were not removed. c + V(c)/remaining does not fall
// with c, because V falls no faster than remaining, the mass of the tokens it sums over. For c <=
// the true c <= top,
//   W(c) >= V(c) >= max(W(top), W(c) - (top - c) removed mass),
// where V is W at the true c and a removed token's part is at most (top - c) times its draft mass.
// So c' lies in [c_lo + V(c_lo)/remaining_hi, c_hi + W(c_hi)/remaining_lo]. Drafts with replacement
// are the case remaining = 1 with the smallest c of all: without replacement, acceptance is never
// smaller.
#include "theory/specinfer_wor.h"

#include "base/order.h"
#include "theory/specinfer.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// c stays below every ratio that does not fit in a double; such a cap only lowers it.
static const double C_MAX = DBL_MAX / 2;

typedef struct token {
    double ratio, draft, target;      // buckets are sorted by ratio
    double draft_above, target_above; // mass of this and all later tokens of its bucket
} token;

// Tokens of nearly one draft mass, ascending in ratio.
typedef struct bucket {
    size_t first, tokens;
    double light, heavy; // their least and largest draft mass
    size_t removed;      // on the current path
} bucket;

typedef struct tree {
    const dsc_curve *curve;
    size_t tokens, buckets;
    token *sorted;     // [tokens] descending in draft
    token *token;      // [tokens] the same tokens, each bucket ascending in ratio
    double *mass;      // [tokens + 1] draft mass without the i most probable tokens
    bucket *bucket;    // [buckets] descending in draft
    size_t path[64];   // buckets of the tokens removed
    int depth;         // of the path
    double resolution; // probability that a bucket or a branch may hide
    int64_t steps, budget;
} tree;

typedef struct bounds {
    double lo, hi;
} bounds;

typedef struct node {
    bounds c;      // c of the round
    double slack;  // upper bound of the draft mass removed outside the path
    int removed;   // number of removed tokens, on and outside the path
    double weight; // upper bound of the path's probability
} node;

// A round: c', W(c'), and c' - c.
typedef struct play {
    bounds c, w, rise;
} play;

// Draft mass that was not removed. On a path of known masses the subtracted mass, apart from
// exhausted buckets, is at most `depth` times the remaining mass, so no accuracy is lost however
// small that is. A lower bound may cancel, and allows for the rounding of the sum.
static bounds residual_of(const tree *t, const node *s)
{
    size_t i = 0;
    while (t->bucket[i].removed == t->bucket[i].tokens)
        i++;
    double whole = t->mass[t->bucket[i].first], most = whole, least = whole - s->slack;
    for (int j = 0; j < t->depth; j++)
        if (t->path[j] >= i) {
            least -= t->bucket[t->path[j]].heavy;
            most -= t->bucket[t->path[j]].light;
        }
    if (least < most)
        least -= (double)(t->tokens + 64) * DBL_EPSILON * whole;
    least = fmax(least, t->mass[s->removed]);
    return (bounds){least, fmax(least, most)};
}

static play play_round(const tree *t, const node *s)
{
    bounds remaining = residual_of(t, s);
    bounds w = {dsc_curve_w(t->curve, s->c.hi), dsc_curve_w(t->curve, s->c.lo)};
    double others = fmax(w.lo, w.hi - (s->c.hi - s->c.lo) * (t->mass[0] - remaining.lo)); // V(c_lo)
    play r = {.rise = {w.lo / remaining.hi, w.hi / remaining.lo}};
    r.c = (bounds){fmin(s->c.lo + others / remaining.hi, C_MAX), s->c.hi + w.lo / remaining.lo};
    r.w = (bounds){dsc_curve_w(t->curve, r.c.hi), dsc_curve_w(t->curve, r.c.lo)};
    return r;
}

// W_B(c), from the bucket's tokens alone.
static double bucket_w(const tree *t, const bucket *b, double c)
{
    const token *x = t->token + b->first;
    size_t lo = 0, hi = b->tokens;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (x[mid].ratio <= c)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < b->tokens ? x[lo].target_above - c * x[lo].draft_above : 0;
}

// The sum over the bucket, including removed tokens, of min(draft rise, (c draft - target)+).
static double bucket_m(const tree *t, const bucket *b, double rise, double c)
{
    const token *x = t->token + b->first;
    if (b->tokens == 1)
        return fmin(x->draft * rise, fmax(c * x->draft - x->target, 0));
    return rise * x->draft_above - bucket_w(t, b, c - rise) + bucket_w(t, b, c);
}

// Pr(the token removed in this round is in the bucket). Differences are widened by their rounding.
static bounds removal(const tree *t, const play *r, const bucket *b)
{
    if (b->removed == b->tokens)
        return (bounds){0, 0};
    if (!(r->c.hi + r->rise.hi < C_MAX))
        return (bounds){0, 1};
    double lo = bucket_m(t, b, r->rise.lo, r->c.lo), hi = bucket_m(t, b, r->rise.hi, r->c.hi);
    if (b->tokens > 1) {
        const token *x = t->token + b->first;
        double noise = (double)(b->tokens + 8) * DBL_EPSILON *
                       ((r->c.hi + r->rise.hi) * x->draft_above + x->target_above);
        lo -= (double)b->removed * b->heavy * r->rise.hi + noise;
        hi -= (double)b->removed * b->light * r->rise.lo - noise;
    }
    if (hi <= 0)
        return (bounds){0, 0};
    return (bounds){fmax(fmin(lo / r->w.hi, 1), 0), hi < r->w.lo ? hi / r->w.lo : 1};
}

static bounds expand(tree *t, const node *s, int rounds);

// The first `own` buckets are a branch each; all other tokens together are one more. The bounds of
// E W(c) are computed around those of the latter: E = E_others + sum of Pr(b) (E_b - E_others),
// whatever the probabilities are within their bounds.
static bounds expand_buckets(tree *t, const node *s, const play *r, int rounds, size_t own)
{
    node child = {.c = r->c, .removed = s->removed + 1};
    bounds others = {r->w.hi, r->w.hi};
    if (own < t->buckets) {
        double taken = 0;
        for (size_t i = 0; i < own; i++)
            taken += removal(t, r, &t->bucket[i]).lo;
        child.slack = s->slack + t->bucket[own].heavy;
        child.weight = s->weight * fmax(1 - taken, 0);
        others = expand(t, &child, rounds - 1);
    }
    bounds sum = others;
    child.slack = s->slack;
    for (size_t i = 0; i < own; i++) {
        bounds pr = removal(t, r, &t->bucket[i]);
        if (!(pr.hi > 0))
            continue;
        child.weight = s->weight * pr.hi;
        t->bucket[i].removed++;
        t->path[t->depth++] = i;
        bounds e = expand(t, &child, rounds - 1);
        t->depth--;
        t->bucket[i].removed--;
        double lo = e.lo - others.lo, hi = e.hi - others.hi;
        sum.lo += fmin(pr.lo * lo, pr.hi * lo);
        sum.hi += fmax(pr.lo * hi, pr.hi * hi);
    }
    return sum;
}

// Bounds of E W(c) after `rounds` more rounds. Meaningless after the budget is spent.
static bounds expand(tree *t, const node *s, int rounds)
{
    t->steps++;
    if (t->steps > t->budget)
        return (bounds){0, 1};
    if ((size_t)s->removed == t->tokens)
        return (bounds){dsc_curve_w(t->curve, s->c.hi), dsc_curve_w(t->curve, s->c.lo)};
    play r = play_round(t, s);
    if (rounds == 1 || !(r.w.hi > 0))
        return r.w;
    size_t own = 0;
    while (own < t->buckets &&
           t->bucket[own].heavy * t->mass[t->bucket[own].first] * s->weight > t->resolution)
        own++;
    t->steps += (int64_t)own;
    if (t->steps > t->budget)
        return (bounds){0, 1};
    bounds e = expand_buckets(t, s, &r, rounds, own);
    return (bounds){fmin(fmax(e.lo, 0), r.w.hi), fmin(fmax(e.hi, 0), r.w.hi)}; // c only grows
}

static int by_draft(const void *a, const void *b)
{
    double x = ((const token *)a)->draft, y = ((const token *)b)->draft;
    return (x < y) - (x > y);
}

static void tree_fini(tree *t)
{
    free(t->sorted);
    free(t->token);
    free(t->mass);
    free(t->bucket);
}

static int tree_init(tree *t, const dsc_curve *curve, const double *draft, const double *target,
                     size_t vocab, dsc_error *err)
{
    *t = (tree){.curve = curve};
    int rc = dsc_new(&t->sorted, vocab, err);
    if (!rc)
        rc = dsc_new(&t->token, vocab, err);
    if (!rc)
        rc = dsc_new(&t->mass, vocab + 1, err);
    if (!rc)
        rc = dsc_new(&t->bucket, vocab, err);
    if (rc) {
        tree_fini(t);
        return rc;
    }
    for (size_t x = 0; x < vocab; x++)
        if (draft[x] > 0)
            t->sorted[t->tokens++] = (token){target[x] / draft[x], draft[x], target[x], 0, 0};
    qsort(t->sorted, t->tokens, sizeof *t->sorted, by_draft);
    for (size_t i = t->tokens; i-- > 0;)
        t->mass[i] = t->mass[i + 1] + t->sorted[i].draft;
    return DSC_OK;
}

// A bucket is as wide as (range of draft mass) x (draft mass) <= resolution allows. Resolution 0:
// one draft mass each.
static void make_buckets(tree *t, double resolution)
{
    t->resolution = resolution;
    t->buckets = 0;
    memcpy(t->token, t->sorted, t->tokens * sizeof *t->token);
    for (size_t i = 0, end; i < t->tokens; i = end) {
        token *x = t->token;
        for (end = i + 1; end < t->tokens; end++)
            if ((x[i].draft - x[end].draft) * (t->mass[i] - t->mass[end + 1]) > resolution)
                break;
        t->bucket[t->buckets++] = (bucket){i, end - i, x[end - 1].draft, x[i].draft, 0};
        qsort(x + i, end - i, sizeof *x, dsc_by_real);
        x[end - 1].draft_above = x[end - 1].draft;
        x[end - 1].target_above = x[end - 1].target;
        for (size_t j = end - 1; j-- > i;) {
            x[j].draft_above = x[j + 1].draft_above + x[j].draft;
            x[j].target_above = x[j + 1].target_above + x[j].target;
        }
    }
}

// Tightens the bounds of Pr(all k are rejected); false when a finer resolution would not help.
static bool attempt(tree *t, int k, bounds *reject)
{
    node root = {.weight = 1};
    t->steps = 0;
    bounds e = expand(t, &root, k);
    if (t->steps > t->budget)
        return false;
    reject->lo = fmax(reject->lo, e.lo);
    reject->hi = fmin(reject->hi, e.hi);
    return t->resolution > 0 && reject->hi - reject->lo > 1e-14;
}

int dsc_specinfer_wor(const dsc_curve *curve, const double *draft, const double *target,
                      size_t vocab, int kmax, int64_t budget, double *low, double *high,
                      dsc_error *err)
{
    tree t;
    bounds reject[64];
    bool more[64], any = false;
    int rc = tree_init(&t, curve, draft, target, vocab, err);
    if (rc)
        return rc;
    make_buckets(&t, 0);
    for (int i = 0; i < kmax; i++) {
        reject[i] = (bounds){0, 1};
        t.budget = i < 2 ? INT64_MAX : budget; // two drafts: 2 buckets + 2 steps
        attempt(&t, i + 1, &reject[i]);
        more[i] = t.steps > t.budget;
        any = any || more[i];
    }
    for (double resolution = .25; any; resolution /= 4) {
        make_buckets(&t, resolution);
        any = false;
        for (int i = 0; i < kmax; i++) {
            more[i] = more[i] && attempt(&t, i + 1, &reject[i]);
            any = any || more[i];
        }
    }
    for (int i = 0; i < kmax; i++) {
        low[i] = fmax(1 - reject[i].hi, dsc_specinfer_acceptance(curve, i + 1));
        high[i] = fmax(1 - reject[i].lo, low[i]);
    }
    for (int i = 1; i < kmax; i++) // one more draft never hurts
        low[i] = fmax(low[i], low[i - 1]);
    for (int i = kmax - 1; i > 0; i--)
        high[i - 1] = fmin(high[i - 1], high[i]);
    tree_fini(&t);
    return DSC_OK;
}

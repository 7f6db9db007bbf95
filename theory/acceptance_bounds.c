// SPDX-License-Identifier: Apache-2.0
// What cells can prove about the acceptance quantities; theory/acceptance_bounds.h.
//
// The tokens of a cell have ratios in [a, b] and masses that sum to draft mass p and target mass q.
// Their part of W(c) is q - c p below (b <= c gives 0) and above a. With c in the cell, the
// function (r - c)+ is convex, so that of all ways to hide the ratios
//   all tokens at the mean ratio gives the least,   (q - c p)+,
//   all at a or b gives the most,                   (q - a p)(b - c)/(b - a).
// Both are curves of real distributions, with the true W between them; at the edges of cells they
// meet.
// - Multi-round: c + W(c) does not decrease with c (theory/specinfer.h), so bounds on c_i give
//   bounds on c_{i+1}.
// - k-Seq: a higher W means a smaller beta, a larger rho* and a smaller acceptance; so the two
// curves
//   give bounds on both. rho* is where W(rho) meets (1 - beta)^k; the least edge beyond it is
//   the same for both curves, hence one cell holds both.
// - OTM: any token set gives a lower bound of max P^k - Q, the edges of the cells among them.
// Within a
//   cell (or a run of cells) Q as a function of P has slopes between a and b: it lies above the
//   two lines through the ends, P^k - Q is convex along either, and so at most the larger of its
//   values at the ends and where the lines meet. Where k P^(k-1) > b throughout, or < a, the
//   ends alone count. A run that cannot beat the best edge is left out, another is halved.
#include "theory/acceptance_bounds.h"

#include <math.h>

// Half the width must stay below the certified error with room for rounding.
#define WIDTH (.8 * DSC_ACCEPTANCE_CERTIFIED)
#define RHO_WIDTH 4e-6

typedef struct bound {
    double least, most;
} bound;

static void doubt(dsc_doubts *d, size_t cell)
{
    for (size_t i = 0; i < d->count; i++)
        if (d->cell[i] == cell)
            return;
    if (d->count < DSC_MOST_DOUBTS)
        d->cell[d->count++] = (uint32_t)cell;
}

// Masses from index i on, and ratios, of the normalized rows.
typedef struct curve {
    const dsc_cells *cells;
    double per_draft, per_target, scale; // 1/sums; raw ratio = scale * ratio
} curve;

static double draft_above(const curve *c, size_t i)
{
    return c->cells->above[i].draft * c->per_draft;
}

static double target_above(const curve *c, size_t i)
{
    return c->cells->above[i].target * c->per_target;
}

static double floor_of(const curve *c, size_t i)
{
    return c->cells->floor[i] / c->scale;
}

// One cell and what it takes to bound W inside.
typedef struct window {
    size_t cell;
    double low, high;           // ratios
    double draft, target;       // mass in it
    double draft_up, target_up; // mass above it
} window;

static window window_of(const curve *c, size_t i)
{
    window w = {.cell = i,
                .low = floor_of(c, i),
                .high = floor_of(c, i + 1),
                .draft_up = draft_above(c, i + 1),
                .target_up = target_above(c, i + 1)};
    w.draft = draft_above(c, i) - w.draft_up;
    w.target = target_above(c, i) - w.target_up;
    return w;
}

static double least_w(const window *w, double at)
{
    return fmax(w->target_up - at * w->draft_up, 0) + fmax(w->target - at * w->draft, 0);
}

static double most_w(const window *w, double at)
{
    double spread = fmax(w->target - w->low * w->draft, 0) * (w->high - at) / (w->high - w->low);
    return fmax(w->target_up - at * w->draft_up, 0) +
           fmax(spread, fmax(w->target - at * w->draft, 0));
}

static bound w_at(const curve *c, double at, size_t *cell)
{
    *cell = dsc_cells_find(c->cells, at * c->scale);
    window w = window_of(c, *cell);
    return (bound){least_w(&w, at), fmin(most_w(&w, at), 1)};
}

static double power(double x, int k)
{
    double y = k & 1 ? x : 1;
    while (k >>= 1) {
        x *= x;
        if (k & 1)
            y *= x;
    }
    return y;
}

static double middle(bound b)
{
    return b.least + (b.most - b.least) / 2;
}

static void specinfer(const curve *c, int kmax, dsc_rule_acceptance *out,
                      dsc_rule_acceptance *error, dsc_doubts *doubts)
{
    bound at = {1, 1};
    size_t from[DSC_MAX_DRAFTS], to[DSC_MAX_DRAFTS];
    bool certain = true;
    for (int k = 1; k <= kmax; k++) {
        bound first = w_at(c, at.least, &from[k - 1]), last = w_at(c, at.most, &to[k - 1]);
        bound w = {fmin(last.least, first.most), first.most};
        out[k - 1].specinfer = 1 - middle(w);
        error[k - 1].specinfer = (w.most - w.least) / 2;
        certain = certain && w.most - w.least <= WIDTH;
        if (first.most - first.least < WIDTH / (4 * DSC_MAX_DRAFTS)) // not to be blamed
            from[k - 1] = 0;
        if (last.most - last.least < WIDTH / (4 * DSC_MAX_DRAFTS))
            to[k - 1] = 0;
        if (!certain) {
            for (int i = 0; i < k; i++) {
                if (from[i])
                    doubt(doubts, from[i]);
                if (to[i])
                    doubt(doubts, to[i]);
            }
        }
        at = (bound){at.least + first.least, at.most + last.most};
    }
}

// (1 - beta)^k - W at rho, with beta = (1 - W)/rho: negative below rho*.
static double past(double w, double rho, int k)
{
    return power((rho - 1 + w) / rho, k) - w;
}

// The place in [lo, hi] after which past() is not negative; past(floor(hi)) >= 0. A node's cells
// are consecutive; so are those of the slots.
static size_t last_before(const curve *c, size_t lo, size_t hi, int k)
{
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        double rho = floor_of(c, mid);
        double w = fmax(target_above(c, mid) - rho * draft_above(c, mid), 0);
        if (rho < 1 || past(w, rho, k) < 0)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

// The root of past() in [lo, hi] along one of the two curves of a window: Illinois steps, which
// keep a bracket. The bracket is left in *lo and *hi.
static void bracket_root(const window *w, double (*curve_of)(const window *, double), int k,
                         double *lo, double *hi)
{
    double below = past(curve_of(w, *lo), *lo, k), above = past(curve_of(w, *hi), *hi, k);
    int side = 0;
    if (below >= 0)
        *hi = *lo;
    for (int step = 0; step < 60 && *hi - *lo > RHO_WIDTH / 16 * *hi && above > 0; step++) {
        double x = *hi - above * (*hi - *lo) / (above - below);
        if (!(x > *lo && x < *hi) || step > 20)
            x = *lo + (*hi - *lo) / 2;
        double y = past(curve_of(w, x), x, k);
        if (y < 0) {
            *lo = x;
            below = y;
            above = side < 0 ? above / 2 : above;
            side = -1;
        } else {
            *hi = x;
            above = y;
            below = side > 0 ? below / 2 : below;
            side = 1;
        }
    }
    if (above == 0)
        *lo = *hi;
}

// The cell of rho*, from the one for fewer drafts (rho* grows with k).
static size_t kseq_cell(const curve *c, int k, size_t *slot)
{
    const dsc_cells *cells = c->cells;
    size_t i = last_before(c, *slot, DSC_TOP, k);
    *slot = i;
    while (cells->child[i]) {
        const dsc_node *n = &cells->node[cells->child[i]];
        i = last_before(c, n->at, n->at + n->count, k);
    }
    return i;
}

static void kseq(const curve *c, int kmax, dsc_rule_acceptance *out, dsc_rule_acceptance *error,
                 dsc_doubts *doubts)
{
    size_t slot = DSC_BOTTOM;
    for (int k = 2; k <= kmax; k++) {
        window w = window_of(c, kseq_cell(c, k, &slot));
        bound low = {fmax(w.low, 1), fmin(w.high, k)}, high = low;
        if (high.most < high.least)
            low.most = high.most = high.least; // only rounding puts rho* beyond k
        bracket_root(&w, least_w, k, &low.least, &low.most);
        bracket_root(&w, most_w, k, &high.least, &high.most);
        bound rho = {fmin(low.least, high.most), high.most};
        bound left = {fmin(least_w(&w, rho.most), 1), fmin(most_w(&w, rho.least), 1)};
        if (left.most - left.least > WIDTH || rho.most - rho.least > RHO_WIDTH * rho.least)
            doubt(doubts, w.cell);
        out[k - 1].kseq = 1 - middle(left);
        error[k - 1].kseq = (left.most - left.least) / 2;
        error[k - 1].kseq_rho = rho.most - rho.least;
        out[k - 1].kseq_rho = fmin(rho.most, k);
    }
}

// A prefix of the tokens: those below place i.
typedef struct prefix {
    size_t place;
    double draft, target, ratio; // mass in it; what comes next has at least this ratio
    double slope, excess;        // k P^(k-1) and P^k - Q
} prefix;

static prefix prefix_at(const curve *c, size_t i, int k)
{
    prefix p = {.place = i,
                .draft = fmax(1 - draft_above(c, i), 0),
                .target = fmax(1 - target_above(c, i), 0),
                .ratio = floor_of(c, i)};
    double almost = power(p.draft, k - 1);
    p.slope = k * almost;
    p.excess = almost * p.draft - p.target;
    return p;
}

// The most that P^k - Q can be between two prefixes.
static double most_between(const prefix *a, const prefix *b, int k)
{
    double p = b->draft - a->draft, q = b->target - a->target;
    double at = fmin(fmax((b->ratio * p - q) / (b->ratio - a->ratio), 0), p);
    double ends = fmax(a->excess, b->excess);
    return fmax(ends, power(a->draft + at, k) - a->target - at * a->ratio);
}

typedef struct search {
    const curve *curve;
    int k;
    double best; // of the prefixes seen
    struct {
        double most;
        size_t cell;
    } open[DSC_MAX_DRAFTS]; // single cells that may hide a better one
    size_t opens;
    dsc_doubts *doubts;
} search;

// A cell by itself: its parts when it is split, else it stays open.
static bool descend(search *s, prefix *a, prefix *b, double most)
{
    const dsc_cells *cells = s->curve->cells;
    uint16_t child = cells->child[a->place];
    if (child) {
        const dsc_node *n = &cells->node[child];
        *a = prefix_at(s->curve, n->at, s->k);
        *b = prefix_at(s->curve, n->at + n->count, s->k);
        return true;
    }
    if (s->opens == DSC_MAX_DRAFTS) {
        doubt(s->doubts, a->place);
        return false;
    }
    s->open[s->opens].most = most;
    s->open[s->opens++].cell = a->place;
    return false;
}

// Raises s->best to the best prefix from a to b, up to WIDTH / 4 and what single cells hide.
static void search_run(search *s, prefix a, prefix b)
{
    for (;;) {
        if (b.slope <= a.ratio || a.slope >= b.ratio)
            return;
        double most = most_between(&a, &b, s->k);
        if (most <= s->best + WIDTH / 4)
            return;
        if (b.place - a.place == 1) {
            if (!descend(s, &a, &b, most))
                return;
            continue;
        }
        prefix m = prefix_at(s->curve, a.place + (b.place - a.place) / 2, s->k);
        s->best = fmax(s->best, m.excess);
        // The half with the better end first: it may rule the other out.
        if (a.excess > b.excess) {
            search_run(s, a, m);
            a = m;
        } else {
            search_run(s, m, b);
            b = m;
        }
    }
}

static void otm(const curve *c, int kmax, dsc_rule_acceptance *out, dsc_rule_acceptance *error,
                dsc_doubts *doubts)
{
    for (int k = 2; k <= kmax; k++) {
        // No token above the inner cells is in the best set: their ratio is k or more.
        prefix none = prefix_at(c, DSC_BOTTOM, k), all = prefix_at(c, DSC_TOP, k);
        search s = {.curve = c, .k = k, .best = fmax(all.excess, 0), .doubts = doubts};
        search_run(&s, none, all);
        double most = s.best;
        for (size_t i = 0; i < s.opens; i++) {
            most = fmax(most, s.open[i].most);
            if (s.open[i].most > s.best + WIDTH / 2)
                doubt(doubts, s.open[i].cell);
        }
        out[k - 1].otm = fmax(1 - (s.best + most) / 2, 0);
        error[k - 1].otm = fmax((most - s.best) / 2, WIDTH / 4);
    }
}

void dsc_bounds_evaluate(const dsc_cells *c, int kmax, dsc_rule_acceptance *out,
                         dsc_rule_acceptance *error, dsc_doubts *doubts)
{
    curve normal = {.cells = c,
                    .per_draft = 1 / c->draft_sum,
                    .per_target = 1 / c->target_sum,
                    .scale = c->target_sum / c->draft_sum};
    doubts->count = 0;
    specinfer(&normal, kmax, out, error, doubts);
    for (int i = 0; i < kmax; i++) {
        out[i].k = error[i].k = i + 1;
        out[i].single = out[0].specinfer;
        error[i].single = error[0].specinfer;
    }
    out[0].kseq = out[0].otm = out[0].single;
    out[0].kseq_rho = 1;
    error[0].kseq = error[0].otm = error[0].single;
    error[0].kseq_rho = 0;
    kseq(&normal, kmax, out, error, doubts);
    otm(&normal, kmax, out, error, doubts);
}

// SPDX-License-Identifier: Apache-2.0
// SpecInfer rejection and k-Seq on the curve of a pair of rows; theory/rows_rules.h.
//
// SpecInfer: c_{i+1} = c_i + W(c_i). k-Seq: W(rho) = (1 - beta)^k at rho*. A bisection over the
// edges of cells, where W is known already, finds the cell of rho*. Inside it W is a line between
// two tokens. The line through the current point lies below W, which is convex: its root is the
// next point, until the tokens below are the same. As in theory/kseq.c the upper end of the bracket
// is kept.
#include "theory/rows_rules.h"

#include "theory/acceptance.h"

#include <math.h>

#define RHO_WIDTH 1e-10 // relative width of the bracket of rho, well below a float's precision

// Masses on either side of a ratio, in rows divided by their sums.
typedef struct cut {
    double draft_above, target_above, target_below;
} cut;

static cut cut_of(const dsc_rows_curve *c, dsc_mass below, dsc_mass above)
{
    return (cut){above.draft / c->draft_sum, above.target / c->target_sum,
                 below.target / c->target_sum};
}

// A ratio of the rows over the same token's ratio of the distributions.
static double scale_of(const dsc_rows_curve *c)
{
    return c->target_sum / c->draft_sum;
}

static cut cut_at(dsc_rows_curve *c, double ratio)
{
    dsc_mass above, below = dsc_rows_curve_divide(c, ratio * scale_of(c), &above);
    return cut_of(c, below, above);
}

static cut cut_before(const dsc_rows_curve *c, size_t cell)
{
    return cut_of(c, dsc_rows_curve_below_cell(c, cell), c->above[cell]);
}

static double w_of(const cut *c, double at)
{
    return fmin(fmax(c->target_above - at * c->draft_above, 0), 1);
}

// --- rules ---------------------------------------------------------------------------------------

void dsc_rows_specinfer(dsc_rows_curve *c, int K, double *at, double *w)
{
    at[0] = 0;
    w[0] = 1;
    for (int i = 1; i <= K; i++) {
        at[i] = at[i - 1] + w[i - 1];
        const cut here = cut_at(c, at[i]);
        w[i] = w_of(&here, at[i]);
    }
}

static dsc_kseq kseq_of(const cut *c, int k, double rho)
{
    double beta = fmin(c->draft_above + c->target_below / rho, 1);
    return (dsc_kseq){k, rho, beta, -expm1(k * log1p(-beta))};
}

// Positive below rho*, negative above; in the form that does not cancel, as in kseq.c.
static double lack(const cut *c, int k, double rho)
{
    dsc_kseq s = kseq_of(c, k, rho);
    if (s.accept < .5)
        return (s.beta > 0 ? s.accept / s.beta : k) - rho;
    return w_of(c, rho) - exp(k * log1p(-s.beta));
}

static bool too_small(const cut *c, int k, double rho)
{
    return lack(c, k, rho) > 0;
}

// The root in [lo, hi] of the line through a cut, from above. Inside a cell the function is nearly
// straight: secants end within `margin` of an end of the bracket, which then moves across the root.
static double root(const cut *c, int k, double lo, double hi)
{
    double at_lo = lack(c, k, lo), at_hi = lack(c, k, hi);
    if (!(at_lo > 0))
        return lo;
    for (int step = 1; hi - lo > RHO_WIDTH / 4 * hi; step++) {
        double margin = RHO_WIDTH / 8 * hi, next = lo + (hi - lo) / 2;
        if (step % 4 && at_hi <= 0)
            next = lo + (hi - lo) * (at_lo / (at_lo - at_hi));
        next = fmin(fmax(next, lo + margin), hi - margin);
        double at_next = lack(c, k, next);
        if (at_next > 0) {
            lo = next;
            at_lo = at_next;
        } else {
            hi = next;
            at_hi = at_next;
        }
    }
    return hi;
}

// The best rho in cell i. At the cell's end, the edge of the next cell, the masses are known
// without a look-up: a token exactly there counts the same above as below.
static dsc_kseq kseq_within(dsc_rows_curve *c, int k, size_t i)
{
    double scale = scale_of(c), lo = fmax(c->edge[i] / scale, 1);
    double hi = fmin(c->edge[i + 1] / scale, k);
    cut at_hi = hi < k ? cut_before(c, i + 1) : cut_at(c, hi), here = at_hi;
    for (int step = 0; hi - lo > RHO_WIDTH * hi; step++) {
        double next = step < 8 ? root(&here, k, lo, hi) : lo + (hi - lo) / 2;
        // A step to an end of the bracket goes just inside it, so that one look-up decides.
        double margin = fmin(RHO_WIDTH / 2 * hi, (hi - lo) / 2);
        next = fmin(fmax(next, lo + margin), hi - margin);
        here = cut_at(c, next);
        if (too_small(&here, k, next)) {
            lo = next;
        } else {
            hi = next;
            at_hi = here;
        }
    }
    return kseq_of(&at_hi, k, hi);
}

// *cell is the cell of rho* for fewer drafts; rho* grows with k.
static dsc_kseq kseq(dsc_rows_curve *c, int k, size_t *cell)
{
    const double *edge = c->edge;
    double scale = scale_of(c);
    cut one = cut_at(c, 1);
    if (k == 1 || !too_small(&one, k, 1))
        return kseq_of(&one, k, 1);
    size_t lo = *cell, hi = dsc_rows_curve_cell(c, k * scale) + 1;
    while (hi - lo > 1) {
        size_t middle = lo + (hi - lo) / 2;
        cut at = cut_before(c, middle);
        *(too_small(&at, k, edge[middle] / scale) ? &lo : &hi) = middle;
    }
    *cell = lo;
    if (c->estimates)
        return cut_at(c, edge[lo] / scale), (dsc_kseq){0};
    return kseq_within(c, k, lo);
}

void dsc_rows_kseq(dsc_rows_curve *c, int K, dsc_kseq *out)
{
    size_t cell = dsc_rows_curve_cell(c, scale_of(c));
    for (int k = 1; k <= K; k++)
        out[k - 1] = kseq(c, k, &cell);
}

int dsc_rows_prepare(dsc_rows_curve *c, int K, dsc_otm_fit *scratch, dsc_error *err)
{
    double at[DSC_MAX_DRAFTS + 1], w[DSC_MAX_DRAFTS + 1];
    dsc_kseq unused[DSC_MAX_DRAFTS];
    const dsc_otm_rows rows = {.curve = c};
    int rc = DSC_OK;
    dsc_rows_curve_prepare(c);
    dsc_rows_specinfer(c, K, at, w);
    dsc_rows_kseq(c, K, unused);
    for (int k = 1; k <= K && !rc; k++)
        rc = dsc_otm_levels(scratch, &rows, k, err);
    dsc_rows_curve_look_up(c);
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
// Sufficient statistics of a position; theory/sufficient.h.
//
// All three rules ask the one curve W(c) = sum (target - c draft)+ at a few points (kseq.h,
// specinfer.h, otm.h), so one pass over the rows (rows_curve.h) serves them all:
// - multi-round: c_{i+1} = c_i + W(c_i).
// - k-Seq: W(rho) = (1 - beta)^k at rho*. A bisection over the edges of cells, where W is known
//   already, finds the cell; inside it W is a line between two tokens. The line through the point
//   at hand lies below W, which is convex: its root gives the next point, until the tokens below
//   are the same. As in kseq.c the upper end of the bracket is kept.
// - OTM: the cutting planes of otm_levels.c, then the race of otm_race.c for k = 1, 2, ..; what was
//   found for one k is where the next starts.
#include "theory/sufficient.h"

#include "theory/kseq.h"
#include "theory/otm_internal.h"
#include "theory/rows_curve.h"

#include <math.h>
#include <stdlib.h>

#define RHO_WIDTH 1e-10 // of the bracket, relative: well below a float's

struct dsc_sufficient_work {
    dsc_rows_curve curve;
    dsc_otm_sampler *sampler;
    dsc_otm_fit fit;
};

int dsc_sufficient_work_new(dsc_sufficient_work **out, dsc_error *err)
{
    int rc = dsc_new(out, 1, err);
    if (rc)
        return rc;
    rc = dsc_rows_curve_init(&(*out)->curve, err);
    if (!rc)
        rc = dsc_otm_sampler_new(&(*out)->sampler, err);
    if (rc) {
        dsc_sufficient_work_free(*out);
        *out = NULL;
    }
    return rc;
}

void dsc_sufficient_work_free(dsc_sufficient_work *w)
{
    if (!w)
        return;
    dsc_rows_curve_fini(&w->curve);
    dsc_otm_sampler_free(w->sampler);
    free(w);
}

// --- the curve of the distributions --------------------------------------------------------------

static dsc_mass sum_of(const dsc_rows_curve *c)
{
    return (dsc_mass){c->cells.draft_sum, c->cells.target_sum};
}

// Masses on either side of a ratio, of rows divided by their sums.
typedef struct cut {
    double draft_above, target_above, target_below;
} cut;

static cut cut_of(const dsc_rows_curve *c, dsc_mass below)
{
    double d = c->cells.draft_sum, t = c->cells.target_sum;
    return (cut){fmax(d - below.draft, 0) / d, fmax(t - below.target, 0) / t, below.target / t};
}

static double scale_of(const dsc_rows_curve *c)
{
    return c->cells.target_sum /
           c->cells.draft_sum; // a ratio of the rows over one of the distributions
}

static cut cut_at(dsc_rows_curve *c, double ratio)
{
    return cut_of(c, c->base.type->overlap_below(&c->base, ratio * scale_of(c)));
}

// Below cell i.
static cut cut_before(const dsc_rows_curve *c, size_t i)
{
    const dsc_mass *above = c->cells.above;
    return cut_of(c, (dsc_mass){fmax(above[DSC_BOTTOM].draft - above[i].draft, 0),
                                fmax(above[DSC_BOTTOM].target - above[i].target, 0)});
}

static double w_of(const cut *c, double at)
{
    return fmin(fmax(c->target_above - at * c->draft_above, 0), 1);
}

// --- rules ---------------------------------------------------------------------------------------

static void specinfer(dsc_rows_curve *c, int K, float *out)
{
    double at = 0, w = 1;
    out[0] = 0;
    for (int i = 1; i <= K; i++) {
        at += w;
        cut here = cut_at(c, at);
        w = w_of(&here, at);
        out[i] = (float)fmin(at, i);
    }
}

static dsc_kseq kseq_of(const cut *c, int k, double rho)
{
    double beta = fmin(c->draft_above + c->target_below / rho, 1);
    return (dsc_kseq){k, rho, beta, -expm1(k * log1p(-beta))};
}

// Positive below rho*, negative above; as in kseq.c, whichever form does not cancel.
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

// The root in [lo, hi] of the line through a cut, from above. In a cell the function is nearly
// straight: secants come within `margin` of an end of the bracket, which then moves across the
// root.
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

// rho* in cell i. At its end, the edge of the next, the masses are known without looking that up: a
// token right there counts the same above as below.
static dsc_kseq kseq_within(dsc_rows_curve *c, int k, size_t i)
{
    double scale = scale_of(c), lo = fmax(c->cells.floor[i] / scale, 1);
    double hi = fmin(c->cells.floor[i + 1] / scale, k);
    cut at_hi = hi < k ? cut_before(c, i + 1) : cut_at(c, hi), here = at_hi;
    for (int step = 0; hi - lo > RHO_WIDTH * hi; step++) {
        double next = step < 8 ? root(&here, k, lo, hi) : lo + (hi - lo) / 2;
        // A step to an end of the bracket: just inside, so that one look settles it.
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

// *cell: that of the rho* for fewer drafts; rho* grows with k.
static dsc_kseq kseq(dsc_rows_curve *c, int k, size_t *cell)
{
    const double *edge = c->cells.floor;
    double scale = scale_of(c);
    cut one = cut_at(c, 1);
    if (k == 1 || !too_small(&one, k, 1))
        return kseq_of(&one, k, 1);
    size_t lo = *cell, hi = dsc_cells_find(&c->cells, k * scale) + 1;
    while (hi - lo > 1) {
        size_t middle = lo + (hi - lo) / 2;
        cut at = cut_before(c, middle);
        *(too_small(&at, k, edge[middle] / scale) ? &lo : &hi) = middle;
    }
    *cell = lo;
    if (c->sketch)
        return cut_at(c, edge[lo] / scale), (dsc_kseq){0};
    return kseq_within(c, k, lo);
}

static void kseq_all(dsc_rows_curve *c, int K, float *out)
{
    size_t cell = dsc_cells_find(&c->cells, scale_of(c));
    for (int k = 1; k <= K; k++) {
        dsc_kseq s = kseq(c, k, &cell);
        out[2 * k - 2] = (float)s.rho;
        out[2 * k - 1] = (float)s.beta;
    }
}

// Finds out about where the rules will ask, and has it looked up at once.
static int prepare(dsc_sufficient_work *w, int K, float *kseq_out, float *specinfer_out,
                   dsc_error *err)
{
    dsc_overlap *rows = &w->curve.base;
    rows->type->prepare(rows, 0);
    specinfer(&w->curve, K, specinfer_out);
    kseq_all(&w->curve, K, kseq_out);
    int rc = DSC_OK;
    for (int k = 1; k <= K && !rc; k++)
        rc = dsc_otm_levels(&w->fit, rows, sum_of(&w->curve), k, err);
    rows->type->look_up(rows);
    return rc;
}

static int otm(dsc_sufficient_work *w, double draft_y, double target_y, int K, float *out,
               dsc_error *err)
{
    double dist[65];
    for (int k = 1; k <= K; k++) {
        // One draft alone is no start: its weights go to the bounds.
        int rc = dsc_otm_sampler_build_float(w->sampler, &w->curve.base, sum_of(&w->curve), k,
                                             k > 2, err);
        if (rc)
            return rc;
        dsc_otm_sampler_survivors(w->sampler, draft_y, target_y, dist);
        for (int m = 0; m <= k; m++)
            *out++ = (float)dist[m];
    }
    return DSC_OK;
}

int dsc_sufficient_of_sources(const dsc_row_source *draft, const dsc_row_source *target,
                              size_t vocab, double draft_y, double target_y, int K, float *kseq_out,
                              float *specinfer_out, float *otm_out, dsc_sufficient_work *w,
                              dsc_error *err)
{
    if (K < 1 || K > 64)
        return dsc_fail(err, DSC_EUSAGE, "%d drafts; 1 to 64 are possible", K);
    int rc = dsc_rows_curve_set(&w->curve, draft, target, vocab, err);
    if (!rc)
        rc = prepare(w, K, kseq_out, specinfer_out, err);
    if (rc)
        return rc;
    specinfer(&w->curve, K, specinfer_out);
    kseq_all(&w->curve, K, kseq_out);
    return otm(w, draft_y, target_y, K, otm_out, err);
}

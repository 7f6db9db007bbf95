// SPDX-License-Identifier: Apache-2.0
// and the result is f_0(1). f_i and g_i increase and are concave on [0, 1] (g o min is, when g is),
// with value 0 at 0. So between nodes a chord lies below g, and a line that touches g or passes
// above it somewhere lies above it everywhere. With nodes p_j = exp(-j d), a token moves every node
// by the same distance on the grid: its mass is laid out once on a grid of ln r, and a step is a
// correlation. The lower bound uses chords: the mass d(x) goes to both ends of its cell so that the
// mean r(x) is kept. The upper bound uses lines b + s p, one per node, evaluated at the node
// nearest to p r(x): sum of draft (b + s p r) = sum of draft b + p sum of target s is a line again.
// The error of a chord or a line in a cell is the change of slope there times the cell's width.
#include "theory/block_verify.h"

#include "theory/single.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

// -ln of the lowest node: lower values add less than length exp(-DEPTH) to high - low.
#define DEPTH 16.

typedef struct lattice {
    int bins; // nodes 0 .. bins
    double width;
    double *node; // [bins + 1] p_j
    // One pair of distributions on the grid. Index m + bins stands for r = exp(m width), -bins <= m
    // <= bins. Smaller ratios are in `tail`; larger ones count as m = bins: they take every node to
    // p = 1.
    double *chord;                  // draft mass for the chords
    double *draft, *target;         // masses of the tokens nearest to m
    double *draft_low, *target_low; // those of them with r at or below the grid point
    double draft_tail, target_tail; // masses with a ratio below the grid
    // g at the nodes, and the next f.
    double *low, *low_next;     // lower bound
    double *base, *base_next;   // upper line: b
    double *slope, *slope_next; // s
} lattice;

static void lattice_fini(lattice *l)
{
    free(l->node);
}

static int lattice_init(lattice *l, int bins, dsc_error *err)
{
    size_t nodes = (size_t)bins + 1, grid = 2 * nodes - 1;
    double *memory;
    *l = (lattice){.bins = bins, .width = DEPTH / bins};
    int rc = dsc_new(&memory, 7 * nodes + 5 * grid, err);
    if (rc)
        return rc;
    double **const by_node[] = {&l->node,      &l->low,   &l->low_next,  &l->base,
                                &l->base_next, &l->slope, &l->slope_next};
    double **const by_grid[] = {&l->chord, &l->draft, &l->target, &l->draft_low, &l->target_low};
    for (int i = 0; i < 7; i++, memory += nodes)
        *by_node[i] = memory;
    for (int i = 0; i < 5; i++, memory += grid)
        *by_grid[i] = memory;
    for (int j = 0; j <= bins; j++)
        l->node[j] = exp(-j * l->width);
    return DSC_OK;
}

// Lays out tokens of ratio r inside the grid.
static void lay_out(lattice *l, double ratio, double draft, double target)
{
    double place = fmin(log(ratio) / l->width, l->bins) + l->bins; // in [0, 2 bins]
    int nearest = (int)(place + .5), cell = (int)place;
    l->draft[nearest] += draft;
    l->target[nearest] += target;
    if (place <= nearest) {
        l->draft_low[nearest] += draft;
        l->target_low[nearest] += target;
    }
    if (cell == 2 * l->bins) {
        l->chord[cell] += draft;
    } else {
        double upper = expm1((place - cell) * l->width) / expm1(l->width);
        l->chord[cell] += draft * (1 - upper);
        l->chord[cell + 1] += draft * upper;
    }
}

static void lay_out_curve(lattice *l, const dsc_curve *c)
{
    double least = exp(-DEPTH);
    double *const grid[] = {l->chord, l->draft, l->target, l->draft_low, l->target_low};
    for (int i = 0; i < 5; i++)
        for (int m = 0; m <= 2 * l->bins; m++)
            grid[i][m] = 0;
    l->draft_tail = l->target_tail = 0;
    for (size_t i = 0; i < c->atoms && isfinite(c->ratio[i]); i++) {
        double draft = c->draft_below[i + 1] - c->draft_below[i];
        double target = c->target_below[i + 1] - c->target_below[i];
        if (c->ratio[i] < least) {
            l->draft_tail += draft;
            l->target_tail += target;
        } else {
            lay_out(l, c->ratio[i], draft, target);
        }
    }
}

// out[j] = sum of grid[j - i + n] g[i] over the nodes i = 1 .. n that node j reaches, one grid
// point after the other, so that a step with few ratios is cheap.
static void correlate(const double *restrict grid, const double *restrict g, int n,
                      double *restrict out)
{
    for (int j = 0; j <= n; j++)
        out[j] = 0;
    for (int m = 0; m < 2 * n; m++) {
        int first = m < n ? 0 : m - n + 1, last = m < n ? m : n;
        const double *to = g + n - m;
        if (grid[m] > 0)
            for (int j = first; j <= last; j++)
                out[j] += grid[m] * to[j];
    }
}

static void step_low(lattice *l)
{
    int n = l->bins;
    double above = 0, below = l->target_tail; // draft mass taken to 1; target mass below the nodes
    for (int m = n; m <= 2 * n; m++)
        above += l->chord[m];
    correlate(l->chord, l->low, n, l->low_next);
    for (int j = 0; j <= n; j++) {
        l->low_next[j] += above * l->low[0] + below * l->node[j] * (l->low[n] / l->node[n]);
        above -= l->chord[j + n];
        below += l->chord[j] * l->node[n - j];
    }
}

static void step_high(lattice *l)
{
    int n = l->bins;
    double above = 0, draft_below = l->draft_tail, target_below = l->target_tail;
    double at_one = l->base[0] + l->slope[0];
    for (int m = n + 1; m <= 2 * n; m++)
        above += l->draft[m];
    correlate(l->draft, l->base, n, l->base_next);
    correlate(l->target, l->slope, n, l->slope_next);
    for (int j = 0; j <= n; j++) {
        // Nearest to p = 1: tokens that reach it keep its value, the others its line.
        double low = l->draft_low[j + n], high = l->draft[j + n] - low;
        l->base_next[j] += (above + high) * at_one + low * l->base[0] + draft_below * l->base[n];
        l->slope_next[j] += l->target_low[j + n] * l->slope[0] + target_below * l->slope[n];
        above -= j < n ? l->draft[j + n + 1] : 0;
        draft_below += l->draft[j];
        target_below += l->target[j];
    }
}

static int bounds(const dsc_curve *const *curve, int length, int bins, dsc_interval *accepted,
                  dsc_error *err)
{
    lattice l;
    int rc = lattice_init(&l, bins, err);
    if (rc)
        return rc;
    for (int i = length; i-- > 0;) {
        for (int j = 0; j <= bins; j++) { // f to g
            l.low[j] += l.node[j];
            l.slope[j] += 1;
        }
        if (i == length - 1 || curve[i] != curve[i + 1])
            lay_out_curve(&l, curve[i]);
        step_low(&l);
        step_high(&l);
        double **const turn[][2] = {
            {&l.low, &l.low_next}, {&l.base, &l.base_next}, {&l.slope, &l.slope_next}};
        for (int t = 0; t < 3; t++) {
            double *swap = *turn[t][0];
            *turn[t][0] = *turn[t][1];
            *turn[t][1] = swap;
        }
        accepted[i] = (dsc_interval){l.low[0], l.base[0] + l.slope[0]};
    }
    lattice_fini(&l);
    return DSC_OK;
}

typedef struct value {
    double p, mass; // mass: probability of that p_i under the draft
} value;

static int by_p(const void *a, const void *b)
{
    double x = ((const value *)a)->p, y = ((const value *)b)->p;
    return (x > y) - (x < y);
}

// Values a few roundings apart count as equal: they are one product in another order.
static size_t unite(value *v, size_t n)
{
    size_t kept = 0;
    qsort(v, n, sizeof *v, by_p);
    for (size_t i = 0; i < n; i++)
        if (kept && v[i].p - v[kept - 1].p <= 1e-14 * v[i].p)
            v[kept - 1].mass += v[i].mass;
        else
            v[kept++] = v[i];
    return kept;
}

enum { MOST_VALUES = 1 << 17 };

// The distribution of p_{i+1} from that of p_i, v[*n] with capacity MOST_VALUES. Returns false when
// there are too many values.
static bool advance(value *v, size_t *n, value *next, const dsc_curve *c)
{
    size_t count = 0;
    for (size_t i = 0; i < c->atoms && isfinite(c->ratio[i]); i++) {
        double mass = c->draft_below[i + 1] - c->draft_below[i];
        if (count + *n > MOST_VALUES)
            return false;
        for (size_t s = 0; s < *n; s++)
            next[count++] = (value){fmin(v[s].p * c->ratio[i], 1), v[s].mass * mass};
    }
    *n = unite(next, count);
    for (size_t i = 0; i < *n; i++)
        v[i] = next[i];
    return true;
}

// Sum of E[p_i] over all values of the p_i. *few becomes false when there are too many.
static double exact(const dsc_curve *const *curve, int length, value *v, value *next, bool *few)
{
    double sum = 0;
    size_t n = 1;
    v[0] = (value){1, 1};
    for (int i = 0; i < length && *few; i++) {
        for (size_t s = 0; s < n; s++) // E[p_{i+1} | p_i] = p_i - left_i
            sum += v[s].mass * (v[s].p - dsc_block_left(curve[i], v[s].p));
        if (i + 1 < length)
            *few = advance(v, &n, next, curve[i]);
    }
    return sum;
}

// The distance of the bounds usually falls as 1/bins^2, so the required number of bins can be
// predicted.
static int refine(const dsc_curve *const *curve, int length, dsc_interval *accepted, dsc_error *err)
{
    for (int bins = 2048;;) {
        int rc = bounds(curve, length, bins, accepted, err);
        double excess = (accepted[0].high - accepted[0].low) / DSC_BLOCK_WIDTH;
        if (rc || excess <= 1 || bins >= DSC_BLOCK_BINS)
            return rc;
        do
            bins *= 2;
        while (bins < DSC_BLOCK_BINS && (excess /= 4) > 1);
    }
}

int dsc_block_expected(const dsc_curve *const *curve, int length, int bins, dsc_interval *accepted,
                       dsc_error *err)
{
    if (bins)
        return bounds(curve, length, bins, accepted, err);
    value *v;
    bool few = true;
    int rc = dsc_new(&v, 2 * (size_t)MOST_VALUES, err);
    if (rc)
        return rc;
    for (int i = 0; i < length && few; i++) { // the longest block first, because it decides
        double sum = exact(curve + i, length - i, v, v + MOST_VALUES, &few);
        accepted[i] = (dsc_interval){sum, sum};
    }
    free(v);
    return few ? DSC_OK : refine(curve, length, accepted, err);
}

void dsc_block_expected_token(const dsc_curve *const *curve, int length, double *accepted)
{
    double after = 0;
    for (int i = length; i-- > 0;)
        accepted[i] = after = dsc_single_acceptance(curve[i]) * (1 + after);
}

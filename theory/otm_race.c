// SPDX-License-Identifier: Apache-2.0
// The race in the optimal-transport sampler.
//
// Each of k i.i.d. draws has a level j with probability m_j, and level j has a clock of rate w_j.
// When all draws lie inside (levels of A), the first clock wins unless a clock of rate 1 rings
// before it: then all are rejected. When some draw lies outside, the first clock among those
// outside wins. Per unit of mass, level j wins with probability
//
//   inside:   F_j = k w_j Int e^(-t w_j) e^(-t) Phi(t)^(k-1) dt,        Phi = sum_A m_i e^(-t w_i)
//   outside:  F_j = k w_j Int e^(-t w_j) (m(A) + Psi(t))^(k-1) dt,      Psi = sum_B m_i e^(-t w_i)
//
// and should win with probability c_j, its ratio of target to draft (outside: at most c_j, and w_j
// <= 1). With theta = ln w both are the gradient condition of a convex problem (a choice by weights
// is the gradient of log-sum-exp, so this is the dual of an entropic transport problem):
//
//   inside:   minimize E[ln(1 + sum w); all in A]     - sum_A m_j c_j theta_j
//   outside:  minimize E[ln sum_B w; some outside A]  - sum_B m_j c_j theta_j   over theta <= 0,
//
// E[ln S] = Int (e^-t - E e^(-t S)) dt/t. Newton's method with a line search solves them. Outside,
// weights at their bound whose gradient points outwards are fixed (Bertsekas 1982).
//
// Integrals: the trapezoid rule in s = ln t. The integrands are analytic and bounded for |Im s| <
// pi/2, so a step h leaves a relative error of about e^(-pi^2/h). Nodes begin at w t = e^-left. The
// part to the left of them is added in closed form with relative error e^-left; it is e^-left of
// the whole.
//
// Starts: without competitors a level inside would need ln(c/(top - c)). Levels that compete need
// more. The difference changes little with k for the same rows, so a fit may start from the last
// one.
#include "theory/otm_race.h"

#include "theory/rows/fast_exp.h"

#include <math.h>
#include <string.h>

#define CAP 115.0 // bound of |theta|: room for a few tiers of strict priority
#define RIGHT 3.8 // nodes end at w t = e^RIGHT, where e^(-w t) < 4e-20
#define QUICK_ITERATIONS 25
#define ENOUGH 1e-11 // distance of the flows from their shares at which a fit stops
enum { INSIDE, OUTSIDE };

typedef struct precision {
    double step, left; // of the nodes
    double noise;      // of the convex function
    bool quick;        // takes fewer steps when it converges well
} precision;

static const precision full = {.25, 20, 3e-14, false}; // 1e-17
static const precision coarse = {.35, 16, 1e-13,
                                 true}; // 6e-13, for results that are rounded to floats

// y[i] = x[i]^n, n >= 0.
static inline void powers(const double *x, size_t count, int n, double *y)
{
    for (size_t i = 0; i < count; i++)
        y[i] = 1;
    for (int bit = 1 << 6; bit; bit >>= 1) { // n < 128
        if (n < bit)
            continue;
#pragma omp simd
        for (size_t i = 0; i < count; i++)
            y[i] *= n & bit ? y[i] * x[i] : y[i];
    }
}

// A group of levels during the fit.
typedef struct dsc_race_work {
    const dsc_race *r;
    int side;
    size_t first, n; // levels first .. first + n - 1
    const precision *precision;
    double idle; // mass that takes no part: inside, weight 0; outside, all of A
    struct dsc_race_grid *grid;
    double clock[DSC_RACE_NODES];                  // e^-t
    double decay[DSC_RACE_LEVELS][DSC_RACE_NODES]; // e^(-t w)
    double theta[DSC_RACE_LEVELS], w[DSC_RACE_LEVELS], gradient[DSC_RACE_LEVELS];
    double hessian[DSC_RACE_LEVELS][DSC_RACE_LEVELS];
    double value;
    struct start { // of the last fit, per side: initial values of the levels, and their theta
        size_t n;
        double alone[DSC_RACE_LEVELS], theta[DSC_RACE_LEVELS];
    } last[2];
} group;

static bool alive(const dsc_race_level *l)
{
    return l->mass > 0 && l->ratio > 0;
}

// Nodes for the current weights: a range of one fixed grid. Otherwise the convex function would
// change with the nodes and might not decrease along a step.
DSC_FOR_EVERY_PROCESSOR
static void place_nodes(group *g)
{
    double lo = 0, hi = 0; // the clock of rate 1 inside; the bound outside
    for (size_t j = 0; j < g->n; j++) {
        lo = fmin(lo, g->theta[j]);
        hi = fmax(hi, g->theta[j]);
    }
    double step = g->precision->step, from = step * floor((-hi - g->precision->left) / step);
    double to = (g->side == INSIDE ? 0 : -lo) + RIGHT;
    size_t count = (size_t)ceil((to - from) / step) + 1;
    g->grid->count = count > DSC_RACE_NODES ? DSC_RACE_NODES : count;
    double *t = g->grid->t, *weight = g->grid->weight;
    int nodes = (int)g->grid->count;
#pragma omp simd
    for (int i = 0; i < nodes; i++) {
        t[i] = dsc_fast_exp(from + step * i);
        weight[i] = step * t[i];
        g->clock[i] = dsc_fast_exp(-t[i]);
    }
    weight[0] += weight[0] / expm1(step); // the nodes to the left, a geometric sum
}

// Survival of the clocks at the nodes, and the value of the convex function.
DSC_FOR_EVERY_PROCESSOR
static void evaluate(group *g)
{
    const dsc_race_level *level = g->r->level + g->first;
    int k = g->r->k;
    struct dsc_race_grid *grid = g->grid;
    place_nodes(g);
    for (size_t i = 0; i < grid->count; i++)
        grid->others[i] = g->idle;
    g->value = 0;
    for (size_t j = 0; j < g->n; j++) {
        double w = g->w[j] = exp(g->theta[j]), mass = level[j].mass, *decay = g->decay[j];
#pragma omp simd
        for (size_t i = 0; i < grid->count; i++) {
            decay[i] = dsc_fast_exp(-grid->t[i] * w);
            grid->others[i] += mass * decay[i];
        }
        g->value -= level[j].mass * level[j].ratio * g->theta[j];
    }
    double a = dsc_power(g->r->mass_inside, k), all[DSC_RACE_NODES], sum = 0;
    bool inside = g->side == INSIDE;
    powers(grid->others, grid->count, k, all);
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < grid->count; i++) {
        double e = g->clock[i];
        double share = grid->weight[i] / grid->t[i]; // the integral is over s = ln t
        sum += share * (inside ? e * (a - all[i]) : (1 - a) * e - (all[i] - a));
    }
    g->value += sum;
}

// Gradient m (F - c) and Hessian in theta.
DSC_FOR_EVERY_PROCESSOR
static void differentiate(group *g)
{
    const dsc_race_level *level = g->r->level + g->first;
    const struct dsc_race_grid *grid = g->grid;
    int k = g->r->k;
    double once[DSC_RACE_NODES], twice[DSC_RACE_NODES], term[DSC_RACE_NODES];
    bool inside = g->side == INSIDE;
    powers(grid->others, grid->count, k - 1, once);
    powers(grid->others, grid->count, k > 1 ? k - 2 : 0, twice);
#pragma omp simd
    for (size_t i = 0; i < grid->count; i++) {
        double e = grid->weight[i] * (inside ? g->clock[i] : 1) * k;
        once[i] *= e;
        twice[i] *= e * (k - 1) * grid->t[i];
    }
    for (size_t j = 0; j < g->n; j++) {
        double wj = g->w[j], mj = level[j].mass, flow = 0, slope = 0;
        const double *own = g->decay[j];
#pragma omp simd reduction(+ : flow, slope)
        for (size_t i = 0; i < grid->count; i++) {
            double e = once[i] * own[i];
            flow += e;
            slope += e * (1 - grid->t[i] * wj);
            term[i] = twice[i] * own[i];
        }
        g->gradient[j] = mj * (wj * flow - level[j].ratio);
        for (size_t l = 0; l <= j; l++) {
            const double *other = g->decay[l];
            double cross = 0;
#pragma omp simd reduction(+ : cross)
            for (size_t i = 0; i < grid->count; i++)
                cross += term[i] * other[i];
            cross *= mj * level[l].mass * wj * g->w[l];
            g->hessian[j][l] = g->hessian[l][j] = (j == l ? mj * wj * slope : 0) - cross;
        }
    }
}

// Solves hessian step = -gradient over the free levels by Cholesky. A level whose pivot is lost to
// rounding does not move; step[j] = 0 for the fixed levels.
static void newton_step(const group *g, const bool *moves, double *step)
{
    double l[DSC_RACE_LEVELS][DSC_RACE_LEVELS], y[DSC_RACE_LEVELS];
    size_t at[DSC_RACE_LEVELS], n = 0;
    memset(step, 0, g->n * sizeof *step);
    for (size_t j = 0; j < g->n; j++)
        if (moves[j])
            at[n++] = j;
    for (size_t i = 0; i < n; i++) {
        double scale = g->hessian[at[i]][at[i]];
        y[i] = -g->gradient[at[i]];
        for (size_t j = 0; j <= i; j++) {
            double sum = g->hessian[at[i]][at[j]];
            for (size_t m = 0; m < j; m++)
                sum -= l[i][m] * l[j][m];
            if (i == j)
                l[i][i] = sum > 1e-14 * scale && sum > 0 ? sqrt(sum) : INFINITY;
            else
                l[i][j] = sum / l[j][j];
        }
        for (size_t m = 0; m < i; m++)
            y[i] -= l[i][m] * y[m];
        y[i] /= l[i][i];
    }
    for (size_t i = n; i-- > 0;) {
        double sum = y[i];
        for (size_t m = i + 1; m < n; m++)
            sum -= l[m][i] * step[at[m]];
        step[at[i]] = sum / l[i][i];
    }
}

static double clamp(const group *g, double theta)
{
    return fmin(fmax(theta, -CAP), g->side == INSIDE ? CAP : 0);
}

// The largest distance of the flows from their shares, except for weights at a bound that push
// against it.
static double distance(const group *g)
{
    double sum = 0;
    for (size_t j = 0; j < g->n; j++) {
        double beyond = clamp(g, g->theta[j] - copysign(1, g->gradient[j]));
        sum += beyond != g->theta[j] ? fabs(g->gradient[j]) : 0;
    }
    return sum;
}

// Outside, a common factor of all weights changes no choice. While those below their bound need to
// grow together, they can grow until the largest meets its bound. That is done first, because along
// this direction the function is nearly straight and Newton's step would be huge. Returns false
// when it did not help.
static bool lift(group *g)
{
    double from[DSC_RACE_LEVELS];
    for (size_t round = 0; round < g->n; round++) {
        double slope = 0, largest = -INFINITY, before = g->value;
        for (size_t j = 0; j < g->n; j++)
            if (g->theta[j] < 0 && g->r->level[g->first + j].mass > 0) {
                slope += g->gradient[j];
                largest = fmax(largest, g->theta[j]);
            }
        if (!(slope < 0))
            return true;
        memcpy(from, g->theta, g->n * sizeof *from);
        for (size_t j = 0; j < g->n; j++)
            g->theta[j] = fmin(from[j] - largest, 0);
        evaluate(g);
        if (g->value > before) {
            memcpy(g->theta, from, g->n * sizeof *from);
            evaluate(g);
            return false;
        }
        differentiate(g);
    }
    return true;
}

// One damped step; returns false when nothing moves any more.
static bool advance(group *g)
{
    bool moves[DSC_RACE_LEVELS] = {false};
    double step[DSC_RACE_LEVELS], from[DSC_RACE_LEVELS], before = g->value, largest = 0;
    for (size_t j = 0; j < g->n; j++) {
        double limit = clamp(g, g->theta[j] - copysign(1, g->gradient[j]));
        moves[j] = limit != g->theta[j];
        from[j] = g->theta[j];
    }
    newton_step(g, moves, step);
    // Outside, a level of small mass wins in proportion to w unless it always wins, so Newton's
    // step is taken in w. Inside the opposite tends to hold.
    for (size_t j = 0; j < g->n && g->side == OUTSIDE && g->precision->quick; j++)
        step[j] = log1p(fmax(step[j], -.98));
    for (size_t j = 0; j < g->n; j++)
        largest = fmax(largest, fabs(step[j]));
    double size = largest > 4 ? 4 / largest : 1;
    for (int halvings = 0; halvings < 30 && largest > 0; halvings++, size /= 2) {
        double promised = 0;
        for (size_t j = 0; j < g->n; j++) {
            g->theta[j] = clamp(g, from[j] + size * step[j]);
            promised += g->gradient[j] * (g->theta[j] - from[j]);
        }
        evaluate(g);
        if (promised < 0 && g->value <= before + 1e-4 * promised + g->precision->noise)
            return true;
    }
    memcpy(g->theta, from, g->n * sizeof *from);
    evaluate(g);
    return false;
}

// Returns whether the flows equal their shares.
static bool fit_group(group *g, int iterations)
{
    bool lifts = g->side == OUTSIDE;
    evaluate(g);
    differentiate(g);
    for (int i = 0; i < iterations && distance(g) > ENOUGH; i++) {
        lifts = lifts && (lift(g) || !g->precision->quick);
        if (!advance(g))
            break;
        differentiate(g);
    }
    return distance(g) <= ENOUGH;
}

// The initial theta of a level whose initial value without a last fit is `alone`: the last fit's
// theta, linear between its levels.
static double start_near(const struct start *last, double alone)
{
    size_t n = last->n, j = 0;
    while (j < n && last->alone[j] < alone)
        j++;
    if (j == 0 || j == n) {
        size_t end = j ? n - 1 : 0;
        return last->theta[end] + (alone - last->alone[end]);
    }
    double share = (alone - last->alone[j - 1]) / (last->alone[j] - last->alone[j - 1]);
    return last->theta[j - 1] + share * (last->theta[j] - last->theta[j - 1]);
}

// Fits the levels of one side that can win, and writes the results to the race.
static bool fit_side(dsc_race *r, int side, int iterations, group *g)
{
    struct start *from = &g->last[side];
    double alone[DSC_RACE_LEVELS];
    size_t begin = side == INSIDE ? 0 : r->inside, end = side == INSIDE ? r->inside : r->levels;
    while (begin < end && !alive(&r->level[begin]))
        begin++;
    g->r = r;
    g->side = side;
    g->first = begin;
    g->n = end - begin;
    g->grid = &r->grid[side];
    size_t last = end;
    while (last > begin && !(r->level[last - 1].mass > 0))
        last--;
    double top = side == INSIDE ? r->k * dsc_power(r->mass_inside, r->k - 1)
                                : r->level[last > begin ? last - 1 : begin].ratio;
    g->idle = side == INSIDE ? 0 : r->mass_inside;
    for (size_t j = 0; side == INSIDE && j < begin; j++)
        g->idle += r->level[j].mass;
    for (size_t j = 0; j < g->n; j++) {
        double c = r->level[begin + j].ratio;
        alone[j] = side == INSIDE ? log(c / fmax(top - c, 1e-6 * top)) : log(c / top);
        g->theta[j] = from->n ? start_near(from, alone[j]) : alone[j];
    }
    if (side == OUTSIDE && last > begin) { // weights are scaled so that the largest is at the bound
        double most = g->theta[last - 1 - begin];
        for (size_t j = 0; j < g->n; j++)
            g->theta[j] -= most;
    }
    for (size_t j = 0; j < g->n; j++)
        g->theta[j] = clamp(g, g->theta[j]);
    bool good = fit_group(g, iterations);
    from->n = g->n;
    memcpy(from->alone, alone, g->n * sizeof *alone);
    memcpy(from->theta, g->theta, g->n * sizeof *alone);
    for (size_t j = 0; j < g->n; j++) {
        dsc_race_level *l = &r->level[begin + j];
        l->log_weight = g->theta[j];
        l->flow = l->mass > 0 ? l->ratio + g->gradient[j] / l->mass : 0;
        l->kept = l->flow > l->ratio ? l->ratio / l->flow : 1;
    }
    return good;
}

int dsc_race_work_new(dsc_race_work **out, dsc_error *err)
{
    return dsc_new(out, 1, err);
}

static bool fit(dsc_race *r, int iterations, group *g)
{
    r->mass_inside = r->accept = 0;
    for (size_t j = 0; j < r->levels; j++) {
        dsc_race_level *l = &r->level[j];
        *l = (dsc_race_level){l->ratio, l->mass, -INFINITY, 0, 1};
        r->mass_inside += j < r->inside ? l->mass : 0;
    }
    bool good = fit_side(r, INSIDE, iterations, g);
    if (r->inside < r->levels)
        good = fit_side(r, OUTSIDE, iterations, g) && good;
    for (size_t j = 0; j < r->levels; j++)
        r->accept += r->level[j].mass * r->level[j].flow * r->level[j].kept;
    return good;
}

void dsc_race_fit(dsc_race *r, int iterations, dsc_race_work *work)
{
    work->precision = &full;
    work->last[INSIDE].n = work->last[OUTSIDE].n = 0;
    fit(r, iterations, work);
}

void dsc_race_fit_float(dsc_race *r, bool next, dsc_race_work *work)
{
    work->precision = &coarse;
    if (!next)
        work->last[INSIDE].n = work->last[OUTSIDE].n = 0;
    if (!fit(r, QUICK_ITERATIONS, work))
        dsc_race_fit(r, DSC_RACE_ITERATIONS, work);
}

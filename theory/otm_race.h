// SPDX-License-Identifier: Apache-2.0
// Internal to the optimal-transport sampler: k i.i.d. draws over a few levels, and weights that
// make each level win with the required probability. The mathematics is in otm_race.c.
#ifndef DSC_THEORY_OTM_RACE_H
#define DSC_THEORY_OTM_RACE_H

#include "base/memory.h"

#include <stdbool.h>

enum { DSC_RACE_LEVELS = 64, DSC_RACE_NODES = 640, DSC_RACE_ITERATIONS = 300 };

typedef struct dsc_race_level {
    double ratio;      // target over draft, ascending from level to level
    double mass;       // Pr(one draw has this level)
    double log_weight; // ln of the rate of its clock; -inf: never wins
    double flow;       // Pr(accepted and the winner has this level) / mass, before thinning
    double kept;       // share of its wins that are accepted: min(1, ratio / flow)
} dsc_race_level;

typedef struct dsc_race {
    int k;                                 // draws, >= 1
    size_t levels, inside;                 // levels [0, inside) can be rejected
    dsc_race_level level[DSC_RACE_LEVELS]; // ratio ascending; masses sum to 1
    double mass_inside;
    double accept; // sum of mass flow kept
    // Nodes and weights of the integrals over t: grid[0] for the levels inside, grid[1] for those
    // outside.
    struct dsc_race_grid {
        size_t count;
        double t[DSC_RACE_NODES], weight[DSC_RACE_NODES]; // integral f dt = sum weight f(t)
        double others[DSC_RACE_NODES]; // Pr(a draw is of the group and its clock > t) (+ inside)
    } grid[2];
} dsc_race;

// x^n, n >= 0.
static inline double dsc_power(double x, int n)
{
    double y = 1;
    for (; n > 0; n >>= 1, x *= x)
        if (n & 1)
            y *= x;
    return y;
}

// Scratch memory, reused between fits. *out is owned by the caller (free).
typedef struct dsc_race_work dsc_race_work;
int dsc_race_work_new(dsc_race_work **out, dsc_error *err);

// Fits log_weight in at most `iterations` steps and then computes flow, kept and accept exactly for
// these weights. k, levels, inside, ratio and mass are given.
void dsc_race_fit(dsc_race *r, int iterations, dsc_race_work *work);

// dsc_race_fit for results that are rounded to floats: relative error 1e-12, and cheaper. `next`:
// the last fit with this memory was for the same rows and one draw less, and this fit starts from
// its weights.
void dsc_race_fit_float(dsc_race *r, bool next, dsc_race_work *work);

#endif

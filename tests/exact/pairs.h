// SPDX-License-Identifier: Apache-2.0
// Pairs of distributions for tests: random shapes and the degenerate ones.
#ifndef DSC_TESTS_PAIRS_H
#define DSC_TESTS_PAIRS_H

#include "base/rng.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum pair_shape {
    PAIR_FLAT,     // near uniform
    PAIR_EVEN,     // Dirichlet(1)
    PAIR_PEAKED,   // a few tokens have nearly all the mass
    PAIR_NEAR,     // target = draft with noise
    PAIR_ZEROS,    // many tokens have no mass in one distribution or in both
    PAIR_TIES,     // small integer weights: many equal ratios
    PAIR_ZIPF,     // draft ~ 1/rank, target likewise on a shifted rank
    PAIR_EQUAL,    // draft = target
    PAIR_DISJOINT, // no token in common (vocab 1: equal)
    PAIR_ONE_HOT,  // draft one-hot
    PAIR_CERTAIN,  // target one-hot
    PAIR_DENORMAL, // masses down to the smallest double
    PAIR_SHAPES
} pair_shape;

static inline double pair_uniform(uint64_t seed, size_t x, uint32_t use)
{
    return dsc_rng_uniform(seed, x, 0, use);
}

static inline void pair_normalise(double *row, size_t vocab)
{
    double sum = 0;
    for (size_t x = 0; x < vocab; x++)
        sum += row[x];
    for (size_t x = 0; x < vocab; x++)
        row[x] = sum > 0 ? row[x] / sum : x == 0;
}

static inline double pair_weight(pair_shape shape, uint64_t seed, size_t x, size_t vocab,
                                 uint32_t dist)
{
    double u = pair_uniform(seed, x, dist), v = pair_uniform(seed, x, dist + 2);
    double e = -log1p(-u); // exponential
    switch (shape) {
    case PAIR_FLAT: return 1 + .1 * u;
    case PAIR_PEAKED: return pow(u, 30);
    case PAIR_ZEROS: return v < .6 ? 0 : e;
    case PAIR_TIES: return floor(4 * u);
    case PAIR_ZIPF: return 1 / (1 + (double)((x + dist * 3) % vocab));
    case PAIR_DISJOINT: return x % 2 == dist % 2 || vocab == 1 ? e + 1e-3 : 0;
    case PAIR_DENORMAL: return v < .5 ? e : ldexp(u, -1000 - (int)(v * 74));
    default: return e;
    }
}

static inline void make_pair(pair_shape shape, uint64_t seed, size_t vocab, double *draft,
                             double *target)
{
    for (size_t x = 0; x < vocab; x++) {
        draft[x] = pair_weight(shape, seed, x, vocab, 1);
        target[x] = pair_weight(shape, seed, x, vocab, 2);
        if (shape == PAIR_NEAR)
            target[x] = draft[x] * exp(.2 * (target[x] - 1));
        if (shape == PAIR_EQUAL)
            target[x] = draft[x];
        if (shape == PAIR_ONE_HOT)
            draft[x] = x == seed % vocab;
        if (shape == PAIR_CERTAIN)
            target[x] = x == seed % vocab;
    }
    pair_normalise(draft, vocab);
    pair_normalise(target, vocab);
}

#endif

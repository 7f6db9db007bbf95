// SPDX-License-Identifier: Apache-2.0
// Enumeration of the drafts that can be sampled from small distributions. Sets of tokens are bit
// masks.
#ifndef DSC_TESTS_EXACT_DRAWS_H
#define DSC_TESTS_EXACT_DRAWS_H

#include "tests/exact/pairs.h"

enum { MAX_VOCAB = 10 };

typedef struct pair {
    size_t vocab;
    double draft[MAX_VOCAB], target[MAX_VOCAB];
} pair;

// Every shape in turn.
static inline pair small_pair(uint64_t n, size_t vocab)
{
    pair p = {.vocab = vocab};
    make_pair((pair_shape)(n % PAIR_SHAPES), n, vocab, p.draft, p.target);
    return p;
}

static inline double mass_of(const double *row, size_t vocab, unsigned set)
{
    double sum = 0;
    for (size_t x = 0; x < vocab; x++)
        if (set >> x & 1)
            sum += row[x];
    return sum;
}

// Adds Pr(the drafts are the set) to dist[2^vocab], for k drafts sampled one after the other.
static inline void draw(const pair *p, int k, int replace, unsigned set, double pr, double *dist)
{
    double residual = mass_of(p->draft, p->vocab, replace ? ~0u : ~set);
    if (k == 0 || !(residual > 0)) {
        dist[set] += pr;
        return;
    }
    for (size_t x = 0; x < p->vocab; x++)
        if (p->draft[x] > 0 && (replace || !(set >> x & 1)))
            draw(p, k - 1, replace, set | 1u << x, pr * (p->draft[x] / residual), dist);
}

// The greedy set: the k - 1 most probable tokens, lower ids first among equals, and one sampled
// from the others.
static inline void draw_greedy(const pair *p, int k, double *dist)
{
    unsigned top = 0;
    for (int i = 1; i < k; i++) {
        size_t best = p->vocab;
        for (size_t x = p->vocab; x-- > 0;)
            if (p->draft[x] > 0 && !(top >> x & 1) &&
                (best == p->vocab || p->draft[x] >= p->draft[best]))
                best = x;
        if (best < p->vocab)
            top |= 1u << best;
    }
    draw(p, 1, 0, top, 1, dist);
}

// 1 - max over all token sets A of Pr(all drafts in A) - target(A).
static inline double best_acceptance(const pair *p, const double *dist)
{
    double most = 0;
    for (unsigned a = 0; a < 1u << p->vocab; a++) {
        double inside = 0;
        for (unsigned s = a;; s = (s - 1) & a) { // the subsets of a
            inside += dist[s];
            if (!s)
                break;
        }
        most = fmax(most, inside - mass_of(p->target, p->vocab, a));
    }
    return 1 - most;
}

#endif

// SPDX-License-Identifier: Apache-2.0
#include "sim/dist.h"

#include "theory/fast_exp.h"
#include "theory/row_sum.h"

#include <math.h>
#include <string.h>

// Index of `token` in the level, or its count.
static size_t find(const dsc_dist_level *l, int32_t token)
{
    size_t lo = 0, hi = l->count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (l->token[mid] < token)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < l->count && l->token[lo] == token ? lo : l->count;
}

double dsc_dist_probability(const dsc_dist *d, int32_t token)
{
    if (d->dense)
        return d->dense[token];
    if (d->logits)
        return dsc_softmax_probability(d->logits, (size_t)token);
    double weight = 1;
    for (int j = 0; j < d->levels; j++) {
        const dsc_dist_level *l = &d->level[j];
        size_t i = find(l, token);
        if (i < l->count)
            return weight * l->probability[i];
        weight *= l->other;
    }
    return weight * d->base;
}

void dsc_dist_fill(const dsc_dist *d, double *law)
{
    if (d->dense) {
        memcpy(law, d->dense, (size_t)d->vocab_size * sizeof *law);
        return;
    }
    if (d->logits) {
        dsc_softmax_fill(d->logits, law);
        return;
    }
    double weight[DSC_DIST_LEVELS + 1] = {1};
    for (int j = 0; j < d->levels; j++)
        weight[j + 1] = weight[j] * d->level[j].other;
    for (int32_t x = 0; x < d->vocab_size; x++)
        law[x] = weight[d->levels] * d->base;
    for (int j = d->levels - 1; j >= 0; j--) // longer contexts write over shorter ones
        for (size_t i = 0; i < d->level[j].count; i++)
            law[d->level[j].token[i]] = weight[j] * d->level[j].probability[i];
}

// The entry that holds the draw: the first i with upto[i] > draw.
static size_t invert_counts(const uint32_t *upto, size_t count, uint32_t draw)
{
    size_t lo = 0, hi = count - 1;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (upto[mid] <= draw)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

// floor(u n) for u in [0, 1], kept below n where rounding reached it.
static uint32_t scale(double u, uint32_t n)
{
    double x = u * n;
    return x < n ? (uint32_t)x : n - 1;
}

int32_t dsc_dist_sample(const dsc_dist *d, double u)
{
    if (d->dense)
        return (int32_t)dsc_row_find(d->dense, (size_t)d->vocab_size, u * (1 - d->unlisted));
    if (d->logits)
        return (int32_t)dsc_softmax_draw(d->logits, u);
    for (int j = 0; j < d->levels; j++) {
        const dsc_dist_level *l = &d->level[j];
        double own = 1 - l->other;
        if (!l->upto)
            return l->token[dsc_row_find(l->probability, l->count, u)];
        if (u < own)
            return l
                ->token[invert_counts(l->upto, l->count, scale(u / own, l->upto[l->count - 1]))];
        u = (u - own) / l->other;
    }
    return (int32_t)scale(u, (uint32_t)d->vocab_size);
}

// Whether any of these is more than x.
DSC_FOR_EVERY_PROCESSOR
static int any_above(const double *row, int32_t n, double x)
{
    int above = 0;
#pragma omp simd reduction(+ : above)
    for (int32_t i = 0; i < n; i++)
        above += row[i] > x;
    return above;
}

DSC_FOR_EVERY_PROCESSOR
static void below_most(const dsc_softmax *s, double *row)
{
#pragma omp simd
    for (size_t x = 0; x < s->vocab; x++)
        row[x] = (double)s->logit[x] - s->most;
}

// The row that tokens are ordered by, the law or logits; returns what a token with a probability is
// above.
static double fill_order(const dsc_dist *d, double *row)
{
    if (d->dense || !d->logits) {
        dsc_dist_fill(d, row);
        return 0;
    }
    below_most(d->logits, row);
    for (int32_t x = 0; x < d->vocab_size && d->logits->least > -INFINITY; x++)
        if (!dsc_softmax_keeps(d->logits, (size_t)x))
            row[x] = -INFINITY;
    return -DSC_SOFTMAX_LEAST / d->logits->by;
}

size_t dsc_dist_top(const dsc_dist *d, size_t k, double *row, int32_t *token)
{
    enum { BLOCK = 64 }; // passed over together when none of them is among the first k
    const int32_t vocab = d->vocab_size;
    size_t n = 0;
    double bar = fill_order(d, row);
    for (int32_t first = 0; first < vocab && k; first += BLOCK) {
        const int32_t end = vocab - first < BLOCK ? vocab : first + BLOCK;
        if (!any_above(row + first, end - first, bar))
            continue;
        for (int32_t x = first; x < end; x++) {
            if (!(row[x] > bar))
                continue;
            size_t at = n < k ? n++ : n - 1;
            for (; at > 0 && row[token[at - 1]] < row[x]; at--)
                token[at] = token[at - 1];
            token[at] = x;
            if (n == k)
                bar = row[token[n - 1]];
        }
    }
    return n;
}

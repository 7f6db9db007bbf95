// SPDX-License-Identifier: Apache-2.0
// Queries of a next-token distribution for each of its three forms: one probability, the whole row,
// the k most probable tokens, and a sample by the inverse of the distribution function.
#include "sim/dist.h"

#include "theory/rows/fast_exp.h"
#include "theory/rows/row_sum.h"
#include "theory/rows/softmax.h"

#include <math.h>
#include <string.h>

// The first i with x[i] >= least, or count; x ascends.
static size_t first_from(const uint32_t *x, size_t count, uint32_t least)
{
    size_t lo = 0, hi = count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (x[mid] < least)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

double dsc_dist_probability(const dsc_dist *d, int32_t token)
{
    if (!d || token < 0 || token >= d->vocab_size)
        return (double)NAN;
    if (d->dense)
        return d->dense[token];
    if (d->logits)
        return dsc_softmax_probability(d->logits, (size_t)token);
    double weight = 1;
    for (int j = 0; j < d->levels; j++) {
        const dsc_dist_level *l = &d->level[j];
        size_t i = first_from((const uint32_t *)l->token, l->count, (uint32_t)token);
        if (i < l->count && l->token[i] == token)
            return weight * l->probability[i];
        weight *= l->other;
    }
    return weight * d->base;
}

static void fill_levels(const dsc_dist *d, double *probs)
{
    double weight[DSC_DIST_LEVELS + 1] = {1};
    for (int j = 0; j < d->levels; j++)
        weight[j + 1] = weight[j] * d->level[j].other;
    for (int32_t x = 0; x < d->vocab_size; x++)
        probs[x] = weight[d->levels] * d->base;
    for (int j = d->levels - 1; j >= 0; j--) // longer contexts write over shorter ones
        for (size_t i = 0; i < d->level[j].count; i++)
            probs[d->level[j].token[i]] = weight[j] * d->level[j].probability[i];
}

void dsc_dist_fill(const dsc_dist *d, double *probs)
{
    if (!d || !probs)
        return;
    if (d->dense)
        memcpy(probs, d->dense, (size_t)d->vocab_size * sizeof *probs);
    else if (d->logits)
        dsc_softmax_fill(d->logits, probs);
    else
        fill_levels(d, probs);
}

// floor(u n) for u in [0, 1], kept below n where rounding reached it.
static uint32_t scale(double u, uint32_t n)
{
    double x = u * n;
    return x < n ? (uint32_t)x : n - 1;
}

int32_t dsc_dist_sample(const dsc_dist *d, double u)
{
    if (!d || d->vocab_size < 1 || !(u >= 0 && u < 1))
        return -1;
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
                ->token[first_from(l->upto, l->count, scale(u / own, l->upto[l->count - 1]) + 1)];
        u = (u - own) / l->other;
    }
    return (int32_t)scale(u, (uint32_t)d->vocab_size);
}

// Whether any element is above x.
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
static void below_most(const dsc_softmax *s, size_t first, size_t end, double *row)
{
#pragma omp simd
    for (size_t x = first; x < end; x++)
        row[x] = (double)s->logit[x] - s->most;
}

// The sort keys of tokens [first, end) of a distribution of logits; -inf: probability 0.
static void fill_order(const dsc_softmax *s, size_t first, size_t end, double *row)
{
    below_most(s, first, end, row);
    for (size_t x = first; x < end && s->least > -INFINITY; x++)
        if (!dsc_softmax_keeps(s, x))
            row[x] = -INFINITY;
}

// The k largest elements so far, in descending order, ties by ascending index.
typedef struct first_ones {
    size_t k, n;
    double bar; // an element has to be above it to enter
    int32_t *index;
} first_ones;

static void offer(first_ones *f, const double *row, int32_t first, int32_t end)
{
    enum { BLOCK = 64 }; // skipped together when none of them enters
    for (; first < end && f->k; first += BLOCK) {
        const int32_t until = end - first < BLOCK ? end : first + BLOCK;
        if (!any_above(row + first, until - first, f->bar))
            continue;
        for (int32_t x = first; x < until; x++) {
            if (!(row[x] > f->bar))
                continue;
            size_t at = f->n < f->k ? f->n++ : f->n - 1;
            for (; at > 0 && row[f->index[at - 1]] < row[x]; at--)
                f->index[at] = f->index[at - 1];
            f->index[at] = x;
            if (f->n == f->k)
                f->bar = row[f->index[f->n - 1]];
        }
    }
}

// The k-th largest of the blocks' largest logits. The k most probable tokens are in blocks that
// reach it.
static double least_peak(const dsc_softmax *s, size_t k, double *row, int32_t *room)
{
    const size_t blocks = dsc_softmax_blocks(s->vocab);
    first_ones f = {.k = k, .bar = -INFINITY, .index = room};
    for (size_t b = 0; b < blocks; b++)
        row[b] = (double)s->max_logit[b];
    offer(&f, row, 0, (int32_t)blocks);
    return f.n == k ? f.bar : -INFINITY;
}

static void offer_blocks(const dsc_softmax *s, const size_t *block, size_t count, double *row,
                         first_ones *f)
{
    dsc_softmax_fetch(s, block, count);
    for (size_t i = 0; i < count; i++) {
        const size_t first = block[i] * DSC_SOFTMAX_BLOCK;
        const size_t end = first + dsc_softmax_in_block(s, block[i]);
        fill_order(s, first, end, row);
        offer(f, row, (int32_t)first, (int32_t)end);
    }
}

static size_t top_of_logits(const dsc_softmax *s, size_t k, double *row, int32_t *token)
{
    enum { TOGETHER = 64 }; // blocks fetched at once
    const size_t blocks = dsc_softmax_blocks(s->vocab);
    first_ones f = {.k = k, .bar = -DSC_SOFTMAX_LEAST / s->by, .index = token};
    if (!s->max_logit || k >= blocks) {
        dsc_softmax_fetch(s, NULL, blocks);
        fill_order(s, 0, s->vocab, row);
        offer(&f, row, 0, (int32_t)s->vocab);
        return f.n;
    }
    const double least = least_peak(s, k, row, token);
    size_t block[TOGETHER], n = 0;
    for (size_t b = 0; b < blocks && k; b++) {
        if ((double)s->max_logit[b] >= least)
            block[n++] = b;
        if (n == TOGETHER || b + 1 == blocks) {
            offer_blocks(s, block, n, row, &f);
            n = 0;
        }
    }
    return f.n;
}

size_t dsc_dist_top(const dsc_dist *d, size_t k, double *row, int32_t *token)
{
    first_ones f = {.k = k, .index = token};
    if (!d || !row || !token)
        return 0;
    if (!d->dense && d->logits)
        return top_of_logits(d->logits, k, row, token);
    dsc_dist_fill(d, row);
    offer(&f, row, 0, d->vocab_size);
    return f.n;
}

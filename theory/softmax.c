// SPDX-License-Identifier: Apache-2.0
// theory/softmax.h, in vectors where there are some.
#include "theory/softmax.h"

#include "theory/fast_exp.h"
#include "theory/row_sum.h"
#include "theory/softmax_filter.h"

#include <math.h>
#include <string.h>

enum { BLOCK = DSC_SOFTMAX_BLOCK, LEAST = DSC_SOFTMAX_LEAST, LANES = 16 };

// Whether every probability of a block is more than 0 by far, so that exponentials need no bounds.
DSC_FOR_EVERY_PROCESSOR
static bool is_shallow(const float *logit, size_t n, double most, double by)
{
    double deep = 0;
#pragma omp simd reduction(+ : deep)
    for (size_t i = 0; i < n; i++)
        deep += ((double)logit[i] - most) * by > -LEAST ? 0. : 1.;
    return deep == 0;
}

// Exponentials of a block, times a factor.
DSC_FOR_EVERY_PROCESSOR
static void scaled_exponentials(const float *logit, size_t n, double most, double by, double factor,
                                double *out)
{
    if (is_shallow(logit, n, most, by))
#pragma omp simd
        for (size_t i = 0; i < n; i++)
            out[i] = dsc_fast_exp_within(((double)logit[i] - most) * by) * factor;
    else
#pragma omp simd
        for (size_t i = 0; i < n; i++)
            out[i] = dsc_fast_exp_below(((double)logit[i] - most) * by) * factor;
}

// Those of tokens below `least` become 0.
DSC_FOR_EVERY_PROCESSOR
static void drop_below(const float *logit, size_t n, float least, double *out)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++)
        out[i] *= logit[i] >= least ? 1. : 0.;
}

// Drops what the law does of block b.
static void drop(const dsc_softmax *s, size_t b, double *out)
{
    const size_t first = b * BLOCK, n = dsc_softmax_in_block(s, b);
    const size_t tied = s->last < first ? 0 : s->last - first < n ? s->last - first + 1 : n;
    drop_below(s->logit + first, tied, s->least, out);
    drop_below(s->logit + first + tied, n - tied, nextafterf(s->least, INFINITY), out + tied);
}

// The exponentials of block b, times a factor, and how many these are.
static size_t exponentials_of(const dsc_softmax *s, size_t b, double factor, double *out)
{
    const size_t n = dsc_softmax_in_block(s, b);
    scaled_exponentials(s->logit + b * BLOCK, n, s->most, s->by, factor, out);
    if (s->least > -INFINITY)
        drop(s, b, out);
    return n;
}

// Adds the exponentials of x[0, n) to LANES sums, in an order that does not depend on the width of
// vectors.
DSC_FOR_EVERY_PROCESSOR
static void add_exponentials(const float *x, size_t n, double most, double by, double *sum)
{
    double lane[LANES] = {0};
    size_t i = 0;
    if (is_shallow(x, n, most, by))
        for (; i + LANES <= n; i += LANES)
#pragma omp simd
            for (size_t j = 0; j < LANES; j++)
                lane[j] += dsc_fast_exp_within(((double)x[i + j] - most) * by);
    for (; i + LANES <= n; i += LANES)
#pragma omp simd
        for (size_t j = 0; j < LANES; j++)
            lane[j] += dsc_fast_exp_below(((double)x[i + j] - most) * by);
    for (; i < n; i++)
        lane[i % LANES] += dsc_fast_exp_below(((double)x[i] - most) * by);
    memcpy(sum, lane, sizeof lane);
}

// Sums of the exponentials of all blocks; returns the sum of all.
static double sum_blocks(const float *logit, size_t vocab, double most, double by, double *block)
{
    double sum = 0;
    for (size_t first = 0; first < vocab; first += BLOCK) {
        const size_t n = vocab - first < BLOCK ? vocab - first : BLOCK;
        double lane[LANES];
        add_exponentials(logit + first, n, most, by, lane);
        for (size_t half = LANES / 2; half; half /= 2)
            for (size_t j = 0; j < half; j++)
                lane[j] += lane[j + half];
        block[first / BLOCK] = lane[0];
        sum += lane[0];
    }
    return sum;
}

static dsc_softmax without_sums(const float *logit, size_t vocab, float most, double temperature,
                                double *block)
{
    // What is not the likeliest is nothing at a temperature that has no reciprocal; 0 times it is.
    return (dsc_softmax){.logit = logit,
                         .block = block,
                         .vocab = vocab,
                         .most = (double)most,
                         .by = fmin(1 / temperature, 1e300),
                         .least = -INFINITY,
                         .last = vocab};
}

void dsc_softmax_begin(dsc_softmax *s, const float *logit, size_t vocab, float most,
                       double temperature, double *block)
{
    *s = without_sums(logit, vocab, most, temperature, block);
    s->sum = sum_blocks(logit, vocab, s->most, s->by, block);
}

// --- filters -------------------------------------------------------------------------------------

// The exponentials of what is kept into room[vocab], and their sums. Blocks of which nothing is
// kept are passed over.
static void write_kept(dsc_softmax *s, double *block, double *room)
{
    const size_t blocks = dsc_softmax_blocks(s->vocab);
    s->sum = 0;
    for (size_t b = 0; b < blocks; b++) {
        double *e = room + b * BLOCK;
        const size_t n = dsc_softmax_in_block(s, b);
        if (dsc_any_from(s->logit + b * BLOCK, n, s->least))
            exponentials_of(s, b, 1, e);
        else
            memset(e, 0, n * sizeof *e);
        block[b] = dsc_row_sum(e, n);
        s->sum += block[b];
    }
}

// Drops what is not kept any more.
static void drop_more(dsc_softmax *s, double *block, double *room)
{
    const size_t blocks = dsc_softmax_blocks(s->vocab);
    s->sum = 0;
    for (size_t b = 0; b < blocks; b++) {
        if (block[b] > 0) {
            drop(s, b, room + b * BLOCK);
            block[b] = dsc_row_sum(room + b * BLOCK, dsc_softmax_in_block(s, b));
        }
        s->sum += block[b];
    }
}

void dsc_softmax_begin_filtered(dsc_softmax *s, const float *logit, size_t vocab, float most,
                                double temperature, size_t top_k, double top_p, double *block,
                                double *room)
{
    *s = without_sums(logit, vocab, most, temperature, block);
    if (top_k < vocab)
        dsc_softmax_keep_count(s, top_k);
    write_kept(s, block, room);
    if (top_p < 1) {
        dsc_softmax_keep_weight(s, room, top_p * s->sum);
        drop_more(s, block, room);
    }
}

// --- tokens --------------------------------------------------------------------------------------

double dsc_softmax_probability(const dsc_softmax *s, size_t token)
{
    const double e = dsc_fast_exp_below(((double)s->logit[token] - s->most) * s->by);
    return dsc_softmax_keeps(s, token) ? e * (1 / s->sum) : 0;
}

void dsc_softmax_fill(const dsc_softmax *s, double *law)
{
    const size_t blocks = dsc_softmax_blocks(s->vocab);
    for (size_t b = 0; b < blocks; b++)
        if (s->block[b] > 0)
            exponentials_of(s, b, 1 / s->sum, law + b * BLOCK);
        else
            memset(law + b * BLOCK, 0, dsc_softmax_in_block(s, b) * sizeof *law);
}

size_t dsc_softmax_draw(const dsc_softmax *s, double u)
{
    const size_t blocks = dsc_softmax_blocks(s->vocab);
    const double at = u * s->sum;
    double before = 0, upto = 0, e[BLOCK];
    size_t block = 0; // rounding may leave `at` above all of them: then the last that has any
    for (size_t b = 0; b < blocks; b++) {
        if (!(s->block[b] > 0))
            continue;
        block = b;
        before = upto;
        upto += s->block[b];
        if (at < upto)
            break;
    }
    const size_t n = exponentials_of(s, block, 1, e);
    return block * BLOCK + dsc_row_find(e, n, at - before);
}

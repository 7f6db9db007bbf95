// SPDX-License-Identifier: Apache-2.0
// Softmax over a row of logits; theory/rows/softmax.h. The loops are written for vectors, and their
// sums do not depend on the vector width.
#include "theory/rows/softmax.h"

#include "theory/rows/fast_exp.h"
#include "theory/rows/row_sum.h"
#include "theory/rows/softmax_filter.h"

#include <math.h>
#include <string.h>

enum { BLOCK = DSC_SOFTMAX_BLOCK, LEAST = DSC_SOFTMAX_LEAST, SMALL = 2048, LANES = DSC_ROW_LANES };

enum { CHUNK = 16 * BLOCK }; // tokens whose data stay in the first-level cache between two loops

// The minimum of row[0, n), n >= 1. It is computed by lanes, because not all compilers vectorize
// minimum reductions.
DSC_FOR_EVERY_PROCESSOR
static float row_least(const float *row, size_t n)
{
    float lane[LANES], least = row[n - 1];
    for (size_t j = 0; j < LANES; j++)
        lane[j] = least;
    for (size_t x = 0; x + LANES <= n; x += LANES)
#pragma omp simd
        for (size_t j = 0; j < LANES; j++)
            lane[j] = row[x + j] < lane[j] ? row[x + j] : lane[j];
    for (size_t x = n - n % LANES; x < n; x++)
        least = row[x] < least ? row[x] : least;
    for (size_t j = 0; j < LANES / 2; j++)
        lane[j] = lane[j + LANES / 2] < lane[j] ? lane[j + LANES / 2] : lane[j];
    for (size_t j = 0; j < LANES / 4; j++)
        lane[j] = lane[j + LANES / 4] < lane[j] ? lane[j + LANES / 4] : lane[j];
    for (size_t j = 0; j < LANES / 4; j++)
        least = lane[j] < least ? lane[j] : least;
    return least;
}

// Returns whether exponentials need no bounds for logits >= least.
static bool is_shallow(const dsc_softmax *s, float least)
{
    return ((double)least - s->most) * s->by > -LEAST;
}

// Exponentials times a factor, or 0 for logits below `least`.
DSC_FOR_EVERY_PROCESSOR
static void scaled_exponentials(const float *logit, size_t n, const dsc_softmax *s, float least,
                                double factor, double *out)
{
    const double most = s->most, by = s->by;
    if (s->shallow)
#pragma omp simd
        for (size_t i = 0; i < n; i++)
            out[i] = dsc_fast_exp_within(((double)logit[i] - most) * by) *
                     (logit[i] >= least ? factor : 0.);
    else
#pragma omp simd
        for (size_t i = 0; i < n; i++)
            out[i] = dsc_fast_exp_below(((double)logit[i] - most) * by) *
                     (logit[i] >= least ? factor : 0.);
}

// Writes the exponentials of block b times a factor and returns their number.
static size_t exponentials_of(const dsc_softmax *s, size_t b, double factor, double *out)
{
    const size_t first = b * BLOCK, n = dsc_softmax_in_block(s, b);
    const size_t tied = s->last < first ? 0 : s->last - first < n ? s->last - first + 1 : n;
    const float *logit = s->logit + first;
    if (tied)
        scaled_exponentials(logit, tied, s, s->least, factor, out);
    if (tied < n)
        scaled_exponentials(logit + tied, n - tied, s, nextafterf(s->least, INFINITY), factor,
                            out + tied);
    return n;
}

// The sums of the exponentials of x[0, n) by blocks, in an order that does not depend on the vector
// width.
DSC_FOR_EVERY_PROCESSOR
static void add_exponentials(const float *x, size_t n, double most, double by, bool shallow,
                             double *block)
{
    for (const float *end = x + n; x < end; x += BLOCK) {
        const size_t in = end - x < BLOCK ? (size_t)(end - x) : BLOCK;
        double lane[LANES];
        size_t i = 0;
        dsc_clear_lanes(lane);
        if (shallow)
            for (; i + LANES <= in; i += LANES)
#pragma omp simd
                for (size_t j = 0; j < LANES; j++)
                    lane[j] += dsc_fast_exp_within(((double)x[i + j] - most) * by);
        for (; i + LANES <= in; i += LANES)
#pragma omp simd
            for (size_t j = 0; j < LANES; j++)
                lane[j] += dsc_fast_exp_below(((double)x[i + j] - most) * by);
        for (; i < in; i++)
            lane[i % LANES] += dsc_fast_exp_below(((double)x[i] - most) * by);
        *block++ = dsc_add_lanes(lane);
    }
}

// Sums the exponentials and writes them into out[n]. One body for both would give vector code that
// is slower by a tenth or more when it writes.
DSC_FOR_EVERY_PROCESSOR
static void write_exponentials(const float *x, size_t n, double most, double by, bool shallow,
                               double *out, double *block)
{
    for (const float *end = x + n; x < end; x += BLOCK, out += BLOCK) {
        const size_t in = end - x < BLOCK ? (size_t)(end - x) : BLOCK;
        double lane[LANES];
        size_t i = 0;
        dsc_clear_lanes(lane);
        if (shallow)
            for (; i + LANES <= in; i += LANES)
#pragma omp simd
                for (size_t j = 0; j < LANES; j++)
                    lane[j] += out[i + j] = dsc_fast_exp_within(((double)x[i + j] - most) * by);
        for (; i + LANES <= in; i += LANES)
#pragma omp simd
            for (size_t j = 0; j < LANES; j++)
                lane[j] += out[i + j] = dsc_fast_exp_below(((double)x[i + j] - most) * by);
        for (; i < in; i++)
            lane[i % LANES] += out[i] = dsc_fast_exp_below(((double)x[i] - most) * by);
        *block++ = dsc_add_lanes(lane);
    }
}

// Sets the weights of tokens below `least` to 0 and returns the sum of the others. It is separate
// from writing them, because no compiler vectorizes a loop that does both.
DSC_FOR_EVERY_PROCESSOR
static double drop_below(const float *x, size_t n, float least, double *weight)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++)
        weight[i] *= x[i] >= least ? 1. : 0.;
    return dsc_row_sum(weight, n);
}

// Sums the exponentials of all blocks.
static void sum_blocks(dsc_softmax *s, double *block)
{
    const size_t blocks = dsc_softmax_blocks(s->vocab);
    s->shallow = true;
    s->sum = 0;
    for (size_t first = 0; first < s->vocab; first += CHUNK) {
        const float *x = s->logit + first;
        const size_t n = s->vocab - first < CHUNK ? s->vocab - first : CHUNK;
        const bool shallow = is_shallow(s, row_least(x, n));
        add_exponentials(x, n, s->most, s->by, shallow, block + first / BLOCK);
        s->shallow = s->shallow && shallow;
    }
    for (size_t b = 0; b < blocks; b++)
        s->sum += block[b];
}

static dsc_softmax without_sums(const float *logit, size_t vocab, float most, double temperature,
                                const double *block)
{
    // At a temperature that has no reciprocal only the most probable token remains; 0 times 1e300
    // is 0.
    const double by = fmin(1 / temperature, 1e300);
    return (dsc_softmax){.logit = logit,
                         .block = block,
                         .vocab = vocab,
                         .most = (double)most,
                         .by = by,
                         .least = -INFINITY,
                         .last = vocab};
}

void dsc_softmax_begin(dsc_softmax *s, const float *logit, size_t vocab, float most,
                       double temperature, double *block)
{
    *s = without_sums(logit, vocab, most, temperature, block);
    sum_blocks(s, block);
}

void dsc_softmax_resume(dsc_softmax *s, const float *logit, size_t vocab, float most,
                        double temperature, float least, size_t last, const double *block)
{
    *s = without_sums(logit, vocab, most, temperature, block);
    s->least = least;
    s->last = last;
    for (size_t b = 0; b < dsc_softmax_blocks(vocab); b++)
        s->sum += block[b];
}

// --- filters -------------------------------------------------------------------------------------

// Sums the tokens of a list by blocks.
static void sum_listed(dsc_softmax *s, const dsc_softmax_list *list, double *block)
{
    const size_t blocks = dsc_softmax_blocks(s->vocab);
    memset(block, 0, blocks * sizeof *block);
    dsc_softmax_add_listed(s, list, block);
    s->sum = dsc_row_sum(block, blocks);
}

// Writes the exponentials of the kept tokens into room[vocab] and sums them; adds some of them to a
// sample, unless that is NULL. Blocks without a kept token are skipped.
static void write_kept(dsc_softmax *s, double *block, double *room, dsc_softmax_sample *sample)
{
    const bool all = !(s->least > -INFINITY);
    const size_t blocks = dsc_softmax_blocks(s->vocab), step = all ? CHUNK : BLOCK;
    s->shallow = true;
    for (size_t first = 0; first < s->vocab; first += step) {
        const float *x = s->logit + first;
        double *e = room + first, *sum = block + first / BLOCK;
        const size_t n = s->vocab - first < step ? s->vocab - first : step;
        const bool shallow = is_shallow(s, row_least(x, n));
        s->shallow = s->shallow && shallow;
        *sum = 0;
        if (!all && !dsc_any_from(x, n, s->least)) {
            memset(e, 0, n * sizeof *e);
            continue;
        }
        write_exponentials(x, n, s->most, s->by, shallow, e, sum);
        if (!all)
            *sum = drop_below(x, n, s->least, e);
        for (size_t at = first; at < first + n && sample; at += BLOCK)
            dsc_softmax_sample_add(sample, s, at / BLOCK, room + at);
    }
    s->sum = dsc_row_sum(block, blocks);
}

void dsc_softmax_begin_filtered(dsc_softmax *s, const float *logit, size_t vocab, float most,
                                double temperature, size_t top_k, double top_p, double *block,
                                double *room)
{
    dsc_softmax_list list;
    dsc_softmax_sample sample;
    *s = without_sums(logit, vocab, most, temperature, block);
    if (top_k < vocab && dsc_softmax_keep_count(s, top_k, room, &list)) {
        sum_listed(s, &list, block);
        if (top_p < 1) {
            dsc_softmax_keep_listed(s, &list, top_p * s->sum, s->least);
            sum_listed(s, &list, block);
        }
        return;
    }
    const bool sampled = top_p < 1 && vocab > SMALL;
    if (sampled)
        dsc_softmax_sample_begin(&sample, s, top_p);
    write_kept(s, block, room, sampled ? &sample : NULL);
    if (top_p < 1)
        dsc_softmax_keep_weight(s, room, sampled ? &sample : NULL, top_p * s->sum, block);
}

// --- tokens --------------------------------------------------------------------------------------

double dsc_softmax_probability(const dsc_softmax *s, size_t token)
{
    dsc_softmax_fetch(s, &(size_t){token / BLOCK}, 1);
    const double e = dsc_fast_exp_below(((double)s->logit[token] - s->most) * s->by);
    return dsc_softmax_keeps(s, token) ? e * (1 / s->sum) : 0;
}

void dsc_softmax_fill(const dsc_softmax *s, double *dist)
{
    const size_t blocks = dsc_softmax_blocks(s->vocab);
    dsc_softmax_fetch(s, NULL, blocks);
    for (size_t b = 0; b < blocks; b++)
        if (s->block[b] > 0)
            exponentials_of(s, b, 1 / s->sum, dist + b * BLOCK);
        else
            memset(dist + b * BLOCK, 0, dsc_softmax_in_block(s, b) * sizeof *dist);
}

// The block of a sample, and the sum of all earlier blocks.
static size_t block_at(const dsc_softmax *s, double at, double *before)
{
    const size_t blocks = dsc_softmax_blocks(s->vocab);
    double upto = 0;
    size_t block = 0; // rounding may leave `at` above the total: then the last non-empty block
    *before = 0;
    for (size_t b = 0; b < blocks; b++) {
        if (!(s->block[b] > 0))
            continue;
        block = b;
        *before = upto;
        upto += s->block[b];
        if (at < upto)
            break;
    }
    return block;
}

size_t dsc_softmax_block_at(const dsc_softmax *s, double u)
{
    double before;
    return block_at(s, u * s->sum, &before);
}

size_t dsc_softmax_draw(const dsc_softmax *s, double u)
{
    const double at = u * s->sum;
    double before, e[BLOCK];
    const size_t block = block_at(s, at, &before);
    dsc_softmax_fetch(s, &block, 1);
    const size_t n = exponentials_of(s, block, 1, e);
    return block * BLOCK + dsc_row_find(e, n, at - before);
}

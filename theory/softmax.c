// SPDX-License-Identifier: Apache-2.0
// theory/softmax.h, in vectors where there are some.
#include "theory/softmax.h"

#include "theory/fast_exp.h"
#include "theory/row_sum.h"
#include "theory/softmax_filter.h"

#include <math.h>
#include <string.h>

enum { BLOCK = DSC_SOFTMAX_BLOCK, LEAST = DSC_SOFTMAX_LEAST, LANES = 16 };

// The least of row[0, n), n >= 1. By lanes, since not all compilers make vectors of reductions to
// the least.
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
    for (size_t j = 0; j < LANES; j++)
        least = lane[j] < least ? lane[j] : least;
    return least;
}

// Exponentials of a block, times a factor.
DSC_FOR_EVERY_PROCESSOR
static void scaled_exponentials(const float *logit, size_t n, double most, double by, bool shallow,
                                double factor, double *out)
{
    if (shallow)
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
    scaled_exponentials(s->logit + b * BLOCK, n, s->most, s->by, s->shallow, factor, out);
    if (s->least > -INFINITY)
        drop(s, b, out);
    return n;
}

// Adds the exponentials of x[0, n) to LANES sums, in an order that does not depend on the width of
// vectors.
DSC_FOR_EVERY_PROCESSOR
static void add_exponentials(const float *x, size_t n, double most, double by, bool shallow,
                             double *sum)
{
    double lane[LANES] = {0};
    size_t i = 0;
    if (shallow)
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
static double sum_blocks(const dsc_softmax *s, double *block)
{
    double sum = 0;
    for (size_t first = 0; first < s->vocab; first += BLOCK) {
        const size_t n = s->vocab - first < BLOCK ? s->vocab - first : BLOCK;
        double lane[LANES];
        add_exponentials(s->logit + first, n, s->most, s->by, s->shallow, lane);
        for (size_t half = LANES / 2; half; half /= 2)
            for (size_t j = 0; j < half; j++)
                lane[j] += lane[j + half];
        block[first / BLOCK] = lane[0];
        sum += lane[0];
    }
    return sum;
}

static dsc_softmax without_sums(const float *logit, size_t vocab, float most, float least,
                                double temperature, double *block)
{
    // What is not the likeliest is nothing at a temperature that has no reciprocal; 0 times it is.
    const double by = fmin(1 / temperature, 1e300);
    return (dsc_softmax){.logit = logit,
                         .block = block,
                         .vocab = vocab,
                         .most = (double)most,
                         .by = by,
                         .shallow = ((double)least - (double)most) * by > -LEAST,
                         .least = -INFINITY,
                         .last = vocab};
}

void dsc_softmax_begin(dsc_softmax *s, const float *logit, size_t vocab, float most,
                       double temperature, double *block)
{
    *s = without_sums(logit, vocab, most, row_least(logit, vocab), temperature, block);
    s->sum = sum_blocks(s, block);
}

// --- filters -------------------------------------------------------------------------------------

// The sums of a list of tokens.
static void sum_listed(dsc_softmax *s, const dsc_logit *few, size_t n, double *block)
{
    memset(block, 0, dsc_softmax_blocks(s->vocab) * sizeof *block);
    s->sum = 0;
    for (size_t i = 0; i < n; i++) {
        block[few[i].token / BLOCK] += few[i].weight;
        s->sum += few[i].weight;
    }
}

// The exponentials of what is kept into room[vocab], and their sums: of blocks, or, as long as
// top-p is to drop more, in bins. Blocks of which nothing is kept are passed over.
static void write_kept(dsc_softmax *s, double *block, double *room, dsc_softmax_bins *bins)
{
    const size_t blocks = dsc_softmax_blocks(s->vocab);
    s->sum = 0;
    for (size_t b = 0; b < blocks; b++) {
        double *e = room + b * BLOCK;
        const size_t n = dsc_softmax_in_block(s, b);
        block[b] = 0;
        if (s->least > -INFINITY && !dsc_any_from(s->logit + b * BLOCK, n, s->least)) {
            memset(e, 0, n * sizeof *e);
            continue;
        }
        exponentials_of(s, b, 1, e);
        if (bins)
            dsc_softmax_fill_bins(bins, s, b * BLOCK, n, e);
        else
            block[b] = dsc_row_sum(e, n);
        s->sum += block[b];
    }
    if (bins)
        s->sum = dsc_row_sum(bins->weight, DSC_SOFTMAX_BINS + DSC_SOFTMAX_DEEP);
}

// The sum of the exponentials of tokens [0, n) that are not below `least`, as dsc_row_sum adds.
DSC_FOR_EVERY_PROCESSOR
static void add_from(const float *logit, size_t n, float least, const double *e, double *sum)
{
    double lane[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
#pragma omp simd
        for (size_t j = 0; j < LANES; j++)
            lane[j] += logit[i + j] >= least ? e[i + j] : 0;
    for (; i < n; i++)
        lane[i % LANES] += logit[i] >= least ? e[i] : 0;
    memcpy(sum, lane, sizeof lane);
}

// Sums without what is not kept any more.
static void drop_more(dsc_softmax *s, double *block, double *room)
{
    const size_t blocks = dsc_softmax_blocks(s->vocab);
    const float above = nextafterf(s->least, INFINITY);
    s->sum = 0;
    for (size_t b = 0; b < blocks; b++) {
        const size_t first = b * BLOCK, n = dsc_softmax_in_block(s, b);
        double lane[LANES];
        if (s->last >= first && s->last - first < n)
            drop(s, b, room + first);
        add_from(s->logit + first, n, s->last < first ? above : s->least, room + first, lane);
        for (size_t half = LANES / 2; half; half /= 2)
            for (size_t j = 0; j < half; j++)
                lane[j] += lane[j + half];
        block[b] = lane[0];
        s->sum += lane[0];
    }
}

void dsc_softmax_begin_filtered(dsc_softmax *s, const float *logit, size_t vocab, float most,
                                double temperature, size_t top_k, double top_p, double *block,
                                double *room)
{
    dsc_logit few[DSC_SOFTMAX_FEW];
    dsc_softmax_bins bins;
    const float least = row_least(logit, vocab);
    size_t n = 0;
    *s = without_sums(logit, vocab, most, least, temperature, block);
    if (top_k < vocab)
        n = dsc_softmax_keep_count(s, top_k, block, room, few);
    if (n) {
        sum_listed(s, few, n, block);
        if (top_p < 1)
            sum_listed(s, few, dsc_softmax_keep_listed(s, few, n, top_p * s->sum), block);
        return;
    }
    if (top_p < 1)
        dsc_softmax_begin_bins(&bins, s, least, top_p);
    write_kept(s, block, room, top_p < 1 ? &bins : NULL);
    if (top_p < 1) {
        dsc_softmax_keep_weight(s, room, &bins, top_p * s->sum);
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

// SPDX-License-Identifier: Apache-2.0
// theory/softmax.h, in vectors where there are some.
#include "theory/softmax.h"

#include "theory/fast_exp.h"
#include "theory/row_sum.h"

#include <math.h>

enum { BLOCK = DSC_SOFTMAX_BLOCK, LANES = 16 };

// Exponentials of a block, times a factor.
DSC_FOR_EVERY_PROCESSOR
static void scaled_exponentials(const float *logit, size_t n, double most, double by, double factor,
                                double *out)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++)
        out[i] = dsc_fast_exp_below(((double)logit[i] - most) * by) * factor;
}

// The exponentials of block b and how many these are.
static size_t exponentials_of(const dsc_softmax *s, size_t b, double *out)
{
    const size_t first = b * BLOCK, n = s->vocab - first < BLOCK ? s->vocab - first : BLOCK;
    scaled_exponentials(s->logit + first, n, s->most, s->by, 1, out);
    return n;
}

// Sums of the exponentials of all blocks, in an order that does not depend on the width of vectors;
// returns the sum of all.
DSC_FOR_EVERY_PROCESSOR
static double sum_blocks(const float *logit, size_t vocab, double most, double by, double *block)
{
    double sum = 0;
    for (size_t first = 0; first < vocab; first += BLOCK) {
        const size_t n = vocab - first < BLOCK ? vocab - first : BLOCK;
        const float *x = logit + first;
        double lane[LANES] = {0};
        size_t i = 0;
        for (; i + LANES <= n; i += LANES)
#pragma omp simd
            for (size_t j = 0; j < LANES; j++)
                lane[j] += dsc_fast_exp_below(((double)x[i + j] - most) * by);
        for (; i < n; i++)
            lane[i % LANES] += dsc_fast_exp_below(((double)x[i] - most) * by);
        for (size_t half = LANES / 2; half; half /= 2)
            for (size_t j = 0; j < half; j++)
                lane[j] += lane[j + half];
        block[first / BLOCK] = lane[0];
        sum += lane[0];
    }
    return sum;
}

void dsc_softmax_begin(dsc_softmax *s, const float *logit, size_t vocab, float most,
                       double temperature, double *block)
{
    // What is not the likeliest is nothing at a temperature that has no reciprocal; 0 times it is.
    *s = (dsc_softmax){.logit = logit,
                       .block = block,
                       .vocab = vocab,
                       .most = (double)most,
                       .by = fmin(1 / temperature, 1e300)};
    s->sum = sum_blocks(logit, vocab, s->most, s->by, block);
}

double dsc_softmax_probability(const dsc_softmax *s, size_t token)
{
    return dsc_fast_exp_below(((double)s->logit[token] - s->most) * s->by) * (1 / s->sum);
}

void dsc_softmax_fill(const dsc_softmax *s, double *law)
{
    scaled_exponentials(s->logit, s->vocab, s->most, s->by, 1 / s->sum, law);
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
    const size_t n = exponentials_of(s, block, e);
    return block * BLOCK + dsc_row_find(e, n, at - before);
}

// SPDX-License-Identifier: Apache-2.0
// The Markov pair of model_markov.h as a language: a dense table of transition probabilities.
#include "sim/model/model_markov.h"

#include "base/memory.h"
#include "base/rng.h"

#include <math.h>
#include <stdlib.h>

typedef struct markov {
    dsc_language base;
    double *row;   // [vocab_size + 1][vocab_size] the last row is for the empty context
    int32_t *best; // [vocab_size + 1]
} markov;

static size_t state_at(const dsc_language *l, const dsc_place *at)
{
    return at->count ? (size_t)at->recent[at->count - 1] : (size_t)l->vocab_size;
}

static void markov_dist(const dsc_language *l, const dsc_place *at, dsc_dist *out)
{
    const markov *m = (const markov *)l;
    out->vocab_size = l->vocab_size;
    out->dense = m->row + state_at(l, at) * (size_t)l->vocab_size;
    out->logits = NULL;
    out->levels = 0;
    out->base = out->unlisted = 0;
}

static int32_t markov_best(const dsc_language *l, const dsc_place *at)
{
    return ((const markov *)l)->best[state_at(l, at)];
}

static void markov_free(dsc_language *l)
{
    free(((markov *)l)->row);
    free(((markov *)l)->best);
    free(l);
}

static const dsc_language_type type = {
    .name = "markov", .dist = markov_dist, .best = markov_best, .free = markov_free};

// u / (1 - u), u uniform in (0, 1): the middle of one of 2^53 cells, so never 0 and never infinite.
static double odds(uint64_t seed, uint64_t cell, uint32_t which)
{
    double u = dsc_rng_uniform(seed, cell, which, DSC_RNG_MARKOV) + 0x1p-54;
    return u / (1 - u + 0x1p-53);
}

static int32_t fill_row(double *row, int32_t vocab, size_t state, const dsc_markov_options *o,
                        dsc_model_side side)
{
    int32_t best = 0;
    double sum = 0;
    for (int32_t x = 0; x < vocab; x++) {
        uint64_t cell = state * (uint64_t)vocab + (uint64_t)x;
        row[x] = log(odds(o->seed, cell, 0));
        if (side == DSC_SIDE_DRAFT)
            row[x] += o->noise * log(odds(o->seed, cell, 1));
        if (row[x] > row[best])
            best = x;
    }
    double most = row[best];
    for (int32_t x = 0; x < vocab; x++)
        sum += row[x] = exp(row[x] - most);
    for (int32_t x = 0; x < vocab; x++)
        row[x] /= sum;
    return best;
}

int dsc_markov_new(dsc_language **out, const dsc_markov_options *options, dsc_model_side side,
                   dsc_error *err)
{
    int32_t vocab = options->vocab_size;
    markov *m;
    *out = NULL;
    if (vocab < 1 || vocab > DSC_MARKOV_VOCAB_MAX)
        return dsc_fail(err, DSC_EUSAGE, "a Markov chain must have 1 to %d tokens, not %d",
                        DSC_MARKOV_VOCAB_MAX, vocab);
    if (!(options->noise >= 0) || isinf(options->noise))
        return dsc_fail(err, DSC_EUSAGE, "the noise of a Markov pair is %g; it must be 0 or more",
                        options->noise);
    int rc = dsc_new(&m, 1, err);
    if (rc)
        return rc;
    m->base = (dsc_language){.type = &type, .vocab_size = vocab, .end_token = -1, .reach = 1};
    size_t states = (size_t)vocab + 1;
    rc = dsc_new(&m->row, states * (size_t)vocab, err);
    if (!rc)
        rc = dsc_new(&m->best, states, err);
    for (size_t s = 0; s < states && !rc; s++)
        m->best[s] = fill_row(m->row + s * (size_t)vocab, vocab, s, options, side);
    if (rc)
        markov_free(&m->base);
    else
        *out = &m->base;
    return rc;
}

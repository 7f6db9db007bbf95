// SPDX-License-Identifier: Apache-2.0
// A distribution represented by its logits: a sampler needs a few tokens, seldom the whole row. One
// pass over the row sums the exponentials. After it, a token's probability costs one exponential,
// and sampling reads one block of tokens.
#ifndef DSC_THEORY_SOFTMAX_H
#define DSC_THEORY_SOFTMAX_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    DSC_SOFTMAX_BLOCK = 128, // tokens
    DSC_SOFTMAX_LEAST = 640, // (most - logit) / temperature from which on the probability is 0
};

// Token x has the probability e^((logit[x] - most) / temperature) / sum; below e^-640 of the most
// probable token's (DSC_SOFTMAX_LEAST) it is 0. The relative error is at most (8 + (most -
// logit[x]) / temperature) 2^-52.
typedef struct dsc_softmax {
    const float *logit;  // [vocab] owned by the caller; none is above `most` or a NaN
    const double *block; // [dsc_softmax_blocks] sums of the exponentials; owned by the caller
    size_t vocab;
    double most, by; // the largest logit, which is finite; 1 / temperature
    double sum;      // sum of the kept exponentials
    bool shallow;    // all probabilities are positive, so exponentials need no bounds
    // The tokens that top-k and top-p keep: those above `least`, and of those equal to it the ones
    // up to `last`. The others have probability 0.
    float least; // -inf: all are kept
    size_t last;
    // For logits that are stored elsewhere: copies the blocks in a list (NULL: all) to `logit`;
    // called before any of them is read. NULL: all logits are in place.
    void (*fetch)(void *user, const size_t *block, size_t count);
    void *user;
    const float *max_logit; // [dsc_softmax_blocks] the largest logit of each block; NULL: unknown
} dsc_softmax;

static inline bool dsc_softmax_keeps(const dsc_softmax *s, size_t token)
{
    const float x = s->logit[token];
    return x > s->least || (x >= s->least && token <= s->last);
}

static inline size_t dsc_softmax_blocks(size_t vocab)
{
    return (vocab + DSC_SOFTMAX_BLOCK - 1) / DSC_SOFTMAX_BLOCK;
}

// Makes the logits of the blocks in a list (NULL: of all) readable.
static inline void dsc_softmax_fetch(const dsc_softmax *s, const size_t *block, size_t count)
{
    if (s->fetch)
        s->fetch(s->user, block, count);
}

// The number of tokens in block b; only the last may have fewer than DSC_SOFTMAX_BLOCK.
static inline size_t dsc_softmax_in_block(const dsc_softmax *s, size_t b)
{
    const size_t left = s->vocab - b * DSC_SOFTMAX_BLOCK;
    return left < DSC_SOFTMAX_BLOCK ? left : (size_t)DSC_SOFTMAX_BLOCK;
}

// Sums the exponentials. block[dsc_softmax_blocks(vocab)] and the logits must live as long as the
// distribution; temperature > 0. Logits may be -inf.
void dsc_softmax_begin(dsc_softmax *s, const float *logit, size_t vocab, float most,
                       double temperature, double *block);

// Sums the exponentials of the distribution after top-k and top-p, as in dsc_probs_softmax
// (theory/probs.h): top_k >= 1, from vocab on it is off; top_p in (0, 1], 1: off. room[vocab] is
// scratch.
void dsc_softmax_begin_filtered(dsc_softmax *s, const float *logit, size_t vocab, float most,
                                double temperature, size_t top_k, double top_p, double *block,
                                double *room);

// Begins with a row whose sums have already been computed: block[dsc_softmax_blocks(vocab)], over
// the tokens that `least` and `last` keep. The logits may arrive later (s->fetch, set by the
// caller).
void dsc_softmax_resume(dsc_softmax *s, const float *logit, size_t vocab, float most,
                        double temperature, float least, size_t last, const double *block);

double dsc_softmax_probability(const dsc_softmax *s, size_t token);
// All probabilities, into dist[vocab].
void dsc_softmax_fill(const dsc_softmax *s, double *dist);
// Samples a token: the first whose running sum of probabilities, in the order of tokens, exceeds u
// in [0, 1). It reads the logits of one block, dsc_softmax_block_at.
size_t dsc_softmax_block_at(const dsc_softmax *s, double u);
size_t dsc_softmax_draw(const dsc_softmax *s, double u);

#endif

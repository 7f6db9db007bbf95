// SPDX-License-Identifier: Apache-2.0
// A distribution that is still logits: a sampler needs a few of its tokens, seldom the whole row.
// One pass over the row adds up the exponentials; after it a token's probability is one
// exponential, and a draw goes through one block of tokens.
#ifndef DSC_THEORY_SOFTMAX_H
#define DSC_THEORY_SOFTMAX_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    DSC_SOFTMAX_BLOCK = 128, // tokens
    DSC_SOFTMAX_LEAST = 640, // in (most - logit) / temperature: from there on the probability is 0
};

// Token x has the probability e^((logit[x] - most) / temperature) / sum; below e^-640 of the
// most probable (DSC_SOFTMAX_LEAST) it is 0. In error by at most (8 + (most - logit[x]) /
// temperature) 2^-52 of itself.
typedef struct dsc_softmax {
    const float *logit;  // [vocab] the caller's: none is above `most`, none a NaN
    const double *block; // [dsc_softmax_blocks] sums of the exponentials, the caller's room
    size_t vocab;
    double most, by; // the largest logit, which is finite; 1 / temperature
    double sum;      // of all exponentials that are kept
    bool shallow;    // no logit is so deep that its probability is 0: exponentials need no bounds
    // What top-k and top-p keep: the tokens above `least`, and of those at it the first up to
    // `last`. Others have the probability 0.
    float least; // -inf: all are kept
    size_t last;
    // Of logits that lie elsewhere: fetches those of the blocks in a list (NULL: of all) to where
    // `logit` says; called before any of them is read. NULL: they are all there.
    void (*fetch)(void *user, const size_t *block, size_t count);
    void *user;
    const float *max_logit; // [dsc_softmax_blocks] the largest logit of each block; NULL: not known
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

// Logits of the blocks in a list, or of all (NULL), can be read from now on.
static inline void dsc_softmax_fetch(const dsc_softmax *s, const size_t *block, size_t count)
{
    if (s->fetch)
        s->fetch(s->user, block, count);
}

// Tokens of block b: all but the last have as many.
static inline size_t dsc_softmax_in_block(const dsc_softmax *s, size_t b)
{
    const size_t left = s->vocab - b * DSC_SOFTMAX_BLOCK;
    return left < DSC_SOFTMAX_BLOCK ? left : (size_t)DSC_SOFTMAX_BLOCK;
}

// The pass. block[dsc_softmax_blocks(vocab)] and the logits must live as long as the distribution
// does; temperature > 0. Logits may be -inf.
DSC_API void dsc_softmax_begin(dsc_softmax *s, const float *logit, size_t vocab, float most,
                               double temperature, double *block);

// The same, of the distribution that top-k and top-p leave, as in dsc_probs_softmax
// (theory/distribution.h): top_k >= 1, from vocab on it is off; top_p in (0, 1], 1: off.
// room[vocab] is scratch.
DSC_API void dsc_softmax_begin_filtered(dsc_softmax *s, const float *logit, size_t vocab,
                                        float most, double temperature, size_t top_k, double top_p,
                                        double *block, double *room);

// The same, of a row that somebody else has added up: block[dsc_softmax_blocks(vocab)], over the
// tokens that least and last keep. The logits may come later (s->fetch, which the caller sets).
DSC_API void dsc_softmax_resume(dsc_softmax *s, const float *logit, size_t vocab, float most,
                                double temperature, float least, size_t last, const double *block);

DSC_API double dsc_softmax_probability(const dsc_softmax *s, size_t token);
// All of them, into dist[vocab].
DSC_API void dsc_softmax_fill(const dsc_softmax *s, double *dist);
// The first token whose running sum of probabilities, in the order of tokens, exceeds u in [0, 1).
// It reads one block of logits:
DSC_API size_t dsc_softmax_block_at(const dsc_softmax *s, double u);
DSC_API size_t dsc_softmax_draw(const dsc_softmax *s, double u);

#endif

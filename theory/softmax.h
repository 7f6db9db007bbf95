// SPDX-License-Identifier: Apache-2.0
// A law that is still logits: a sampler needs a few of its tokens, seldom the whole row. One pass
// over the row adds up the exponentials; after it a token's probability is one exponential, and a
// draw goes through one block of tokens.
#ifndef DSC_THEORY_SOFTMAX_H
#define DSC_THEORY_SOFTMAX_H

#include "base/status.h"

#include <stddef.h>

enum {
    DSC_SOFTMAX_BLOCK = 128, // tokens
    DSC_SOFTMAX_LEAST = 640, // in (most - logit) / temperature: from there on the probability is 0
};

// Token x has the probability e^((logit[x] - most) / temperature) / sum; below e^-640 of the
// likeliest (DSC_SOFTMAX_LEAST) it is 0. In error by at most (8 + (most - logit[x]) / temperature)
// 2^-52 of itself.
typedef struct dsc_softmax {
    const float *logit;  // [vocab] the caller's: none is above `most`, none a NaN
    const double *block; // [dsc_softmax_blocks] sums of the exponentials, the caller's room
    size_t vocab;
    double most, by; // the largest logit, which is finite; 1 / temperature
    double sum;      // of all exponentials
} dsc_softmax;

static inline size_t dsc_softmax_blocks(size_t vocab)
{
    return (vocab + DSC_SOFTMAX_BLOCK - 1) / DSC_SOFTMAX_BLOCK;
}

// The pass. block[dsc_softmax_blocks(vocab)] and the logits must live as long as the law does;
// temperature > 0. Logits may be -inf.
DSC_API void dsc_softmax_begin(dsc_softmax *s, const float *logit, size_t vocab, float most,
                               double temperature, double *block);

DSC_API double dsc_softmax_probability(const dsc_softmax *s, size_t token);
// All of them, into law[vocab].
DSC_API void dsc_softmax_fill(const dsc_softmax *s, double *law);
// The first token whose running sum of probabilities, in the order of tokens, exceeds u in [0, 1).
DSC_API size_t dsc_softmax_draw(const dsc_softmax *s, double u);

#endif

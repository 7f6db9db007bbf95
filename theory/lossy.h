// SPDX-License-Identifier: Apache-2.0
// Lossy verification rules at one position: what they accept of one draft token, and how far the
// distribution of the token that they emit is from the target distribution.
//
// With p the draft, q the target and o the output distribution, the changed share is the total
// variation TV(o, q) = sum (q - o)+: it is the smallest probability, over all couplings, that the
// emitted token differs from a sample of the target. No rule for one draft accepts more than
//
//   1 - TV(p, o) <= [1 - TV(p, q)] + TV(o, q),
//
// the lossless optimum and the changed share, by the coupling inequality and the triangle
// inequality. The ensemble meets it.
#ifndef DSC_THEORY_LOSSY_H
#define DSC_THEORY_LOSSY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// --- rules that accept a set of tokens and else emit the target's argmax token -------------------

// The tokens whose target probability exceeds `least`, and those with exactly this probability and
// an id of at most `last`.
typedef struct dsc_accepted_set {
    double least;
    int32_t last;
} dsc_accepted_set;

// Typical acceptance (Medusa, Cai et al. 2024, section 3.3.1): the tokens whose probability exceeds
// min(epsilon, delta exp(-H)), with H the entropy of target[vocab].
dsc_accepted_set dsc_typical_set(const double *target, size_t vocab, double epsilon, double delta);

enum { DSC_RELAXED_TOP_K = 1000 };
// Relaxed acceptance (TensorRT-LLM): of the top_k most probable tokens, ties by ascending id, those
// whose probability is at least that of the first one less delta. top_k is taken into
// [1, DSC_RELAXED_TOP_K]. O(vocab) and O(top_k) for each token that enters the list.
dsc_accepted_set dsc_relaxed_set(const double *target, size_t vocab, int top_k, double delta);

static inline bool dsc_accepted_set_has(dsc_accepted_set set, const double *target, int32_t token)
{
    return target[token] > set.least || (target[token] == set.least && token <= set.last);
}

// --- prices --------------------------------------------------------------------------------------

typedef struct dsc_lossy_price {
    double accept;     // probability that the draft token is accepted
    double tv;         // TV(output, target), the changed share
    double kl;         // KL(output || target) in nats; infinite: a token without target probability
    double off_argmax; // probability that the emitted token is not the target's argmax
} dsc_lossy_price;

// The price for a draft token that is sampled from draft[vocab], O(vocab). A draft that is always
// one token has a distribution that is all on it. NaN: an argument is NULL, vocab is 0, or the
// weight is outside [0, 1].
//
// Ensemble: verification against weight target + (1 - weight) draft instead of the target.
dsc_lossy_price dsc_ensemble_price(double weight, const double *draft, const double *target,
                                   size_t vocab);
// A set; a token outside it is replaced by the target's argmax.
dsc_lossy_price dsc_accepted_set_price(dsc_accepted_set set, const double *draft,
                                       const double *target, size_t vocab);

#endif

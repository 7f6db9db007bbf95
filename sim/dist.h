// SPDX-License-Identifier: Apache-2.0
// A view of a next-token distribution: a dense row, or logits, or a list of tokens with what the
// others get, or a chain of such lists (a back-off model). A view owns nothing.
#ifndef DSC_SIM_DIST_H
#define DSC_SIM_DIST_H

#include "theory/rows/softmax.h"

#include <stdint.h>

enum { DSC_DIST_LEVELS = 16 };

// One level of a chain: a token that is listed has the probability given here, any other `other`
// times what the next level says. Read as a mixture, the level's counts are drawn from with
// probability 1 - other, the next level with probability other:
//   probability[i] = (1 - other) (upto[i] - upto[i - 1]) / upto[count - 1]
//                  + other * (next level)(token[i]).
typedef struct dsc_dist_level {
    const int32_t *token;      // [count] ascending
    const double *probability; // [count]
    const uint32_t *upto;      // [count] running sum of counts >= 1; NULL: a list with other = 0
    size_t count;
    double other; // in [0, 1]
} dsc_dist_level;

typedef struct dsc_dist {
    int32_t vocab_size;
    const double *dense;                   // [vocab_size] probabilities, or NULL and
    const dsc_softmax *logits;             // the distribution as logits, or NULL: the levels hold
    int levels;                            // >= 1
    dsc_dist_level level[DSC_DIST_LEVELS]; // the longest context first
    double base;                           // below the last level every token has this probability
    double unlisted; // mass that is not known token by token; 0: the distribution is exact
} dsc_dist;

// The probability of one token, 0 <= token < vocab_size. O(1), or a binary search per level.
DSC_API double dsc_dist_probability(const dsc_dist *d, int32_t token);

// All of them, into dist[vocab_size]. O(vocab_size + listed tokens).
DSC_API void dsc_dist_fill(const dsc_dist *d, double *dist);

// The k most probable tokens that have a probability, the most probable first, of equals the lowest
// first, into token[k]; returns how many there are. row[vocab_size] is scratch. O(vocab_size) and k
// for each token that is among the first k of those before it. Of logits, the larger comes first
// even where both round to one probability.
DSC_API size_t dsc_dist_top(const dsc_dist *d, size_t k, double *row, int32_t *token);

// The token at u in [0, 1): as u runs through [0, 1) each token gets a set of the measure of its
// probability, but for rounding of 2^-53. What is unlisted is never drawn. O(vocab_size) for a
// dense row, of logits the blocks of dsc_softmax and one block, else a binary search in the level
// that u falls into.
DSC_API int32_t dsc_dist_sample(const dsc_dist *d, double u);

#endif

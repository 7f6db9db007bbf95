// SPDX-License-Identifier: Apache-2.0
// Views of next-token distributions. A view is a dense row of probabilities, a row of logits, or a
// chain of token lists (a back-off model), and never owns its memory. The functions return NaN, -1
// for a token and 0 for a number where an argument is NULL or outside its range; those that return
// nothing write nothing.
#ifndef DSC_SIM_DIST_H
#define DSC_SIM_DIST_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DSC_DIST_LEVELS = 16 };

// A row of logits with the sums of its exponentials (theory/rows/softmax.h).
typedef struct dsc_softmax dsc_softmax;

// One level of a chain. A listed token has the probability given here; any other token has `other`
// times its probability in the next level. As a mixture, a draw uses the counts of this level with
// probability 1 - other and the next level with probability other:
//   probability[i] = (1 - other) (upto[i] - upto[i - 1]) / upto[count - 1]
//                  + other * (next level)(token[i]).
typedef struct dsc_dist_level {
    const int32_t *token;      // [count] ascending
    const double *probability; // [count]
    const uint32_t *upto;      // [count] running sum of counts >= 1; NULL: a list with other = 0
    size_t count;
    double other; // in [0, 1]
} dsc_dist_level;

// `dense` if it is not NULL, else `logits` if it is not NULL, else the levels.
typedef struct dsc_dist {
    int32_t vocab_size;
    const double *dense; // [vocab_size] probabilities
    const dsc_softmax *logits;
    int levels;                            // number of levels, >= 1
    dsc_dist_level level[DSC_DIST_LEVELS]; // the longest context first
    double base;                           // probability of every token after the last level
    double unlisted; // probability mass whose tokens are not known; 0: the distribution is exact
} dsc_dist;

// The probability of one token, 0 <= token < vocab_size. O(1), or a binary search per level.
DSC_API double dsc_dist_probability(const dsc_dist *d, int32_t token);

// Writes all probabilities to dist[vocab_size]. O(vocab_size + listed tokens).
DSC_API void dsc_dist_fill(const dsc_dist *d, double *dist);

// Writes the k most probable tokens of positive probability to token[k], in descending order of
// probability, ties by ascending id, and returns their number. For logits the larger logit comes
// first even where both probabilities round to one number. No more than vocab_size elements of
// token[] are written, however large k is. row[vocab_size] is scratch.
DSC_API size_t dsc_dist_top(const dsc_dist *d, size_t k, double *row, int32_t *token);

// The token at u in [0, 1) of the inverse distribution function: over all u each token has a set of
// measure equal to its probability, up to a rounding of 2^-53. `unlisted` mass is never drawn.
// O(vocab_size) for a dense row, one block of tokens for logits, a binary search for levels.
DSC_API int32_t dsc_dist_sample(const dsc_dist *d, double u);

#ifdef __cplusplus
}
#endif

#endif

// SPDX-License-Identifier: Apache-2.0
// A back-off n-gram language trained on a corpus: interpolated Witten-Bell smoothing. With h_j the
// last j tokens of a context (h_0 empty), c(h x) the number of times x followed h, N(h) = sum over
// x of c(h x) and T(h) the number of different x that followed h,
//
//   P(x | h_j) = (1 - other_j) c(h_j x) / N(h_j) + other_j P(x | h_{j-1}),
//   other_j = 1 - (1 - mix_j) N(h_j) / (N(h_j) + T(h_j)),
//   P(x | nothing) = 1 / vocab_size below h_0,
//
// and the distribution at a context is that of the longest h_j, j < order, that occurred. mix_0 = 0
// and mix_j = mix above: 0 is Witten and Bell's method C as interpolated by Chen and Goodman ("An
// empirical study of smoothing techniques for language modeling", Harvard TR-10-98, 1998); a mix of
// up to 1 gives shorter contexts more weight, down to the unigrams, and so a draft of any quality.
// The first token of a sequence is given and not trained on, so contexts need no padding.
//
// P of each n-gram that occurred is stored. So the distribution over the support of the longest
// context takes `order` hash probes, and the probability of one token adds a binary search per
// level. Memory is about 16 bytes per distinct n-gram of each length and 32 per context.
#ifndef DSC_SIM_MODEL_NGRAM_H
#define DSC_SIM_MODEL_NGRAM_H

#include "sim/model/corpus.h"
#include "sim/model/language.h"

typedef struct dsc_ngram_options {
    int order;    // tokens of the longest n-gram, in [1, DSC_DIST_LEVELS]
    double mix;   // in [0, 1]
    int64_t hold; // every hold-th sequence is held out for prompts; 0: none
} dsc_ngram_options;

// Trains on the corpus, which it takes over (*c is empty afterwards, also on failure). DSC_EINPUT:
// no sequence is left to train on. DSC_EUSAGE: an option out of range, or more than 2^32 - 1
// n-grams. *out is owned by the caller (type->free).
int dsc_ngram_learn(dsc_language **out, dsc_corpus *c, const dsc_ngram_options *options,
                    dsc_error *err);

#endif

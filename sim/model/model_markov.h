// SPDX-License-Identifier: Apache-2.0
// A random pair of Markov chains. The target goes from state s to token x with probability
// proportional to w = u / (1 - u), u uniform (the odds of a logistic variable), the draft with
// probability proportional to w (v / (1 - v))^noise, v uniform. The empty context is a state of its
// own. u and v are functions of (seed, s, x).
#ifndef DSC_SIM_MODEL_MARKOV_H
#define DSC_SIM_MODEL_MARKOV_H

#include "sim/model/language.h"

enum { DSC_MARKOV_VOCAB_MAX = 4096 }; // its table has 134 MB

typedef struct dsc_markov_options {
    int32_t vocab_size; // in [1, DSC_MARKOV_VOCAB_MAX]
    uint64_t seed;
    double noise; // >= 0 and finite; 0: the draft is the target
} dsc_markov_options;

// DSC_EUSAGE: an option out of range. *out is owned by the caller (type->free).
int dsc_markov_new(dsc_language **out, const dsc_markov_options *options, dsc_model_side side,
                   dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// A language as a model of sim/model.h: it has the exact distribution after any draft, so it
// refuses no query.
#ifndef DSC_SIM_MODEL_SYNTHETIC_H
#define DSC_SIM_MODEL_SYNTHETIC_H

#include "sim/model.h"
#include "sim/model/language.h"

typedef struct dsc_model_synthetic {
    dsc_model base;
    const dsc_language *language;
    int64_t request; // dsc_place.request; set it after dsc_model_synthetic_begin
    double temperature;
    const dsc_draft *draft; // as scored
    int32_t *text;          // [prompt + output.length]
    size_t prompt, text_capacity;
    int32_t *recent; // [reach] the tokens before a draft node
    size_t recent_capacity;
    double *row; // [vocab_size] a distribution at another temperature than 1
    size_t row_capacity;
    int32_t best; // the only token at temperature 0
    // Of a parallel drafter: [marginals][vocab_size] the distributions at the first offsets after
    // the committed output; [1]: before the temperature.
    double *marginal[2];
    size_t marginal_capacity[2], marginals[2];
    double *conditional; // [vocab_size] scratch
    size_t conditional_capacity;
} dsc_model_synthetic; // zero-initialize

// Starts a request whose output ends with the language's EOS token or after `limit` tokens (0: it
// has ended already). At temperature > 0, distributions are proportional to
// probability^(1/temperature); at 0 the argmax token, of several the lowest id, has probability 1.
// The prompt is copied; DSC_EUSAGE: a token is not in the vocabulary. The draft given to score must
// live until the next commit.
int dsc_model_synthetic_begin(dsc_model_synthetic *m, const dsc_language *language,
                              dsc_token_view prompt, int64_t limit, double temperature,
                              dsc_error *err);
// Makes the model, which has begun, a parallel drafter: until it begins again, its distribution
// after a node is the marginal of the language's token at that depth, summed exactly over the
// drafted tokens in between. O(vocab_size^2) for an offset. DSC_EUSAGE: a token depends on more
// than one preceding token, so that no exact sum is practical.
int dsc_model_synthetic_parallel(dsc_model_synthetic *m, dsc_error *err);
// The distribution at a position, at the model's temperature or (`base`) before it.
int dsc_model_synthetic_dist(dsc_model_synthetic *m, const dsc_place *at, bool base, dsc_dist *out,
                             dsc_error *err);
// Functions of its dsc_model_type, which the parallel drafter shares.
int dsc_model_synthetic_score(dsc_model *m, const dsc_draft *d, dsc_error *err);
int dsc_model_synthetic_commit(dsc_model *m, const int32_t *token, size_t n, dsc_error *err);
void dsc_model_synthetic_fini(dsc_model_synthetic *m);

#endif

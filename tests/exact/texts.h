// SPDX-License-Identifier: Apache-2.0
// All outputs of four tokens of a model with three: their numbers and their exact distribution.
#ifndef DSC_TESTS_TEXTS_H
#define DSC_TESTS_TEXTS_H

#include "tests/close.h"

#include "sim/model/model_synthetic.h"

enum { TEXT_VOCAB = 3, TEXT_TOKENS = 4, TEXTS = 81 };

static const int32_t text_prompt[] = {0, 1, 2, 0, 1, 0, 2, 2, 1};
enum { TEXT_PROMPT = sizeof text_prompt / sizeof *text_prompt };

// The output of a model that ran, as a number in base TEXT_VOCAB.
static inline int text_of(const dsc_model *m)
{
    int text = 0;
    for (int j = 0; j < TEXT_TOKENS; j++)
        text = text * TEXT_VOCAB + m->output[j];
    return text;
}

// The target's distribution of whole outputs, from its probabilities along each.
static inline void dist_of_texts(dsc_model_synthetic *t, const dsc_language *target,
                                 double dist[TEXTS])
{
    dsc_error err = {0};
    for (int text = 0; text < TEXTS; text++) {
        const dsc_token_view prompt = {text_prompt, TEXT_PROMPT};
        assert_ok(dsc_model_synthetic_begin(t, target, prompt, TEXT_TOKENS, 1, &err), err);
        dist[text] = 1;
        for (int j = 0, scale = TEXTS / TEXT_VOCAB; j < TEXT_TOKENS; j++, scale /= TEXT_VOCAB) {
            int32_t token = text / scale % TEXT_VOCAB;
            dsc_dist d;
            assert_ok(t->base.type->dist(&t->base, -1, &d, &err), err);
            dist[text] *= dsc_dist_probability(&d, token);
            assert_ok(t->base.type->commit(&t->base, &token, 1, &err), err);
        }
    }
}

#endif

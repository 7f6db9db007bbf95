// SPDX-License-Identifier: Apache-2.0
// Languages by name: "ngram:FILE,order=4", "markov:100,seed=7", "iid:0.8". Where a pair of models
// is needed, one such text names the target and another the draft.
#ifndef DSC_SIM_MODEL_SPEC_H
#define DSC_SIM_MODEL_SPEC_H

#include "base/option.h"
#include "sim/model/language.h"
#include "traces/tokenizer/tokenizer.h"

typedef struct dsc_language_kind {
    const char *name, *usage, *summary;
    const dsc_option *option; // its items, in this order or as NAME=VALUE
    size_t option_count;
    bool pair; // one text names both models of a pair
    int (*make)(dsc_language **out, const dsc_option_value *value, dsc_model_side side,
                const dsc_tokenizer *tokenizer, dsc_error *err);
} dsc_language_kind;

const dsc_language_kind *const *dsc_language_kinds(void); // NULL-terminated

// The kind that a text names. DSC_EUSAGE: the message has the nearest name.
int dsc_language_find(const dsc_language_kind **out, const char *spec, dsc_error *err);

// Makes the language of "KIND:ITEM,...". The first item is a value (a file name may contain '='; a
// ',' ends it). Any other item is NAME=VALUE, or the value of the option at its position.
// `tokenizer` is needed to train on text. DSC_EUSAGE, DSC_EINPUT: the message begins with the text.
// *out is owned by the caller (dsc_language_free).
int dsc_language_make(dsc_language **out, const char *spec, dsc_model_side side,
                      const dsc_tokenizer *tokenizer, dsc_error *err);
void dsc_language_free(dsc_language *l); // NULL allowed

#endif

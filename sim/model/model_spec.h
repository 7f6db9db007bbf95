// SPDX-License-Identifier: Apache-2.0
// Languages by name: "ngram:FILE,order=4", "markov:100,seed=7", "iid:0.8". Wherever a pair of
// models is asked for, one such text names the target and one the draft.
#ifndef DSC_SIM_MODEL_SPEC_H
#define DSC_SIM_MODEL_SPEC_H

#include "base/option.h"
#include "sim/model/language.h"
#include "traces/tokenizer/tokenizer.h"

typedef struct dsc_language_kind {
    const char *name, *usage, *summary;
    const dsc_option *option; // its items: in this order, or as NAME=VALUE
    size_t option_count;
    bool pair; // the same text names both models of a pair
    int (*make)(dsc_language **out, const dsc_option_value *value, dsc_model_side side,
                const dsc_tokenizer *tokenizer, dsc_error *err);
} dsc_language_kind;

DSC_API const dsc_language_kind *const *dsc_language_kinds(void); // NULL-terminated

// The kind that a text names. DSC_EUSAGE says the nearest name.
DSC_API int dsc_language_find(const dsc_language_kind **out, const char *spec, dsc_error *err);

// Makes the language of "KIND:ITEM,...". The first item is taken as it is (a file name may have a
// '='; a ',' ends it), any other is NAME=VALUE, or the value of the option of its place.
// `tokenizer` is needed to learn from a text. DSC_EUSAGE, DSC_EINPUT: the message begins with the
// text. *out is owned by the caller (dsc_language_free).
DSC_API int dsc_language_make(dsc_language **out, const char *spec, dsc_model_side side,
                              const dsc_tokenizer *tokenizer, dsc_error *err);
DSC_API void dsc_language_free(dsc_language *l); // NULL allowed

#endif

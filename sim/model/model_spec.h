// SPDX-License-Identifier: Apache-2.0
// Languages by name: "ngram:FILE,order=4", "markov:100,seed=7", or acceptance rates, "iid:0.8".
// Where a pair of models is needed, one such text names the target and another the draft.
#ifndef DSC_SIM_MODEL_SPEC_H
#define DSC_SIM_MODEL_SPEC_H

#include "sim/acceptance.h"
#include "sim/model/language.h"
#include "traces/tokenizer/tokenizer.h"

// The form at index i of a text that names a language, those of acceptance rates among them
// (sim/acceptance.h), or NULL after the last one.
const dsc_spec_form *dsc_language_form(size_t i);

// Whether one text names both models of a pair. DSC_EUSAGE: the text names no language; the message
// has the nearest name.
int dsc_language_is_pair(bool *pair, const char *spec, dsc_error *err);

// Makes the language of "KIND:ITEM,..."; sim/acceptance.h reads acceptance rates. The first item is
// a value (a file name may contain '='; a ',' ends it). Any other item is NAME=VALUE, or the value
// of the option at its position. `tokenizer` is needed to train on text. DSC_EUSAGE, DSC_EINPUT:
// the message begins with the text. *out is owned by the caller (dsc_language_free).
int dsc_language_make(dsc_language **out, const char *spec, dsc_model_side side,
                      const dsc_tokenizer *tokenizer, dsc_error *err);
void dsc_language_free(dsc_language *l); // NULL allowed

#endif

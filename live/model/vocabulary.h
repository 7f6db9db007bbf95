// SPDX-License-Identifier: Apache-2.0
// Whether a draft model speaks the target's tokens.
#ifndef DSC_LIVE_VOCABULARY_H
#define DSC_LIVE_VOCABULARY_H

#include "traces/tokenizer/tokenizer.h"

enum { LIVE_VOCABULARY_PADDING = 128 }; // rows by which two models may differ

// Refuses models whose tokens differ: equal texts of all tokens are required; the models' own
// vocabularies (rows of their embeddings) may differ by padding. Tokenizers may both be NULL
// (random weights): then sizes alone are compared. DSC_EINPUT names the first token that differs,
// with both texts.
int live_vocabulary_match(const dsc_tokenizer *target, const dsc_tokenizer *draft,
                          int64_t target_vocab, int64_t draft_vocab, dsc_error *err);

#endif

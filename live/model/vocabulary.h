// SPDX-License-Identifier: Apache-2.0
// Checks that draft and target use the same token ids.
#ifndef DSC_LIVE_VOCABULARY_H
#define DSC_LIVE_VOCABULARY_H

#include "traces/tokenizer/tokenizer.h"

enum { LIVE_VOCABULARY_PADDING = 128 }; // permitted difference of the rows of two embeddings

// Refuses models whose tokens differ: every token must have the same text in both. The embeddings
// may differ in size by padding. With random weights both tokenizers may be NULL; then only the
// sizes are compared. DSC_EINPUT names the first token that differs, with both texts.
int live_vocabulary_match(const dsc_tokenizer *target, const dsc_tokenizer *draft,
                          int64_t target_vocab, int64_t draft_vocab, dsc_error *err);

#endif

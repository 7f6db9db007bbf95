// SPDX-License-Identifier: Apache-2.0
// Languages: exact next-token distributions after any context, for models without an inference
// engine. A language is immutable and shared by threads; sim/model/model_synthetic.h is its state
// in a request.
#ifndef DSC_SIM_LANGUAGE_H
#define DSC_SIM_LANGUAGE_H

#include "sim/dist.h"
#include "traces/trace/trace.h"

typedef struct dsc_language dsc_language;

// A position in a text, at which a distribution is needed.
typedef struct dsc_place {
    const int32_t *recent; // [count] the preceding tokens, oldest first: all, or the last `reach`
    size_t count;
    int64_t position; // of the next token in the text, the prompt included
    int64_t depth;    // number of preceding tokens that are drafted
    int64_t request;  // its index, where requests differ in more than their text
} dsc_place;

// Descriptors are const; instances embed dsc_language as their first member.
typedef struct dsc_language_type {
    const char *name;
    // The distribution at a position. The view lives as long as the language.
    void (*dist)(const dsc_language *l, const dsc_place *at, dsc_dist *out);
    // Its argmax token; of several the lowest id.
    int32_t (*best)(const dsc_language *l, const dsc_place *at);
    // The text from which the prompt of request r is taken, or NULL: requests have no prompt.
    dsc_token_view (*text)(const dsc_language *l, int64_t r);
    void (*free)(dsc_language *l);
} dsc_language_type;

struct dsc_language {
    const dsc_language_type *type;
    int32_t vocab_size;
    int32_t end_token; // or -1: only the length ends an output
    size_t reach;      // number of preceding tokens that a distribution may depend on
    int64_t positions; // of a draft that it has distributions for; 0: any number
    bool one_draft;    // they are made of the acceptance of one token at a position
    char *tokenizer_name, *tokenizer_sha256; // of the corpus, or NULL: tokens have no text
};

#endif

// SPDX-License-Identifier: Apache-2.0
// Languages: exact next-token distributions at any context, for models that need no engine. A
// language is immutable, so that threads share one; what follows a request is
// sim/model/model_synthetic.h.
#ifndef DSC_SIM_LANGUAGE_H
#define DSC_SIM_LANGUAGE_H

#include "sim/dist.h"
#include "traces/trace/trace.h"

typedef struct dsc_language dsc_language;

// Where in a text a distribution is asked for.
typedef struct dsc_place {
    const int32_t *recent; // [count] the tokens before, oldest first: all, or the last `reach`
    size_t count;
    int64_t position; // of the token to come in the text, the prompt counted
    int64_t depth;    // how many of the tokens before are drafted
} dsc_place;

// Descriptors are const; instances embed dsc_language as their first member.
typedef struct dsc_language_type {
    const char *name;
    // The distribution at a place. The view lives as long as the language.
    void (*dist)(const dsc_language *l, const dsc_place *at, dsc_dist *out);
    // Its most probable token; of several the lowest.
    int32_t (*best)(const dsc_language *l, const dsc_place *at);
    // A text to take the prompt of request r from, or NULL: requests have none.
    dsc_token_view (*text)(const dsc_language *l, int64_t r);
    void (*free)(dsc_language *l);
} dsc_language_type;

struct dsc_language {
    const dsc_language_type *type;
    int32_t vocab_size;
    int32_t end_token; // or -1: an output ends by its length alone
    size_t reach;      // tokens before a place that its distribution may depend on
    char *tokenizer_name, *tokenizer_sha256; // of the corpus, or NULL: tokens stand for nothing
};

#endif

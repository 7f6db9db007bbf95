// SPDX-License-Identifier: Apache-2.0
// The outputs of a run's requests, in the order of arrival, as one suffix index: the global tree of
// SuffixDecodingCache (arctic_inference/suffix_decoding/cache.py of snowflakedb/ArcticInference at
// 9d46438). Internal to sim/draft/.
#ifndef DSC_SIM_DRAFT_SUFFIX_CACHE_H
#define DSC_SIM_DRAFT_SUFFIX_CACHE_H

#include "sim/draft/suffix_index.h"
#include "sim/drafter.h"

typedef struct dsc_suffix_cache {
    dsc_suffix_index index;
    int32_t *token; // [tokens] the outputs, one after the other
    int64_t *start; // [requests] their first tokens
    size_t tokens, token_capacity, requests, start_capacity;
    size_t oldest; // request in the cache
    int32_t *last; // [last_count] the tokens of the last step, if no draft followed it
    size_t last_count, last_capacity;
    int64_t most; // requests in the cache, the current one included
} dsc_suffix_cache;

// The cache of a history, which is made if there is none yet; `depth` is then that of its index.
// A request begins: its output becomes the newest, and the oldest one is evicted if there are more
// than `most` >= 1.
int dsc_suffix_cache_begin(dsc_suffix_cache **out, dsc_history *history, int64_t most,
                           int32_t depth, dsc_error *err);
// Appends n tokens to the output of the current request.
int dsc_suffix_cache_append(dsc_suffix_cache *c, const int32_t *token, int64_t n, dsc_error *err);
// Keeps the n tokens of a step, which are appended when the next request begins; tokens that are
// appended before replace them.
int dsc_suffix_cache_keep(dsc_suffix_cache *c, const int32_t *token, size_t n, dsc_error *err);
// The longest match of the tokens before `length` of the output, which may begin in the prompt;
// recent[depth]: scratch. Returns its state, *match: its tokens, 0: none.
int32_t dsc_suffix_cache_find(const dsc_suffix_cache *c, dsc_token_view prompt,
                              const int32_t *output, int64_t length, int32_t *recent,
                              int32_t *match);

#endif

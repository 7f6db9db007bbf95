// SPDX-License-Identifier: Apache-2.0
// A pool of phrases (n-grams without their first token), by the token that they follow: the memory
// of lookahead decoding and Ouroboros.
//
// Each key token has a list of distinct phrases of one length, oldest first. A phrase that is added
// again becomes the newest; a full list drops its oldest phrase. The number of keys is not bounded.
// A look-up is one hash probe; adding compares with the phrases of the key.
// Internal to sim/draft/.
#ifndef DSC_SIM_DRAFT_PHRASE_POOL_H
#define DSC_SIM_DRAFT_PHRASE_POOL_H

#include "base/memory.h"

typedef struct dsc_phrase {
    struct dsc_phrase *older, *newer; // NULL at the ends
    int32_t token[];                  // [length of the pool]
} dsc_phrase;

typedef struct dsc_phrase_list {
    int32_t key;
    int32_t count; // >= 1
    dsc_phrase *oldest, *newest;
} dsc_phrase_list;

typedef struct dsc_phrase_pool {
    dsc_arena *arena;      // owns everything below
    int64_t length;        // tokens of a phrase, >= 1
    int64_t most;          // phrases of a key, >= 0
    dsc_phrase_list *list; // [mask + 1] open addressing, at most half full; free: newest is NULL
    uint32_t mask;
    uint32_t keys;
} dsc_phrase_pool;

int dsc_phrase_pool_init(dsc_phrase_pool *p, dsc_arena *arena, int64_t length, int64_t most,
                         dsc_error *err);
// Adds token[0, length) as a phrase after `key` (any number; -1: the start of a text). Pointers to
// phrases of the key stay valid, but the oldest phrase may have been replaced by the newest.
int dsc_phrase_pool_add(dsc_phrase_pool *p, int32_t key, const int32_t *token, dsc_error *err);
// The phrases after `key`; NULL: there are none.
const dsc_phrase_list *dsc_phrase_pool_find(const dsc_phrase_pool *p, int32_t key);

#endif

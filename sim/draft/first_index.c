// SPDX-License-Identifier: Apache-2.0
// Hash tables of the n-grams of a growing text, by open addressing with linear probing.
#include "sim/draft/first_index.h"

#include <string.h>

enum { FIRST_CAPACITY = 512 }; // tokens of text

// The hash of an n-gram from the hash of its last n - 1 tokens and its first token.
static inline uint64_t mix(uint64_t hash, int32_t token)
{
    hash = (hash ^ (uint32_t)token) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static inline bool same(const int32_t *text, int64_t a, int64_t b, int64_t n)
{
    for (int64_t j = 1; j <= n; j++)
        if (text[a - j] != text[b - j])
            return false;
    return true;
}

// The position stored for the n-gram that ends before text position `end`. 0: the n-gram is new,
// and `end` is stored.
static int32_t enter(dsc_first_index *x, int64_t n, uint64_t hash, int64_t end)
{
    int32_t *table = x->table[n - 1];
    size_t at = (hash >> 32) & x->mask;
    while (table[at] && !same(x->text, table[at], end, n))
        at = (at + 1) & x->mask;
    if (table[at])
        return table[at];
    table[at] = (int32_t)end;
    return 0;
}

// Looks up and enters all n-grams that end before text position `end`.
static void enter_all(dsc_first_index *x, int64_t end)
{
    uint64_t hash = 0;
    for (int64_t n = 1; n <= x->most; n++) {
        if (n > end) {
            x->first[n - 1] = 0;
            continue;
        }
        hash = mix(hash, x->text[end - n]);
        x->first[n - 1] = enter(x, n, hash, end);
    }
}

// Makes room for `count` tokens of text: the text at least doubles, tables are at most half full.
static int reserve(dsc_first_index *x, int64_t count, dsc_error *err)
{
    if ((size_t)count <= x->capacity)
        return DSC_OK;
    if (count > INT32_MAX / 2)
        return dsc_fail(err, DSC_EINPUT, "prompt and output have more than %d tokens",
                        INT32_MAX / 2);
    int rc = dsc_arena_resize(x->arena, &x->text, &x->capacity, (size_t)count, err);
    size_t slots = 64;
    while (slots < 2 * x->capacity)
        slots *= 2;
    x->mask = slots - 1;
    for (int64_t n = 0; n < x->most && !rc; n++) {
        rc = dsc_arena_new(x->arena, &x->table[n], slots, err);
        if (!rc)
            memset(x->table[n], 0, slots * sizeof **x->table);
    }
    for (int64_t end = 1; end <= x->count && !rc; end++)
        enter_all(x, end);
    return rc;
}

int dsc_first_begin(dsc_first_index *x, dsc_token_view prompt, int64_t most, dsc_arena *arena,
                    dsc_error *err)
{
    *x = (dsc_first_index){.most = most, .arena = arena};
    int rc = reserve(x, prompt.count + FIRST_CAPACITY, err);
    if (!rc)
        rc = dsc_first_append(x, prompt.id, prompt.count, err);
    x->prompt = prompt.count;
    return rc;
}

int dsc_first_append(dsc_first_index *x, const int32_t *token, int64_t n, dsc_error *err)
{
    int rc = reserve(x, x->count + n, err);
    for (int64_t j = 0; j < n && !rc; j++) {
        x->text[x->count++] = token[j];
        enter_all(x, x->count);
    }
    return rc;
}

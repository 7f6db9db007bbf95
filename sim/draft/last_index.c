// SPDX-License-Identifier: Apache-2.0
// A hash table of the n-grams of a growing text, by open addressing with linear probing, and their
// occurrences as linked lists; last_index.h.
#include "sim/draft/last_index.h"

#include <string.h>

enum { FIRST_CAPACITY = 512 }; // tokens of text

static uint64_t hash_of(const int32_t *token, int64_t n)
{
    uint64_t hash = 0;
    for (int64_t j = 0; j < n; j++) {
        hash = (hash ^ (uint32_t)token[j]) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash;
}

// Enters the n-gram that ends before text position `end`.
static void enter(dsc_last_index *x, int64_t end)
{
    const int32_t *last = x->text + end - x->n;
    x->previous[end] = 0;
    if (end < x->n)
        return;
    size_t at = (hash_of(last, x->n) >> 32) & x->mask;
    while (x->table[at] &&
           memcmp(x->text + x->table[at] - x->n, last, (size_t)x->n * sizeof *last) != 0)
        at = (at + 1) & x->mask;
    x->previous[end] = x->table[at];
    x->table[at] = (int32_t)end;
}

// Makes room for `count` tokens of text: the text at least doubles, the table is at most half full.
static int reserve(dsc_last_index *x, int64_t count, dsc_error *err)
{
    if ((size_t)count <= x->capacity)
        return DSC_OK;
    if (count > INT32_MAX / 2)
        return dsc_fail(err, DSC_EINPUT, "prompt and output have more than %d tokens",
                        INT32_MAX / 2);
    int rc = dsc_arena_resize(x->arena, &x->text, &x->capacity, (size_t)count, err);
    if (!rc)
        rc = dsc_arena_resize(x->arena, &x->previous, &x->previous_capacity, x->capacity + 1, err);
    size_t slots = 64;
    while (slots < 2 * x->capacity)
        slots *= 2;
    x->mask = slots - 1;
    if (!rc)
        rc = dsc_arena_new(x->arena, &x->table, slots, err);
    if (!rc)
        memset(x->table, 0, slots * sizeof *x->table);
    for (int64_t end = 1; end <= x->count && !rc; end++)
        enter(x, end);
    return rc;
}

int dsc_last_begin(dsc_last_index *x, dsc_token_view prompt, int64_t n, dsc_arena *arena,
                   dsc_error *err)
{
    *x = (dsc_last_index){.n = n, .arena = arena};
    int rc = reserve(x, prompt.count + FIRST_CAPACITY, err);
    if (!rc)
        rc = dsc_last_append(x, prompt.id, prompt.count, err);
    x->prompt = prompt.count;
    return rc;
}

int dsc_last_append(dsc_last_index *x, const int32_t *token, int64_t tokens, dsc_error *err)
{
    int rc = reserve(x, x->count + tokens, err);
    for (int64_t j = 0; j < tokens && !rc; j++) {
        x->text[x->count++] = token[j];
        enter(x, x->count);
    }
    return rc;
}

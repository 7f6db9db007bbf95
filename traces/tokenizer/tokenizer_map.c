// SPDX-License-Identifier: Apache-2.0
// Flat hash tables with linear probing: vocabulary (text -> id) and merges (pair -> rank, id).
// Both are filled once, at load, from a known number of keys.
#include "traces/tokenizer/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>

static size_t table_size(size_t keys)
{
    size_t n = 16;
    while (n < 2 * keys)
        n *= 2;
    return n;
}

static uint64_t hash_text(const char *key, size_t length)
{
    uint64_t h = length;
    for (; length >= 8; key += 8, length -= 8) {
        uint64_t word;
        memcpy(&word, key, 8);
        h = dsc_tok_mix(h ^ word);
    }
    uint64_t word = 0;
    memcpy(&word, key, length);
    return dsc_tok_mix(h ^ word);
}

int dsc_tok_map_init(tok_map *m, size_t capacity, dsc_error *err)
{
    size_t n = table_size(capacity);
    m->mask = n - 1;
    return dsc_new(&m->slot, n, err);
}

static struct tok_map_slot *map_slot(const tok_map *m, const char *key, size_t length)
{
    size_t i = hash_text(key, length) & m->mask;
    while (m->slot[i].key &&
           (m->slot[i].length != length || memcmp(m->slot[i].key, key, length) != 0))
        i = (i + 1) & m->mask;
    return &m->slot[i];
}

bool dsc_tok_map_put(tok_map *m, tok_text key, int32_t id)
{
    struct tok_map_slot *slot = map_slot(m, key.data, key.length);
    if (slot->key)
        return false;
    *slot = (struct tok_map_slot){.key = key.data, .length = (uint32_t)key.length, .id = id};
    return true;
}

int32_t dsc_tok_map_get(const tok_map *m, const char *key, size_t length)
{
    if (!m->slot)
        return TOK_NONE;
    const struct tok_map_slot *slot = map_slot(m, key, length);
    return slot->key ? slot->id : TOK_NONE;
}

void dsc_tok_map_fini(tok_map *m)
{
    free(m->slot);
    *m = (tok_map){0};
}

int dsc_tok_merges_init(tok_merges *m, size_t capacity, dsc_error *err)
{
    size_t n = table_size(capacity);
    int rc = dsc_new(&m->slot, n, err);
    if (!rc)
        rc = dsc_new(&m->known, (size_t)1 << (TOK_KNOWN_BITS - 6), err);
    m->mask = n - 1;
    for (size_t i = 0; !rc && i < n; i++)
        m->slot[i] = (tok_merge){.pair = UINT64_MAX, .rank = UINT32_MAX, .id = TOK_NONE};
    return rc;
}

void dsc_tok_merges_put(tok_merges *m, int32_t left, int32_t right, uint32_t rank, int32_t id)
{
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    uint64_t hash = dsc_tok_mix(pair);
    size_t i = hash & m->mask;
    m->known[hash >> (70 - TOK_KNOWN_BITS)] |= (uint64_t)1 << (hash >> (64 - TOK_KNOWN_BITS)) % 64;
    while (m->slot[i].pair != pair && m->slot[i].pair != UINT64_MAX)
        i = (i + 1) & m->mask;
    m->slot[i] =
        (tok_merge){.pair = pair, .rank = rank, .id = id}; // the last of repeated merges counts
}

void dsc_tok_merges_fini(tok_merges *m)
{
    free(m->slot);
    free(m->known);
    *m = (tok_merges){0};
}

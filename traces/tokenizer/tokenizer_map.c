// SPDX-License-Identifier: Apache-2.0
// Flat hash tables with linear probing: vocabulary (text -> id) and merges (pair -> rank, id).
// Both are filled once, at load, from a known number of keys.
#include "traces/tokenizer/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

// An odd number that the author of a file cannot know.
static uint64_t new_key(const void *table)
{
    uint64_t key;
    if (getrandom(&key, sizeof key, GRND_NONBLOCK) != (ssize_t)sizeof key) {
        struct timespec now; // early at boot: the address of the table is random as well
        clock_gettime(CLOCK_MONOTONIC, &now);
        key = dsc_tok_mix((uint64_t)(uintptr_t)table ^ (uint64_t)now.tv_nsec << 32);
    }
    return key | 1;
}

static size_t table_size(size_t keys)
{
    size_t n = 16;
    while (n < 2 * keys)
        n *= 2;
    return n;
}

static uint64_t hash_text(const char *key, size_t length, uint64_t secret)
{
    uint64_t h = length ^ secret;
    for (; length >= 8; key += 8, length -= 8) {
        uint64_t word;
        memcpy(&word, key, 8);
        h = dsc_tok_hash(h ^ word, secret);
    }
    uint64_t word = 0;
    memcpy(&word, key, length);
    return dsc_tok_hash(h ^ word, secret);
}

int dsc_tok_map_init(tok_map *m, size_t capacity, dsc_error *err)
{
    size_t n = table_size(capacity);
    m->mask = n - 1;
    m->key = new_key(m);
    return dsc_new(&m->slot, n, err);
}

static struct tok_map_slot *map_slot(const tok_map *m, const char *key, size_t length)
{
    size_t i = hash_text(key, length, m->key) & m->mask;
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
    if (!rc)
        rc = dsc_new(&m->near, TOK_NEAR * TOK_NEAR, err);
    m->mask = n - 1;
    m->key = new_key(m);
    for (size_t i = 0; !rc && i < n; i++)
        m->slot[i] = (tok_merge){.pair = UINT64_MAX, .rank = UINT32_MAX, .id = TOK_NONE};
    for (size_t i = 0; !rc && i < TOK_NEAR * TOK_NEAR; i++)
        m->near[i] = (tok_near){.rank = UINT32_MAX, .id = TOK_NONE};
    return rc;
}

void dsc_tok_merges_put(tok_merges *m, int32_t left, int32_t right, uint32_t rank, int32_t id)
{
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    uint64_t hash = dsc_tok_hash(pair, m->key);
    size_t i = hash & m->mask;
    m->known[hash >> (70 - TOK_KNOWN_BITS)] |= (uint64_t)1 << (hash >> (64 - TOK_KNOWN_BITS)) % 64;
    while (m->slot[i].pair != pair && m->slot[i].pair != UINT64_MAX)
        i = (i + 1) & m->mask;
    m->slot[i] =
        (tok_merge){.pair = pair, .rank = rank, .id = id}; // the last of repeated merges counts
    if (left < TOK_NEAR && right < TOK_NEAR)
        m->near[left * TOK_NEAR + right] = (tok_near){rank, id};
}

void dsc_tok_merges_fini(tok_merges *m)
{
    free(m->slot);
    free(m->known);
    free(m->near);
    *m = (tok_merges){0};
}

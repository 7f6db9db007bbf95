// SPDX-License-Identifier: Apache-2.0
// Doubly linked lists of phrases in a hash table by open addressing, all in an arena.
#include "sim/draft/phrase_pool.h"

#include <stdbool.h>
#include <string.h>

enum { FIRST_MASK = 255 };

// The key's list, or the free place where it would be (Knuth 6.4, multiplicative hashing).
static dsc_phrase_list *place(dsc_phrase_list *list, uint32_t mask, int32_t key)
{
    uint64_t i = ((uint64_t)(uint32_t)key * 0x9E3779B97F4A7C15u) >> 32;
    while (list[i & mask].newest && list[i & mask].key != key)
        i++;
    return &list[i & mask];
}

static int allocate(dsc_phrase_list **out, const dsc_phrase_pool *p, uint32_t mask, dsc_error *err)
{
    int rc = dsc_arena_new(p->arena, out, (size_t)mask + 1, err);
    if (!rc)
        memset(*out, 0, ((size_t)mask + 1) * sizeof **out);
    return rc;
}

int dsc_phrase_pool_init(dsc_phrase_pool *p, dsc_arena *arena, int64_t length, int64_t most,
                         dsc_error *err)
{
    *p = (dsc_phrase_pool){.arena = arena, .length = length, .most = most, .mask = FIRST_MASK};
    return allocate(&p->list, p, p->mask, err);
}

static int grow(dsc_phrase_pool *p, dsc_error *err)
{
    dsc_phrase_list *list;
    uint32_t mask = 2 * p->mask + 1;
    int rc = allocate(&list, p, mask, err);
    if (rc)
        return rc;
    for (uint32_t i = 0; i <= p->mask; i++)
        if (p->list[i].newest)
            *place(list, mask, p->list[i].key) = p->list[i];
    p->list = list;
    p->mask = mask;
    return DSC_OK;
}

static void unlink_phrase(dsc_phrase_list *l, dsc_phrase *x)
{
    *(x->older ? &x->older->newer : &l->oldest) = x->newer;
    *(x->newer ? &x->newer->older : &l->newest) = x->older;
}

static void link_newest(dsc_phrase_list *l, dsc_phrase *x)
{
    x->older = l->newest;
    x->newer = NULL;
    *(l->newest ? &l->newest->newer : &l->oldest) = x;
    l->newest = x;
}

// The phrase if the list contains it, else the oldest of a full list, else a new one.
static int take(dsc_phrase **out, dsc_phrase_pool *p, dsc_phrase_list *l, const int32_t *token,
                dsc_error *err)
{
    size_t bytes = (size_t)p->length * sizeof *token;
    void *x = l->oldest;
    while (x && memcmp(((dsc_phrase *)x)->token, token, bytes) != 0)
        x = ((dsc_phrase *)x)->newer;
    if (!x && l->count == p->most)
        x = l->oldest;
    if (x) {
        unlink_phrase(l, x);
    } else {
        int rc = dsc_arena_alloc(p->arena, &x, 1, sizeof(dsc_phrase) + bytes, err);
        if (rc)
            return rc;
        l->count++;
    }
    *out = x;
    memcpy((*out)->token, token, bytes);
    return DSC_OK;
}

int dsc_phrase_pool_add(dsc_phrase_pool *p, int32_t key, const int32_t *token, dsc_error *err)
{
    dsc_phrase_list *l = place(p->list, p->mask, key);
    dsc_phrase *x;
    if (!p->most)
        return DSC_OK;
    if (!l->newest && 2 * (p->keys + 1) > p->mask) {
        int rc = grow(p, err);
        if (rc)
            return rc;
        l = place(p->list, p->mask, key);
    }
    bool found = l->newest != NULL;
    int rc = take(&x, p, l, token, err);
    if (rc)
        return rc;
    p->keys += !found;
    l->key = key;
    link_newest(l, x);
    return DSC_OK;
}

const dsc_phrase_list *dsc_phrase_pool_find(const dsc_phrase_pool *p, int32_t key)
{
    const dsc_phrase_list *l = place(p->list, p->mask, key);
    return l->newest ? l : NULL;
}

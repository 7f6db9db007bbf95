// SPDX-License-Identifier: Apache-2.0
// A set of request ids: a hash table with open addressing (FNV-1a); the ids are stored in one byte
// string.
#include "traces/trace/trace_ids.h"

#include <stdlib.h>
#include <string.h>

// FNV-1a, 64 bits (http://www.isthe.com/chongo/tech/comp/fnv/). The high half is folded in because
// the table uses the low bits.
static uint64_t hash_of(const char *bytes, int64_t length)
{
    uint64_t h = 0xcbf29ce484222325;
    for (int64_t i = 0; i < length; i++)
        h = (h ^ (unsigned char)bytes[i]) * 0x100000001b3;
    return h ^ h >> 32;
}

static dsc_text_view id_at(const dsc_id_set *set, size_t i)
{
    int64_t begin = i ? set->end[i - 1] : 0;
    return (dsc_text_view){set->bytes.data + begin, set->end[i] - begin};
}

// The slot of `id`, or the free slot where it belongs.
static size_t find_slot(const dsc_id_set *set, dsc_text_view id)
{
    size_t mask = set->slots - 1, at = (size_t)hash_of(id.bytes, id.length) & mask;
    for (;; at = (at + 1) & mask) {
        if (!set->slot[at])
            return at;
        dsc_text_view other = id_at(set, set->slot[at] - 1);
        if (other.length == id.length &&
            (!id.length || !memcmp(other.bytes, id.bytes, (size_t)id.length)))
            return at;
    }
}

static int enlarge(dsc_id_set *set, dsc_error *err)
{
    uint32_t *slot;
    size_t slots = set->slots ? 2 * set->slots : 64;
    if (set->count >= UINT32_MAX - 1)
        return dsc_fail(err, DSC_EUSAGE, "a trace has at most %u requests", UINT32_MAX - 1);
    int rc = dsc_new(&slot, slots, err);
    if (rc)
        return rc;
    free(set->slot);
    set->slot = slot;
    set->slots = slots;
    for (size_t i = 0; i < set->count; i++)
        set->slot[find_slot(set, id_at(set, i))] = (uint32_t)i + 1;
    return DSC_OK;
}

int64_t dsc_id_set_find(const dsc_id_set *set, dsc_text_view id)
{
    return set->slots ? (int64_t)set->slot[find_slot(set, id)] - 1 : -1;
}

int dsc_id_set_add(dsc_id_set *set, dsc_text_view id, dsc_error *err)
{
    int rc = DSC_OK;
    if (2 * (set->count + 1) > set->slots)
        rc = enlarge(set, err);
    if (rc)
        return rc;
    size_t at = find_slot(set, id);
    if (set->slot[at])
        return dsc_fail(err, DSC_EINPUT, "requests %u and %zu have the same id '%.*s'",
                        (unsigned)set->slot[at] - 1, set->count,
                        (int)(id.length < 100 ? id.length : 100), id.bytes);
    rc = dsc_resize(&set->end, &set->capacity, set->count + 1, err);
    if (!rc)
        rc = dsc_buffer_append(&set->bytes, id.bytes, (size_t)id.length, err);
    if (rc)
        return rc;
    set->end[set->count++] = (int64_t)set->bytes.length;
    set->slot[at] = (uint32_t)set->count;
    return DSC_OK;
}

void dsc_id_set_fini(dsc_id_set *set)
{
    dsc_buffer_fini(&set->bytes);
    free(set->end);
    free(set->slot);
    *set = (dsc_id_set){0};
}

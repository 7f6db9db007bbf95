// SPDX-License-Identifier: Apache-2.0
// Allocation with overflow checks, growable strings and arenas. Callers pass the address of a
// pointer of any object type; it is read and written with memcpy, which no aliasing rule forbids.
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int product(size_t *out, size_t n, size_t size, dsc_error *err)
{
    if (__builtin_mul_overflow(n, size, out) || *out > PTRDIFF_MAX)
        return dsc_fail(err, DSC_ENOMEM, "%zu elements of %zu bytes do not fit in memory", n, size);
    return DSC_OK;
}

static void *pointer_at(const void *place)
{
    void *p;
    memcpy(&p, place, sizeof p);
    return p;
}

static void set_pointer(void *place, void *p)
{
    memcpy(place, &p, sizeof p);
}

int dsc_alloc(void *out, size_t n, size_t size, dsc_error *err)
{
    size_t bytes;
    if (!out)
        return dsc_fail(err, DSC_EUSAGE, "dsc_alloc: out must not be NULL");
    int rc = product(&bytes, n, size, err);
    void *p = rc ? NULL : calloc(bytes ? bytes : 1, 1);
    set_pointer(out, p);
    if (rc)
        return rc;
    return p ? DSC_OK : dsc_fail(err, DSC_ENOMEM, "out of memory (%zu bytes)", bytes);
}

int dsc_grow(void *array, size_t *capacity, size_t need, size_t size, dsc_error *err)
{
    if (!array || !capacity)
        return dsc_fail(err, DSC_EUSAGE, "dsc_grow: array and capacity must not be NULL");
    if (need <= *capacity)
        return DSC_OK;
    size_t n = *capacity < 8 ? 16 : *capacity, bytes;
    while (n < need)
        if (__builtin_mul_overflow(n, (size_t)2, &n))
            n = need;
    int rc = product(&bytes, n, size, err);
    if (rc)
        return rc;
    void *p = realloc(pointer_at(array), bytes);
    if (!p)
        return dsc_fail(err, DSC_ENOMEM, "out of memory (%zu bytes)", bytes);
    set_pointer(array, p);
    *capacity = n;
    return DSC_OK;
}

int dsc_strndup(char **out, const char *bytes, size_t length, dsc_error *err)
{
    if (!out)
        return dsc_fail(err, DSC_EUSAGE, "dsc_strndup: out must not be NULL");
    *out = NULL;
    if (length && !bytes)
        return dsc_fail(err, DSC_EUSAGE, "dsc_strndup: bytes must not be NULL");
    if (length == SIZE_MAX)
        return dsc_fail(err, DSC_ENOMEM, "string too long");
    int rc = dsc_new(out, length + 1, err);
    if (!rc && length)
        memcpy(*out, bytes, length);
    return rc;
}

int dsc_buffer_append(dsc_buffer *b, const void *bytes, size_t length, dsc_error *err)
{
    size_t need;
    if (!b || (length && !bytes))
        return dsc_fail(err, DSC_EUSAGE, "dsc_buffer_append: b and bytes must not be NULL");
    if (__builtin_add_overflow(b->length, length, &need) || need == SIZE_MAX)
        return dsc_fail(err, DSC_ENOMEM, "text too long");
    int rc = dsc_resize(&b->data, &b->capacity, need + 1, err);
    if (rc)
        return rc;
    if (length)
        memcpy(b->data + b->length, bytes, length);
    b->length = need;
    b->data[need] = '\0';
    return DSC_OK;
}

int dsc_buffer_puts(dsc_buffer *b, const char *text, dsc_error *err)
{
    if (!text)
        return dsc_fail(err, DSC_EUSAGE, "dsc_buffer_puts: text must not be NULL");
    return dsc_buffer_append(b, text, strlen(text), err);
}

int dsc_buffer_printf(dsc_buffer *b, dsc_error *err, const char *format, ...)
{
    va_list args, again;
    if (!b)
        return dsc_fail(err, DSC_EUSAGE, "dsc_buffer_printf: b must not be NULL");
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args), rc;
    va_end(args);
    rc = n < 0 ? dsc_fail(err, DSC_EUSAGE, "bad format")
               : dsc_resize(&b->data, &b->capacity, b->length + (size_t)n + 1, err);
    if (!rc) {
        vsnprintf(b->data + b->length, (size_t)n + 1, format, again);
        b->length += (size_t)n;
    }
    va_end(again);
    return rc;
}

void dsc_buffer_fini(dsc_buffer *b)
{
    if (!b)
        return;
    free(b->data);
    *b = (dsc_buffer){0};
}

struct dsc_arena_block {
    struct dsc_arena_block *next;
    size_t capacity, used; // bytes of data that follow the header
};
enum { HEADER = 64, FIRST_BLOCK = 1 << 16 };

int dsc_arena_alloc(dsc_arena *a, void *out, size_t n, size_t size, dsc_error *err)
{
    size_t bytes;
    if (!a || !out)
        return dsc_fail(err, DSC_EUSAGE, "dsc_arena_alloc: a and out must not be NULL");
    set_pointer(out, NULL);
    int rc = product(&bytes, n, size, err);
    if (rc)
        return rc;
    if (bytes > PTRDIFF_MAX - 2 * HEADER)
        return dsc_fail(err, DSC_ENOMEM, "%zu bytes do not fit in memory", bytes);
    bytes = bytes ? (bytes + 63) & ~(size_t)63 : 64;
    while (a->current && a->current->capacity - a->current->used < bytes && a->current->next) {
        a->current = a->current->next;
        a->current->used = 0;
    }
    if (!a->current || a->current->capacity - a->current->used < bytes) {
        size_t capacity = a->current ? a->current->capacity : FIRST_BLOCK / 2;
        capacity = capacity > (size_t)1 << 40 ? bytes : 2 * capacity;
        capacity = capacity < bytes ? bytes : capacity;
        struct dsc_arena_block *b = aligned_alloc(64, HEADER + ((capacity + 63) & ~(size_t)63));
        if (!b)
            return dsc_fail(err, DSC_ENOMEM, "out of memory (%zu bytes)", capacity);
        *b = (struct dsc_arena_block){.capacity = capacity};
        if (a->current)
            a->current->next = b;
        else
            a->first = b;
        a->current = b;
    }
    set_pointer(out, (char *)a->current + HEADER + a->current->used);
    a->current->used += bytes;
    return DSC_OK;
}

int dsc_arena_grow(dsc_arena *a, void *array, size_t *capacity, size_t need, size_t size,
                   dsc_error *err)
{
    void *grown;
    if (!a || !array || !capacity)
        return dsc_fail(err, DSC_EUSAGE, "dsc_arena_grow: a, array and capacity must not be NULL");
    if (need <= *capacity)
        return DSC_OK;
    if (need < 2 * *capacity) // no overflow: that many fit in memory already
        need = 2 * *capacity;
    int rc = dsc_arena_alloc(a, &grown, need, size, err);
    if (rc)
        return rc;
    if (*capacity)
        memcpy(grown, pointer_at(array), *capacity * size);
    set_pointer(array, grown);
    *capacity = need;
    return DSC_OK;
}

void dsc_arena_reset(dsc_arena *a)
{
    if (!a)
        return;
    a->current = a->first;
    if (a->first)
        a->first->used = 0;
}

void dsc_arena_fini(dsc_arena *a)
{
    if (!a)
        return;
    for (struct dsc_arena_block *b = a->first, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    *a = (dsc_arena){0};
}

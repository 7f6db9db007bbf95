// SPDX-License-Identifier: Apache-2.0
// Overflow-checked allocation, growable byte strings and arenas.
#ifndef DSC_BASE_MEMORY_H
#define DSC_BASE_MEMORY_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// `out` and `array` below are addresses of pointers to objects of any type. The typed forms
// dsc_new, dsc_resize, dsc_arena_new and dsc_arena_resize take the element size from that type;
// use them wherever the type is known. DSC_EUSAGE: an argument is NULL, where nothing else is
// stated; functions without a status then do nothing.

// Allocates n elements of `size` bytes, zeroed. *out owns them (free with free()). n = 0 gives a
// valid pointer. DSC_ENOMEM: n * size overflows or memory is short; *out is NULL.
DSC_API int dsc_alloc(void *out, size_t n, size_t size, dsc_error *err);
#define dsc_new(out, n, err) dsc_alloc((out), (n), sizeof **(out), (err))

// Makes *array hold at least `need` elements of `size` bytes, at least doubling; *capacity is
// updated. Old contents are kept, new elements are uninitialized. *array may be NULL (capacity 0).
// DSC_ENOMEM: nothing has changed.
DSC_API int dsc_grow(void *array, size_t *capacity, size_t need, size_t size, dsc_error *err);
#define dsc_resize(array, capacity, need, err)                                                     \
    dsc_grow((array), (capacity), (need), sizeof **(array), (err))

// Copies `length` bytes and adds a NUL. *out owned by the caller. `bytes` may be NULL when `length`
// is 0, here and below.
DSC_API int dsc_strndup(char **out, const char *bytes, size_t length, dsc_error *err);

// A growable byte string, always NUL-terminated once something was appended. Zero-initialize.
typedef struct dsc_buffer {
    char *data;
    size_t length, capacity; // bytes
} dsc_buffer;

DSC_API int dsc_buffer_append(dsc_buffer *b, const void *bytes, size_t length, dsc_error *err);
DSC_API int dsc_buffer_puts(dsc_buffer *b, const char *text, dsc_error *err);
DSC_API int dsc_buffer_printf(dsc_buffer *b, dsc_error *err, const char *format, ...)
    DSC_PRINTF(3, 4);
DSC_API void dsc_buffer_fini(dsc_buffer *b); // frees and zeroes

// An arena: many small allocations freed together. Each thread has one and resets it between
// requests, so that hot loops allocate nothing after it has grown to its working size.
typedef struct dsc_arena {
    struct dsc_arena_block *first, *current;
} dsc_arena;

// n elements of `size` bytes, 64-byte aligned, uninitialized; valid until reset or fini.
DSC_API int dsc_arena_alloc(dsc_arena *a, void *out, size_t n, size_t size, dsc_error *err);
#define dsc_arena_new(a, out, n, err) dsc_arena_alloc((a), (out), (n), sizeof **(out), (err))
// dsc_grow with memory of the arena. The old memory stays in use until the reset.
DSC_API int dsc_arena_grow(dsc_arena *a, void *array, size_t *capacity, size_t need, size_t size,
                           dsc_error *err);
#define dsc_arena_resize(a, array, capacity, need, err)                                            \
    dsc_arena_grow((a), (array), (capacity), (need), sizeof **(array), (err))
DSC_API void dsc_arena_reset(dsc_arena *a); // keeps the memory
DSC_API void dsc_arena_fini(dsc_arena *a);  // frees it

#ifdef __cplusplus
}
#endif

#endif

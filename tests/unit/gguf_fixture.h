// SPDX-License-Identifier: Apache-2.0
// Builds GGUF files byte by byte.
#ifndef DSC_TESTS_GGUF_FIXTURE_H
#define DSC_TESTS_GGUF_FIXTURE_H

#include "tests/scratch.h"

#include "base/memory.h"
#include "traces/files/gguf.h"

#include <stdint.h>

typedef struct gguf_file {
    dsc_buffer b;
    uint64_t tensors, values;
} gguf_file;

static inline void put_bytes(gguf_file *f, const void *bytes, size_t n)
{
    assert_int_equal(dsc_buffer_append(&f->b, bytes, n, NULL), DSC_OK);
}

static inline void put_number(gguf_file *f, uint64_t n, size_t bytes)
{
    uint8_t le[8];
    for (size_t i = 0; i < 8; i++)
        le[i] = (uint8_t)(n >> 8 * i);
    put_bytes(f, le, bytes);
}

static inline void put_word(gguf_file *f, const char *s)
{
    put_number(f, strlen(s), 8);
    put_bytes(f, s, strlen(s));
}

// The counts are filled in by gguf_write.
static inline gguf_file gguf_begin(uint32_t version)
{
    gguf_file f = {0};
    put_bytes(&f, "GGUF", 4);
    put_number(&f, version, 4);
    put_number(&f, 0, 8);
    put_number(&f, 0, 8);
    return f;
}

static inline void put_key(gguf_file *f, const char *key, dsc_gguf_kind kind)
{
    put_word(f, key);
    put_number(f, kind, 4);
    f->values++;
}

static inline void put_u32(gguf_file *f, const char *key, uint32_t n)
{
    put_key(f, key, DSC_GGUF_U32);
    put_number(f, n, 4);
}

static inline void put_string(gguf_file *f, const char *key, const char *value)
{
    put_key(f, key, DSC_GGUF_STRING);
    put_word(f, value);
}

static inline void put_array(gguf_file *f, const char *key, dsc_gguf_kind kind, uint64_t count)
{
    put_key(f, key, DSC_GGUF_ARRAY);
    put_number(f, kind, 4);
    put_number(f, count, 8);
}

static inline void put_tensor(gguf_file *f, const char *name, int rank, const uint64_t *sizes,
                              uint32_t type, uint64_t offset)
{
    put_word(f, name);
    put_number(f, (uint64_t)rank, 4);
    for (int i = 0; i < rank; i++)
        put_number(f, sizes[i], 8);
    put_number(f, type, 4);
    put_number(f, offset, 8);
    f->tensors++;
}

// Pads to `alignment`, appends `data` bytes of 1, 2, 3, ... and writes the file.
static inline const char *gguf_write(gguf_file *f, size_t alignment, size_t data)
{
    const char *path = in_scratch("a.gguf");
    while (f->b.length % alignment)
        put_number(f, 0, 1);
    for (size_t i = 1; i <= data; i++)
        put_number(f, i, 1);
    for (int i = 0; i < 8; i++) {
        f->b.data[8 + i] = (char)(f->tensors >> 8 * i);
        f->b.data[16 + i] = (char)(f->values >> 8 * i);
    }
    put_file(path, f->b.data, f->b.length);
    dsc_buffer_fini(&f->b);
    return path;
}

#endif

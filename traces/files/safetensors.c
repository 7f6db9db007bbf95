// SPDX-License-Identifier: Apache-2.0
// Reads safetensors files. Format: https://huggingface.co/docs/safetensors (format section). Unlike
// the reference library, it requires aligned data, because they are used in place.
#include "traces/files/safetensors.h"

#include "base/file.h"
#include "base/json_file.h"
#include "base/json_quick.h"
#include "base/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct dsc_safetensors {
    char *path;
    unsigned char *map;         // the whole file
    size_t bytes;               // its size
    size_t data;                // offset of the data: 8 + header length
    json_t *header;             // owns the tensors' names
    dsc_tensor *tensor;         // [count], in file order, without padding
    const dsc_tensor **by_name; // [count], sorted
    size_t count;
};

enum { QUICK_VALUES = 1 << 16 }; // a header with more values goes to Jansson at once

// The data pointer of empty tensors: valid and aligned for every type.
static const alignas(64) unsigned char nothing[64];

static int bad(const dsc_safetensors *s, const char *tensor, dsc_error *err, const char *format,
               ...) DSC_PRINTF(4, 5);

static int bad(const dsc_safetensors *s, const char *tensor, dsc_error *err, const char *format,
               ...)
{
    char detail[400];
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    return dsc_fail(err, DSC_EINPUT, "%s: tensor '%.100s': %s", s->path, tensor, detail);
}

static int parse_header(dsc_safetensors *s, dsc_error *err)
{
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--)
        length = length << 8 | s->map[i];
    if (length > DSC_SAFETENSORS_HEADER_MAX)
        return dsc_fail(err, DSC_EINPUT,
                        "%s: header of %" PRIu64 " bytes (bytes 0-7); the limit is %d", s->path,
                        length, DSC_SAFETENSORS_HEADER_MAX);
    if (length > s->bytes - 8)
        return dsc_fail(err, DSC_EINPUT,
                        "%s: truncated: header of %" PRIu64 " bytes in a file of %zu bytes",
                        s->path, length, s->bytes);
    if (length < 2 || s->map[8] != '{')
        return dsc_fail(err, DSC_EINPUT, "%s: the header is not a JSON object (byte 8)", s->path);
    const char *text = (const char *)s->map + 8;
    s->header = dsc_json_quick(text, (size_t)length, QUICK_VALUES); // saves 0.1 ms per shard
    s->data = 8 + (size_t)length;
    if (s->header)
        return DSC_OK;
    int rc =
        dsc_json_parse(&s->header, text, (size_t)length, 0, "the header is not valid JSON", err);
    return rc == DSC_EINPUT ? dsc_error_prefix(err, rc, "%s", s->path) : rc;
}

// "__metadata__" must be an object of strings; they are not used.
static int check_metadata(const dsc_safetensors *s, dsc_error *err)
{
    json_t *metadata = json_object_get(s->header, "__metadata__"), *value;
    const char *key;
    if (metadata && !json_is_object(metadata))
        return dsc_fail(err, DSC_EINPUT, "%s: header: __metadata__ must be an object", s->path);
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value))
            return dsc_fail(err, DSC_EINPUT, "%s: header: __metadata__ '%.100s' must be a string",
                            s->path, key);
    }
    return DSC_OK;
}

// Returns whether `value` is a JSON integer >= 0; a number with a point or an exponent is not.
static bool natural(const json_t *value, int64_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *out = json_integer_value(value);
    return true;
}

// Reads type and shape of one entry; *extent is the size in bytes that follows from them.
static int read_shape(const dsc_safetensors *s, const json_t *entry, dsc_tensor *t, int64_t *extent,
                      dsc_error *err)
{
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    if (!dtype || strlen(dtype) != json_string_length(json_object_get(entry, "dtype")))
        return bad(s, t->name, err, "dtype is missing or not a string");
    t->dtype = (dsc_dtype)0;
    while (dsc_dtype_bytes(t->dtype) && strcmp(dtype, dsc_dtype_name(t->dtype)) != 0)
        t->dtype++;
    if (!dsc_dtype_bytes(t->dtype))
        return bad(s, t->name, err, "unknown dtype '%.20s'", dtype);
    const json_t *shape = json_object_get(entry, "shape");
    if (!json_is_array(shape))
        return bad(s, t->name, err, "shape is missing or not an array");
    if (json_array_size(shape) > DSC_MAX_RANK)
        return bad(s, t->name, err, "rank %zu; the limit is %d", json_array_size(shape),
                   DSC_MAX_RANK);
    t->rank = (int)json_array_size(shape);
    t->count = 1;
    bool overflow = false;
    for (int i = 0; i < t->rank; i++) {
        if (!natural(json_array_get(shape, (size_t)i), &t->shape[i]))
            return bad(s, t->name, err, "shape[%d] is not a non-negative integer", i);
        overflow |= __builtin_mul_overflow(t->count, t->shape[i], &t->count);
    }
    if (overflow || __builtin_mul_overflow(t->count, (int64_t)dsc_dtype_bytes(t->dtype), extent))
        return bad(s, t->name, err, "shape x dtype overflows");
    return DSC_OK;
}

static int read_entry(const dsc_safetensors *s, const json_t *entry, dsc_tensor *t, dsc_error *err)
{
    int64_t extent = 0, begin, end;
    if (!json_is_object(entry))
        return bad(s, t->name, err, "its header entry must be an object");
    int rc = read_shape(s, entry, t, &extent, err);
    if (rc)
        return rc;
    const json_t *offsets = json_object_get(entry, "data_offsets");
    if (!json_is_array(offsets) || json_array_size(offsets) != 2 ||
        !natural(json_array_get(offsets, 0), &begin) || !natural(json_array_get(offsets, 1), &end))
        return bad(s, t->name, err, "data_offsets is not a pair of non-negative integers");
    if (begin > end)
        return bad(s, t->name, err, "data_offsets %" PRId64 " and %" PRId64 " run backwards", begin,
                   end);
    if ((uint64_t)end > s->bytes - s->data)
        return bad(s, t->name, err, "ends at byte %" PRIu64 ", but the file has %zu (truncated?)",
                   s->data + (uint64_t)end, s->bytes);
    t->begin = s->data + (uint64_t)begin;
    t->end = s->data + (uint64_t)end;
    if (end - begin != extent)
        return bad(s, t->name, err,
                   "bytes %" PRIu64 "-%" PRIu64 " are %" PRId64 "; its shape requires %" PRId64,
                   t->begin, t->end, end - begin, extent);
    if (extent && t->begin % dsc_dtype_bytes(t->dtype))
        return bad(s, t->name, err, "byte %" PRIu64 " is not aligned for %s", t->begin,
                   dsc_dtype_name(t->dtype));
    t->data = extent ? s->map + t->begin : nothing;
    return DSC_OK;
}

// File order. An empty tensor comes before one that begins at the same byte; several empty ones are
// ordered by name.
static int by_place(const void *pa, const void *pb)
{
    const dsc_tensor *a = pa, *b = pb;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end)
        return a->end < b->end ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int by_name(const void *pa, const void *pb)
{
    const dsc_tensor *const *a = pa, *const *b = pb;
    return strcmp((*a)->name, (*b)->name);
}

// The extents must tile the data: no hole, no overlap, nothing after the last.
static int check_extents(const dsc_safetensors *s, dsc_error *err)
{
    uint64_t at = s->data;
    for (size_t i = 0; i < s->count; i++) {
        const dsc_tensor *t = &s->tensor[i];
        if (t->begin > at)
            return bad(s, t->name, err, "a hole before it: bytes %" PRIu64 "-%" PRIu64, at,
                       t->begin);
        if (t->begin < at)
            return bad(s, t->name, err,
                       "begins at byte %" PRIu64 ": overlap with '%.100s', which ends at %" PRIu64,
                       t->begin, s->tensor[i - 1].name, at);
        at = t->end;
    }
    if (at != s->bytes)
        return dsc_fail(err, DSC_EINPUT,
                        "%s: the tensors end at byte %" PRIu64 ", but the file has %zu", s->path,
                        at, s->bytes);
    return DSC_OK;
}

static int read_tensors(dsc_safetensors *s, dsc_error *err)
{
    size_t entries = json_object_size(s->header);
    int rc = dsc_new(&s->tensor, entries, err);
    if (rc)
        return rc;
    const char *name;
    json_t *entry;
    json_object_foreach(s->header, name, entry)
    {
        if (!strcmp(name, "__metadata__"))
            continue;
        s->tensor[s->count].name = name;
        rc = read_entry(s, entry, &s->tensor[s->count], err);
        if (rc)
            return rc;
        s->count++;
    }
    qsort(s->tensor, s->count, sizeof *s->tensor, by_place);
    rc = check_extents(s, err);
    if (!rc)
        rc = dsc_new(&s->by_name, entries, err);
    if (rc)
        return rc;
    size_t kept = 0;
    for (size_t i = 0; i < s->count; i++)
        if (strncmp(s->tensor[i].name, DSC_SAFETENSORS_PAD, strlen(DSC_SAFETENSORS_PAD)) != 0)
            s->tensor[kept++] = s->tensor[i];
    s->count = kept;
    for (size_t i = 0; i < s->count; i++)
        s->by_name[i] = &s->tensor[i];
    qsort(s->by_name, s->count, sizeof *s->by_name, by_name);
    return DSC_OK;
}

int dsc_safetensors_open(dsc_safetensors **out, const char *path, dsc_error *err)
{
    dsc_safetensors *s;
    void *map = NULL;
    *out = NULL;
    int rc = dsc_new(&s, 1, err);
    if (rc)
        return rc;
    rc = dsc_strndup(&s->path, path, strlen(path), err);
    if (!rc)
        rc = dsc_map_file(&map, &s->bytes, s->path, 8, "a safetensors file", err);
    s->map = map;
    if (!rc)
        rc = parse_header(s, err);
    if (!rc)
        rc = check_metadata(s, err);
    if (!rc)
        rc = read_tensors(s, err);
    if (rc)
        dsc_safetensors_close(s);
    else
        *out = s;
    return rc;
}

void dsc_safetensors_close(dsc_safetensors *s)
{
    if (!s)
        return;
    if (s->map)
        munmap(s->map, s->bytes);
    json_decref(s->header);
    free(s->by_name);
    free(s->tensor);
    free(s->path);
    free(s);
}

size_t dsc_safetensors_count(const dsc_safetensors *s)
{
    return s->count;
}

const dsc_tensor *dsc_safetensors_at(const dsc_safetensors *s, size_t i)
{
    return i < s->count ? &s->tensor[i] : NULL;
}

const dsc_tensor *dsc_safetensors_find(const dsc_safetensors *s, const char *name)
{
    const dsc_tensor key = {.name = name}, *k = &key;
    const dsc_tensor **hit = bsearch(&k, s->by_name, s->count, sizeof *s->by_name, by_name);
    return hit ? *hit : NULL;
}

uint64_t dsc_safetensors_bytes(const dsc_safetensors *s)
{
    return s->bytes;
}

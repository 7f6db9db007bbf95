// SPDX-License-Identifier: Apache-2.0
// Reads GGUF files. Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Every length
// and offset is checked against the file before it is used.
#include "traces/files/gguf.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/utf8.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct dsc_gguf {
    char *path;
    const uint8_t *map;
    size_t bytes;
    dsc_buffer keys, names; // of the metadata and of the tensors, each with a NUL
    dsc_gguf_value *value;
    const dsc_gguf_value **by_key; // [values], sorted
    dsc_gguf_tensor *tensor;       // [tensors], in the order of their places
    const dsc_gguf_tensor **by_name;
    size_t values, tensors;
};

// What is read from; `at` never passes `end`.
typedef struct cursor {
    const dsc_gguf *file;
    const uint8_t *at, *end;
} cursor;

enum {
    LONGEST_NAME = 65535, // the limit of the format for keys
    LEAST_VALUE = 13,     // bytes of a key's length, a type and a value
    LEAST_TENSOR = 24,    // bytes of a name's length, a rank, a type and an offset
    ALIGNMENT = 32,       // without general.alignment
    LARGEST_ALIGNMENT = 1 << 20,
};

static const struct {
    const char *name;
    int64_t numbers, bytes; // of a block
} types[] = {
    [0] = {"F32", 1, 4},         [1] = {"F16", 1, 2},         [2] = {"Q4_0", 32, 18},
    [3] = {"Q4_1", 32, 20},      [6] = {"Q5_0", 32, 22},      [7] = {"Q5_1", 32, 24},
    [8] = {"Q8_0", 32, 34},      [9] = {"Q8_1", 32, 40},      [10] = {"Q2_K", 256, 84},
    [11] = {"Q3_K", 256, 110},   [12] = {"Q4_K", 256, 144},   [13] = {"Q5_K", 256, 176},
    [14] = {"Q6_K", 256, 210},   [15] = {"Q8_K", 256, 292},   [16] = {"IQ2_XXS", 256, 66},
    [17] = {"IQ2_XS", 256, 74},  [18] = {"IQ3_XXS", 256, 98}, [19] = {"IQ1_S", 256, 50},
    [20] = {"IQ4_NL", 32, 18},   [21] = {"IQ3_S", 256, 110},  [22] = {"IQ2_S", 256, 82},
    [23] = {"IQ4_XS", 256, 136}, [24] = {"I8", 1, 1},         [25] = {"I16", 1, 2},
    [26] = {"I32", 1, 4},        [27] = {"I64", 1, 8},        [28] = {"F64", 1, 8},
    [29] = {"IQ1_M", 256, 56},   [30] = {"BF16", 1, 2},       [34] = {"TQ1_0", 256, 54},
    [35] = {"TQ2_0", 256, 66},   [39] = {"MXFP4", 32, 17},    [40] = {"NVFP4", 64, 36},
};
enum { TYPES = sizeof types / sizeof *types };

static const uint8_t kind_bytes[DSC_GGUF_KINDS] = {
    [DSC_GGUF_U8] = 1,  [DSC_GGUF_I8] = 1,  [DSC_GGUF_U16] = 2, [DSC_GGUF_I16] = 2,
    [DSC_GGUF_U32] = 4, [DSC_GGUF_I32] = 4, [DSC_GGUF_F32] = 4, [DSC_GGUF_BOOL] = 1,
    [DSC_GGUF_U64] = 8, [DSC_GGUF_I64] = 8, [DSC_GGUF_F64] = 8,
};

const char *dsc_ggml_type_name(int type, int64_t *numbers, int64_t *bytes)
{
    if (type < 0 || type >= TYPES || !types[type].name)
        return NULL;
    *numbers = types[type].numbers;
    *bytes = types[type].bytes;
    return types[type].name;
}

bool dsc_gguf_is(const char *path)
{
    char magic[4];
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a FIFO must not block
    bool is = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && read(fd, magic, 4) == 4 &&
              memcmp(magic, "GGUF", 4) == 0;
    if (fd >= 0)
        close(fd);
    return is;
}

// --- numbers -----------------------------------------------------------------------------------

static uint64_t little(const uint8_t *at, size_t bytes)
{
    uint64_t n = 0;
    while (bytes-- > 0)
        n = n << 8 | at[bytes];
    return n;
}

static size_t left(const cursor *c)
{
    return (size_t)(c->end - c->at);
}

static int truncated(const cursor *c, const char *what, dsc_error *err)
{
    return dsc_fail(err, DSC_EINPUT,
                    "truncated at byte %zu of %zu: %s goes beyond the end of the file",
                    (size_t)(c->at - c->file->map), c->file->bytes, what);
}

static int take(cursor *c, size_t bytes, uint64_t *out, const char *what, dsc_error *err)
{
    if (left(c) < bytes)
        return truncated(c, what, err);
    *out = little(c->at, bytes);
    c->at += bytes;
    return DSC_OK;
}

// Reads a length and as many bytes, which stay where they are.
static int take_text(cursor *c, dsc_gguf_text *out, const char *what, dsc_error *err)
{
    uint64_t length = 0;
    int rc = take(c, 8, &length, what, err);
    if (rc)
        return rc;
    if (length > left(c))
        return truncated(c, what, err);
    *out = (dsc_gguf_text){(const char *)c->at, (size_t)length};
    c->at += length;
    return DSC_OK;
}

// Reads a key or the name of a tensor into `names`; *out is its offset there.
static int take_name(cursor *c, dsc_buffer *names, const char *what, size_t *out, dsc_error *err)
{
    dsc_gguf_text name;
    const size_t at = (size_t)(c->at - c->file->map);
    int rc = take_text(c, &name, what, err);
    if (rc)
        return rc;
    if (!name.length || name.length > LONGEST_NAME)
        return dsc_fail(err, DSC_EINPUT, "byte %zu: %s of %zu bytes; it must have 1 to %d", at,
                        what, name.length, LONGEST_NAME);
    if (memchr(name.data, 0, name.length) || dsc_bad_utf8(name.data, (int64_t)name.length) >= 0)
        return dsc_fail(err, DSC_EINPUT, "byte %zu: %s is not a text in UTF-8", at, what);
    *out = names->length;
    rc = dsc_buffer_append(names, name.data, name.length, err);
    return rc ? rc : dsc_buffer_append(names, "", 1, err);
}

// --- metadata ----------------------------------------------------------------------------------

static int skip_strings(cursor *c, dsc_gguf_value *v, dsc_error *err)
{
    uint64_t *string;
    dsc_gguf_text text;
    if (v->count > left(c) / 8)
        return truncated(c, "an array of strings", err);
    int rc = dsc_new(&string, (size_t)v->count, err);
    v->string = string;
    for (uint64_t i = 0; i < v->count && !rc; i++) {
        string[i] = (uint64_t)(c->at - v->data);
        rc = take_text(c, &text, "a string", err);
    }
    return rc;
}

// Skips the elements of an array of arrays, whose contents nothing needs.
static int skip_arrays(cursor *c, uint64_t count, int depth, dsc_error *err)
{
    int rc = DSC_OK;
    if (depth > DSC_GGUF_NESTING)
        return dsc_fail(err, DSC_EINPUT, "arrays within arrays; at most %d levels are read",
                        DSC_GGUF_NESTING);
    if (count > left(c) / 12) // bytes of a type and a count
        return truncated(c, "an array of arrays", err);
    for (uint64_t i = 0; i < count && !rc; i++) {
        uint64_t kind = 0, n = 0;
        rc = take(c, 4, &kind, "the type of an array", err);
        if (!rc)
            rc = take(c, 8, &n, "the length of an array", err);
        if (rc)
            break;
        if (kind >= DSC_GGUF_KINDS)
            return dsc_fail(err, DSC_EINPUT, "unknown type %" PRIu64, kind);
        if (kind == DSC_GGUF_ARRAY) {
            rc = skip_arrays(c, n, depth + 1, err);
        } else if (kind == DSC_GGUF_STRING) {
            dsc_gguf_text text;
            if (n > left(c) / 8)
                return truncated(c, "an array of strings", err);
            for (uint64_t j = 0; j < n && !rc; j++)
                rc = take_text(c, &text, "a string", err);
        } else if (n > left(c) / kind_bytes[kind]) {
            return truncated(c, "an array", err);
        } else {
            c->at += n * kind_bytes[kind];
        }
    }
    return rc;
}

static int read_elements(cursor *c, dsc_gguf_value *v, dsc_error *err)
{
    v->data = c->at;
    if (v->kind == DSC_GGUF_ARRAY)
        return skip_arrays(c, v->count, 1, err);
    if (v->kind == DSC_GGUF_STRING)
        return skip_strings(c, v, err);
    const size_t bytes = kind_bytes[v->kind];
    if (v->count > left(c) / bytes)
        return truncated(c, v->array ? "an array" : "a value", err);
    c->at += v->count * bytes;
    for (uint64_t i = 0; v->kind == DSC_GGUF_BOOL && i < v->count; i++)
        if (v->data[i] > 1)
            return dsc_fail(err, DSC_EINPUT, "a truth value is %d; 0 or 1 expected", v->data[i]);
    return DSC_OK;
}

static int read_value(cursor *c, dsc_gguf_value *v, dsc_error *err)
{
    uint64_t kind = 0;
    int rc = take(c, 4, &kind, "the type of a value", err);
    v->array = kind == DSC_GGUF_ARRAY;
    v->count = 1;
    if (!rc && v->array) {
        rc = take(c, 4, &kind, "the type of an array", err);
        if (!rc)
            rc = take(c, 8, &v->count, "the length of an array", err);
    }
    if (rc)
        return rc;
    if (kind >= DSC_GGUF_KINDS)
        return dsc_fail(err, DSC_EINPUT, "unknown type %" PRIu64, kind);
    v->kind = (dsc_gguf_kind)kind;
    rc = read_elements(c, v, err);
    v->end = c->at;
    return rc;
}

static int by_key(const void *pa, const void *pb)
{
    const dsc_gguf_value *const *a = pa, *const *b = pb;
    return strcmp((*a)->key, (*b)->key);
}

static int sort_values(dsc_gguf *g, dsc_error *err)
{
    int rc = dsc_new(&g->by_key, g->values, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < g->values; i++)
        g->by_key[i] = &g->value[i];
    qsort(g->by_key, g->values, sizeof *g->by_key, by_key);
    for (size_t i = 1; i < g->values; i++)
        if (strcmp(g->by_key[i - 1]->key, g->by_key[i]->key) == 0)
            return dsc_fail(err, DSC_EINPUT, "the key '%.100s' is there twice", g->by_key[i]->key);
    return DSC_OK;
}

// Keys are offsets into g->keys until all have been read, because it moves while it grows.
static int read_values(dsc_gguf *g, cursor *c, uint64_t count, dsc_error *err)
{
    size_t *name = NULL;
    if (count > left(c) / LEAST_VALUE)
        return dsc_fail(err, DSC_EINPUT,
                        "%" PRIu64 " metadata entries do not fit into %zu bytes (truncated?)",
                        count, g->bytes);
    int rc = dsc_new(&g->value, (size_t)count, err);
    if (!rc)
        rc = dsc_new(&name, (size_t)count, err);
    for (; g->values < count && !rc; g->values++) {
        rc = take_name(c, &g->keys, "a metadata key", &name[g->values], err);
        if (!rc && (rc = read_value(c, &g->value[g->values], err)) == DSC_EINPUT)
            dsc_error_prefix(err, rc, "metadata key '%.100s'", g->keys.data + name[g->values]);
    }
    for (size_t i = 0; i < g->values && !rc; i++)
        g->value[i].key = g->keys.data + name[i];
    free(name);
    return rc ? rc : sort_values(g, err);
}

// --- tensors -----------------------------------------------------------------------------------

static int bad(const dsc_gguf_tensor *t, dsc_error *err, const char *format, ...) DSC_PRINTF(3, 4);

static int bad(const dsc_gguf_tensor *t, dsc_error *err, const char *format, ...)
{
    char detail[400];
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    return dsc_fail(err, DSC_EINPUT, "tensor '%.100s': %s", t->name, detail);
}

// Reads what follows the name. t->begin is the offset into the data, t->end the number of bytes.
static int read_info(cursor *c, dsc_gguf_tensor *t, dsc_error *err)
{
    static const char what[] = "the description of a tensor";
    uint64_t rank = 0, size = 0, type = 0;
    int64_t numbers = 1, bytes = 0;
    int rc = take(c, 4, &rank, what, err);
    if (!rc && (rank < 1 || rank > DSC_GGUF_RANK))
        return bad(t, err, "%" PRIu64 " dimensions; 1 to %d expected", rank, DSC_GGUF_RANK);
    t->rank = (int)rank;
    t->count = 1;
    for (int i = t->rank - 1; i >= 0 && !rc; i--) {
        rc = take(c, 8, &size, what, err);
        if (!rc && (size > INT64_MAX || __builtin_mul_overflow(t->count, (int64_t)size, &t->count)))
            return bad(t, err, "the product of its dimensions overflows");
        t->shape[i] = (int64_t)size;
    }
    if (!rc)
        rc = take(c, 4, &type, what, err);
    if (!rc)
        rc = take(c, 8, &t->begin, what, err);
    if (rc)
        return rc;
    t->type = type > INT32_MAX ? INT32_MAX : (int)type;
    const char *name = dsc_ggml_type_name(t->type, &numbers, &bytes);
    const int64_t row = t->shape[t->rank - 1];
    if (name && row % numbers)
        return bad(t, err, "a row of %" PRId64 " numbers is no multiple of a block of %s: %" PRId64,
                   row, name, numbers);
    int64_t extent = 0;
    if (__builtin_mul_overflow(t->count / numbers, bytes, &extent))
        return bad(t, err, "its size overflows");
    t->end = (uint64_t)extent;
    return DSC_OK;
}

static int by_place(const void *pa, const void *pb)
{
    const dsc_gguf_tensor *a = pa, *b = pb;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end)
        return a->end < b->end ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int by_name(const void *pa, const void *pb)
{
    const dsc_gguf_tensor *const *a = pa, *const *b = pb;
    return strcmp((*a)->name, (*b)->name);
}

static int place_tensors(dsc_gguf *g, uint64_t data, uint64_t alignment, dsc_error *err)
{
    if (g->tensors && data > g->bytes)
        return bad(&g->tensor[0], err,
                   "the data begin at byte %" PRIu64 " of a file of %zu bytes (truncated?)", data,
                   g->bytes);
    const uint64_t room = g->tensors ? g->bytes - data : 0;
    for (size_t i = 0; i < g->tensors; i++) {
        dsc_gguf_tensor *t = &g->tensor[i];
        if (t->begin % alignment)
            return bad(t, err, "offset %" PRIu64 " is not aligned to %" PRIu64 " bytes", t->begin,
                       alignment);
        if (t->begin > room || t->end > room - t->begin)
            return bad(t, err,
                       "%" PRIu64 " bytes at offset %" PRIu64 " of %" PRIu64
                       " bytes of data go beyond the end of the file (truncated?)",
                       t->end, t->begin, room);
        t->begin += data;
        t->end += t->begin;
        t->data = g->map + t->begin;
    }
    qsort(g->tensor, g->tensors, sizeof *g->tensor, by_place);
    for (size_t i = 1; i < g->tensors; i++)
        if (g->tensor[i].begin < g->tensor[i - 1].end)
            return bad(&g->tensor[i], err,
                       "begins at byte %" PRIu64 ", within '%.100s', which ends at %" PRIu64,
                       g->tensor[i].begin, g->tensor[i - 1].name, g->tensor[i - 1].end);
    int rc = dsc_new(&g->by_name, g->tensors, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < g->tensors; i++)
        g->by_name[i] = &g->tensor[i];
    qsort(g->by_name, g->tensors, sizeof *g->by_name, by_name);
    for (size_t i = 1; i < g->tensors; i++)
        if (strcmp(g->by_name[i - 1]->name, g->by_name[i]->name) == 0)
            return bad(g->by_name[i], err, "a tensor of this name is there twice");
    return DSC_OK;
}

static int read_alignment(const dsc_gguf *g, uint64_t *out, dsc_error *err)
{
    const dsc_gguf_value *v = dsc_gguf_find(g, "general.alignment");
    int64_t n = ALIGNMENT;
    if (v && (v->array || !dsc_gguf_integer(v, 0, &n) || n < 1 || n > LARGEST_ALIGNMENT ||
              (n & (n - 1))))
        return dsc_fail(err, DSC_EINPUT, "general.alignment must be a power of two from 1 to %d",
                        LARGEST_ALIGNMENT);
    *out = (uint64_t)n;
    return DSC_OK;
}

static int read_tensors(dsc_gguf *g, cursor *c, uint64_t count, dsc_error *err)
{
    size_t *name = NULL;
    uint64_t alignment = 0;
    if (count > left(c) / LEAST_TENSOR)
        return dsc_fail(err, DSC_EINPUT,
                        "%" PRIu64 " tensors do not fit into %zu bytes (truncated?)", count,
                        g->bytes);
    int rc = read_alignment(g, &alignment, err);
    if (!rc)
        rc = dsc_new(&g->tensor, (size_t)count, err);
    if (!rc)
        rc = dsc_new(&name, (size_t)count, err);
    for (; g->tensors < count && !rc; g->tensors++) {
        dsc_gguf_tensor *t = &g->tensor[g->tensors];
        rc = take_name(c, &g->names, "the name of a tensor", &name[g->tensors], err);
        t->name = rc ? "" : g->names.data + name[g->tensors]; // for messages
        if (!rc)
            rc = read_info(c, t, err);
    }
    // g->names may have moved.
    for (size_t i = 0; i < g->tensors && !rc; i++)
        g->tensor[i].name = g->names.data + name[i];
    free(name);
    const uint64_t at = (uint64_t)(c->at - g->map);
    return rc ? rc : place_tensors(g, (at + alignment - 1) / alignment * alignment, alignment, err);
}

// --- the file ----------------------------------------------------------------------------------

static int check_version(const dsc_gguf *g, uint64_t version, dsc_error *err)
{
    if (memcmp(g->map, "GGUF", 4) != 0)
        return dsc_fail(err, DSC_EINPUT, "not a GGUF file: it does not begin with GGUF");
    if (version && !(version & 0xffff))
        return dsc_fail(err, DSC_EINPUT,
                        "a big-endian GGUF file; convert it with: gguf-convert-endian FILE "
                        "little");
    if (version < 2 || version > 3)
        return dsc_fail(err, DSC_EINPUT,
                        "GGUF version %" PRIu64 " is not supported; versions 2 and 3 are", version);
    return DSC_OK;
}

static int check_split(const dsc_gguf *g, dsc_error *err)
{
    const dsc_gguf_value *v = dsc_gguf_find(g, "split.count");
    int64_t n = 0;
    if (!v || v->array || !dsc_gguf_integer(v, 0, &n) || n < 2)
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT,
                    "one of %" PRId64 " parts of a model; join them first: llama-gguf-split "
                    "--merge FIRST-PART.gguf MODEL.gguf",
                    n);
}

static int read_file(dsc_gguf *g, dsc_error *err)
{
    cursor c = {g, g->map + 8, g->map + g->bytes};
    uint64_t tensors = 0, values = 0;
    int rc = check_version(g, little(g->map + 4, 4), err);
    if (!rc)
        rc = take(&c, 8, &tensors, "the number of tensors", err);
    if (!rc)
        rc = take(&c, 8, &values, "the number of metadata entries", err);
    if (!rc)
        rc = read_values(g, &c, values, err);
    if (!rc)
        rc = check_split(g, err);
    return rc ? rc : read_tensors(g, &c, tensors, err);
}

int dsc_gguf_open(dsc_gguf **out, const char *path, dsc_error *err)
{
    dsc_gguf *g;
    void *map = NULL;
    *out = NULL;
    int rc = dsc_new(&g, 1, err);
    if (rc)
        return rc;
    rc = dsc_strndup(&g->path, path, strlen(path), err);
    if (!rc)
        rc = dsc_map_file(&map, &g->bytes, path, 24, "a GGUF file", err);
    g->map = map;
    if (!rc && (rc = read_file(g, err)) == DSC_EINPUT)
        dsc_error_prefix(err, rc, "%s", path);
    if (rc)
        dsc_gguf_close(g);
    else
        *out = g;
    return rc;
}

void dsc_gguf_close(dsc_gguf *g)
{
    if (!g)
        return;
    if (g->map)
        munmap((void *)(uintptr_t)g->map, g->bytes);
    for (size_t i = 0; g->value && i < g->values; i++)
        free((void *)(uintptr_t)g->value[i].string);
    dsc_buffer_fini(&g->keys);
    dsc_buffer_fini(&g->names);
    free(g->by_key);
    free(g->by_name);
    free(g->value);
    free(g->tensor);
    free(g->path);
    free(g);
}

const char *dsc_gguf_path(const dsc_gguf *g)
{
    return g->path;
}

uint64_t dsc_gguf_bytes(const dsc_gguf *g)
{
    return g->bytes;
}

size_t dsc_gguf_values(const dsc_gguf *g)
{
    return g->values;
}

const dsc_gguf_value *dsc_gguf_value_at(const dsc_gguf *g, size_t i)
{
    return i < g->values ? &g->value[i] : NULL;
}

const dsc_gguf_value *dsc_gguf_find(const dsc_gguf *g, const char *key)
{
    const dsc_gguf_value wanted = {.key = key}, *w = &wanted;
    const dsc_gguf_value **hit = bsearch(&w, g->by_key, g->values, sizeof *g->by_key, by_key);
    return hit ? *hit : NULL;
}

size_t dsc_gguf_tensors(const dsc_gguf *g)
{
    return g->tensors;
}

const dsc_gguf_tensor *dsc_gguf_tensor_at(const dsc_gguf *g, size_t i)
{
    return i < g->tensors ? &g->tensor[i] : NULL;
}

const dsc_gguf_tensor *dsc_gguf_tensor_by_name(const dsc_gguf *g, size_t i)
{
    return i < g->tensors ? g->by_name[i] : NULL;
}

const dsc_gguf_tensor *dsc_gguf_tensor_find(const dsc_gguf *g, const char *name)
{
    const dsc_gguf_tensor wanted = {.name = name}, *w = &wanted;
    const dsc_gguf_tensor **hit = bsearch(&w, g->by_name, g->tensors, sizeof *g->by_name, by_name);
    return hit ? *hit : NULL;
}

void dsc_gguf_hash(const dsc_gguf *g, const char *prefix, bool others, char hex[DSC_SHA256_HEX])
{
    dsc_sha256 s;
    dsc_sha256_init(&s);
    for (size_t i = 0; i < g->values; i++) {
        const dsc_gguf_value *v = g->by_key[i];
        if ((strncmp(v->key, prefix, strlen(prefix)) != 0) != others)
            continue;
        dsc_sha256_update(&s, v->key, strlen(v->key) + 1);
        dsc_sha256_update(&s, v->data, (size_t)(v->end - v->data));
    }
    dsc_sha256_final(&s, hex);
}

// --- elements ----------------------------------------------------------------------------------

bool dsc_gguf_integer(const dsc_gguf_value *v, uint64_t i, int64_t *out)
{
    if (i >= v->count)
        return false;
    const size_t bytes = kind_bytes[v->kind];
    const uint64_t n = little(v->data + i * bytes, bytes);
    switch (v->kind) {
    case DSC_GGUF_U8:
    case DSC_GGUF_U16:
    case DSC_GGUF_U32:
    case DSC_GGUF_U64: *out = (int64_t)n; return n <= INT64_MAX;
    case DSC_GGUF_I8: *out = (int8_t)n; return true;
    case DSC_GGUF_I16: *out = (int16_t)n; return true;
    case DSC_GGUF_I32: *out = (int32_t)n; return true;
    case DSC_GGUF_I64: *out = (int64_t)n; return true;
    default: return false;
    }
}

bool dsc_gguf_real(const dsc_gguf_value *v, uint64_t i, double *out)
{
    int64_t n;
    if (i >= v->count)
        return false;
    if (v->kind == DSC_GGUF_F32) {
        float x;
        memcpy(&x, v->data + 4 * i, 4);
        *out = (double)x;
        return true;
    }
    if (v->kind == DSC_GGUF_F64) {
        memcpy(out, v->data + 8 * i, 8);
        return true;
    }
    const bool is = dsc_gguf_integer(v, i, &n);
    if (is)
        *out = (double)n;
    return is;
}

bool dsc_gguf_string(const dsc_gguf_value *v, uint64_t i, dsc_gguf_text *out)
{
    if (v->kind != DSC_GGUF_STRING || i >= v->count)
        return false;
    const uint8_t *at = v->data + v->string[i];
    *out = (dsc_gguf_text){(const char *)at + 8, (size_t)little(at, 8)};
    return true;
}

// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a few numbers each, in a folder of this process, and a device that is host memory.
#ifndef DSC_TESTS_LIVE_FIXTURE_H
#define DSC_TESTS_LIVE_FIXTURE_H

#include "live/model/weights.h"
#include "tests/scratch.h"

// --- a folder ----------------------------------------------------------------------------------

typedef struct fixture {
    char folder[64];
    double memory;   // bytes that the device has
    int64_t fills;   // arrays made of random numbers
    double limit[8]; // of the first of them
    int64_t held;    // arrays that have not been freed
} fixture;

static inline void write_bytes(const fixture *f, const char *name, const void *bytes, size_t n)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", f->folder, name);
    put_file(path, bytes, n);
}

static inline void write_text(const fixture *f, const char *name, const char *text)
{
    write_bytes(f, name, text, strlen(text));
}

static inline int setup_folder(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    strcpy(f->folder, "/tmp/dsc-live-XXXXXX");
    f->memory = 1e9;
    *state = f;
    return mkdtemp(f->folder) == NULL;
}

static inline int teardown_folder(void **state)
{
    fixture *f = *state;
    int rc = remove_tree(f->folder);
    free(f);
    return rc;
}

// --- tensors whose numbers are known by name and place -----------------------------------------

// A whole number in 1..251, exact in every dtype; neighbours differ.
static inline int number_at(const char *tensor, int64_t row, int64_t col)
{
    unsigned h = 5;
    for (; *tensor; tensor++)
        h = 131 * h + (unsigned char)*tensor;
    return 1 + (int)((h % 251 + 31 * (uint64_t)row + 7 * (uint64_t)col) % 251);
}

// The bits of a whole number in 1..2047.
static inline uint32_t bits_of_number(int v, dsc_dtype t)
{
    float x = (float)v;
    uint32_t word;
    memcpy(&word, &x, sizeof word);
    if (t == DSC_BF16)
        return word >> 16;
    int e = (int)(word >> 23) - 127;
    return t == DSC_F16 ? (uint32_t)(e + 15) << 10 | (word >> 13 & 1023) : word;
}

enum { MOST_TENSORS = 64 };

typedef struct tensor_list {
    dsc_tensor t[MOST_TENSORS];
    char name[MOST_TENSORS][100];
    size_t count;
} tensor_list;

// cols 0: a vector.
static inline void put(tensor_list *l, dsc_dtype t, const char *name, int64_t rows, int64_t cols)
{
    assert_true(l->count < MOST_TENSORS);
    size_t i = l->count++, size = dsc_dtype_bytes(t), n = (size_t)(rows * (cols ? cols : 1));
    unsigned char *data = malloc(n * size);
    assert_non_null(data);
    for (size_t k = 0; k < n; k++) {
        int64_t width = cols ? cols : 1, row = (int64_t)k / width;
        uint32_t bits = bits_of_number(number_at(name, row, (int64_t)k % width), t);
        memcpy(data + k * size, &bits, size < 4 ? size : 4);
    }
    snprintf(l->name[i], sizeof l->name[i], "%s", name);
    l->t[i] = (dsc_tensor){.name = l->name[i],
                           .dtype = t,
                           .rank = cols ? 2 : 1,
                           .shape = {rows, cols},
                           .count = (int64_t)n,
                           .data = data};
}

static inline dsc_tensor *tensor_named(tensor_list *l, const char *name)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->name[i], name) == 0)
            return &l->t[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

static inline void drop(tensor_list *l, const char *name)
{
    dsc_tensor *t = tensor_named(l, name);
    free((void *)t->data);
    size_t i = (size_t)(t - l->t), last = --l->count;
    l->t[i] = l->t[last];
    memmove(l->name[i], l->name[last], sizeof l->name[i]);
    l->t[i].name = l->name[i];
}

static inline void free_tensors(tensor_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        free((void *)l->t[i].data);
    l->count = 0;
}

// Tensors [first, end) as a file.
static inline void write_some(const fixture *f, const char *name, const tensor_list *l,
                              size_t first, size_t end)
{
    char path[200];
    dsc_error err = {0};
    snprintf(path, sizeof path, "%s/%s", f->folder, name);
    remove(path);
    assert_ok(dsc_safetensors_write(path, l->t + first, end - first, &err), err);
}

static inline void write_model(const fixture *f, const tensor_list *l)
{
    write_some(f, "model.safetensors", l, 0, l->count);
}

// --- the device --------------------------------------------------------------------------------

typedef struct host_device {
    live_backend b;
    fixture *f;
} host_device;

static inline int host_alloc(live_backend *b, void *out, size_t bytes, dsc_error *err)
{
    void *p = calloc(bytes ? bytes : 1, 1);
    memcpy(out, &p, sizeof p);
    ((host_device *)b)->f->held += p != NULL;
    return p ? DSC_OK : dsc_fail(err, DSC_ENOMEM, "host memory");
}

static inline void host_free(live_backend *b, void *p)
{
    ((host_device *)b)->f->held -= p != NULL;
    free(p);
}

static inline int host_upload(live_backend *b, void *to, const void *from, size_t bytes,
                              dsc_error *err)
{
    (void)b, (void)err;
    memcpy(to, from, bytes);
    return DSC_OK;
}

static inline int host_fill(live_backend *b, void *p, dsc_dtype t, int64_t count, uint64_t seed,
                            uint64_t stream, double limit, dsc_error *err)
{
    fixture *f = ((host_device *)b)->f;
    (void)seed, (void)err;
    assert_true(count > 0 && dsc_dtype_bytes(t) > 0 && (int64_t)stream >= f->fills);
    memset(p, 0x3c, (size_t)count * dsc_dtype_bytes(t));
    if (f->fills < 8)
        f->limit[f->fills] = limit;
    f->fills++;
    return DSC_OK;
}

static inline int host_available(live_backend *b, double *free_bytes, double *total, dsc_error *err)
{
    (void)err;
    *free_bytes = *total = ((host_device *)b)->f->memory;
    return DSC_OK;
}

static const live_backend_type host_type = {
    .name = "host",
    .memory.alloc = host_alloc,
    .memory.free = host_free,
    .memory.upload = host_upload,
    .memory.fill = host_fill,
    .memory.available = host_available,
};

static inline host_device host_new(fixture *f)
{
    return (host_device){{.type = &host_type, .device = "host", .threads = 1}, f};
}

#endif

// SPDX-License-Identifier: Apache-2.0
// The tensors of a GGUF file under the names of transformers. llama.cpp's converter stores the rows
// of a Llama's queries and keys in pairs (2 i, 2 i + 1), which its rotation rotates; transformers
// rotates the pairs (i, i + head / 2). The order of transformers is restored here.
#include "live/model/gguf.h"

#include "base/memory.h"
#include "live/model/dequantize.h"
#include "live/model/gguf_arch.h"

#include <stdlib.h>
#include <string.h>

// How a dsc_tensor is stored.
typedef struct origin {
    const dsc_gguf_tensor *stored;
    dsc_dtype dtype; // of the numbers that are made
    int64_t head;    // rows of a head whose pairs are put into order; 0: rows are as stored
    int64_t cols;    // numbers of a row
    size_t numbers;  // of a block, and its bytes
    size_t bytes;
} origin;

struct live_gguf {
    dsc_gguf *file;
    const live_gguf_arch *arch;
    dsc_tensor *tensor; // [count], in file order
    origin *origin;     // [count]
    char (*name)[LIVE_TENSOR_NAME];
    const dsc_tensor **by_name; // [count], sorted
    size_t count;
};

static int by_name(const void *pa, const void *pb)
{
    const dsc_tensor *const *a = pa, *const *b = pb;
    return strcmp((*a)->name, (*b)->name);
}

// F16 or BF16 if all matrices are stored so: rows of several tensors form one array on the device,
// which has one dtype.
static dsc_dtype common_dtype(const dsc_gguf *file)
{
    int type = -1;
    for (size_t i = 0; i < dsc_gguf_tensors(file); i++) {
        const dsc_gguf_tensor *t = dsc_gguf_tensor_at(file, i);
        if (t->rank < 2 || t->type == type)
            continue;
        if (type >= 0)
            return DSC_F32;
        type = t->type;
    }
    return type == DSC_GGML_F16 ? DSC_F16 : type == DSC_GGML_BF16 ? DSC_BF16 : DSC_F32;
}

static int check_type(const dsc_gguf *file, const dsc_gguf_tensor *t, dsc_error *err)
{
    char known[200];
    int64_t numbers, bytes;
    if (live_dequantizes(t->type))
        return DSC_OK;
    live_dequantize_names(known, sizeof known);
    const char *name = dsc_ggml_type_name(t->type, &numbers, &bytes);
    return dsc_fail(err, DSC_EINPUT,
                    "%s: tensor '%.100s' has type %s (number %d), which is not supported (%s are); "
                    "convert the file: llama-quantize --allow-requantize FILE OUT.gguf Q8_0",
                    dsc_gguf_path(file), t->name, name ? name : "unknown", t->type, known);
}

static int read_tensor(live_gguf *g, size_t i, dsc_dtype common, dsc_error *err)
{
    const dsc_gguf_tensor *t = dsc_gguf_tensor_at(g->file, i);
    dsc_tensor *out = &g->tensor[i];
    origin *o = &g->origin[i];
    int64_t numbers = 1, bytes = 1;
    int rc = check_type(g->file, t, err);
    if (rc)
        return rc;
    dsc_ggml_type_name(t->type, &numbers, &bytes);
    *o = (origin){.stored = t,
                  .cols = t->shape[t->rank - 1],
                  .numbers = (size_t)numbers,
                  .bytes = (size_t)bytes};
    live_gguf_name(g->name[i], g->arch, t->name);
    o->head = live_gguf_pairs(g->arch, g->file, t);
    if (o->head && t->rank == 1)
        o->cols = 1;
    *out = (dsc_tensor){.name = g->name[i],
                        .dtype = t->rank < 2 ? DSC_F32 : common,
                        .rank = t->rank,
                        .count = t->count,
                        .begin = t->begin};
    memcpy(out->shape, t->shape, sizeof t->shape);
    o->dtype = out->dtype;
    const uint64_t size = dsc_dtype_bytes(out->dtype);
    if ((uint64_t)t->count > (INT64_MAX - out->begin) / size)
        return dsc_fail(err, DSC_ENOMEM, "%s: tensor '%.100s' has too many numbers",
                        dsc_gguf_path(g->file), t->name);
    out->end = out->begin + (uint64_t)t->count * size;
    return DSC_OK;
}

static int read_tensors(live_gguf *g, dsc_error *err)
{
    const size_t count = dsc_gguf_tensors(g->file);
    const dsc_dtype common = common_dtype(g->file);
    int rc = dsc_new(&g->tensor, count, err);
    if (!rc)
        rc = dsc_new(&g->origin, count, err);
    if (!rc)
        rc = dsc_new(&g->name, count, err);
    if (!rc)
        rc = dsc_new(&g->by_name, count, err);
    for (; g->count < count && !rc; g->count++) {
        rc = read_tensor(g, g->count, common, err);
        g->by_name[g->count] = &g->tensor[g->count];
    }
    if (!rc)
        qsort(g->by_name, g->count, sizeof *g->by_name, by_name);
    return rc;
}

int live_gguf_open(live_gguf **out, const char *path, dsc_error *err)
{
    live_gguf *g;
    *out = NULL;
    int rc = dsc_new(&g, 1, err);
    if (rc)
        return rc;
    rc = dsc_gguf_open(&g->file, path, err);
    if (!rc)
        rc = live_gguf_arch_find(&g->arch, g->file, err);
    if (!rc)
        rc = read_tensors(g, err);
    if (rc)
        live_gguf_close(g);
    else
        *out = g;
    return rc;
}

void live_gguf_close(live_gguf *g)
{
    if (!g)
        return;
    dsc_gguf_close(g->file);
    free(g->tensor);
    free(g->origin);
    free(g->name);
    free(g->by_name);
    free(g);
}

const dsc_gguf *live_gguf_file(const live_gguf *g)
{
    return g->file;
}

size_t live_gguf_count(const live_gguf *g)
{
    return g->count;
}

const dsc_tensor *live_gguf_at(const live_gguf *g, size_t i)
{
    return &g->tensor[i];
}

const dsc_tensor *live_gguf_find(const live_gguf *g, const char *name)
{
    const dsc_tensor wanted = {.name = name}, *w = &wanted;
    const dsc_tensor **hit = bsearch(&w, g->by_name, g->count, sizeof *g->by_name, by_name);
    return hit ? *hit : NULL;
}

// The row of the file that is row `row` of transformers: within a head, i + head / 2 * s is stored
// as 2 i + s.
static int64_t stored_row(const origin *o, int64_t row)
{
    if (!o->head)
        return row;
    const int64_t within = row % o->head, half = o->head / 2;
    return row - within + within % half * 2 + within / half;
}

const void *live_gguf_source(const live_gguf *g, const dsc_tensor *t)
{
    return &g->origin[t - g->tensor];
}

void live_gguf_make(const void *source, uint64_t offset, size_t count, unsigned char *to)
{
    const origin *o = source;
    const size_t size = dsc_dtype_bytes(o->dtype);
    int64_t at = (int64_t)(offset / size);
    for (const int64_t end = at + (int64_t)(count / size); at < end;) {
        const int64_t row = at / o->cols, col = at % o->cols;
        const int64_t n = o->cols - col < end - at ? o->cols - col : end - at;
        const size_t block = (size_t)(stored_row(o, row) * o->cols + col) / o->numbers;
        const uint8_t *from = o->stored->data + block * o->bytes;
        if (o->dtype != DSC_F32)
            memcpy(to, from, (size_t)n * size);
        else
            live_dequantize((float *)(void *)to, from, (size_t)n / o->numbers, o->stored->type);
        to += (size_t)n * size;
        at += n;
    }
}

int live_gguf_config(json_t **out, const live_gguf *g, dsc_error *err)
{
    const dsc_dtype dtype = common_dtype(g->file);
    return live_gguf_arch_config(out, g->arch, g->file,
                                 dtype == DSC_F16    ? "float16"
                                 : dtype == DSC_BF16 ? "bfloat16"
                                                     : "float32",
                                 err);
}

int live_gguf_complete(live_config *c, const live_gguf *g, dsc_error *err)
{
    return live_gguf_arch_complete(c, g->arch, g->file, err);
}

void live_gguf_config_sha256(const char *path, char hex[DSC_SHA256_HEX])
{
    dsc_gguf *file;
    *hex = '\0';
    if (dsc_gguf_open(&file, path, NULL) == DSC_OK)
        dsc_gguf_hash(file, "tokenizer.", true, hex);
    dsc_gguf_close(file);
}

bool live_gguf_has_tokenizer(const char *path)
{
    dsc_gguf *file;
    const bool has = dsc_gguf_open(&file, path, NULL) == DSC_OK &&
                     dsc_gguf_find(file, "tokenizer.ggml.model") != NULL;
    dsc_gguf_close(file);
    return has;
}

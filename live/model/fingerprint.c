// SPDX-License-Identifier: Apache-2.0
// Fingerprints of weights: SHA-256 over names, dtypes, shapes and both ends of each tensor, or over
// the parameters of random weights.
#include "live/model/fingerprint.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { END = 4096 }; // bytes hashed at either end of a tensor

static int by_size(const void *pa, const void *pb)
{
    const uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;
    return a < b ? -1 : a > b;
}

static int by_name(const void *pa, const void *pb)
{
    const dsc_tensor *const *a = pa, *const *b = pb;
    return strcmp((*a)->name, (*b)->name);
}

static void add(dsc_sha256 *s, const char *name, const char *type, int64_t rank,
                const int64_t *shape, const unsigned char *data, size_t bytes)
{
    const size_t head = bytes <= 2 * END ? bytes : END;
    dsc_sha256_update(s, name, strlen(name) + 1); // with the NUL as terminator
    dsc_sha256_update(s, type, strlen(type) + 1);
    dsc_sha256_update(s, &rank, sizeof rank);
    dsc_sha256_update(s, shape, (size_t)rank * sizeof *shape);
    dsc_sha256_update(s, data, head);
    if (bytes > head)
        dsc_sha256_update(s, data + bytes - END, END);
}

static void add_tensor(dsc_sha256 *s, const dsc_tensor *t)
{
    add(s, t->name, dsc_dtype_name(t->dtype), t->rank, t->shape, t->data,
        (size_t)(t->end - t->begin));
}

// The tensors as they are stored, in the order of their names.
static void add_gguf(dsc_sha256 *s, const live_gguf *g)
{
    const dsc_gguf *file = live_gguf_file(g);
    for (size_t i = 0; i < dsc_gguf_tensors(file); i++) {
        const dsc_gguf_tensor *t = dsc_gguf_tensor_by_name(file, i);
        int64_t numbers, bytes;
        add(s, t->name, dsc_ggml_type_name(t->type, &numbers, &bytes), t->rank, t->shape, t->data,
            (size_t)(t->end - t->begin));
    }
}

// Fills arrays, which have room for them, with the tensors and sizes of all files.
static void list(const live_checkpoint *c, const dsc_tensor **tensor, uint64_t *size)
{
    size_t n = 0;
    for (size_t f = 0; f < live_checkpoint_shards(c); f++) {
        size[f] = live_checkpoint_bytes(c, f);
        for (size_t i = 0; i < live_checkpoint_count(c, f); i++)
            tensor[n++] = live_checkpoint_at(c, f, i);
    }
    qsort(size, live_checkpoint_shards(c), sizeof *size, by_size);
    qsort(tensor, n, sizeof *tensor, by_name); // no name is in two files
}

int live_fingerprint_files(const live_checkpoint *c, char hex[DSC_SHA256_HEX], dsc_error *err)
{
    const size_t files = live_checkpoint_shards(c);
    const dsc_tensor **tensor = NULL;
    uint64_t *size = NULL;
    size_t tensors = 0;
    for (size_t f = 0; f < files; f++)
        tensors += live_checkpoint_count(c, f);
    int rc = dsc_new(&tensor, tensors, err);
    if (!rc)
        rc = dsc_new(&size, files, err);
    if (!rc) {
        dsc_sha256 s;
        dsc_sha256_init(&s);
        list(c, tensor, size);
        dsc_sha256_update(&s, size, files * sizeof *size);
        if (live_checkpoint_gguf(c))
            add_gguf(&s, live_checkpoint_gguf(c));
        else
            for (size_t i = 0; i < tensors; i++)
                add_tensor(&s, tensor[i]);
        dsc_sha256_final(&s, hex);
    }
    free(tensor);
    free(size);
    return rc;
}

void live_fingerprint_random(const live_config *c, dsc_dtype dtype, uint64_t seed,
                             char hex[DSC_SHA256_HEX])
{
    char text[512];
    const int n =
        snprintf(text, sizeof text,
                 "random %" PRIu64 " %s family %d layers %" PRId64 " hidden %" PRId64
                 " feed_forward %" PRId64 " heads %" PRId64 " kv_heads %" PRId64 " head %" PRId64
                 " vocab %" PRId64 " positions %" PRId64 " activation %d tied %d biases %d%d%d "
                 "qk_norm %d",
                 seed, dsc_dtype_name(dtype), (int)c->family, c->layers, c->hidden, c->feed_forward,
                 c->heads, c->kv_heads, c->head, c->vocab, c->positions, (int)c->activation,
                 c->tied, c->qkv_bias, c->out_bias, c->feed_bias, c->qk_norm);
    dsc_sha256 s;
    dsc_sha256_init(&s);
    if (c->family == LIVE_EAGLE3)
        dsc_sha256_update(&s, &c->draft_vocab, sizeof c->draft_vocab);
    if (c->norm_before_residual)
        dsc_sha256_update(&s, "norm_before_residual", sizeof "norm_before_residual");
    bool alike = true; // all layers
    for (int64_t i = 0; i < c->layers; i++)
        alike &= c->layer[i] == 0;
    if (!alike)
        dsc_sha256_update(&s, c->layer, (size_t)c->layers);
    dsc_sha256_update(&s, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
    dsc_sha256_final(&s, hex);
}

void live_fingerprint_converted(dsc_dtype dtype, char hex[DSC_SHA256_HEX])
{
    const char *name = dsc_dtype_name(dtype);
    dsc_sha256 s;
    dsc_sha256_init(&s);
    dsc_sha256_update(&s, hex, strlen(hex));
    dsc_sha256_update(&s, name, strlen(name));
    dsc_sha256_final(&s, hex);
}

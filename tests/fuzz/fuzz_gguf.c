// SPDX-License-Identifier: Apache-2.0
// GGUF. Input: the file. It is read as a container, as a tokenizer and, where the engine is built,
// as a model.
#include "tests/fuzz/fuzz.h"
#include "traces/files/gguf.h"
#include "traces/tokenizer/gguf_config.h"
#include "traces/tokenizer/tokenizer.h"

#ifdef FUZZ_LIVE
#include "live/model/config.h"
#include "live/model/gguf.h"
#endif

#include <stdlib.h>

static void check_values(const dsc_gguf *g)
{
    for (size_t i = 0; i < dsc_gguf_values(g); i++) {
        const dsc_gguf_value *v = dsc_gguf_value_at(g, i);
        fuzz_require(dsc_gguf_find(g, v->key) == v, "a value is found by its key", NULL);
        for (uint64_t j = 0; j < v->count && v->kind != DSC_GGUF_ARRAY; j++) {
            int64_t n;
            double x;
            dsc_gguf_text s;
            if (dsc_gguf_integer(v, j, &n) || dsc_gguf_real(v, j, &x))
                continue;
            if (dsc_gguf_string(v, j, &s))
                fuzz_use(s.data, s.length);
        }
    }
}

static void check_tensors(const dsc_gguf *g, size_t size)
{
    for (size_t i = 0; i < dsc_gguf_tensors(g); i++) {
        const dsc_gguf_tensor *t = dsc_gguf_tensor_at(g, i);
        int64_t numbers, bytes;
        fuzz_require(t->begin <= t->end && t->end <= size, "the extent is in the file", NULL);
        fuzz_require(dsc_gguf_tensor_find(g, t->name) == t, "a tensor is found by its name", NULL);
        if (dsc_ggml_type_name(t->type, &numbers, &bytes))
            fuzz_require(t->end - t->begin == (uint64_t)(t->count / numbers * bytes),
                         "the extent is that of the shape", NULL);
        fuzz_use(t->data, (size_t)(t->end - t->begin));
    }
}

static void check_tokenizer(const char *path)
{
    static const char text[] = "Hello  world 123\n<|end|>";
    dsc_tokenizer *t;
    dsc_encoder *e;
    dsc_tokens ids = {0};
    json_t *config;
    dsc_error err = {0};
    int rc = dsc_tokenizer_load(&t, path, &err);
    if (rc) {
        fuzz_refused(rc, &err);
        return;
    }
    rc = dsc_gguf_tokenizer_config(&config, path, &err);
    fuzz_require(rc == DSC_OK, "a file with a tokenizer has its configuration", &err);
    json_decref(config);
    if (dsc_encoder_new(&e, t, &err) == DSC_OK) {
        rc = dsc_encode(e, text, sizeof text - 1, true, &ids, &err);
        if (rc)
            fuzz_refused(rc, &err);
        for (size_t i = 0; i < ids.count; i++)
            fuzz_require(ids.id[i] >= 0 && ids.id[i] < dsc_tokenizer_vocab_size(t),
                         "an id is in the vocabulary", NULL);
        dsc_encoder_free(e);
    }
    dsc_tokens_fini(&ids);
    dsc_tokenizer_free(t);
}

#ifdef FUZZ_LIVE
// Makes the numbers of small tensors.
static void check_model(const char *path)
{
    live_config c;
    live_gguf *g;
    dsc_error err = {0};
    int rc = live_config_read(&c, path, &err);
    if (rc)
        fuzz_refused(rc, &err);
    err = (dsc_error){0};
    rc = live_gguf_open(&g, path, &err);
    if (rc) {
        fuzz_refused(rc, &err);
        return;
    }
    for (size_t i = 0; i < live_gguf_count(g); i++) {
        const dsc_tensor *t = live_gguf_at(g, i);
        const size_t bytes = (size_t)(t->end - t->begin);
        unsigned char *out = bytes < 1 << 20 ? malloc(bytes ? bytes : 1) : NULL;
        if (out) {
            live_gguf_make(live_gguf_source(g, t), 0, bytes, out);
            fuzz_use(out, bytes);
        }
        free(out);
    }
    live_gguf_close(g);
}
#endif

FUZZ_TARGET(gguf)
{
    dsc_gguf *g;
    dsc_error err = {0};
    const char *path = fuzz_file("a.gguf", data, size);
    int rc = dsc_gguf_open(&g, path, &err);
    if (rc) {
        fuzz_refused(rc, &err);
        return 0;
    }
    check_values(g);
    check_tensors(g, size);
    dsc_gguf_close(g);
    check_tokenizer(path);
#ifdef FUZZ_LIVE
    check_model(path);
#endif
    return 0;
}

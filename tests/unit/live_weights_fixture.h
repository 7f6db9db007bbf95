// SPDX-License-Identifier: Apache-2.0
// A Llama checkpoint of known numbers, and assertions about where they were loaded.
#ifndef DSC_TESTS_LIVE_WEIGHTS_FIXTURE_H
#define DSC_TESTS_LIVE_WEIGHTS_FIXTURE_H

#include "tests/unit/live_fixture.h"

// --- making checkpoints ------------------------------------------------------------------------

enum { HIDDEN = 8, FEED = 12, HEADS = 4, KV = 2, HEAD = 6, VOCAB = 10, LAYERS = 2 };

static const char *const llama_config =
    "{\"model_type\": \"llama\", \"hidden_size\": 8, \"intermediate_size\": 12,"
    "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"num_key_value_heads\": 2,"
    "\"head_dim\": 6, \"vocab_size\": 10, \"torch_dtype\": \"float32\"}";

static inline void put_block(tensor_list *l, dsc_dtype t, const char *prefix, int layer, bool norm1)
{
    static const struct {
        const char *name;
        int rows, cols;
    } parts[] = {
        {"input_layernorm", HIDDEN, 0},
        {"self_attn.q_proj", HEADS * HEAD, HIDDEN},
        {"self_attn.k_proj", KV * HEAD, HIDDEN},
        {"self_attn.v_proj", KV * HEAD, HIDDEN},
        {"self_attn.o_proj", HIDDEN, HEADS * HEAD},
        {"post_attention_layernorm", HIDDEN, 0},
        {"mlp.gate_proj", FEED, HIDDEN},
        {"mlp.up_proj", FEED, HIDDEN},
        {"mlp.down_proj", HIDDEN, FEED},
    };
    char name[80];
    for (size_t i = norm1 ? 0 : 1; i < sizeof parts / sizeof *parts; i++) {
        snprintf(name, sizeof name, "%slayers.%d.%s.weight", prefix, layer, parts[i].name);
        put(l, t, name, parts[i].rows, parts[i].cols);
    }
}

static inline void put_llama(tensor_list *l, dsc_dtype t, const char *prefix)
{
    char name[80];
    snprintf(name, sizeof name, "%sembed_tokens.weight", prefix);
    put(l, t, name, VOCAB, HIDDEN);
    for (int i = 0; i < LAYERS; i++)
        put_block(l, t, prefix, i, true);
    snprintf(name, sizeof name, "%snorm.weight", prefix);
    put(l, t, name, HIDDEN, 0);
    put(l, t, "lm_head.weight", VOCAB, HIDDEN);
}

static inline live_weights *load_ok(host_device *d, char **unused)
{
    dsc_error err = {0};
    live_weights *w;
    assert_ok(live_weights_load(&w, d->f->folder, &d->b, unused, &err), err);
    assert_close(w->bytes, live_config_weight_bytes(&w->config, w->config.dtype), 0);
    return w;
}

static inline void assert_refused(fixture *f, int status, const char *says)
{
    dsc_error err = {0};
    live_weights *w;
    host_device d = host_new(f);
    int rc = live_weights_load(&w, f->folder, &d.b, NULL, &err);
    if (rc != status || !strstr(err.message, says))
        fail_msg("expected %d \"%s\", got %d: %s", status, says, rc, err.message);
    assert_null(w);
    assert_int_equal(f->held, 0);
}

// --- looking at what was loaded ----------------------------------------------------------------

// Row `row` of m is row `from` of the tensor (its column `from` when turned).
static inline void assert_row(const live_matrix *m, int64_t row, const char *tensor, int64_t from,
                              bool turned)
{
    assert_true(row < m->rows);
    for (int64_t c = 0; c < m->cols; c++) {
        uint32_t bits = 0;
        size_t size = dsc_dtype_bytes(m->dtype);
        memcpy(&bits, (const char *)m->data + (size_t)(row * m->cols + c) * size, size);
        int expected = turned ? number_at(tensor, c, from) : number_at(tensor, from, c);
        if (bits != bits_of_number(expected, m->dtype))
            fail_msg("%s: row %d, column %d", tensor, (int)row, (int)c);
    }
}

static inline void assert_rows(const live_matrix *m, int64_t row, int64_t rows, const char *tensor)
{
    for (int64_t i = 0; i < rows; i++)
        assert_row(m, row + i, tensor, i, false);
}

static inline void assert_turned(const live_matrix *m, const char *tensor)
{
    for (int64_t i = 0; i < m->rows; i++)
        assert_row(m, i, tensor, i, true);
}

static inline void assert_vector(const float *v, int64_t at, int64_t count, const char *tensor)
{
    assert_non_null(v);
    for (int64_t i = 0; i < count; i++)
        assert_close(v[at + i], number_at(tensor, i, 0), 0);
}

static inline void assert_size(const live_matrix *m, int64_t rows, int64_t cols, dsc_dtype t)
{
    assert_int_equal(m->rows, rows);
    assert_int_equal(m->cols, cols);
    assert_int_equal(m->dtype, t);
}

static inline void check_llama(const live_weights *w, dsc_dtype t, const char *prefix)
{
    char name[9][80];
    static const char *const parts[9] = {
        "input_layernorm",  "self_attn.q_proj", "self_attn.k_proj",
        "self_attn.v_proj", "self_attn.o_proj", "post_attention_layernorm",
        "mlp.gate_proj",    "mlp.up_proj",      "mlp.down_proj"};
    for (int i = 0; i < LAYERS; i++) {
        const live_layer *l = &w->layer[i];
        for (int k = 0; k < 9; k++)
            snprintf(name[k], sizeof name[k], "%slayers.%d.%s.weight", prefix, i, parts[k]);
        assert_size(&l->qkv, (HEADS + 2 * KV) * HEAD, HIDDEN, t);
        assert_vector(l->norm1, 0, HIDDEN, name[0]);
        assert_rows(&l->qkv, 0, HEADS * HEAD, name[1]);
        assert_rows(&l->qkv, HEADS * HEAD, KV * HEAD, name[2]);
        assert_rows(&l->qkv, (HEADS + KV) * HEAD, KV * HEAD, name[3]);
        assert_size(&l->out, HIDDEN, HEADS * HEAD, t);
        assert_rows(&l->out, 0, HIDDEN, name[4]);
        assert_vector(l->norm2, 0, HIDDEN, name[5]);
        assert_size(&l->up, 2 * FEED, HIDDEN, t);
        assert_rows(&l->up, 0, FEED, name[6]);
        assert_rows(&l->up, FEED, FEED, name[7]);
        assert_size(&l->down, HIDDEN, FEED, t);
        assert_rows(&l->down, 0, HIDDEN, name[8]);
        assert_null(l->qkv_bias);
        assert_null(l->norm1_bias);
    }
    assert_size(&w->embed, VOCAB, HIDDEN, t);
    assert_size(&w->head, VOCAB, HIDDEN, t);
    assert_int_equal(w->positions.rows, 0);
    assert_close(w->inv_freq[0], 1, 0);
}

static inline void set_bits(dsc_tensor *t, size_t i, uint32_t bits)
{
    size_t size = dsc_dtype_bytes(t->dtype);
    memcpy((char *)t->data + i * size, &bits, size);
}

#endif

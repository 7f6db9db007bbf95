// SPDX-License-Identifier: Apache-2.0
// GGUF files as models: the numbers of blocks equal those of gguf-py to the bit, and what the
// engine does not support is refused with what would help. tests/cross/test_fixtures.c compares
// logits.
#include "tests/unit/gguf_fixture.h"

#include "live/model/config.h"
#include "live/model/dequantize.h"
#include "live/model/gguf.h"

static const uint64_t matrix[] = {32, 4}, vector[] = {32};

static void numbers_are_those_of_gguf_py(void **state)
{
    (void)state;
    char path[1024];
    dsc_safetensors *s;
    dsc_error err = {0};
    int types = 0;
    assert_ok(dsc_safetensors_open(
                  &s, source_path("tests/oracle/gguf/blocks.safetensors", path, sizeof path), &err),
              err);
    for (int type = 0; type < 64; type++) {
        int64_t numbers, bytes;
        char name[40];
        if (!live_dequantizes(type))
            continue;
        const char *of = dsc_ggml_type_name(type, &numbers, &bytes);
        snprintf(name, sizeof name, "%s.blocks", of);
        const dsc_tensor *blocks = dsc_safetensors_find(s, name);
        snprintf(name, sizeof name, "%s.numbers", of);
        const dsc_tensor *want = dsc_safetensors_find(s, name);
        assert_true(blocks && want && want->count == blocks->count / bytes * numbers);
        float *got = malloc((size_t)want->count * sizeof *got);
        assert_non_null(got);
        live_dequantize(got, blocks->data, (size_t)(blocks->count / bytes), type);
        for (int64_t i = 0; i < want->count; i++)
            if (memcmp(&got[i], (const float *)want->data + i, sizeof *got) != 0)
                fail_msg("%s: number %ld is %a, not %a", of, (long)i, (double)got[i],
                         (double)((const float *)want->data)[i]);
        free(got);
        types++;
    }
    assert_int_equal(types, 11);
    dsc_safetensors_close(s);
}

// A model of one layer whose first matrix has type `type`.
static gguf_file model(const char *architecture, uint32_t type)
{
    gguf_file f = gguf_begin(3);
    char key[100];
    static const char *const keys[] = {"block_count",         "context_length",
                                       "embedding_length",    "attention.head_count",
                                       "feed_forward_length", "attention.layer_norm_rms_epsilon"};
    static const uint32_t values[] = {1, 64, 32, 2, 32, 1};
    put_string(&f, "general.architecture", architecture);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        snprintf(key, sizeof key, "%s.%s", architecture, keys[i]);
        put_u32(&f, key, values[i]);
    }
    put_tensor(&f, "token_embd.weight", 2, matrix, type, 0);
    put_tensor(&f, "output_norm.weight", 1, vector, DSC_GGML_F32, 512);
    return f;
}

static void refused(gguf_file *f, const char *message)
{
    live_config c;
    dsc_error err = {0};
    assert_int_equal(live_config_read(&c, gguf_write(f, 32, 640), &err), DSC_EINPUT);
    if (!strstr(err.message, message) || !strstr(err.message, "a.gguf"))
        fail_msg("'%s' lacks '%s'", err.message, message);
}

// Metadata comes before tensors.
static gguf_file with_key(const char *key, uint32_t n)
{
    gguf_file f = gguf_begin(3), rest = model("llama", DSC_GGML_F32);
    put_u32(&f, key, n);
    put_bytes(&f, rest.b.data + 24, rest.b.length - 24);
    f.values += rest.values;
    f.tensors = rest.tensors;
    dsc_buffer_fini(&rest.b);
    return f;
}

static void what_is_not_supported_is_refused(void **state)
{
    (void)state;
    gguf_file f = model("falcon", DSC_GGML_F32);
    refused(&f, "architecture 'falcon' is not supported (general.architecture); those of GGUF "
                "files that are: llama, qwen2, qwen3, gemma3, gpt2");
    f = model("llama", 20);
    refused(&f, "tensor 'token_embd.weight' has type IQ4_NL (number 20), which is not supported "
                "(F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, BF16 are); convert the "
                "file: llama-quantize --allow-requantize");
    f = model("llama", 77);
    refused(&f, "has type unknown (number 77)");
    f = model("gpt2", DSC_GGML_F32);
    refused(&f, "metadata key 'gpt2.attention.layer_norm_epsilon' is missing");
    f = with_key("llama.expert_count", 8);
    refused(&f, "'llama.expert_count' requests a mixture of experts");
    f = with_key("llama.rope.dimension_count", 8);
    refused(&f, "8 of 16 numbers of a head are rotated");
    f = with_key("llama.attention.value_length", 8);
    refused(&f, "'llama.attention.value_length' must be the length of keys");
    f = with_key("tokenizer.ggml.eos_token_id", 4);
    refused(&f, "'eos_token_id' must be a token id from 0 to 3");
}

static void metadata_becomes_a_configuration(void **state)
{
    (void)state;
    live_config c;
    dsc_error err = {0};
    gguf_file f = with_key("tokenizer.ggml.eot_token_id", 3);
    assert_ok(live_config_read(&c, gguf_write(&f, 32, 640), &err), err);
    assert_string_equal(c.model_type, "llama");
    assert_int_equal(c.layers, 1);
    assert_int_equal(c.hidden, 32);
    assert_int_equal(c.kv_heads, 2);
    assert_int_equal(c.head, 16);
    assert_int_equal(c.vocab, 4);
    assert_int_equal(c.positions, 64);
    assert_true(c.tied);
    assert_int_equal(c.begin, -1);
    assert_int_equal(c.ends, 1);
    assert_int_equal(c.end[0], 3);
    assert_int_equal(c.dtype, DSC_F32);
}

// All pieces of a tensor are those of the whole, wherever they are cut.
static void pieces_fit_together(void **state)
{
    (void)state;
    char path[1024];
    live_gguf *g;
    dsc_error err = {0};
    assert_ok(
        live_gguf_open(&g, source_path("tests/oracle/gguf/llama.gguf", path, sizeof path), &err),
        err);
    const dsc_tensor *t = live_gguf_find(g, "model.layers.1.self_attn.q_proj.weight");
    assert_non_null(t);
    const size_t bytes = (size_t)(t->end - t->begin);
    unsigned char *whole = malloc(bytes), *cut = malloc(bytes);
    assert_true(whole && cut && bytes > 2048);
    live_gguf_make(live_gguf_source(g, t), 0, bytes, whole);
    for (size_t at = 0; at < bytes; at += 1024)
        live_gguf_make(live_gguf_source(g, t), at, bytes - at < 1024 ? bytes - at : 1024, cut + at);
    assert_memory_equal(whole, cut, bytes);
    free(whole);
    free(cut);
    live_gguf_close(g);
}

SUITE(live_gguf)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_gguf_py),
        cmocka_unit_test(what_is_not_supported_is_refused),
        cmocka_unit_test(metadata_becomes_a_configuration),
        cmocka_unit_test(pieces_fit_together),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}

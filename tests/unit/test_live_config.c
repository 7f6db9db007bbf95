// SPDX-License-Identifier: Apache-2.0
// config.json in its spellings; expected angles are those of transformers 5.23.
#include "tests/unit/live_fixture.h"

#include "live/model/rope.h"

static live_config read_ok(const fixture *f, const char *json)
{
    dsc_error err = {0};
    live_config c;
    write_text(f, "config.json", json);
    assert_ok(live_config_read(&c, f->folder, &err), err);
    return c;
}

static const char *const old_llama =
    "{\"model_type\": \"llama\", \"hidden_size\": 64, \"intermediate_size\": 96,"
    " \"num_hidden_layers\": 3, \"num_attention_heads\": 4, \"vocab_size\": 100,"
    " \"max_position_embeddings\": 512, \"rms_norm_eps\": 1e-5, \"torch_dtype\": \"bfloat16\","
    " \"rope_theta\": 500000, \"eos_token_id\": [2, 7], \"bos_token_id\": 1,"
    " \"rope_scaling\": {\"type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1,"
    " \"high_freq_factor\": 4, \"original_max_position_embeddings\": 64}}";

static void test_llama_old_spelling(void **state)
{
    live_config c = read_ok(*state, old_llama);
    assert_int_equal(c.family, LIVE_LLAMA);
    assert_string_equal(c.model_type, "llama");
    assert_int_equal(c.layers, 3);
    assert_int_equal(c.hidden, 64);
    assert_int_equal(c.feed_forward, 96);
    assert_int_equal(c.heads, 4);
    assert_int_equal(c.kv_heads, 4);
    assert_int_equal(c.head, 16);
    assert_int_equal(c.rotated, 16);
    assert_int_equal(c.vocab, 100);
    assert_int_equal(c.positions, 512);
    assert_int_equal(c.dtype, DSC_BF16);
    assert_int_equal(c.norm, LIVE_RMS_NORM);
    assert_int_equal(c.activation, LIVE_SILU_GATE);
    assert_true(c.norm_epsilon == 1e-5 && c.rope_theta == 500000);
    assert_int_equal(c.rope, LIVE_ROPE_LLAMA3);
    assert_true(c.rope_factor == 8 && c.rope_low == 1 && c.rope_high == 4);
    assert_int_equal(c.rope_original, 64);
    assert_int_equal(c.begin, 1);
    assert_int_equal(c.ends, 2);
    assert_int_equal(c.end[0], 2);
    assert_int_equal(c.end[1], 7);
    assert_true(c.normed);
    assert_false(c.tied || c.qkv_bias || c.out_bias || c.feed_bias || c.qk_norm || c.parallel);
}

static void test_llama_new_spelling(void **state)
{
    live_config old = read_ok(*state, old_llama);
    live_config c =
        read_ok(*state, "{\"model_type\": \"llama\", \"hidden_size\": 64, \"head_dim\": null,"
                        "\"intermediate_size\": 96, \"num_hidden_layers\": 3,"
                        "\"num_attention_heads\": 4, \"vocab_size\": 100, \"dtype\": \"bfloat16\","
                        "\"max_position_embeddings\": 512, \"rms_norm_eps\": 1e-5,"
                        "\"eos_token_id\": [2, 7], \"rope_parameters\": {\"rope_theta\": 500000,"
                        "\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1,"
                        "\"high_freq_factor\": 4, \"original_max_position_embeddings\": 64}}");
    assert_int_equal(c.head, old.head);
    assert_int_equal(c.dtype, old.dtype);
    assert_int_equal(c.rope, old.rope);
    assert_true(c.rope_theta == old.rope_theta && c.rope_factor == old.rope_factor);
    assert_true(c.rope_low == old.rope_low && c.rope_high == old.rope_high);
    assert_int_equal(c.rope_original, old.rope_original);
    assert_int_equal(c.rotated, old.rotated);
    assert_int_equal(c.begin, 1); // transformers' default
}

static void test_relatives(void **state)
{
    live_config c = read_ok(
        *state, "{\"model_type\": \"llama\", \"hidden_size\": 64, \"intermediate_size\": 9,"
                "\"num_hidden_layers\": 1, \"num_attention_heads\": 4, \"num_key_value_heads\": 2,"
                "\"vocab_size\": 10, \"attention_bias\": true, \"mlp_bias\": true, \"head_dim\": 6,"
                "\"tie_word_embeddings\": true, \"eos_token_id\": null, \"rope_scaling\": null}");
    assert_true(c.qkv_bias && c.out_bias && c.feed_bias && c.tied);
    assert_int_equal(c.head, 6);
    assert_int_equal(c.kv_heads, 2);
    assert_int_equal(c.ends, 0);
    assert_int_equal(c.positions, 2048);
    assert_true(c.norm_epsilon == 1e-6 && c.rope_theta == 10000);
    assert_int_equal(c.dtype, DSC_F32);

    c = read_ok(*state,
                "{\"model_type\": \"mistral\", \"hidden_size\": 64, \"intermediate_size\": 9,"
                "\"num_hidden_layers\": 2, \"num_attention_heads\": 8, \"vocab_size\": 10}");
    assert_int_equal(c.window, 4096); // transformers' default
    assert_int_equal(c.kv_heads, 8);
    c = read_ok(*state,
                "{\"model_type\": \"mistral\", \"hidden_size\": 64, \"intermediate_size\": 9,"
                "\"num_hidden_layers\": 2, \"num_attention_heads\": 8, \"vocab_size\": 10,"
                "\"sliding_window\": null}");
    assert_int_equal(c.window, 0);

    c = read_ok(*state,
                "{\"model_type\": \"qwen2\", \"hidden_size\": 64, \"intermediate_size\": 9,"
                "\"num_hidden_layers\": 2, \"num_attention_heads\": 8, \"num_key_value_heads\": 4,"
                "\"vocab_size\": 10, \"sliding_window\": 5, \"use_sliding_window\": false}");
    assert_int_equal(c.window, 0);
    assert_true(c.qkv_bias && !c.out_bias && !c.feed_bias);
    c = read_ok(*state,
                "{\"model_type\": \"qwen2\", \"hidden_size\": 64, \"intermediate_size\": 9,"
                "\"num_hidden_layers\": 2, \"num_attention_heads\": 8, \"num_key_value_heads\": 4,"
                "\"vocab_size\": 10, \"sliding_window\": 5, \"use_sliding_window\": true,"
                "\"max_window_layers\": 0}");
    assert_int_equal(c.window, 5);

    c = read_ok(*state,
                "{\"model_type\": \"qwen3\", \"hidden_size\": 64, \"intermediate_size\": 9,"
                "\"num_hidden_layers\": 2, \"num_attention_heads\": 8, \"num_key_value_heads\": 4,"
                "\"vocab_size\": 10, \"layer_types\": [\"full_attention\", \"full_attention\"]}");
    assert_true(c.qk_norm && !c.qkv_bias);
    assert_int_equal(c.head, 128); // transformers' default
    assert_int_equal(c.window, 0);
}

static void test_gpt2(void **state)
{
    live_config c =
        read_ok(*state, "{\"model_type\": \"gpt2\", \"n_embd\": 24, \"n_layer\": 2, \"n_head\": 3,"
                        "\"n_positions\": 40, \"vocab_size\": 11, \"n_inner\": null}");
    assert_int_equal(c.family, LIVE_GPT2);
    assert_int_equal(c.hidden, 24);
    assert_int_equal(c.feed_forward, 96);
    assert_int_equal(c.heads, 3);
    assert_int_equal(c.kv_heads, 3);
    assert_int_equal(c.positions, 40);
    assert_int_equal(c.rotated, 0);
    assert_int_equal(c.activation, LIVE_GELU_TANH);
    assert_int_equal(c.norm, LIVE_LAYER_NORM);
    assert_true(c.tied && c.learned_positions && c.qkv_bias && c.out_bias && c.feed_bias);
    assert_int_equal(c.ends, 0); // transformers' default, 50256, is no token here
}

static void test_neox(void **state)
{
    live_config c = read_ok(
        *state, "{\"model_type\": \"gpt_neox\", \"hidden_size\": 64, \"intermediate_size\": 9,"
                "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"vocab_size\": 10,"
                "\"num_key_value_heads\": 2, \"head_dim\": 8, \"rotary_pct\": 0.5, "
                "\"rotary_emb_base\": 777, \"use_parallel_residual\": false}");
    assert_int_equal(c.family, LIVE_NEOX);
    assert_int_equal(c.rotated, 8);
    assert_int_equal(c.kv_heads, 4); // GPT-NeoX has no such keys
    assert_int_equal(c.head, 16);
    assert_true(c.rope_theta == 777 && !c.parallel && !c.tied);
    assert_int_equal(c.activation, LIVE_GELU);
    c = read_ok(*state,
                "{\"model_type\": \"gpt_neox\", \"hidden_size\": 64, \"intermediate_size\": 9,"
                "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"vocab_size\": 10,"
                "\"rope_parameters\": {\"partial_rotary_factor\": 0.25, \"rope_theta\": 5},"
                "\"attention_bias\": false}");
    assert_int_equal(c.rotated, 4);
    assert_true(c.rope_theta == 5 && c.parallel && c.feed_bias && !c.qkv_bias && !c.out_bias);
}

static void test_generation_config(void **state)
{
    write_text(*state, "generation_config.json", "{\"eos_token_id\": [5, 9], \"top_p\": 0.9}");
    live_config c = read_ok(*state, old_llama);
    assert_int_equal(c.begin, 1);
    assert_int_equal(c.ends, 2);
    assert_int_equal(c.end[0], 5);
    assert_int_equal(c.end[1], 9);
    write_text(*state, "generation_config.json", "{\"eos_token_id\": 100}");
    write_text(*state, "config.json", old_llama);
    dsc_error err = {0};
    assert_int_equal(live_config_read(&c, ((fixture *)*state)->folder, &err), DSC_EINPUT);
    assert_non_null(strstr(err.message, "generation_config.json: 'eos_token_id'"));
}

static void test_heads_by_config(void **state)
{
    live_config c = read_ok(
        *state, "{\"architectures\": [\"EagleModel\"], \"hidden_size\": 64,"
                "\"intermediate_size\": 9, \"num_hidden_layers\": 1, \"num_attention_heads\": 4,"
                "\"vocab_size\": 10, \"bias\": false}");
    assert_int_equal(c.family, LIVE_EAGLE);
    assert_false(c.normed || c.fc_bias || c.tied);
    c = read_ok(*state, "{\"medusa_num_heads\": 3, \"hidden_size\": 8, \"vocab_size\": 10}");
    assert_int_equal(c.family, LIVE_MEDUSA);
    assert_int_equal(c.medusa_heads, 3);
    assert_int_equal(c.medusa_layers, 1);
    assert_int_equal(c.activation, LIVE_SILU);
}

// --- refusals ----------------------------------------------------------------------------------

// Changes to a valid config.json of a Llama model, and the messages that refuse them.
#define SIZES                                                                                      \
    "\"hidden_size\": 64, \"intermediate_size\": 96, \"num_hidden_layers\": 2, "                   \
    "\"num_attention_heads\": 4, \"vocab_size\": 100"

static void test_refused(void **state)
{
    static const struct {
        const char *json, *says;
    } cases[] = {
        {"{\"model_type\": \"t5\"}", "\"t5\" is not one of llama, mistral, qwen2, qwen3, smollm3"},
        {"{" SIZES "}", "'model_type' (missing)"},
        {"[1]", "not a JSON object"},
        {"{", "config.json: line 1, column 1"},
        {"{\"model_type\": 3}", "'model_type' must be a string"},
        {"{\"model_type\": \"llama\"}", "'hidden_size' is missing"},
        {"{\"model_type\": \"llama\", \"hidden_size\": 6.5}", "'hidden_size' must be a whole"},
        {"{\"model_type\": \"llama\", \"hidden_size\": 100000000}", "from 1 to 10000000"},
        {"{\"model_type\": \"llama\", \"num_key_value_heads\": 3, " SIZES "}",
         "attention heads are not a multiple of"},
        {"{\"model_type\": \"llama\", \"num_key_value_heads\": 8, " SIZES "}",
         "attention heads are not a multiple of"},
        {"{\"model_type\": \"llama\", \"hidden_size\": 66, \"intermediate_size\": 9,"
         "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"vocab_size\": 10}",
         "is not a multiple of 4 heads"},
        {"{\"model_type\": \"gpt2\", \"head_dim\": 8, \"hidden_size\": 66,"
         "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"vocab_size\": 10}",
         "is not a multiple of 4 heads"},
        {"{\"model_type\": \"llama\", \"head_dim\": 7, " SIZES "}", "the number must be even"},
        {"{\"model_type\": \"llama\", \"torch_dtype\": \"float8_e4m3fn\", " SIZES "}",
         "'dtype' \"float8_e4m3fn\""},
        {"{\"model_type\": \"llama\", \"hidden_act\": \"gelu\", " SIZES "}",
         "'hidden_act' \"gelu\""},
        {"{\"model_type\": \"llama\", \"rms_norm_eps\": \"x\", " SIZES "}", "'rms_norm_eps' must"},
        {"{\"model_type\": \"llama\", \"attention_bias\": 1, " SIZES "}", "must be true or false"},
        {"{\"model_type\": \"llama\", \"quantization_config\": {\"bits\": 4}, " SIZES "}",
         "quantized weights"},
        {"{\"model_type\": \"llama\", \"num_local_experts\": 8, " SIZES "}", "mixture of experts"},
        {"{\"model_type\": \"llama\", \"rope_scaling\": {\"type\": \"longrope\", \"factor\": "
         "4}, " SIZES "}",
         "'rope_scaling.rope_type' \"longrope\" is not supported"},
        {"{\"model_type\": \"llama\", \"rope_scaling\": {\"type\": \"dynamic\"}, " SIZES "}",
         "'rope_scaling.factor' is missing"},
        {"{\"model_type\": \"llama\", \"rope_scaling\": {\"type\": \"linear\"}, " SIZES "}",
         "'rope_scaling.factor' is missing"},
        {"{\"model_type\": \"llama\", \"rope_parameters\": {\"full_attention\": {}}, " SIZES "}",
         "differ between layers"},
        {"{\"model_type\": \"llama\", \"rope_scaling\": 3, " SIZES "}", "not an object"},
        {"{\"model_type\": \"llama\", \"partial_rotary_factor\": 0.5, " SIZES "}", "gpt_neox only"},
        {"{\"model_type\": \"llama\", \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8,"
         "\"low_freq_factor\": 4, \"high_freq_factor\": 4}, " SIZES "}",
         "must be above low_freq_factor"},
        {"{\"model_type\": \"llama\", \"eos_token_id\": 100, " SIZES "}",
         "a token id from 0 to 99"},
        {"{\"model_type\": \"llama\", \"bos_token_id\": -1, " SIZES "}", "'bos_token_id'"},
        {"{\"model_type\": \"llama\", \"eos_token_id\": [1,2,3,4,5,6,7,8,9], " SIZES "}",
         "lists 9 tokens; the limit is 8"},
        {"{\"model_type\": \"mistral\", \"sliding_window\": 0, \"num_key_value_heads\": 4, " SIZES
         "}",
         "'sliding_window' must be"},
        {"{\"model_type\": \"qwen3\", \"num_key_value_heads\": 4, \"layer_types\":"
         "[\"full_attention\"], " SIZES "}",
         "'layer_types' has 1 entries; there are 2 layers"},
        {"{\"model_type\": \"qwen3\", \"num_key_value_heads\": 4, \"layer_types\": 3, " SIZES "}",
         "'layer_types' is not a list"},
        {"{\"model_type\": \"qwen3\", \"num_key_value_heads\": 4, \"layer_types\":"
         "[\"linear_attention\"], " SIZES "}",
         "\"linear_attention\" is not supported"},
        {"{\"model_type\": \"gpt2\", \"activation_function\": \"relu\", " SIZES "}", "\"relu\""},
        {"{\"model_type\": \"gpt2\", \"scale_attn_weights\": false, " SIZES "}",
         "'scale_attn_weights' false"},
        {"{\"model_type\": \"gpt2\", \"scale_attn_by_inverse_layer_idx\": true, " SIZES "}",
         "scaled by the layer"},
        {"{\"model_type\": \"gpt_neox\", \"rotary_pct\": 2, " SIZES "}", "'partial_rotary_factor'"},
        {"{\"architectures\": [\"LlamaForCausalLMEagle3\"], " SIZES "}",
         "an EAGLE-3 head has 1 layer"},
        {"{\"architectures\": [\"EagleModel\"], \"model_type\": \"gpt2\", " SIZES "}",
         "an EAGLE head of a gpt2 block"},
        {"{\"medusa_num_heads\": 65}", "from 1 to 64"},
        {"{\"medusa_num_heads\": 2}", "no weights"},
    };
    const fixture *f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dsc_error err = {0};
        live_config c;
        write_text(f, "config.json", cases[i].json);
        int rc = live_config_read(&c, f->folder, &err);
        if (rc != DSC_EINPUT || !strstr(err.message, cases[i].says) ||
            !strstr(err.message, f->folder))
            fail_msg("%s: %d, %s", cases[i].json, rc, err.message);
    }
}

static void test_no_file(void **state)
{
    dsc_error err = {0};
    live_config c;
    assert_int_equal(live_config_read(&c, ((fixture *)*state)->folder, &err), DSC_EINPUT);
    assert_non_null(strstr(err.message, "config.json"));
}

// --- angles ------------------------------------------------------------------------------------

static void test_rope(void **state)
{
    static const float scaled[] = {1.0f,
                                   0.24438458681106567f,
                                   0.013042256236076355f,
                                   0.0039528473280370235f,
                                   0.0012499999720603228f,
                                   0.00039528473280370235f,
                                   0.0001250000059371814f,
                                   3.9528473280370235e-05f};
    // Llama 3.2 1B's, but for the size of a head; some of 64.
    static const struct {
        int i;
        float f;
    } llama3[] = {{0, 1.0f},
                  {1, 0.8146172165870667f},
                  {28, 0.0032114461064338684f},
                  {29, 0.002118406817317009f},
                  {32, 0.000429556705057621f},
                  {35, 2.389053042861633e-05f},
                  {36, 1.9461638657958247e-05f},
                  {63, 7.672314694673332e-08f}};
    (void)state;
    float f[64];
    live_config c = {.rotated = 16,
                     .rope_theta = 10000,
                     .rope = LIVE_ROPE_LLAMA3,
                     .rope_factor = 8,
                     .rope_low = 1,
                     .rope_high = 4,
                     .rope_original = 64};
    live_config_rope(&c, false, f);
    for (int i = 0; i < 8; i++)
        assert_close(f[i] / scaled[i], 1, 1.2e-7);
    c = (live_config){.rotated = 128,
                      .rope_theta = 500000,
                      .rope = LIVE_ROPE_LLAMA3,
                      .rope_factor = 32,
                      .rope_low = 1,
                      .rope_high = 4,
                      .rope_original = 8192};
    live_config_rope(&c, false, f);
    for (size_t i = 0; i < sizeof llama3 / sizeof *llama3; i++)
        assert_close(f[llama3[i].i] / llama3[i].f, 1, 1.2e-7);
    c = (live_config){
        .rotated = 16, .rope_theta = 10000, .rope = LIVE_ROPE_LINEAR, .rope_factor = 4};
    live_config_rope(&c, false, f);
    assert_close(f[0], .25, 0);
    assert_close(f[1] / 0.07905694097280502f, 1, 1.2e-7);
    c = (live_config){.rotated = 4, .rope_theta = 100};
    live_config_rope(&c, false, f);
    assert_close(f[0], 1, 0);
    assert_close(f[1], .1, 1e-8);
}

// --- shapes ------------------------------------------------------------------------------------

static void test_shapes(void **state)
{
    const fixture *f = *state;
    dsc_error err = {0};
    live_config c;
    size_t count;
    const dsc_model_shape *s = dsc_model_shape_presets(&count);
    for (size_t i = 0; i < count; i++) {
        int rc = live_config_of_shape(&c, s[i].name, &err);
        if (!dsc_model_shape_is_dense(&s[i])) {
            assert_int_equal(rc, DSC_EUSAGE);
            assert_non_null(strstr(err.message, "encoder"));
            continue;
        }
        assert_ok(rc, err);
        // All but the norms, which are F32 here.
        double numbers = dsc_model_shape_parameters(&s[i]);
        assert_close(live_config_weight_bytes(&c, DSC_BF16) / (2 * numbers), 1, 1e-3);
        assert_close(live_config_cache_bytes(&c, DSC_BF16), 2 * dsc_model_shape_cache(&s[i]), 0);
        assert_true(c.normed && c.rotated == c.head && c.positions == 8192);
    }
    assert_int_equal(live_config_of_shape(&c, "llama-9-7b", &err), DSC_EUSAGE);
    char path[200];
    write_text(f, "shape.json", old_llama);
    snprintf(path, sizeof path, "%s/shape.json", f->folder);
    assert_ok(live_config_of_shape(&c, path, &err), err);
    assert_int_equal(c.layers, 3);
    write_text(f, "shape.json", "{\"medusa_num_heads\": 2}");
    assert_int_equal(live_config_of_shape(&c, path, &err), DSC_EINPUT);
    assert_non_null(strstr(err.message, "'hidden_size' or 'vocab_size' is missing"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_folder, teardown_folder)

SUITE(live_config)
{
    const struct CMUnitTest tests[] = {
        TEST(test_llama_old_spelling),
        TEST(test_llama_new_spelling),
        TEST(test_relatives),
        TEST(test_gpt2),
        TEST(test_neox),
        TEST(test_generation_config),
        TEST(test_heads_by_config),
        TEST(test_refused),
        TEST(test_no_file),
        TEST(test_rope),
        TEST(test_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// Layers that differ from each other, and context extension: what config.json means. Expected
// angles are those of transformers 5.24.
#include "tests/unit/live_fixture.h"

#define SIZES                                                                                      \
    "\"hidden_size\": 64, \"intermediate_size\": 96, \"num_hidden_layers\": 4, "                   \
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"vocab_size\": 100, "                \
    "\"bos_token_id\": 1, \"eos_token_id\": 2, "

static live_config read_ok(const fixture *f, const char *json)
{
    dsc_error err = {0};
    live_config c;
    write_text(f, "config.json", json);
    assert_ok(live_config_read(&c, f->folder, &err), err);
    return c;
}

// The windows of four layers.
static void assert_windows(const live_config *c, const int64_t *want)
{
    for (int i = 0; i < 4; i++)
        assert_int_equal(live_config_window(c, i), want[i]);
}

static void test_gemma3(void **state)
{
    live_config c = read_ok(*state, "{\"model_type\": \"gemma3_text\", " SIZES
                                    "\"sliding_window\": 8, \"query_pre_attn_scalar\": 100}");
    assert_int_equal(c.family, LIVE_GEMMA3);
    assert_windows(&c, (int64_t[]){8, 8, 8, 8}); // every sixth layer has none
    assert_false(live_config_mixes_windows(&c));
    assert_int_equal(c.head, 256); // transformers' default
    assert_int_equal(c.activation, LIVE_GELU_TANH_GATE);
    assert_true(c.tied && c.qk_norm && c.post_norms && c.norm_plus_one && !c.qkv_bias);
    assert_true(c.embed_scale == 8 && c.attention_scale == 0.1);
    assert_true(c.rope_theta == 1e6 && c.local_theta == 1e4);
    assert_int_equal(c.rope, LIVE_ROPE_PLAIN);

    c = read_ok(*state, "{\"model_type\": \"gemma3_text\", " SIZES "\"sliding_window\": 8,"
                        "\"sliding_window_pattern\": 3, \"rope_theta\": 5e5,"
                        "\"rope_local_base_freq\": 77,"
                        "\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 8}}");
    assert_windows(&c, (int64_t[]){8, 8, 0, 8});
    assert_true(live_config_mixes_windows(&c));
    assert_true(c.rope_theta == 5e5 && c.local_theta == 77 && c.rope_factor == 8);
    assert_int_equal(c.rope, LIVE_ROPE_LINEAR);
    float full[128], local[128];
    live_config_rope(&c, false, full);
    live_config_rope(&c, true, local);
    assert_true(full[0] == 0.125f && local[0] == 1);

    c = read_ok(*state,
                "{\"model_type\": \"gemma3_text\", " SIZES "\"sliding_window\": 8,"
                "\"layer_types\": [\"full_attention\", \"sliding_attention\","
                "\"sliding_attention\", \"full_attention\"], \"rope_parameters\":"
                "{\"full_attention\": {\"rope_theta\": 9e5, \"rope_type\": \"default\"},"
                "\"sliding_attention\": {\"rope_theta\": 55, \"rope_type\": \"default\"}}}");
    assert_windows(&c, (int64_t[]){0, 8, 8, 0});
    assert_true(c.rope_theta == 9e5 && c.local_theta == 55);
}

// The decoder of a multimodal model, whose sizes may be transformers' defaults.
static void test_gemma3_nested(void **state)
{
    live_config c = read_ok(
        *state,
        "{\"model_type\": \"gemma3\", \"torch_dtype\": \"bfloat16\", \"eos_token_id\":"
        "[1, 106], \"text_config\": {\"model_type\": \"gemma3_text\", \"hidden_size\": 2560,"
        "\"intermediate_size\": 10240, \"num_hidden_layers\": 34, \"sliding_window\": 1024,"
        "\"rope_scaling\": {\"factor\": 8.0, \"rope_type\": \"linear\"}},"
        "\"vision_config\": {\"hidden_size\": 1152}}");
    assert_string_equal(c.model_type, "gemma3_text");
    assert_int_equal(c.dtype, DSC_BF16);
    assert_true(c.hidden == 2560 && c.layers == 34 && c.heads == 8 && c.kv_heads == 4);
    assert_int_equal(c.vocab, 262208);
    assert_int_equal(c.ends, 2);
    assert_int_equal(c.end[1], 106);
    assert_int_equal(live_config_window(&c, 4), 1024);
    assert_int_equal(live_config_window(&c, 5), 0);
    assert_int_equal(live_config_window(&c, 33), 1024);
}

static void test_smollm3(void **state)
{
    live_config c = read_ok(*state, "{\"model_type\": \"smollm3\", " SIZES "\"rope_theta\": 5e6}");
    assert_true(c.tied && !c.window && c.rope_theta == 5e6);
    for (int i = 0; i < 4; i++)
        assert_int_equal(c.layer[i], i == 3 ? LIVE_LAYER_UNROTATED : 0);
    c = read_ok(*state, "{\"model_type\": \"smollm3\", " SIZES "\"no_rope_layers\": [1, 0, 1, 1],"
                        "\"use_sliding_window\": true, \"sliding_window\": 8, \"mlp_bias\": true,"
                        "\"attention_bias\": true, \"tie_word_embeddings\": false}");
    assert_true(c.feed_bias && c.qkv_bias && c.out_bias && !c.tied);
    assert_int_equal(c.layer[1], LIVE_LAYER_UNROTATED);
    assert_windows(&c, (int64_t[]){0, 8, 0, 0});
}

static void test_qwen(void **state)
{
    live_config c =
        read_ok(*state, "{\"model_type\": \"qwen2\", " SIZES "\"use_sliding_window\": true,"
                        "\"max_window_layers\": 3, \"sliding_window\": 8}");
    assert_windows(&c, (int64_t[]){0, 0, 0, 8});
    c = read_ok(*state, "{\"model_type\": \"qwen3\", " SIZES "\"use_sliding_window\": true,"
                        "\"sliding_window\": 8, \"layer_types\": [\"sliding_attention\","
                        "\"full_attention\", \"full_attention\", \"full_attention\"]}");
    assert_windows(&c, (int64_t[]){8, 0, 0, 0});
    c = read_ok(*state, "{\"model_type\": \"qwen3\", " SIZES "\"use_sliding_window\": true,"
                        "\"sliding_window\": 8}"); // max_window_layers is 28
    assert_int_equal(c.window, 0);
    assert_int_equal(c.layer[0], 0);
}

static void test_yarn(void **state)
{
    static const float qwen[] = {1.0f,
                                 0.17782793939113617f,
                                 0.03162277862429619f,
                                 0.004217559937387705f,
                                 0.0005000000237487257f,
                                 4.4456985051510856e-05f,
                                 7.905693564680405e-06f,
                                 1.405853367941745e-06f};
    static const float fine[] = {1.0f,
                                 0.3113432228565216f,
                                 0.06668107211589813f,
                                 0.009373676963150501f,
                                 0.0039528473280370235f,
                                 0.0016669018659740686f,
                                 0.0007029266562312841f,
                                 0.00029642172739841044f};
    float f[8];
    live_config c =
        read_ok(*state, "{\"model_type\": \"llama\", " SIZES "\"max_position_embeddings\": 131072,"
                        "\"rope_theta\": 1e6, \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4,"
                        "\"original_max_position_embeddings\": 32768}}");
    live_config_rope(&c, false, f);
    for (int i = 0; i < 8; i++)
        assert_close(f[i] / qwen[i], 1, 1.2e-7);
    assert_close(c.rope_attention, 1.138629436111989, 1e-15);
    c = read_ok(*state, "{\"model_type\": \"llama\", " SIZES "\"max_position_embeddings\": 64,"
                        "\"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 8,"
                        "\"original_max_position_embeddings\": 32, \"truncate\": false,"
                        "\"rope_theta\": 1000, \"beta_fast\": 4, \"beta_slow\": 0.5,"
                        "\"mscale\": 2, \"mscale_all_dim\": 0.5}}");
    live_config_rope(&c, false, f);
    for (int i = 0; i < 8; i++)
        assert_close(f[i] / fine[i], 1, 1.2e-7);
    assert_close(c.rope_attention, 1.2825399643040467, 1e-15);
    c = read_ok(*state, "{\"model_type\": \"llama\", " SIZES "\"max_position_embeddings\": 64,"
                        "\"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": null,"
                        "\"original_max_position_embeddings\": 16, \"attention_factor\": 1.25}}");
    assert_true(c.rope_factor == 4 && c.rope_attention == 1.25);
}

static void test_dynamic(void **state)
{
    float f[8], plain[8];
    live_config c =
        read_ok(*state, "{\"model_type\": \"llama\", " SIZES "\"max_position_embeddings\": 64,"
                        "\"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2}}");
    assert_int_equal(c.rope, LIVE_ROPE_DYNAMIC);
    live_config_rope(&c, false, f);
    c.rope = LIVE_ROPE_PLAIN;
    live_config_rope(&c, false, plain);
    assert_memory_equal(f, plain, sizeof f);
}

static void test_experts(void **state)
{
    live_config c =
        read_ok(*state, "{\"model_type\": \"qwen3_moe\", " SIZES "\"decoder_sparse_step\": 2,"
                        "\"mlp_only_layers\": [3], \"num_experts\": 6, \"norm_topk_prob\": true,"
                        "\"num_experts_per_tok\": 2, \"moe_intermediate_size\": 12}");
    assert_true(c.qk_norm && !c.window && c.experts == 6 && c.experts_per_token == 2);
    assert_true(c.expert_feed_forward == 12 && c.feed_forward == 96 && c.experts_normalized);
    for (int i = 0; i < 4; i++)
        assert_int_equal(live_config_is_sparse(&c, i), i == 1);
    c = read_ok(*state, "{\"model_type\": \"qwen3_moe\", " SIZES "\"num_local_experts\": 9,"
                        "\"use_sliding_window\": true, \"sliding_window\": 8}");
    assert_true(c.experts == 9 && c.experts_per_token == 8 && c.expert_feed_forward == 768);
    assert_false(c.experts_normalized);
    assert_windows(&c, (int64_t[]){8, 8, 8, 8});
}

static void test_refused(void **state)
{
    static const struct {
        const char *json, *says;
    } cases[] = {
        {"{\"model_type\": \"gemma3_text\", " SIZES "\"sliding_window\": null}",
         "'sliding_window' is null, but layer 0 has one"},
        {"{\"model_type\": \"gemma3_text\", " SIZES "\"layer_types\": [\"full_attention\"]}",
         "'layer_types' has 1 entries; there are 4 layers"},
        {"{\"model_type\": \"gemma3_text\", " SIZES "\"layer_types\": [\"full_attention\","
         "\"full_attention\", \"chunked_attention\", \"full_attention\"]}",
         "'layer_types[2]' \"chunked_attention\" is not supported (full_attention and sliding"},
        {"{\"model_type\": \"gemma3_text\", " SIZES "\"layer_types\": [1, 2, 3, 4]}",
         "'layer_types[0]' \"(not a string)\""},
        {"{\"model_type\": \"gemma3_text\", " SIZES "\"sliding_window_pattern\": 0}",
         "'sliding_window_pattern' must be"},
        {"{\"model_type\": \"gemma3_text\", " SIZES "\"hidden_activation\": \"silu\"}",
         "'hidden_activation' \"silu\" is not supported for gemma3_text"},
        {"{\"model_type\": \"gemma3_text\", " SIZES "\"final_logit_softcapping\": 30.0}",
         "capped logits"},
        {"{\"model_type\": \"gemma3_text\", " SIZES "\"attn_logit_softcapping\": 50.0}",
         "capped attention"},
        {"{\"model_type\": \"gemma3_text\", " SIZES "\"use_bidirectional_attention\": true}",
         "attention to later tokens"},
        {"{\"model_type\": \"gemma3_text\", " SIZES "\"head_dim\": 5}", "'head_dim' is 5"},
        {"{\"model_type\": \"gemma3_text\", " SIZES "\"rope_parameters\": {\"rope_theta\": 7}}",
         "'rope_parameters' must have 'full_attention' and 'sliding_attention'"},
        {"{\"model_type\": \"gemma3_text\", " SIZES "\"rope_parameters\": {\"full_attention\": {},"
         "\"sliding_attention\": {\"rope_type\": \"linear\", \"factor\": 2}}}",
         "'rope_parameters.sliding_attention.rope_type' \"linear\""},
        {"{\"model_type\": \"gemma3\"}", "'text_config' of a gemma3 model is missing"},
        {"{\"model_type\": \"smollm3\", " SIZES "\"no_rope_layers\": [1, 0]}",
         "'no_rope_layers' has 2 entries; there are 4 layers"},
        {"{\"model_type\": \"smollm3\", " SIZES "\"no_rope_layers\": [1, 0, 2, 1]}",
         "'no_rope_layers[2]' must be 1 (rotated) or 0"},
        {"{\"model_type\": \"qwen3_moe\", " SIZES "\"num_experts\": 4}",
         "'num_experts_per_tok' is missing; it must be a whole number from 1 to 4"},
        {"{\"model_type\": \"qwen3_moe\", " SIZES "\"mlp_only_layers\": [4]}",
         "'mlp_only_layers[0]' must be the number of a layer, from 0 to 3"},
        {"{\"model_type\": \"qwen3_moe\", " SIZES "\"mlp_only_layers\": 1}",
         "'mlp_only_layers' is not a list"},
        {"{\"model_type\": \"qwen3\", " SIZES "\"num_experts\": 4}", "a mixture of experts"},
        {"{\"model_type\": \"llama\", " SIZES "\"no_rope_layers\": [1, 0, 1, 1]}",
         "layers without rotation"},
        {"{\"model_type\": \"llama\", " SIZES "\"rope_scaling\": {\"type\": \"yarn\"}}",
         "'rope_scaling.factor' is missing"},
        {"{\"model_type\": \"llama\", " SIZES "\"rope_theta\": 1, \"rope_scaling\":"
         "{\"type\": \"yarn\", \"factor\": 2}}",
         "'rope_theta' must be above 1 with yarn"},
        {"{\"model_type\": \"gpt_neox\", " SIZES "\"rope_scaling\": {\"type\": \"yarn\","
         "\"factor\": 2}}",
         "yarn with attention factor 1.06931 of a head that is rotated in part"},
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_folder, teardown_folder)

SUITE(live_layers)
{
    const struct CMUnitTest tests[] = {
        TEST(test_gemma3), TEST(test_gemma3_nested), TEST(test_smollm3), TEST(test_qwen),
        TEST(test_yarn),   TEST(test_dynamic),       TEST(test_experts), TEST(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

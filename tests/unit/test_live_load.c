// SPDX-License-Identifier: Apache-2.0
// Tensors that a model does not have, Gemma 3's, and weights that are rounded while they are
// loaded.
#include "tests/unit/live_weights_fixture.h"

// --- tensors that the model does not have -------------------------------------------------------

static void test_leftovers(void **state)
{
    static const struct {
        const char *name, *says; // says NULL: harmless
    } cases[] = {
        {"model.layers.1.self_attn.rotary_emb.inv_freq", NULL},
        {"model.embeddings.position_ids", NULL},
        {"model.layers.0.self_attn.q_proj.bias", "'model.layers.0.self_attn.q_proj.bias' is not"},
        {"model.layers.0.self_attn.q_norm.weight", "q_norm.weight' is not part of the llama model"},
        {"model.layers.0.pre_feedforward_layernorm.weight", "results without it would be wrong"},
        {"model.layers.2.input_layernorm.weight", "'model.layers.2.input_layernorm.weight'"},
        {"model.layers.0.mlp.gate_proj.weight_scale", "gate_proj.weight_scale' is not part"},
        {"h.0.attn.bias", "'h.0.attn.bias' is not part"}, // GPT-2's mask
        {"vision_tower.embeddings.bias", "'vision_tower.embeddings.bias' is not part"},
    };
    fixture *f = *state;
    host_device d = host_new(f);
    tensor_list l = {0};
    write_text(f, "config.json", llama_config);
    put_llama(&l, DSC_F32, "model.");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put(&l, DSC_F32, cases[i].name, HEAD, 0);
        write_model(f, &l);
        if (cases[i].says)
            assert_refused(f, DSC_EINPUT, cases[i].says);
        else
            live_weights_free(load_ok(&d, NULL));
        drop(&l, cases[i].name);
    }
    put(&l, DSC_I64, "extra.ids", 3, 0);
    put(&l, DSC_F32, "extra.scale", 3, 0);
    write_model(f, &l);
    assert_refused(f, DSC_EINPUT, "(and 1 more)");
    free_tensors(&l);
}

static const char *const gemma3_config =
    "{\"model_type\": \"gemma3_text\", \"hidden_size\": 8, \"intermediate_size\": 12,"
    "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"num_key_value_heads\": 2,"
    "\"head_dim\": 6, \"vocab_size\": 10, \"sliding_window_pattern\": 2}";

static void put_gemma3(tensor_list *l, const char *prefix)
{
    static const struct {
        const char *name;
        int rows;
    } more[] = {{"self_attn.q_norm", HEAD},
                {"self_attn.k_norm", HEAD},
                {"pre_feedforward_layernorm", HIDDEN},
                {"post_feedforward_layernorm", HIDDEN}};
    char name[100];
    put_llama(l, DSC_BF16, prefix);
    drop(l, "lm_head.weight");
    for (int i = 0; i < LAYERS; i++)
        for (size_t k = 0; k < sizeof more / sizeof *more; k++) {
            snprintf(name, sizeof name, "%slayers.%d.%s.weight", prefix, i, more[k].name);
            put(l, DSC_BF16, name, more[k].rows, 0);
        }
}

static void test_gemma3(void **state)
{
    static const char *const norms[] = {"input_layernorm",           "post_attention_layernorm",
                                        "pre_feedforward_layernorm", "post_feedforward_layernorm",
                                        "self_attn.q_norm",          "self_attn.k_norm"};
    fixture *f = *state;
    host_device d = host_new(f);
    tensor_list l = {0};
    char name[100], *unused;
    write_text(f, "config.json", gemma3_config);
    put_gemma3(&l, "language_model.model.");
    put(&l, DSC_F32, "vision_tower.vision_model.embeddings.bias", 3, 0);
    put(&l, DSC_F32, "multi_modal_projector.mm_soft_emb_norm.weight", 3, 0);
    write_model(f, &l);
    live_weights *w = load_ok(&d, &unused);
    assert_string_equal(unused, "the vision tower (2 tensors)");
    const live_layer *last = &w->layer[1];
    const float *const of[] = {last->norm1,      last->post_norm1, last->norm2,
                               last->post_norm2, last->q_norm,     last->k_norm};
    for (int k = 0; k < 6; k++) {
        snprintf(name, sizeof name, "language_model.model.layers.1.%s.weight", norms[k]);
        for (int64_t i = 0; i < (k < 4 ? HIDDEN : HEAD); i++)
            assert_close(of[k][i], 1 + number_at(name, i, 0), 0);
    }
    assert_close(w->norm[0], 1 + number_at("language_model.model.norm.weight", 0, 0), 0);
    assert_close(w->embed_scale, 2.828125, 0); // sqrt(8), rounded to BF16
    assert_true(w->local_freq && w->inv_freq);
    assert_ptr_equal(w->head.data, w->embed.data);
    live_weights_free(w);
    free(unused);
    for (int k = 0; k < 6; k++) {
        snprintf(name, sizeof name, "language_model.model.layers.1.%s.weight", norms[k]);
        drop(&l, name);
        write_model(f, &l);
        snprintf(name, sizeof name, "layers.1.%s.weight' is missing", norms[k]);
        assert_refused(f, DSC_EINPUT, name);
        snprintf(name, sizeof name, "language_model.model.layers.1.%s.weight", norms[k]);
        put(&l, DSC_BF16, name, k < 4 ? HIDDEN : HEAD, 0);
    }
    free_tensors(&l);
}

// A device that does not run experts.
static void test_experts(void **state)
{
    fixture *f = *state;
    write_text(f, "config.json",
               "{\"model_type\": \"qwen3_moe\", \"hidden_size\": 8, \"intermediate_size\": 12,"
               "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"vocab_size\": 10,"
               "\"num_experts\": 4, \"num_experts_per_tok\": 2}");
    assert_refused(f, DSC_EABSENT,
                   "host: a mixture of experts (qwen3_moe) is run on the CPU only (--device cpu)");
}

// --- other dtypes -------------------------------------------------------------------------------

static void check_rounded(fixture *f, dsc_dtype stored, dsc_dtype as)
{
    host_device d = host_new(f);
    tensor_list l = {0};
    live_weights *w, *same;
    dsc_error err = {0};
    put_llama(&l, stored, "model.");
    write_model(f, &l);
    assert_ok(live_weights_load_as(&w, f->folder, &as, &d.b, NULL, &err), err);
    check_llama(w, as, "model.");
    assert_int_equal(w->config.dtype, as);
    assert_rows(&w->embed, 0, VOCAB, "model.embed_tokens.weight");
    assert_close(w->bytes, live_config_weight_bytes(&w->config, as), 0);
    same = load_ok(&d, NULL);
    assert_int_equal(strcmp(same->fingerprint, w->fingerprint) == 0, stored == as);
    live_weights_free(w);
    live_weights_free(same);
    free_tensors(&l);
}

static void test_rounded(void **state)
{
    static const dsc_dtype dtypes[] = {DSC_F32, DSC_F16, DSC_BF16};
    fixture *f = *state;
    write_text(f, "config.json", llama_config);
    for (int i = 0; i < 9; i++)
        check_rounded(f, dtypes[i / 3], dtypes[i % 3]);
    host_device d = host_new(f);
    tensor_list l = {0};
    live_weights *w;
    dsc_error err = {0};
    const dsc_dtype half = DSC_F16, whole = DSC_F32;
    put_llama(&l, DSC_BF16, "model.");
    set_bits(tensor_named(&l, "lm_head.weight"), 7, 0x4780); // 65536
    write_model(f, &l);
    assert_int_equal(live_weights_load_as(&w, f->folder, &half, &d.b, NULL, &err), DSC_EINPUT);
    assert_non_null(strstr(err.message, "'lm_head.weight' contains 65536, which is beyond the "
                                        "range of --dtype f16"));
    assert_int_equal(f->held, 0);
    drop(&l, "model.layers.1.self_attn.k_proj.weight"); // different dtypes within a matrix
    put(&l, DSC_F32, "model.layers.1.self_attn.k_proj.weight", KV * HEAD, HIDDEN);
    write_model(f, &l);
    assert_ok(live_weights_load_as(&w, f->folder, &whole, &d.b, NULL, &err), err);
    check_llama(w, DSC_F32, "model.");
    live_weights_free(w);
    free_tensors(&l);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_folder, teardown_folder)

SUITE(live_load)
{
    const struct CMUnitTest tests[] = {
        TEST(test_leftovers),
        TEST(test_gemma3),
        TEST(test_experts),
        TEST(test_rounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// The weights of an EAGLE-3 head land where the pass looks for them, and what is wrong with its
// configuration or its vocabulary is named.
#include "tests/unit/live_fixture.h"

enum { HIDDEN = 8, FEED = 12, HEADS = 4, KV = 2, HEAD = 6, VOCAB = 10, DRAFTS = 4 };

#define SIZES                                                                                      \
    "\"hidden_size\": 8, \"intermediate_size\": 12, \"num_attention_heads\": 4,"                   \
    "\"num_key_value_heads\": 2, \"head_dim\": 6, \"vocab_size\": 10"

static const char config[] = "{\"architectures\": [\"LlamaForCausalLMEagle3\"],"
                             "\"num_hidden_layers\": 1, \"draft_vocab_size\": 4, " SIZES "}";
// Tokens 1, 2, 7 and 9.
static const int64_t offsets[DRAFTS] = {1, 1, 5, 6};

static void set_offset(tensor_list *l, int draft, int64_t offset)
{
    ((int64_t *)tensor_named(l, "d2t")->data)[draft] = offset;
}

static void put_head(tensor_list *l)
{
    static const struct {
        const char *name;
        int rows, cols;
    } parts[] = {
        {"fc.weight", HIDDEN, 3 * HIDDEN},
        {"midlayer.input_layernorm.weight", HIDDEN, 0},
        {"midlayer.hidden_norm.weight", HIDDEN, 0},
        {"midlayer.self_attn.q_proj.weight", HEADS * HEAD, 2 * HIDDEN},
        {"midlayer.self_attn.k_proj.weight", KV * HEAD, 2 * HIDDEN},
        {"midlayer.self_attn.v_proj.weight", KV * HEAD, 2 * HIDDEN},
        {"midlayer.self_attn.o_proj.weight", HIDDEN, HEADS * HEAD},
        {"midlayer.post_attention_layernorm.weight", HIDDEN, 0},
        {"midlayer.mlp.gate_proj.weight", FEED, HIDDEN},
        {"midlayer.mlp.up_proj.weight", FEED, HIDDEN},
        {"midlayer.mlp.down_proj.weight", HIDDEN, FEED},
        {"norm.weight", HIDDEN, 0},
        {"lm_head.weight", DRAFTS, HIDDEN},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        put(l, DSC_F32, parts[i].name, parts[i].rows, parts[i].cols);
    put(l, DSC_I64, "d2t", DRAFTS, 0);
    put(l, DSC_BOOL, "t2d", VOCAB, 0);
    memset((void *)tensor_named(l, "t2d")->data, 0, VOCAB);
    for (int d = 0; d < DRAFTS; d++) {
        set_offset(l, d, offsets[d]);
        ((unsigned char *)tensor_named(l, "t2d")->data)[d + offsets[d]] = 1;
    }
}

static void assert_refused(fixture *f, const char *says)
{
    dsc_error err = {0};
    live_weights *w;
    host_device d = host_new(f);
    const int rc = live_weights_load(&w, f->folder, &d.b, NULL, &err);
    if (rc != DSC_EINPUT || !strstr(err.message, says) || strchr(err.message, '\n'))
        fail_msg("expected \"%s\", got %d: %s", says, rc, err.message);
    assert_null(w);
    assert_int_equal(f->held, 0);
}

static void test_weights(void **state)
{
    static const int32_t column[VOCAB] = {-1, 0, 1, -1, -1, -1, -1, 2, -1, 3};
    fixture *f = *state;
    host_device d = host_new(f);
    tensor_list l = {0};
    dsc_error err = {0};
    live_weights *w;
    char *unused;
    write_text(f, "config.json", config);
    put_head(&l);
    write_model(f, &l);
    assert_ok(live_weights_load(&w, f->folder, &d.b, &unused, &err), err);
    assert_int_equal(w->config.family, LIVE_EAGLE3);
    assert_string_equal(unused, "");
    assert_memory_equal(w->column, column, sizeof column);
    assert_int_equal(w->head.rows, DRAFTS);
    assert_int_equal(w->join.cols, 3 * HIDDEN);
    assert_int_equal(w->embed.rows, 0);
    const char *key = "midlayer.self_attn.k_proj.weight";
    for (int64_t row = 0; row < KV * HEAD; row++)
        for (int64_t col = 0; col < HIDDEN; col++) {
            const int64_t at = (HEADS * HEAD + row) * HIDDEN + col;
            const float *left = w->layer[0].qkv.data, *right = w->layer[0].qkv_feature.data;
            assert_int_equal(left[at], number_at(key, row, col));
            assert_int_equal(right[at], number_at(key, row, HIDDEN + col));
        }
    live_weights_free(w);
    free(unused);
    free_tensors(&l);
}

static void test_vocabulary(void **state)
{
    fixture *f = *state;
    tensor_list l = {0};
    write_text(f, "config.json", config);
    put_head(&l);
    set_offset(&l, 3, 7);
    write_model(f, &l);
    assert_refused(f,
                   "'d2t' adds 7 to draft token 3, which is not a token of the vocabulary of 10");
    set_offset(&l, 3, -4);
    write_model(f, &l);
    assert_refused(f, "'d2t' adds -4 to draft token 3");
    set_offset(&l, 3, 4);
    write_model(f, &l);
    assert_refused(f, "'d2t' maps the draft tokens 2 and 3 to the same token 7");
    set_offset(&l, 3, 5);
    write_model(f, &l);
    assert_refused(f, "'t2d' excludes token 8, but 'd2t' includes it");
    set_offset(&l, 3, 6);
    drop(&l, "lm_head.weight");
    put(&l, DSC_F32, "lm_head.weight", DRAFTS + 1, HIDDEN);
    write_model(f, &l);
    assert_refused(f, "'lm_head.weight' has shape [5, 8]; config.json requires [4, 8]");
    drop(&l, "lm_head.weight");
    put(&l, DSC_F32, "lm_head.weight", DRAFTS, HIDDEN);
    drop(&l, "fc.weight");
    put(&l, DSC_F32, "fc.weight", HIDDEN, 2 * HIDDEN);
    write_model(f, &l);
    assert_refused(f, "'fc.weight' has shape [8, 16]; config.json requires [8, 24]");
    drop(&l, "fc.weight");
    put(&l, DSC_F32, "fc.weight", HIDDEN, 3 * HIDDEN);
    drop(&l, "d2t");
    write_model(f, &l);
    assert_refused(f, "tensor 'd2t' of an EAGLE-3 head is missing");
    put(&l, DSC_I32, "d2t", DRAFTS, 0);
    write_model(f, &l);
    assert_refused(f, "'d2t' is not a vector of 4 numbers of dtype I64");
    free_tensors(&l);
}

static void test_configuration(void **state)
{
    static const struct {
        const char *keys, *says;
    } cases[] = {
        {"\"num_hidden_layers\": 1", "'draft_vocab_size' is missing"},
        {"\"num_hidden_layers\": 1, \"draft_vocab_size\": 11", "from 1 to 10"},
        {"\"num_hidden_layers\": 2, \"draft_vocab_size\": 4", "an EAGLE-3 head has 1 layer"},
        {"\"num_hidden_layers\": 1, \"draft_vocab_size\": 4, \"tie_word_embeddings\": true",
         "'tie_word_embeddings' true"},
        {"\"num_hidden_layers\": 1, \"draft_vocab_size\": 4, \"target_hidden_size\": 16",
         "only equal sizes are supported"},
        {"\"num_hidden_layers\": 1, \"draft_vocab_size\": 4, \"norm_before_fc\": true",
         "'norm_before_fc' true is not supported"},
        {"\"num_hidden_layers\": 1, \"draft_vocab_size\": 4, \"fc_norm\": true",
         "'fc_norm' true is not supported"},
        {"\"num_hidden_layers\": 1, \"draft_vocab_size\": 4, \"norm_output\": true",
         "'norm_output' true is not supported"},
        {"\"num_hidden_layers\": 1, \"draft_vocab_size\": 4, \"norm_before_residual\": 1",
         "'norm_before_residual'"},
        {"\"speculators_model_type\": \"dflash\", \"draft_vocab_size\": 4",
         "'speculators_model_type' is \"dflash\"; only eagle3 is supported"},
        {"\"speculators_model_type\": \"eagle3\", \"draft_vocab_size\": 4",
         "'transformer_layer_config' is missing or not an object"},
        {"\"num_hidden_layers\": 1, \"draft_vocab_size\": 4,"
         "\"eagle_aux_hidden_state_layer_ids\": [1, 2]",
         "must be a list of 3 layers"},
        {"\"num_hidden_layers\": 1, \"draft_vocab_size\": 4,"
         "\"eagle_aux_hidden_state_layer_ids\": [2, 2, 3]",
         "3 different layers in ascending order"},
    };
    fixture *f = *state;
    tensor_list l = {0};
    put_head(&l);
    write_model(f, &l);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[600];
        snprintf(text, sizeof text,
                 "{\"architectures\": [\"LlamaForCausalLMEagle3\"], %s, " SIZES "}", cases[i].keys);
        write_text(f, "config.json", text);
        assert_refused(f, cases[i].says);
    }
    // Only the tensors show what this head is.
    write_text(f, "config.json",
               "{\"model_type\": \"llama\", \"num_hidden_layers\": 1, " SIZES "}");
    assert_refused(f, "'draft_vocab_size' is missing");
    free_tensors(&l);
}

// A folder of the speculators library: the block's keys are nested, its tensors have other names,
// and norm_before_residual is true unless stated (as in vLLM).
static void test_speculators(void **state)
{
    static const struct {
        const char *keys;
        bool before;
    } cases[] = {
        {"", true},
        {"\"norm_before_residual\": true, ", true},
        {"\"norm_before_residual\": false, \"fc_norm\": false, ", false},
    };
    fixture *f = *state;
    tensor_list l = {0};
    put_head(&l);
    for (size_t i = 0; i < l.count; i++) {
        char old[sizeof l.name[i]];
        strcpy(old, l.name[i]);
        if (!strncmp(old, "midlayer.", 9))
            snprintf(l.name[i], sizeof l.name[i], "layers.0.%s", old + 9);
    }
    write_model(f, &l);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[900];
        dsc_error err = {0};
        live_weights *w;
        host_device d = host_new(f);
        snprintf(text, sizeof text,
                 "{\"architectures\": [\"Eagle3Speculator\"], \"draft_vocab_size\": 4, %s"
                 "\"speculators_model_type\": \"eagle3\", \"dtype\": \"float32\","
                 "\"eagle_aux_hidden_state_layer_ids\": [0, 2, 3],"
                 "\"transformer_layer_config\": {\"model_type\": \"llama\","
                 "\"num_hidden_layers\": 1, " SIZES "}}",
                 cases[i].keys);
        write_text(f, "config.json", text);
        assert_ok(live_weights_load(&w, f->folder, &d.b, NULL, &err), err);
        assert_int_equal(w->config.family, LIVE_EAGLE3);
        assert_int_equal(w->config.draft_vocab, DRAFTS);
        assert_int_equal(w->config.tap[1], 2);
        assert_int_equal(w->config.norm_before_residual, cases[i].before);
        live_weights_free(w);
    }
    free_tensors(&l);
}

// Without d2t a head drafts every token of the target; nothing is reduced.
static void test_whole_vocabulary(void **state)
{
    fixture *f = *state;
    tensor_list l = {0};
    dsc_error err = {0};
    live_weights *w;
    host_device d = host_new(f);
    write_text(f, "config.json",
               "{\"architectures\": [\"LlamaForCausalLMEagle3\"], \"num_hidden_layers\": 1,"
               "\"draft_vocab_size\": 10, " SIZES "}");
    put_head(&l);
    drop(&l, "d2t");
    drop(&l, "t2d");
    drop(&l, "lm_head.weight");
    put(&l, DSC_F32, "lm_head.weight", VOCAB, HIDDEN);
    write_model(f, &l);
    assert_ok(live_weights_load(&w, f->folder, &d.b, NULL, &err), err);
    for (int32_t x = 0; x < VOCAB; x++)
        assert_int_equal(w->column[x], x);
    assert_null(w->drafted);
    live_weights_free(w);
    free_tensors(&l);
}

static void assert_taps(const live_config *c, int64_t layers, int64_t a, int64_t b, int64_t z)
{
    dsc_error err = {0};
    int64_t tap[LIVE_TAPS];
    assert_ok(live_config_taps(c, layers, tap, &err), err);
    assert_int_equal(tap[0], a);
    assert_int_equal(tap[1], b);
    assert_int_equal(tap[2], z);
}

static void test_taps(void **state)
{
    fixture *f = *state;
    live_config c;
    dsc_error err = {0};
    int64_t tap[LIVE_TAPS];
    write_text(f, "config.json", config);
    assert_ok(live_config_read(&c, f->folder, &err), err);
    assert_taps(&c, 32, 2, 16, 29);
    assert_int_equal(live_config_taps(&c, 4, tap, &err), DSC_EUSAGE);
    assert_non_null(strstr(err.message, "eagle_aux_hidden_state_layer_ids"));
    write_text(f, "config.json",
               "{\"architectures\": [\"LlamaForCausalLMEagle3\"], \"num_hidden_layers\": 1,"
               "\"draft_vocab_size\": 4, \"eagle_config\":"
               "{\"eagle_aux_hidden_state_layer_ids\": [0, 1, 3]}, " SIZES "}");
    assert_ok(live_config_read(&c, f->folder, &err), err);
    assert_taps(&c, 4, 1, 2, 4);
    assert_int_equal(live_config_taps(&c, 3, tap, &err), DSC_EUSAGE);
    assert_non_null(strstr(err.message, "the EAGLE-3 head reads layer 4"));
}

SUITE(live_eagle3)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_weights, setup_folder, teardown_folder),
        cmocka_unit_test_setup_teardown(test_vocabulary, setup_folder, teardown_folder),
        cmocka_unit_test_setup_teardown(test_configuration, setup_folder, teardown_folder),
        cmocka_unit_test_setup_teardown(test_speculators, setup_folder, teardown_folder),
        cmocka_unit_test_setup_teardown(test_whole_vocabulary, setup_folder, teardown_folder),
        cmocka_unit_test_setup_teardown(test_taps, setup_folder, teardown_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// Weights of every architecture land where the forward pass looks for them, and what is wrong with
// a checkpoint is named. The numbers of a tensor are known by its name and their place in it.
#include "tests/unit/live_weights_fixture.h"

#include "live/device/cpu_kernel.h"
#include "live/model/numbers.h"
#include "live/model/vocabulary.h"

// --- the architectures -------------------------------------------------------------------------

static void llama_of(fixture *f, dsc_dtype t, const char *prefix)
{
    host_device d = host_new(f);
    tensor_list l = {0};
    char *unused, name[80];
    write_text(f, "config.json", llama_config);
    put_llama(&l, t, prefix);
    put(&l, DSC_F32, "model.layers.0.self_attn.rotary_emb.inv_freq", 3, 0);
    put(&l, DSC_I64, "model.position_ids", 3, 0);
    write_model(f, &l);
    live_weights *w = load_ok(&d, &unused);
    assert_string_equal(unused, "");
    check_llama(w, t, prefix);
    snprintf(name, sizeof name, "%sembed_tokens.weight", prefix);
    assert_rows(&w->embed, 0, VOCAB, name);
    assert_rows(&w->head, 0, VOCAB, "lm_head.weight");
    snprintf(name, sizeof name, "%snorm.weight", prefix);
    assert_vector(w->norm, 0, HIDDEN, name);
    assert_int_equal(w->config.dtype, t); // of the tensors
    assert_true(w->load_s > 0 && w->file_bytes > 0);
    live_weights_free(w);
    assert_int_equal(f->held, 0);
    free(unused);
    free_tensors(&l);
}

static void test_llama(void **state)
{
    llama_of(*state, DSC_F32, "model.");
    llama_of(*state, DSC_BF16, "model.");
    llama_of(*state, DSC_F16, "");
}

// Matrices in BF16, norms in F32: as some checkpoints are.
static void test_mixed(void **state)
{
    fixture *f = *state;
    host_device d = host_new(f);
    tensor_list l = {0};
    write_text(f, "config.json", llama_config);
    put_llama(&l, DSC_BF16, "model.");
    drop(&l, "model.norm.weight");
    put(&l, DSC_F32, "model.norm.weight", HIDDEN, 0);
    write_model(f, &l);
    live_weights *w = load_ok(&d, NULL);
    assert_vector(w->norm, 0, HIDDEN, "model.norm.weight");
    live_weights_free(w);
    drop(&l, "model.layers.1.self_attn.k_proj.weight");
    put(&l, DSC_F32, "model.layers.1.self_attn.k_proj.weight", KV * HEAD, HIDDEN);
    write_model(f, &l);
    assert_refused(f, DSC_EINPUT,
                   "k_proj.weight' has dtype F32, other rows of the same matrix have BF16");
    free_tensors(&l);
}

static void test_qwen(void **state)
{
    fixture *f = *state;
    host_device d = host_new(f);
    tensor_list l = {0};
    write_text(f, "config.json",
               "{\"model_type\": \"qwen3\", \"hidden_size\": 8, \"intermediate_size\": 12,"
               "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"num_key_value_heads\": 2,"
               "\"head_dim\": 6, \"vocab_size\": 10, \"attention_bias\": true,"
               "\"tie_word_embeddings\": true}");
    put_llama(&l, DSC_F32, "model.");
    drop(&l, "lm_head.weight");
    for (int i = 0; i < LAYERS; i++) {
        static const struct {
            const char *name;
            int rows;
        } vectors[] = {{"q_norm.weight", HEAD},       {"k_norm.weight", HEAD},
                       {"q_proj.bias", HEADS * HEAD}, {"k_proj.bias", KV * HEAD},
                       {"v_proj.bias", KV * HEAD},    {"o_proj.bias", HIDDEN}};
        for (size_t k = 0; k < sizeof vectors / sizeof *vectors; k++) {
            char name[80];
            snprintf(name, sizeof name, "model.layers.%d.self_attn.%s", i, vectors[k].name);
            put(&l, DSC_F32, name, vectors[k].rows, 0);
        }
    }
    write_model(f, &l);
    live_weights *w = load_ok(&d, NULL);
    assert_ptr_equal(w->head.data, w->embed.data);
    const live_layer *last = &w->layer[1];
    assert_vector(last->q_norm, 0, HEAD, "model.layers.1.self_attn.q_norm.weight");
    assert_vector(last->k_norm, 0, HEAD, "model.layers.1.self_attn.k_norm.weight");
    assert_vector(last->qkv_bias, 0, HEADS * HEAD, "model.layers.1.self_attn.q_proj.bias");
    assert_vector(last->qkv_bias, HEADS * HEAD, KV * HEAD, "model.layers.1.self_attn.k_proj.bias");
    assert_vector(last->qkv_bias, (HEADS + KV) * HEAD, KV * HEAD,
                  "model.layers.1.self_attn.v_proj.bias");
    assert_vector(last->out_bias, 0, HIDDEN, "model.layers.1.self_attn.o_proj.bias");
    live_weights_free(w);
    free_tensors(&l);
}

// --- GPT-2 and GPT-NeoX, large enough that a tensor is read in several pieces -------------------

enum { WIDE = 480, WIDE_HEADS = 5, WIDE_HEAD = WIDE / WIDE_HEADS, WIDE_FEED = 640 };

static void put_wide(tensor_list *l, const char *format, int layer, int64_t rows, int64_t cols)
{
    char name[80], bias[90];
    snprintf(name, sizeof name, format, layer);
    snprintf(bias, sizeof bias, "%s.weight", name);
    put(l, DSC_F32, bias, rows, cols);
    // A norm's shift and a Conv1D's bias are as long as the output.
    snprintf(bias, sizeof bias, "%s.bias", name);
    put(l, DSC_F32, bias, cols && format[0] == 'h' ? cols : rows, 0);
}

static void test_gpt2(void **state)
{
    fixture *f = *state;
    host_device d = host_new(f);
    tensor_list l = {0};
    char *unused;
    write_text(f, "config.json",
               "{\"model_type\": \"gpt2\", \"n_embd\": 480, \"n_inner\": 640, \"n_layer\": 2,"
               "\"n_head\": 5, \"n_positions\": 20, \"vocab_size\": 10}");
    put(&l, DSC_F32, "wte.weight", VOCAB, WIDE);
    put(&l, DSC_F32, "wpe.weight", 20, WIDE);
    put(&l, DSC_F32, "ln_f.weight", WIDE, 0);
    put(&l, DSC_F32, "ln_f.bias", WIDE, 0);
    for (int i = 0; i < 2; i++) {
        put_wide(&l, "h.%d.ln_1", i, WIDE, 0);
        put_wide(&l, "h.%d.attn.c_attn", i, WIDE, 3 * WIDE);
        put_wide(&l, "h.%d.attn.c_proj", i, WIDE, WIDE);
        put_wide(&l, "h.%d.ln_2", i, WIDE, 0);
        put_wide(&l, "h.%d.mlp.c_fc", i, WIDE, WIDE_FEED);
        put_wide(&l, "h.%d.mlp.c_proj", i, WIDE_FEED, WIDE);
    }
    put(&l, DSC_F32, "h.0.attn.bias", 20, 20); // the causal mask of old checkpoints
    write_model(f, &l);
    live_weights *w = load_ok(&d, &unused);
    assert_string_equal(unused, "");
    assert_size(&w->layer[1].qkv, 3 * WIDE, WIDE, DSC_F32);
    assert_turned(&w->layer[1].qkv, "h.1.attn.c_attn.weight");
    assert_vector(w->layer[1].qkv_bias, 0, 3 * WIDE, "h.1.attn.c_attn.bias");
    assert_turned(&w->layer[0].out, "h.0.attn.c_proj.weight");
    assert_vector(w->layer[0].out_bias, 0, WIDE, "h.0.attn.c_proj.bias");
    assert_size(&w->layer[0].up, WIDE_FEED, WIDE, DSC_F32);
    assert_turned(&w->layer[0].up, "h.0.mlp.c_fc.weight");
    assert_vector(w->layer[0].up_bias, 0, WIDE_FEED, "h.0.mlp.c_fc.bias");
    assert_turned(&w->layer[1].down, "h.1.mlp.c_proj.weight");
    assert_vector(w->layer[1].down_bias, 0, WIDE, "h.1.mlp.c_proj.bias");
    assert_vector(w->layer[1].norm2, 0, WIDE, "h.1.ln_2.weight");
    assert_vector(w->layer[1].norm2_bias, 0, WIDE, "h.1.ln_2.bias");
    assert_rows(&w->positions, 0, 20, "wpe.weight");
    assert_rows(&w->embed, 0, VOCAB, "wte.weight");
    assert_vector(w->norm_bias, 0, WIDE, "ln_f.bias");
    assert_ptr_equal(w->head.data, w->embed.data);
    assert_null(w->inv_freq);
    live_weights_free(w);
    free(unused);
    free_tensors(&l);
}

// Row of the file of row `row` of the array.
static int64_t neox_row(int64_t row)
{
    int64_t which = row / WIDE, head = row % WIDE / WIDE_HEAD, at = row % WIDE_HEAD;
    return (head * 3 + which) * WIDE_HEAD + at;
}

static void test_neox(void **state)
{
    fixture *f = *state;
    host_device d = host_new(f);
    tensor_list l = {0};
    write_text(f, "config.json",
               "{\"model_type\": \"gpt_neox\", \"hidden_size\": 480, \"intermediate_size\": 640,"
               "\"num_hidden_layers\": 1, \"num_attention_heads\": 5, \"vocab_size\": 10}");
    put(&l, DSC_F32, "gpt_neox.embed_in.weight", VOCAB, WIDE);
    put(&l, DSC_F32, "gpt_neox.final_layer_norm.weight", WIDE, 0);
    put(&l, DSC_F32, "gpt_neox.final_layer_norm.bias", WIDE, 0);
    put(&l, DSC_F32, "embed_out.weight", VOCAB, WIDE);
    put_wide(&l, "gpt_neox.layers.%d.input_layernorm", 0, WIDE, 0);
    put_wide(&l, "gpt_neox.layers.%d.attention.query_key_value", 0, 3 * WIDE, WIDE);
    put_wide(&l, "gpt_neox.layers.%d.attention.dense", 0, WIDE, WIDE);
    put_wide(&l, "gpt_neox.layers.%d.post_attention_layernorm", 0, WIDE, 0);
    put_wide(&l, "gpt_neox.layers.%d.mlp.dense_h_to_4h", 0, WIDE_FEED, WIDE);
    put_wide(&l, "gpt_neox.layers.%d.mlp.dense_4h_to_h", 0, WIDE, WIDE_FEED);
    write_model(f, &l);
    live_weights *w = load_ok(&d, NULL);
    const live_layer *first = &w->layer[0];
    const char *bias = "gpt_neox.layers.0.attention.query_key_value.bias";
    for (int64_t i = 0; i < 3 * WIDE; i++) {
        assert_row(&first->qkv, i, "gpt_neox.layers.0.attention.query_key_value.weight",
                   neox_row(i), false);
        assert_close(first->qkv_bias[i], number_at(bias, neox_row(i), 0), 0);
    }
    assert_rows(&first->out, 0, WIDE, "gpt_neox.layers.0.attention.dense.weight");
    assert_rows(&first->up, 0, WIDE_FEED, "gpt_neox.layers.0.mlp.dense_h_to_4h.weight");
    assert_rows(&first->down, 0, WIDE, "gpt_neox.layers.0.mlp.dense_4h_to_h.weight");
    assert_vector(first->norm1_bias, 0, WIDE, "gpt_neox.layers.0.input_layernorm.bias");
    assert_rows(&w->head, 0, VOCAB, "embed_out.weight");
    live_weights_free(w);
    free_tensors(&l);
}

// --- heads -------------------------------------------------------------------------------------

static void test_eagle(void **state)
{
    fixture *f = *state;
    host_device d = host_new(f);
    tensor_list l = {0};
    char *unused;
    // As published, only the tensors show that this is a head.
    write_text(f, "config.json",
               "{\"model_type\": \"llama\", \"hidden_size\": 8, \"intermediate_size\": 12,"
               "\"num_hidden_layers\": 1, \"num_attention_heads\": 4, \"num_key_value_heads\": 2,"
               "\"head_dim\": 6, \"vocab_size\": 10}");
    put(&l, DSC_F16, "fc.weight", HIDDEN, 2 * HIDDEN);
    put(&l, DSC_F16, "fc.bias", HIDDEN, 0);
    put(&l, DSC_F16, "embed_tokens.weight", VOCAB, HIDDEN);
    put_block(&l, DSC_F16, "", 0, false);
    write_model(f, &l);
    live_weights *w = load_ok(&d, &unused);
    assert_int_equal(w->config.family, LIVE_EAGLE);
    assert_string_equal(unused, "");
    assert_rows(&w->embed, 0, VOCAB, "embed_tokens.weight");
    assert_rows(&w->join, 0, HIDDEN, "fc.weight");
    assert_vector(w->join_bias, 0, HIDDEN, "fc.bias");
    assert_rows(&w->layer[0].qkv, 0, HEADS * HEAD, "layers.0.self_attn.q_proj.weight");
    assert_vector(w->layer[0].norm2, 0, HIDDEN, "layers.0.post_attention_layernorm.weight");
    assert_null(w->layer[0].norm1);
    assert_null(w->norm);
    assert_int_equal(w->head.rows, 0);
    live_weights_free(w);
    free(unused);

    drop(&l, "fc.bias");
    drop(&l, "embed_tokens.weight");
    write_model(f, &l);
    w = load_ok(&d, NULL);
    assert_null(w->join_bias);
    assert_int_equal(w->embed.rows, 0); // the target's
    live_weights_free(w);

    put(&l, DSC_F16, "embed_tokens.weight", VOCAB + 1, HIDDEN);
    write_model(f, &l);
    assert_refused(f, DSC_EINPUT,
                   "'embed_tokens.weight' has shape [11, 8]; config.json requires [10, 8]");
    drop(&l, "embed_tokens.weight");

    put(&l, DSC_F16, "layers.0.input_layernorm.weight", HIDDEN, 0);
    write_model(f, &l);
    assert_refused(f, DSC_EINPUT, "an EAGLE head with this norm is not supported");
    free_tensors(&l);
}

static void test_medusa(void **state)
{
    fixture *f = *state;
    host_device d = host_new(f);
    tensor_list l = {0};
    char name[80];
    write_text(f, "config.json", "{\"medusa_num_heads\": 3, \"medusa_num_layers\": 2}");
    for (int head = 0; head < 3; head++) {
        for (int layer = 0; layer < 2; layer++) {
            snprintf(name, sizeof name, "%d.%d.linear.weight", head, layer);
            put(&l, DSC_BF16, name, HIDDEN, HIDDEN);
            snprintf(name, sizeof name, "%d.%d.linear.bias", head, layer);
            put(&l, DSC_BF16, name, HIDDEN, 0);
        }
        snprintf(name, sizeof name, "%d.2.weight", head);
        put(&l, DSC_BF16, name, VOCAB, HIDDEN);
    }
    write_some(f, "medusa_lm_head.safetensors", &l, 0, l.count); // as published
    live_weights *w = load_ok(&d, NULL);
    assert_int_equal(w->config.hidden, HIDDEN);
    assert_int_equal(w->config.vocab, VOCAB);
    assert_size(&w->medusa[2].linear, 2 * HIDDEN, HIDDEN, DSC_BF16);
    assert_rows(&w->medusa[2].linear, 0, HIDDEN, "2.0.linear.weight");
    assert_rows(&w->medusa[2].linear, HIDDEN, HIDDEN, "2.1.linear.weight");
    assert_vector(w->medusa[2].linear_bias, HIDDEN, HIDDEN, "2.1.linear.bias");
    assert_rows(&w->medusa[1].out, 0, VOCAB, "1.2.weight");
    live_weights_free(w);
    drop(&l, "1.2.weight");
    write_some(f, "medusa_lm_head.safetensors", &l, 0, l.count);
    assert_refused(f, DSC_EINPUT, "tensor '1.2.weight' is missing");
    free_tensors(&l);
}

// --- tied output matrices ----------------------------------------------------------------------

static void test_tied(void **state)
{
    fixture *f = *state;
    host_device d = host_new(f);
    tensor_list l = {0};
    char json[400], *unused;
    snprintf(json, sizeof json, "%.*s, \"tie_word_embeddings\": true}",
             (int)strlen(llama_config) - 1, llama_config);
    write_text(f, "config.json", json);
    put_llama(&l, DSC_BF16, "model.");
    write_model(f, &l); // another lm_head
    assert_refused(f, DSC_EINPUT, "'lm_head.weight' differs from 'model.embed_tokens.weight'");
    dsc_tensor *head = tensor_named(&l, "lm_head.weight");
    memcpy((void *)head->data, tensor_named(&l, "model.embed_tokens.weight")->data,
           (size_t)head->count * 2);
    write_model(f, &l); // the same
    live_weights *w = load_ok(&d, &unused);
    assert_string_equal(unused, "");
    assert_ptr_equal(w->head.data, w->embed.data);
    assert_rows(&w->head, 0, VOCAB, "model.embed_tokens.weight");
    live_weights_free(w);
    assert_int_equal(f->held, 0);
    free(unused);
    free_tensors(&l);
}

// --- shards ------------------------------------------------------------------------------------

// model.safetensors.index.json of the list, the first `first` tensors in a, the others in b.
static void write_index(const fixture *f, const tensor_list *l, size_t first, const char *a,
                        const char *b)
{
    char text[8000];
    size_t at = (size_t)snprintf(text, sizeof text, "{\"metadata\": {}, \"weight_map\": {");
    for (size_t i = 0; i < l->count; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s\"%s\": \"%s\"", i ? ", " : "",
                               l->name[i], i < first ? a : b);
    snprintf(text + at, sizeof text - at, "}}");
    write_text(f, "model.safetensors.index.json", text);
}

static void test_shards(void **state)
{
    fixture *f = *state;
    host_device d = host_new(f);
    tensor_list l = {0};
    write_text(f, "config.json", llama_config);
    put_llama(&l, DSC_F32, "model.");
    write_some(f, "a.safetensors", &l, 0, 7);
    write_some(f, "b.safetensors", &l, 7, l.count);
    write_index(f, &l, 7, "a.safetensors", "b.safetensors");
    live_weights *w = load_ok(&d, NULL);
    check_llama(w, DSC_F32, "model.");
    live_weights_free(w);

    write_index(f, &l, 8, "a.safetensors", "b.safetensors");
    assert_refused(f, DSC_EINPUT, "is not in a.safetensors");
    write_some(f, "b.safetensors", &l, 6, l.count); // the last of a's, twice
    write_index(f, &l, 7, "a.safetensors", "b.safetensors");
    assert_refused(f, DSC_EINPUT, "is in b.safetensors, but the index lists a.safetensors");
    write_some(f, "b.safetensors", &l, 7, l.count);
    static const char *const outside[] = {
        "../a.safetensors", "/tmp/a.safetensors", "x/a.safetensors", ".safetensors", "a.bin", ""};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        write_index(f, &l, 7, outside[i], "b.safetensors");
        assert_refused(f, DSC_EINPUT, "is not a .safetensors file of this folder");
    }
    write_index(f, &l, 7, "c.safetensors", "b.safetensors");
    assert_refused(f, DSC_EINPUT, "c.safetensors");
    l.count--;
    write_index(f, &l, 7, "a.safetensors", "b.safetensors");
    l.count++;
    assert_refused(f, DSC_EINPUT, "but the index lists no file");
    write_text(f, "model.safetensors.index.json", "{\"weight_map\": []}");
    assert_refused(f, DSC_EINPUT, "'weight_map' is not an object of tensors");
    write_text(f, "model.safetensors.index.json", "{\"weight_map\": {\"x\": 3}}");
    assert_refused(f, DSC_EINPUT, "the file of tensor 'x' is not a string");
    free_tensors(&l);
}

// --- what is wrong with a checkpoint is named ---------------------------------------------------

static void test_not_finite(void **state)
{
    static const struct {
        dsc_dtype t;
        const char *tensor;
        size_t at;
        uint32_t bits;
        const char *says;
    } cases[] = {
        {DSC_BF16, "model.layers.1.mlp.up_proj.weight", 3 * HIDDEN + 5, 0x7fc0,
         "'model.layers.1.mlp.up_proj.weight' contains NaN at [3, 5]"},
        {DSC_BF16, "lm_head.weight", 0, 0xff80, "'lm_head.weight' contains an infinity at [0, 0]"},
        {DSC_F16, "model.norm.weight", 7, 0x7c00,
         "'model.norm.weight' contains an infinity at [7]"},
        {DSC_F16, "model.norm.weight", 1, 0xfe00, "'model.norm.weight' contains NaN at [1]"},
        {DSC_F32, "model.embed_tokens.weight", 79, 0xff800001, "contains NaN at [9, 7]"},
        {DSC_F32, "model.embed_tokens.weight", 79, 0xff800000, "contains an infinity at [9, 7]"},
    };
    fixture *f = *state;
    write_text(f, "config.json", llama_config);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tensor_list l = {0};
        put_llama(&l, cases[i].t, "model.");
        set_bits(tensor_named(&l, cases[i].tensor), cases[i].at, cases[i].bits);
        write_model(f, &l);
        assert_refused(f, DSC_EINPUT, cases[i].says);
        free_tensors(&l);
    }
}

// Every place of long arrays, and the largest numbers that are finite.
static void test_all_finite(void **state)
{
    enum { COUNT = 700 };
    static const struct {
        dsc_dtype t;
        uint32_t largest, infinity;
    } kinds[] = {
        {DSC_F32, 0xff7fffff, 0xff800000}, {DSC_F16, 0xfbff, 0x7c00}, {DSC_BF16, 0xff7f, 0x7f80}};
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        unsigned char data[4 * COUNT];
        dsc_tensor t = {.dtype = kinds[k].t, .data = data};
        size_t bad = 0;
        for (size_t i = 0; i < COUNT; i++)
            set_bits(&t, i, kinds[k].largest);
        assert_true(live_all_finite(data, t.dtype, COUNT, &bad));
        for (size_t i = 0; i < COUNT; i++) {
            set_bits(&t, i, kinds[k].infinity);
            assert_false(live_all_finite(data, t.dtype, COUNT, &bad));
            assert_int_equal(bad, i);
            assert_true(live_all_finite(data, t.dtype, i, &bad));
            assert_false(live_is_nan(data, t.dtype, i));
            set_bits(&t, i, kinds[k].infinity + 1);
            assert_false(live_all_finite(data, t.dtype, COUNT, &bad));
            assert_true(live_is_nan(data, t.dtype, i));
            set_bits(&t, i, kinds[k].largest);
        }
    }
}

static void test_to_float(void **state)
{
    static const uint16_t half[] = {0x3c00, 0x7bff, 0x0001, 0x83ff, 0x0400, 0xc100, 0x8000};
    static const double value[] = {1, 65504, 0x1p-24, -1023 * 0x1p-24, 0x1p-14, -2.5, -0.0};
    static const uint16_t bf16[] = {0x3f80, 0xc020, 0x0001};
    static const double of_bf16[] = {1, -2.5, 0x1p-133};
    float out[7];
    (void)state;
    live_cpu_kernel_c.widen(out, half, DSC_F16, 7);
    for (int i = 0; i < 7; i++)
        assert_close(out[i], value[i], 0);
    assert_true(signbit(out[6]));
    live_cpu_kernel_c.widen(out, bf16, DSC_BF16, 3);
    for (int i = 0; i < 3; i++)
        assert_close(out[i], of_bf16[i], 0);
}

static void test_shapes(void **state)
{
    fixture *f = *state;
    tensor_list l = {0};
    write_text(f, "config.json", llama_config);
    put_llama(&l, DSC_F32, "model.");
    drop(&l, "model.layers.1.mlp.down_proj.weight");
    write_model(f, &l);
    assert_refused(f, DSC_EINPUT, "tensor 'model.layers.1.mlp.down_proj.weight' is missing");
    put(&l, DSC_F32, "model.layers.1.mlp.down_proj.weight", FEED, HIDDEN);
    write_model(f, &l);
    assert_refused(f, DSC_EINPUT,
                   "down_proj.weight' has shape [12, 8]; config.json requires [8, 12]");
    drop(&l, "model.layers.1.mlp.down_proj.weight");
    put(&l, DSC_F64, "model.layers.1.mlp.down_proj.weight", HIDDEN, FEED);
    write_model(f, &l);
    assert_refused(f, DSC_EINPUT, "down_proj.weight' has dtype F64, which is not supported");
    drop(&l, "model.layers.1.mlp.down_proj.weight");
    put(&l, DSC_F32, "model.layers.1.mlp.down_proj.weight", HIDDEN, FEED);
    drop(&l, "model.norm.weight");
    put(&l, DSC_F32, "model.norm.weight", HIDDEN, 1);
    write_model(f, &l);
    assert_refused(f, DSC_EINPUT, "norm.weight' has shape [8, 1]; config.json requires [8]");
    drop(&l, "model.embed_tokens.weight");
    write_model(f, &l);
    assert_refused(f, DSC_EINPUT, "tensor 'model.embed_tokens.weight' is missing");
    free_tensors(&l);
}

static void test_files(void **state)
{
    fixture *f = *state;
    tensor_list l = {0};
    char path[200];
    snprintf(path, sizeof path, "%s/model.safetensors", f->folder);
    write_text(f, "config.json", llama_config);
    assert_refused(f, DSC_EINPUT, "no weights found (neither model.safetensors nor");
    write_text(f, "training_args.bin", "x");
    assert_refused(f, DSC_EINPUT, "no weights");
    write_text(f, "pytorch_model-00001-of-00002.bin", "x");
    write_text(f, "optimizer.pt", "x");
    assert_refused(f, DSC_EINPUT, ": to convert pytorch_model-00001-of-00002.bin (a pickle");
    assert_refused(f, DSC_EINPUT, "'model.safetensors')\" ./pytorch_model*.bin");
    put_llama(&l, DSC_F32, "model.");
    write_model(f, &l);
    f->memory = 100;
    assert_refused(f, DSC_ENOMEM, "the weights need");
    assert_int_equal(truncate(path, 5000), 0);
    assert_refused(f, DSC_EINPUT, "truncated");
    free_tensors(&l);
}

// --- random weights ----------------------------------------------------------------------------

static void test_random(void **state)
{
    fixture *f = *state;
    host_device d = host_new(f);
    dsc_error err = {0};
    live_config c;
    live_weights *w;
    write_text(f, "config.json", llama_config);
    assert_ok(live_config_read(&c, f->folder, &err), err);
    assert_ok(live_weights_random(&w, &c, DSC_BF16, 7, &d.b, &err), err);
    assert_close(w->bytes, live_config_weight_bytes(&c, DSC_BF16), 0);
    assert_int_equal(w->config.dtype, DSC_BF16);
    assert_int_equal(f->fills, 2 + 4 * LAYERS);
    assert_close(f->limit[0], sqrt(3), 1e-12);                                  // embedding
    assert_close(f->limit[1], sqrt(3. / HIDDEN), 1e-12);                        // qkv
    assert_close(f->limit[2], sqrt(3. / (HEADS * HEAD) / (2 * LAYERS)), 1e-12); // out
    for (int i = 0; i < HIDDEN; i++)
        assert_close(w->layer[1].norm2[i], 1, 0);
    live_weights_free(w);
    assert_int_equal(f->held, 0);
    f->memory = 10;
    assert_int_equal(live_weights_random(&w, &c, DSC_BF16, 7, &d.b, &err), DSC_ENOMEM);
    assert_int_equal(f->held, 0);
}

// --- vocabularies ------------------------------------------------------------------------------

static dsc_tokenizer *tokenizer_of(const fixture *f, const char *vocabulary)
{
    char path[200], json[1000];
    dsc_error err = {0};
    dsc_tokenizer *t;
    snprintf(json, sizeof json,
             "{\"version\": \"1.0\", \"added_tokens\": [], \"normalizer\": null,"
             "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false,"
             "\"trim_offsets\": true, \"use_regex\": true}, \"post_processor\": null,"
             "\"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true,"
             "\"trim_offsets\": true, \"use_regex\": true}, \"model\": {\"type\": \"BPE\","
             "\"dropout\": null, \"unk_token\": null, \"fuse_unk\": false,"
             "\"byte_fallback\": false, \"vocab\": {%s}, \"merges\": []}}",
             vocabulary);
    write_text(f, "tokenizer.json", json);
    snprintf(path, sizeof path, "%s/tokenizer.json", f->folder);
    assert_ok(dsc_tokenizer_load(&t, path, &err), err);
    return t;
}

static void test_vocabulary(void **state)
{
    const fixture *f = *state;
    dsc_error err = {0};
    dsc_tokenizer *a = tokenizer_of(f, "\"a\": 0, \"b\": 1, \"c\": 2");
    dsc_tokenizer *same = tokenizer_of(f, "\"c\": 2, \"b\": 1, \"a\": 0");
    dsc_tokenizer *other = tokenizer_of(f, "\"a\": 0, \"d\": 1, \"c\": 2");
    dsc_tokenizer *prefix = tokenizer_of(f, "\"a\": 0, \"b\": 1, \"cc\": 2");
    dsc_tokenizer *longer = tokenizer_of(f, "\"a\": 0, \"b\": 1, \"c\": 2, \"e\": 3");
    assert_ok(live_vocabulary_match(a, a, 3, 3, &err), err);
    assert_ok(live_vocabulary_match(a, same, 131, 3, &err), err);
    assert_ok(live_vocabulary_match(a, same, 3, 131, &err), err);
    assert_ok(live_vocabulary_match(NULL, NULL, 3, 3, &err), err);
    assert_int_equal(live_vocabulary_match(a, a, 132, 3, &err), DSC_EINPUT);
    assert_non_null(strstr(err.message, "132 and 3 tokens, more than 128 apart"));
    assert_int_equal(live_vocabulary_match(a, other, 3, 3, &err), DSC_EINPUT);
    assert_non_null(strstr(err.message, "token 1 is \"b\" in the target and \"d\" in the draft"));
    assert_int_equal(live_vocabulary_match(a, prefix, 3, 3, &err), DSC_EINPUT);
    assert_non_null(strstr(err.message, "token 2 is \"c\" in the target and \"cc\" in the draft"));
    assert_int_equal(live_vocabulary_match(a, longer, 4, 4, &err), DSC_EINPUT);
    assert_non_null(strstr(err.message, "token 3 is no text in the target and \"e\" in the draft"));
    assert_int_equal(live_vocabulary_match(a, NULL, 3, 3, &err), DSC_EINPUT);
    assert_non_null(strstr(err.message, "the draft has no tokenizer.json"));
    dsc_tokenizer_free(a);
    dsc_tokenizer_free(same);
    dsc_tokenizer_free(other);
    dsc_tokenizer_free(prefix);
    dsc_tokenizer_free(longer);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_folder, teardown_folder)

SUITE(live_weights)
{
    const struct CMUnitTest tests[] = {
        TEST(test_llama),  TEST(test_mixed),      TEST(test_qwen),       TEST(test_gpt2),
        TEST(test_neox),   TEST(test_eagle),      TEST(test_medusa),     TEST(test_tied),
        TEST(test_shards), TEST(test_not_finite), TEST(test_all_finite), TEST(test_to_float),

        TEST(test_shapes), TEST(test_files),      TEST(test_random),     TEST(test_vocabulary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// Reads config.json of the supported architectures. A missing key has the default of transformers'
// configuration class, so that a checkpoint means here what it means there.
#include "live/model/config.h"

#include "base/memory.h"
#include "live/model/checkpoint.h"
#include "live/model/eagle3.h"
#include "live/model/gguf.h"
#include "live/model/keys.h"
#include "live/model/rope.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

// LARGEST keeps the product of two sizes far below 2^63.
enum { LONGEST_FILE = 1 << 20, LARGEST = 10000000, MOST_LAYERS = 1000, MOST_HEADS = 100000 };
enum { MOST_MEDUSA_HEADS = 64, MOST_MEDUSA_LAYERS = 16 };

typedef struct architecture {
    const char *model_type;
    live_family family;
    // Defaults of missing keys.
    int64_t positions, kv_heads, head, window; // kv_heads 0: heads; head 0: hidden / heads
    int64_t begin, end;                        // -1: none
    // Features that distinguish Llama's relatives.
    bool qkv_bias, qk_norm; // always there
    bool bias_keys;         // attention_bias
    bool mixed_window;      // use_sliding_window, max_window_layers
} architecture;

// clang-format off
static const architecture architectures[] = {
    {"llama",    LIVE_LLAMA, 2048,   0,  0,   0,    1, 2, .bias_keys = true},
    {"mistral",  LIVE_LLAMA, 131072, 8,  0,   4096, 1, .end = 2},
    {"qwen2",    LIVE_LLAMA, 32768,  32, 0,   4096, -1, -1, .qkv_bias = true, .mixed_window = true},
    {"qwen3",    LIVE_LLAMA, 32768,  32, 128, 4096, -1, -1, .bias_keys = true, .qk_norm = true,
     .mixed_window = true},
    {"gpt2",     LIVE_GPT2,  1024,   0,  0,   0,    50256, .end = 50256},
    {"gpt_neox", LIVE_NEOX,  2048,   0,  0,   0,    0, .end = 2},
};
// clang-format on
enum { ARCHITECTURES = sizeof architectures / sizeof *architectures };

// --- what is not supported -------------------------------------------------------------------

// Keys that request a feature which is not supported, in models that share their model_type with a
// supported one.
static const struct {
    const char *key, *what;
} refused[] = {
    {"quantization_config", "quantized weights"},
    {"compression_config", "compressed weights"},
    {"num_local_experts", "a mixture of experts"},
    {"num_experts", "a mixture of experts"},
    {"n_routed_experts", "a mixture of experts"},
    {"kv_lora_rank", "latent attention"},
    {"no_rope_layers", "layers without rotation"},
    {"attn_logit_softcapping", "capped attention"},
    {"final_logit_softcapping", "capped logits"},
    {"logit_scale", "scaled logits"},
    {"scale_attn_by_inverse_layer_idx", "attention scaled by the layer"},
    {"is_encoder_decoder", "an encoder"},
    {"add_cross_attention", "attention to an encoder"},
    {"alibi", "attention biased by distance"},
};

static int check_features(const live_keys *k)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        json_t *x = live_key(k, refused[i].key, NULL);
        if (x && !json_is_false(x) && !(json_is_integer(x) && json_integer_value(x) == 0))
            return live_key_fail(k, "'%s' requests %s, which is not supported", refused[i].key,
                                 refused[i].what);
    }
    return DSC_OK;
}

// transformers 5 lists the attention type of each layer. *listed: the list is present, and either
// all layers have sliding attention or none.
static int read_layer_types(const live_keys *k, bool *listed, bool *sliding)
{
    json_t *types = live_key(k, "layer_types", NULL), *type;
    size_t i, sliders = 0, count = json_array_size(types);
    *listed = count > 0;
    json_array_foreach(types, i, type)
    {
        const char *text = json_string_value(type);
        if (!text || (strcmp(text, "full_attention") && strcmp(text, "sliding_attention")))
            return live_key_fail(k, "'layer_types[%zu]' \"%.40s\" is not supported", i,
                                 text ? text : "(not a string)");
        sliders += *text == 's';
    }
    *sliding = sliders > 0;
    if (sliders > 0 && sliders < count)
        return live_key_fail(
            k,
            "'layer_types': %zu of %zu layers have sliding-window attention; a mixture is "
            "not supported",
            sliders, count);
    return DSC_OK;
}

static int read_window(live_config *c, const architecture *a, const live_keys *k)
{
    int64_t window = 0;
    bool listed = false, sliding = false;
    if (!a->window)
        return DSC_OK;
    if (!json_is_null(json_object_get(k->object, "sliding_window")))
        window = live_key_count(k, "sliding_window", NULL, 1, INT32_MAX, a->window);
    if (!a->mixed_window) {
        c->window = window;
        return k->err->status;
    }
    const bool use = live_key_flag(k, "use_sliding_window", false);
    read_layer_types(k, &listed, &sliding);
    const int64_t first = live_key_count(k, "max_window_layers", NULL, 0, LARGEST, 28);
    if (!use || !window)
        return k->err->status;
    if (!listed && first > 0 && first < c->layers)
        return live_key_fail(k,
                             "'max_window_layers': sliding-window attention from layer %" PRId64
                             " on; a mixture is not supported",
                             first);
    c->window = (listed ? sliding : first == 0) ? window : 0;
    return k->err->status;
}

// --- common keys -------------------------------------------------------------------------------

static int read_dtype(live_config *c, const live_keys *k)
{
    const char *text = live_key_text(k, "dtype", "torch_dtype", "float32");
    const char *name = strncmp(text, "torch.", 6) == 0 ? text + 6 : text;
    if (strcmp(name, "float32") == 0)
        c->dtype = DSC_F32;
    else if (strcmp(name, "float16") == 0)
        c->dtype = DSC_F16;
    else if (strcmp(name, "bfloat16") == 0)
        c->dtype = DSC_BF16;
    else
        live_key_fail(k, "'dtype' \"%.40s\" is not supported (float32, float16 and bfloat16 are)",
                      text);
    return k->err->status;
}

static int read_activation(live_config *c, const live_keys *k, const char *name)
{
    static const struct {
        const char *name;
        live_activation kind;
    } known[] = {{"silu", LIVE_SILU_GATE},      {"swish", LIVE_SILU_GATE},
                 {"gelu", LIVE_GELU},           {"gelu_new", LIVE_GELU_TANH},
                 {"gelu_fast", LIVE_GELU_TANH}, {"gelu_pytorch_tanh", LIVE_GELU_TANH}};
    bool gated = c->family == LIVE_LLAMA;
    const char *absent = gated ? "silu" : c->family == LIVE_GPT2 ? "gelu_new" : "gelu";
    const char *text = live_key_text(k, name, NULL, absent);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(text, known[i].name) == 0 && gated == (known[i].kind == LIVE_SILU_GATE)) {
            c->activation = known[i].kind;
            return k->err->status;
        }
    return live_key_fail(k, "'%s' \"%.40s\" is not supported for %s (%s)", name, text,
                         c->model_type,
                         gated ? "silu is" : "gelu, gelu_new, gelu_fast and gelu_pytorch_tanh are");
}

static int put_token(const live_keys *k, const char *name, json_t *x, int64_t vocab, int32_t *out)
{
    json_int_t id = json_integer_value(x);
    if (!json_is_integer(x) || id < 0 || id >= vocab)
        return live_key_fail(k, "'%s' must be a token id from 0 to %" PRId64 ", or a list of them",
                             name, vocab - 1);
    *out = (int32_t)id;
    return DSC_OK;
}

// Reads bos_token_id and eos_token_id if present; null: there is none.
static int read_tokens(live_config *c, const live_keys *k)
{
    json_t *begin = json_object_get(k->object, "bos_token_id");
    json_t *end = json_object_get(k->object, "eos_token_id"), *x;
    int rc = DSC_OK;
    size_t i;
    if (begin)
        c->begin = -1;
    if (begin && !json_is_null(begin))
        rc = put_token(k, "bos_token_id", begin, c->vocab, &c->begin);
    if (end)
        c->ends = 0;
    if (rc || !end || json_is_null(end))
        return rc;
    if (!json_is_array(end)) {
        c->ends = 1;
        return put_token(k, "eos_token_id", end, c->vocab, &c->end[0]);
    }
    if (json_array_size(end) > LIVE_MAX_ENDS)
        return live_key_fail(k, "'eos_token_id' lists %zu tokens; the limit is %d",
                             json_array_size(end), LIVE_MAX_ENDS);
    json_array_foreach(end, i, x) if (!rc) rc =
        put_token(k, "eos_token_id", x, c->vocab, &c->end[c->ends++]);
    return rc;
}

// Reads the sizes that every decoder has, under either spelling.
static int read_sizes(live_config *c, const architecture *a, const live_keys *k)
{
    c->hidden = live_key_count(k, "hidden_size", "n_embd", 1, LARGEST, 0);
    c->layers = live_key_count(k, "num_hidden_layers", "n_layer", 1, MOST_LAYERS, 0);
    c->heads = live_key_count(k, "num_attention_heads", "n_head", 1, MOST_HEADS, 0);
    c->vocab = live_key_count(k, "vocab_size", NULL, 1, LARGEST, 0);
    c->positions =
        live_key_count(k, "max_position_embeddings", "n_positions", 1, LARGEST, a->positions);
    c->feed_forward = live_key_count(k, "intermediate_size", "n_inner", 1, LARGEST,
                                     a->family == LIVE_GPT2 ? 4 * c->hidden : 0);
    return k->err->status;
}

// GPT-2 and GPT-NeoX do not share keys between heads, and a head has hidden / heads numbers.
static int read_heads(live_config *c, const architecture *a, const live_keys *k)
{
    bool llama = a->family == LIVE_LLAMA;
    bool null = json_is_null(json_object_get(k->object, "num_key_value_heads"));
    bool head_given = llama && (a->head || live_key(k, "head_dim", NULL));
    c->kv_heads = c->heads;
    c->head = c->hidden / c->heads;
    if (!head_given && c->hidden % c->heads)
        return live_key_fail(k, "hidden_size %" PRId64 " is not a multiple of %" PRId64 " heads",
                             c->hidden, c->heads);
    if (!llama)
        return DSC_OK;
    c->kv_heads = live_key_count(k, "num_key_value_heads", NULL, 1, MOST_HEADS,
                                 a->kv_heads && !null ? a->kv_heads : c->heads);
    c->head = live_key_count(k, "head_dim", NULL, 1, MOST_HEADS, a->head ? a->head : c->head);
    if (c->kv_heads > c->heads || c->heads % c->kv_heads)
        return live_key_fail(
            k, "%" PRId64 " attention heads are not a multiple of %" PRId64 " key and value heads",
            c->heads, c->kv_heads);
    return k->err->status;
}

// --- one architecture each ---------------------------------------------------------------------

static int read_llama(live_config *c, const architecture *a, const live_keys *k)
{
    if (read_heads(c, a, k))
        return k->err->status;
    c->norm = LIVE_RMS_NORM;
    c->norm_epsilon = live_key_real(k, "rms_norm_eps", NULL, 0, 1, 1e-6);
    read_activation(c, k, "hidden_act");
    c->out_bias = a->bias_keys && live_key_flag(k, "attention_bias", false);
    c->qkv_bias = a->qkv_bias || c->out_bias;
    c->feed_bias = strcmp(a->model_type, "llama") == 0 && live_key_flag(k, "mlp_bias", false);
    c->tied = live_key_flag(k, "tie_word_embeddings", false);
    c->qk_norm = a->qk_norm;
    read_window(c, a, k);
    return live_rope_read(c, k, 1);
}

static int read_gpt2(live_config *c, const architecture *a, const live_keys *k)
{
    if (read_heads(c, a, k))
        return k->err->status;
    c->norm = LIVE_LAYER_NORM;
    c->norm_epsilon = live_key_real(k, "layer_norm_epsilon", NULL, 0, 1, 1e-5);
    read_activation(c, k, "activation_function");
    if (!live_key_flag(k, "scale_attn_weights", true))
        live_key_fail(k, "'scale_attn_weights' false is not supported");
    c->qkv_bias = c->out_bias = c->feed_bias = true;
    c->learned_positions = true;
    c->tied = live_key_flag(k, "tie_word_embeddings", true);
    return k->err->status;
}

static int read_neox(live_config *c, const architecture *a, const live_keys *k)
{
    if (read_heads(c, a, k))
        return k->err->status;
    c->norm = LIVE_LAYER_NORM;
    c->norm_epsilon = live_key_real(k, "layer_norm_eps", NULL, 0, 1, 1e-5);
    read_activation(c, k, "hidden_act");
    c->parallel = live_key_flag(k, "use_parallel_residual", true);
    c->qkv_bias = c->out_bias = live_key_flag(k, "attention_bias", true);
    c->feed_bias = true;
    c->tied = live_key_flag(k, "tie_word_embeddings", false);
    return live_rope_read(c, k, .25);
}

// Medusa-1's config.json lacks the sizes of the model; live_config_read takes them from the
// tensors.
static int read_medusa(live_config *c, const live_keys *k)
{
    c->family = LIVE_MEDUSA;
    c->activation = LIVE_SILU;
    strcpy(c->model_type, "medusa");
    c->medusa_heads = live_key_count(k, "medusa_num_heads", NULL, 1, MOST_MEDUSA_HEADS, 0);
    c->medusa_layers = live_key_count(k, "medusa_num_layers", NULL, 1, MOST_MEDUSA_LAYERS, 1);
    if (live_key(k, "hidden_size", NULL))
        c->hidden = live_key_count(k, "hidden_size", NULL, 1, LARGEST, 0);
    if (live_key(k, "vocab_size", NULL))
        c->vocab = live_key_count(k, "vocab_size", NULL, 1, LARGEST, 0);
    return read_dtype(c, k);
}

// An EAGLE-1 head is one or more Llama blocks without a norm at either end. `fc` joins embedding
// and feature, with a bias unless "bias" is false.
static int become_eagle(live_config *c, const live_keys *k)
{
    if (c->family != LIVE_LLAMA || c->qk_norm || c->window)
        return live_key_fail(k, "an EAGLE head of a %s block is not supported", c->model_type);
    c->family = LIVE_EAGLE;
    c->normed = false;
    c->tied = false;
    c->qkv_bias = live_key_flag(k, "qkv_bias", c->qkv_bias);
    c->fc_bias = live_key_flag(k, "bias", true);
    return k->err->status;
}

// An EAGLE head is recognized by an architecture such as "EagleModel"; an EAGLE-3 head by
// "LlamaForCausalLMEagle3", or by a vocabulary of its own.
static void find_eagle(const live_keys *k, bool *eagle, bool *eagle3)
{
    json_t *names = live_key(k, "architectures", NULL), *x;
    size_t i;
    *eagle = false;
    *eagle3 = live_key(k, "draft_vocab_size", NULL) != NULL;
    json_array_foreach(names, i, x)
    {
        const char *name = json_string_value(x);
        if (!name || !strcasestr(name, "eagle"))
            continue;
        *eagle = true;
        *eagle3 |= strcasestr(name, "eagle3") != NULL;
    }
}

static int unknown_type(const live_keys *k, const char *type)
{
    char list[200];
    size_t at = 0;
    for (size_t i = 0; i < ARCHITECTURES; i++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%s, ", architectures[i].model_type);
    return live_key_fail(
        k, "'model_type' %s%.40s%s is not one of %sEAGLE-1, EAGLE-3 and Medusa-1 heads",
        type ? "\"" : "", type ? type : "(missing)", type ? "\"" : "", list);
}

// A head's config.json may lack model_type, which a Llama's must have.
static int read_config(live_config *c, const live_keys *k)
{
    bool eagle, eagle3;
    *c = (live_config){.begin = -1, .normed = true};
    if (check_features(k))
        return k->err->status;
    if (live_key(k, "medusa_num_heads", NULL))
        return read_medusa(c, k);
    find_eagle(k, &eagle, &eagle3);
    const char *type = live_key_text(k, "model_type", NULL, eagle || eagle3 ? "llama" : NULL);
    if (type && strcasecmp(type, "eagle") == 0) {
        eagle = true;
        type = "llama";
    }
    const architecture *a = NULL;
    for (size_t i = 0; i < ARCHITECTURES; i++)
        if (type && strcmp(type, architectures[i].model_type) == 0)
            a = &architectures[i];
    if (!a)
        return unknown_type(k, type);
    c->family = a->family;
    snprintf(c->model_type, sizeof c->model_type, "%s", a->model_type);
    int rc = read_sizes(c, a, k);
    if (!rc)
        rc = a->family == LIVE_GPT2   ? read_gpt2(c, a, k)
             : a->family == LIVE_NEOX ? read_neox(c, a, k)
                                      : read_llama(c, a, k);
    if (!rc)
        rc = read_dtype(c, k);
    if (rc)
        return rc;
    c->begin = a->begin < c->vocab ? (int32_t)a->begin : -1;
    c->ends = a->end >= 0 && a->end < c->vocab;
    c->end[0] = (int32_t)a->end;
    rc = read_tokens(c, k);
    if (!rc && eagle3)
        return live_eagle3_read(c, k);
    return !rc && eagle ? become_eagle(c, k) : rc;
}

// --- folders -----------------------------------------------------------------------------------

// Completes the configuration from the tensors: a block with an `fc` is an EAGLE head, which may
// have an embedding, and Medusa's sizes are those of its tensors.
static int complete_from_tensors(live_config *c, const live_keys *k, const char *folder,
                                 dsc_error *err)
{
    live_checkpoint *cp;
    int rc = live_checkpoint_open(&cp, folder, err);
    if (rc)
        return rc;
    if (c->family == LIVE_MEDUSA) {
        rc = live_checkpoint_medusa(cp, c, err);
        if (!rc && (c->hidden > LARGEST || c->vocab > LARGEST))
            rc = dsc_fail(err, DSC_EINPUT,
                          "%s: a head has %" PRId64 " x %" PRId64
                          " numbers; the limit is %d in each direction",
                          folder, c->vocab, c->hidden, LARGEST);
    } else {
        bool fc = live_checkpoint_find(cp, "fc.weight", NULL) != NULL;
        bool bias = live_checkpoint_find(cp, "fc.bias", NULL) != NULL;
        if (!live_config_is_eagle(c) && fc)
            rc = live_checkpoint_find(cp, "midlayer.hidden_norm.weight", NULL)
                     ? live_eagle3_read(c, k)
                     : become_eagle(c, k);
        if (!rc && live_config_is_eagle(c) && !live_key(k, "bias", NULL))
            c->fc_bias = bias;
        if (!rc && live_config_is_eagle(c))
            c->own_embedding = live_checkpoint_embeds(cp, c->family);
    }
    live_checkpoint_close(cp);
    return rc;
}

static int read_generation(live_config *c, const char *folder, dsc_error *err)
{
    dsc_buffer path = {0};
    int rc = dsc_buffer_printf(&path, err, "%s/generation_config.json", folder);
    if (!rc && access(path.data, F_OK) == 0) {
        live_keys k;
        rc = live_keys_load(&k, path.data, LONGEST_FILE, err);
        // A key of generation_config.json replaces that of config.json only if it is present.
        if (!rc && !live_key(&k, "bos_token_id", NULL))
            json_object_del(k.object, "bos_token_id");
        if (!rc && !live_key(&k, "eos_token_id", NULL))
            json_object_del(k.object, "eos_token_id");
        if (!rc)
            rc = read_tokens(c, &k);
        json_decref(k.object);
    }
    dsc_buffer_fini(&path);
    return rc;
}

static int read_gguf(live_config *c, const char *path, dsc_error *err)
{
    live_gguf *g;
    live_keys k = {.path = path, .where = "", .err = err};
    int rc = live_gguf_open(&g, path, err);
    if (!rc)
        rc = live_gguf_config(&k.object, g, err);
    *err = rc ? *err : (dsc_error){0};
    if (!rc)
        rc = read_config(c, &k);
    if (!rc)
        rc = live_gguf_complete(c, g, err);
    json_decref(k.object);
    live_gguf_close(g);
    return rc;
}

int live_config_read(live_config *out, const char *folder, dsc_error *err)
{
    struct stat st;
    if (dsc_gguf_is(folder))
        return read_gguf(out, folder, err);
    if (!stat(folder, &st) && S_ISREG(st.st_mode))
        return dsc_fail(err, DSC_EINPUT, "%s: neither a folder with a config.json nor a GGUF file",
                        folder);
    dsc_buffer path = {0};
    live_keys k = {0};
    int rc = dsc_buffer_printf(&path, err, "%s/config.json", folder);
    if (!rc)
        rc = live_keys_load(&k, path.data, LONGEST_FILE, err);
    if (!rc)
        rc = read_config(out, &k);
    const bool head = live_config_is_head(out);
    if (!rc && !head)
        rc = read_generation(out, folder, err);
    if (!rc && ((out->family == LIVE_MEDUSA && (!out->hidden || !out->vocab)) ||
                ((head || (out->family == LIVE_LLAMA && out->layers == 1)) &&
                 live_checkpoint_present(folder))))
        rc = complete_from_tensors(out, &k, folder, err);
    json_decref(k.object);
    dsc_buffer_fini(&path);
    return rc;
}

// --- shapes ------------------------------------------------------------------------------------

static int of_preset(live_config *c, const char *text, dsc_error *err)
{
    dsc_model_shape s;
    int rc = dsc_model_shape_find(&s, text, err);
    if (rc)
        return rc;
    if (!dsc_model_shape_is_dense(&s))
        return dsc_fail(
            err, DSC_EUSAGE,
            "shape '%s' is not a dense decoder: an encoder, experts and latent attention "
            "are not supported",
            text);
    *c = (live_config){
        .family = LIVE_LLAMA,
        .layers = s.layers,
        .hidden = s.hidden,
        .feed_forward = s.feed_forward,
        .heads = s.heads,
        .kv_heads = s.kv_heads,
        .head = s.head,
        .vocab = s.vocab,
        .positions = 8192,
        .dtype = DSC_BF16,
        .norm_epsilon = 1e-5,
        .qkv_bias = s.kind == DSC_MODEL_QWEN2,
        .qk_norm = s.kind == DSC_MODEL_QWEN3,
        .tied = s.tied,
        .rotated = s.head,
        .rope_theta = 10000,
        .begin = -1,
        .normed = true,
    };
    strcpy(c->model_type, s.kind == DSC_MODEL_QWEN2   ? "qwen2"
                          : s.kind == DSC_MODEL_QWEN3 ? "qwen3"
                                                      : "llama");
    return DSC_OK;
}

int live_config_of_shape(live_config *out, const char *text, dsc_error *err)
{
    size_t n = strlen(text);
    if (!strchr(text, '/') && (n <= 5 || strcmp(text + n - 5, ".json") != 0))
        return of_preset(out, text, err);
    live_keys k;
    int rc = live_keys_load(&k, text, LONGEST_FILE, err);
    if (!rc)
        rc = read_config(out, &k);
    if (!rc && (!out->hidden || !out->vocab))
        rc = dsc_fail(err, DSC_EINPUT, "%s: 'hidden_size' or 'vocab_size' is missing", text);
    json_decref(k.object);
    return rc;
}

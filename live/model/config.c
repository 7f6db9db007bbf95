// SPDX-License-Identifier: Apache-2.0
// Reads config.json of the supported architectures. A missing key has the default of transformers'
// configuration class, so that a checkpoint means here what it means there.
#include "live/model/config.h"

#include "base/memory.h"
#include "live/model/checkpoint.h"
#include "live/model/eagle3.h"
#include "live/model/gguf.h"
#include "live/model/keys.h"
#include "live/model/layers.h"
#include "live/model/rope.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

// LARGEST keeps the product of two sizes far below 2^63.
enum { LONGEST_FILE = 1 << 20, LARGEST = 10000000, MOST_HEADS = 100000 };
enum { MOST_MEDUSA_HEADS = 64, MOST_MEDUSA_LAYERS = 16 };

typedef struct architecture {
    const char *model_type;
    live_family family;
    // Defaults of missing keys.
    int64_t positions, kv_heads, head, window; // kv_heads 0: heads; head 0: hidden / heads
    int64_t begin, end;                        // -1: none
    // Features that distinguish Llama's relatives.
    bool qkv_bias, qk_norm;    // always there
    bool bias_keys, feed_bias; // attention_bias, mlp_bias
    bool tied;                 // if tie_word_embeddings is missing
    live_windows windows;
    bool experts; // num_experts
    // Sizes; 0: required.
    int64_t hidden, layers, heads, vocab, feed_forward;
} architecture;

// clang-format off
static const architecture architectures[] = {
    {"llama",    LIVE_LLAMA, 2048,   0,  0,   0,    1, 2, .bias_keys = true, .feed_bias = true},
    {"mistral",  LIVE_LLAMA, 131072, 8,  0,   4096, 1, .end = 2, .windows = LIVE_WINDOWS_ALL},
    {"qwen2",    LIVE_LLAMA, 32768,  32, 0,   4096, -1, -1, .qkv_bias = true,
     .windows = LIVE_WINDOWS_SWITCHED},
    {"qwen3",    LIVE_LLAMA, 32768,  32, 128, 4096, -1, -1, .bias_keys = true, .qk_norm = true,
     .windows = LIVE_WINDOWS_SWITCHED},
    {"smollm3",  LIVE_LLAMA, 32768,  4,  0,   0,    128000, 128001, .bias_keys = true,
     .feed_bias = true, .tied = true, .windows = LIVE_WINDOWS_UNROTATED},
    {"qwen3_moe", LIVE_LLAMA, 32768, 4,  0,   4096, -1, -1, .bias_keys = true, .qk_norm = true,
     .windows = LIVE_WINDOWS_SWITCHED_ALL, .experts = true},
    {"gemma3_text", LIVE_GEMMA3, 131072, 4, 256, 4096, 2, 1, .bias_keys = true, .qk_norm = true,
     .tied = true, .windows = LIVE_WINDOWS_PATTERN, .hidden = 2304, .layers = 26, .heads = 8,
     .vocab = 262208, .feed_forward = 9216},
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
    const char *except; // the model_type that supports it, or NULL
} refused[] = {
    {.key = "quantization_config", .what = "quantized weights"},
    {.key = "compression_config", .what = "compressed weights"},
    {.key = "num_local_experts", .what = "a mixture of experts", .except = "qwen3_moe"},
    {.key = "num_experts", .what = "a mixture of experts", .except = "qwen3_moe"},
    {.key = "n_routed_experts", .what = "a mixture of experts"},
    {.key = "kv_lora_rank", .what = "latent attention"},
    {.key = "no_rope_layers", .what = "layers without rotation", .except = "smollm3"},
    {.key = "use_bidirectional_attention", .what = "attention to later tokens"},
    {.key = "attn_logit_softcapping", .what = "capped attention"},
    {.key = "final_logit_softcapping", .what = "capped logits"},
    {.key = "logit_scale", .what = "scaled logits"},
    {.key = "scale_attn_by_inverse_layer_idx", .what = "attention scaled by the layer"},
    {.key = "is_encoder_decoder", .what = "an encoder"},
    {.key = "add_cross_attention", .what = "attention to an encoder"},
    {.key = "alibi", .what = "attention biased by distance"},
};

static int check_features(const live_keys *k)
{
    const char *type = json_string_value(json_object_get(k->object, "model_type"));
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        json_t *x = live_key(k, refused[i].key, NULL);
        if (type && refused[i].except && strcmp(type, refused[i].except) == 0)
            continue;
        if (x && !json_is_false(x) && !(json_is_integer(x) && json_integer_value(x) == 0))
            return live_key_fail(k, "'%s' requests %s, which is not supported", refused[i].key,
                                 refused[i].what);
    }
    return DSC_OK;
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
        if (strcmp(text, known[i].name) == 0 && gated == live_is_gated(known[i].kind)) {
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
    c->hidden = live_key_count(k, "hidden_size", "n_embd", 1, LARGEST, a->hidden);
    c->layers = live_key_count(k, "num_hidden_layers", "n_layer", 1, LIVE_MAX_LAYERS, a->layers);
    c->heads = live_key_count(k, "num_attention_heads", "n_head", 1, MOST_HEADS, a->heads);
    c->vocab = live_key_count(k, "vocab_size", NULL, 1, LARGEST, a->vocab);
    c->positions =
        live_key_count(k, "max_position_embeddings", "n_positions", 1, LARGEST, a->positions);
    c->feed_forward = live_key_count(k, "intermediate_size", "n_inner", 1, LARGEST,
                                     a->family == LIVE_GPT2 ? 4 * c->hidden : a->feed_forward);
    return k->err->status;
}

// GPT-2 and GPT-NeoX do not share keys between heads, and a head has hidden / heads numbers.
static int read_heads(live_config *c, const architecture *a, const live_keys *k)
{
    bool llama = a->family == LIVE_LLAMA || a->family == LIVE_GEMMA3;
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

// Gemma 3 (arXiv:2503.19786) in addition to what read_llama reads.
static int read_gemma3(live_config *c, const live_keys *k)
{
    static const char *const only = "gelu_pytorch_tanh";
    const char *activation = live_key_text(k, "hidden_activation", NULL, only);
    if (strcmp(activation, only) != 0)
        return live_key_fail(k, "'hidden_activation' \"%.40s\" is not supported for %s (%s is)",
                             activation, c->model_type, only);
    c->activation = LIVE_GELU_TANH_GATE;
    c->norm_plus_one = c->post_norms = true;
    c->embed_scale = sqrt((double)c->hidden);
    c->attention_scale = 1 / sqrt(live_key_real(k, "query_pre_attn_scalar", NULL, 1e-6, 1e12, 256));
    return live_rope_read_gemma3(c, k);
}

static int read_llama(live_config *c, const architecture *a, const live_keys *k)
{
    if (read_heads(c, a, k))
        return k->err->status;
    c->norm = LIVE_RMS_NORM;
    c->norm_epsilon = live_key_real(k, "rms_norm_eps", NULL, 0, 1, 1e-6);
    c->out_bias = a->bias_keys && live_key_flag(k, "attention_bias", false);
    c->qkv_bias = a->qkv_bias || c->out_bias;
    c->feed_bias = a->feed_bias && live_key_flag(k, "mlp_bias", false);
    c->tied = live_key_flag(k, "tie_word_embeddings", a->tied);
    c->qk_norm = a->qk_norm;
    live_layers_read(c, a->windows, a->window, k);
    if (a->family == LIVE_GEMMA3)
        return read_gemma3(c, k);
    if (a->experts)
        live_experts_read(c, k);
    read_activation(c, k, "hidden_act");
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

// A multimodal Gemma 3 has its decoder's configuration in text_config, which replaces the object.
// Some keys stand next to it.
static int enter_text_config(live_keys *k)
{
    static const char *const outside[] = {
        "dtype",        "torch_dtype",         "bos_token_id",
        "eos_token_id", "tie_word_embeddings", "quantization_config"};
    const char *type = json_string_value(json_object_get(k->object, "model_type"));
    json_t *text = json_object_get(k->object, "text_config");
    if (!type || strcmp(type, "gemma3") != 0)
        return DSC_OK;
    if (!json_is_object(text))
        return live_key_fail(k, "'text_config' of a gemma3 model is missing or not an object");
    int failed = 0;
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        json_t *x = json_object_get(k->object, outside[i]);
        if (x && !json_object_get(text, outside[i]))
            failed |= json_object_set(text, outside[i], x);
    }
    if (!json_object_get(text, "model_type"))
        failed |= json_object_set_new(text, "model_type", json_string("gemma3_text"));
    if (failed)
        return dsc_fail(k->err, DSC_ENOMEM, "%s: out of memory", k->path);
    json_incref(text);
    json_decref(k->object);
    k->object = text;
    return DSC_OK;
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
        rc = enter_text_config(&k);
    if (!rc)
        rc = live_eagle3_enter(&k);
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
    if (!dsc_model_shape_is_dense(&s) || s.kind > DSC_MODEL_QWEN3)
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
        rc = enter_text_config(&k);
    if (!rc)
        rc = live_eagle3_enter(&k);
    if (!rc)
        rc = read_config(out, &k);
    if (!rc && (!out->hidden || !out->vocab))
        rc = dsc_fail(err, DSC_EINPUT, "%s: 'hidden_size' or 'vocab_size' is missing", text);
    if (!rc && out->experts)
        rc = dsc_fail(err, DSC_EUSAGE,
                      "%s: random weights of a mixture of experts are not supported: routers with "
                      "random weights do not use experts as trained ones do",
                      text);
    json_decref(k.object);
    return rc;
}

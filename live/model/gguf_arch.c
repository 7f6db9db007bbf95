// SPDX-License-Identifier: Apache-2.0
// Maps GGUF metadata and names of tensors to those of transformers. Names and keys: gguf-py's
// constants.py; meaning of missing keys: llama.cpp's src/llama-model.cpp.
#include "live/model/gguf_arch.h"

#include "base/memory.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct live_gguf_arch {
    const char *name; // general.architecture
    const char *model_type;
    live_family family;
    bool pairs;      // rows of queries and keys are stored in pairs
    const char *eps; // key of config.json
};

static const live_gguf_arch architectures[] = {
    {"llama", "llama", LIVE_LLAMA, true, "rms_norm_eps"},
    {"qwen2", "qwen2", LIVE_LLAMA, false, "rms_norm_eps"},
    {"qwen3", "qwen3", LIVE_LLAMA, false, "rms_norm_eps"},
    {"gemma3", "gemma3_text", LIVE_GEMMA3, false, "rms_norm_eps"},
    {"gpt2", "gpt2", LIVE_GPT2, false, "layer_norm_epsilon"},
};
enum { ARCHITECTURES = sizeof architectures / sizeof *architectures };

// '#' stands for the layer.
static const struct {
    const char *name;
    live_module module;
} modules[] = {
    {"token_embd", LIVE_EMBED},
    {"position_embd", LIVE_POSITIONS},
    {"output_norm", LIVE_FINAL_NORM},
    {"output", LIVE_HEAD},
    {"blk.#.attn_norm", LIVE_NORM1},
    {"blk.#.attn_qkv", LIVE_QKV},
    {"blk.#.attn_q", LIVE_QUERY},
    {"blk.#.attn_k", LIVE_KEY},
    {"blk.#.attn_v", LIVE_VALUE},
    {"blk.#.attn_q_norm", LIVE_QUERY_NORM},
    {"blk.#.attn_k_norm", LIVE_KEY_NORM},
    {"blk.#.attn_output", LIVE_ATTENTION_OUT},
    {"blk.#.post_attention_norm", LIVE_POST_NORM1},
    {"blk.#.ffn_norm", LIVE_NORM2},
    {"blk.#.ffn_gate", LIVE_GATE},
    {"blk.#.ffn_up", LIVE_UP},
    {"blk.#.ffn_down", LIVE_DOWN},
    {"blk.#.post_ffw_norm", LIVE_POST_NORM2},
};
enum { MODULES = sizeof modules / sizeof *modules };

int live_gguf_arch_find(const live_gguf_arch **out, const dsc_gguf *file, dsc_error *err)
{
    const dsc_gguf_value *v = dsc_gguf_find(file, "general.architecture");
    dsc_gguf_text text;
    char list[200];
    size_t at = 0;
    if (!v || v->array || !dsc_gguf_string(v, 0, &text))
        return dsc_fail(err, DSC_EINPUT, "%s: general.architecture is missing or not a string",
                        dsc_gguf_path(file));
    for (size_t i = 0; i < ARCHITECTURES; i++) {
        const char *name = architectures[i].name;
        if (text.length == strlen(name) && memcmp(text.data, name, text.length) == 0) {
            *out = &architectures[i];
            return DSC_OK;
        }
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", i ? ", " : "", name);
    }
    return dsc_fail(err, DSC_EINPUT,
                    "%s: architecture '%.*s' is not supported (general.architecture); those of "
                    "GGUF files that are: %s",
                    dsc_gguf_path(file), text.length < 40 ? (int)text.length : 40, text.data, list);
}

// --- names -------------------------------------------------------------------------------------

// Whether `name` is the pattern, followed by ".weight" or ".bias".
static bool matches(const char *name, const char *pattern, int64_t *layer, bool *bias)
{
    for (; *pattern; pattern++) {
        if (*pattern != '#') {
            if (*name++ != *pattern)
                return false;
            continue;
        }
        char *end;
        if (*name < '0' || *name > '9' || (*name == '0' && name[1] != '.'))
            return false;
        *layer = strtoll(name, &end, 10);
        name = end;
    }
    *bias = strcmp(name, ".bias") == 0;
    return *bias || strcmp(name, ".weight") == 0;
}

static bool find_module(const char *name, live_module *m, int64_t *layer, bool *bias)
{
    *layer = 0;
    for (size_t i = 0; i < MODULES; i++)
        if (matches(name, modules[i].name, layer, bias)) {
            *m = modules[i].module;
            return true;
        }
    return false;
}

void live_gguf_name(char out[LIVE_TENSOR_NAME], const live_gguf_arch *a, const char *name)
{
    live_module m, sign;
    int64_t layer;
    bool bias;
    if (find_module(name, &m, &layer, &bias) && live_name_known(a->family, m))
        live_name(out, a->family, live_name_prefixes(a->family, &sign)[0], m, bias, layer, 0);
    else
        snprintf(out, LIVE_TENSOR_NAME, "%s", name);
}

// --- metadata ----------------------------------------------------------------------------------

// Writes the keys of config.json; the first error stays.
typedef struct maker {
    const live_gguf_arch *a;
    const dsc_gguf *file;
    json_t *out;
    dsc_error *err;
    int rc;
} maker;

static const dsc_gguf_value *find(const dsc_gguf *file, const live_gguf_arch *a, const char *key)
{
    char name[100];
    if (a)
        snprintf(name, sizeof name, "%s.%s", a->name, key);
    return dsc_gguf_find(file, a ? name : key);
}

static void set(maker *m, const char *name, json_t *value)
{
    if (json_object_set_new(m->out, name, value) && !m->rc)
        m->rc = dsc_fail(m->err, DSC_ENOMEM, "%s: out of memory", dsc_gguf_path(m->file));
}

static void wrong(maker *m, const char *key, const char *expected)
{
    if (!m->rc)
        m->rc = dsc_fail(m->err, DSC_EINPUT, "%s: metadata key '%s.%s' must be %s",
                         dsc_gguf_path(m->file), m->a->name, key, expected);
}

static bool missing(maker *m, const char *key, bool required)
{
    if (find(m->file, m->a, key))
        return false;
    if (required && !m->rc)
        m->rc = dsc_fail(m->err, DSC_EINPUT, "%s: metadata key '%s.%s' is missing",
                         dsc_gguf_path(m->file), m->a->name, key);
    return true;
}

// Copies an integer. Some files have a list of one number per layer; it must then be the same.
static int64_t integer(maker *m, const char *key, const char *name, bool required)
{
    int64_t n = 0, other;
    if (missing(m, key, required))
        return 0;
    const dsc_gguf_value *v = find(m->file, m->a, key);
    if (!v->count || !dsc_gguf_integer(v, 0, &n)) {
        wrong(m, key, "an integer");
        return 0;
    }
    for (uint64_t i = 1; i < v->count; i++)
        if (!dsc_gguf_integer(v, i, &other) || other != n) {
            wrong(m, key, "the same for all layers: others are not supported");
            return 0;
        }
    if (name)
        set(m, name, json_integer(n));
    return n;
}

static double real(maker *m, const char *key, const char *name, bool required, double absent)
{
    double x = absent;
    if (missing(m, key, required))
        return absent;
    const dsc_gguf_value *v = find(m->file, m->a, key);
    if (v->array || !dsc_gguf_real(v, 0, &x) || !isfinite(x)) {
        wrong(m, key, "a number");
        return absent;
    }
    if (name)
        set(m, name, json_real(x));
    return x;
}

static bool has_tensor(const maker *m, const char *name)
{
    return dsc_gguf_tensor_find(m->file, name) != NULL;
}

// Keys of features that are not supported, in architectures that may have them.
static void check_features(maker *m)
{
    static const struct {
        const char *key, *what;
    } refused[] = {
        {"expert_count", "a mixture of experts"},
        {"attn_logit_softcapping", "capped attention"},
        {"final_logit_softcapping", "capped logits"},
        {"logit_scale", "scaled logits"},
        {"residual_scale", "a scaled residual stream"},
        {"embedding_scale", "scaled embeddings"},
        {"attention.scale", "a scale of the attention"},
        {"attention.clamp_kqv", "clamped attention"},
        {"attention.max_alibi_bias", "attention biased by distance"},
        {"attention.temperature_scale", "attention with a temperature"},
    };
    double x;
    for (size_t i = 0; i < sizeof refused / sizeof *refused && !m->rc; i++) {
        const dsc_gguf_value *v = find(m->file, m->a, refused[i].key);
        if (v && (v->array || !dsc_gguf_real(v, 0, &x) || x != 0))
            m->rc = dsc_fail(m->err, DSC_EINPUT,
                             "%s: metadata key '%s.%s' requests %s, which is not supported",
                             dsc_gguf_path(m->file), m->a->name, refused[i].key, refused[i].what);
    }
}

// The end of an answer is one of up to three tokens: of the text, of a turn, of a message.
static void add_ends(maker *m)
{
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    json_t *list = json_array();
    int64_t id, seen[3];
    size_t n = 0;
    for (size_t i = 0; i < 3; i++) {
        const dsc_gguf_value *v = dsc_gguf_find(m->file, keys[i]);
        if (!v || v->array || !dsc_gguf_integer(v, 0, &id))
            continue;
        bool known = false;
        for (size_t j = 0; j < n; j++)
            known |= seen[j] == id;
        if (!known && json_array_append_new(list, json_integer(id)) == 0)
            seen[n++] = id;
    }
    set(m, "eos_token_id", n ? list : json_null());
    if (!n)
        json_decref(list);
    const dsc_gguf_value *v = dsc_gguf_find(m->file, "tokenizer.ggml.bos_token_id");
    const bool given = v && !v->array && dsc_gguf_integer(v, 0, &id);
    set(m, "bos_token_id", given ? json_integer(id) : json_null());
}

// Copies a number that scales the rotation.
static void add_scaling(maker *m, json_t *to, const char *key, const char *name)
{
    const double x = real(m, key, NULL, false, 0);
    if (!missing(m, key, false) && json_object_set_new(to, name, json_real(x)) && !m->rc)
        m->rc = dsc_fail(m->err, DSC_ENOMEM, "%s: out of memory", dsc_gguf_path(m->file));
}

// The object rope_scaling, or NULL. live_gguf_arch_complete reads LIVE_ROPE_TENSOR, which files of
// Llama 3 have instead.
static json_t *scaling(maker *m)
{
    const dsc_gguf_value *v = find(m->file, m->a, "rope.scaling.type");
    dsc_gguf_text type = {"none", 4};
    int64_t original = 0;
    if (v && (v->array || !dsc_gguf_string(v, 0, &type)))
        wrong(m, "rope.scaling.type", "a string");
    const bool none = type.length == 4 && memcmp(type.data, "none", 4) == 0;
    const double old = real(m, "rope.scale_linear", NULL, false, 1);
    if (none && (v || old == 1 || old == 0))
        return NULL;
    if (none)
        return json_pack("{s:s,s:f}", "rope_type", "linear", "factor", old);
    json_t *out = json_pack("{s:s%}", "rope_type", type.data, type.length);
    add_scaling(m, out, "rope.scaling.factor", "factor");
    add_scaling(m, out, "rope.scaling.yarn_beta_fast", "beta_fast");
    add_scaling(m, out, "rope.scaling.yarn_beta_slow", "beta_slow");
    if (real(m, "rope.scaling.attn_factor", NULL, false, 1) != 1)
        wrong(m, "rope.scaling.attn_factor", "1: others are not supported");
    if (real(m, "rope.scaling.yarn_log_multiplier", NULL, false, 0) != 0)
        wrong(m, "rope.scaling.yarn_log_multiplier", "0: others are not supported");
    original = integer(m, "rope.scaling.original_context_length", NULL, false);
    if (original)
        json_object_set_new(out, "original_max_position_embeddings", json_integer(original));
    return out;
}

static void check_rotated(maker *m, int64_t head)
{
    const int64_t rotated = integer(m, "rope.dimension_count", NULL, false);
    if (rotated && rotated != head && !m->rc)
        m->rc = dsc_fail(m->err, DSC_EINPUT,
                         "%s: metadata key '%s.rope.dimension_count': %" PRId64 " of %" PRId64
                         " numbers of a head are rotated; partial rotation is not supported",
                         dsc_gguf_path(m->file), m->a->name, rotated, head);
}

static void add_rope(maker *m)
{
    real(m, "rope.freq_base", "rope_theta", false, 0);
    json_t *scale = scaling(m);
    if (scale)
        set(m, "rope_scaling", scale);
    // Only Gemma's files have a window; those of Qwen and Mistral are run without one.
    set(m, "sliding_window", json_null());
}

// Whether layer i has a window: all but every sixth, or as the file has it.
static bool has_window(maker *m, int64_t i)
{
    static const char key[] = "attention.sliding_window_pattern";
    const dsc_gguf_value *v = find(m->file, m->a, key);
    int64_t period = 6;
    if (v && v->array && v->kind == DSC_GGUF_BOOL && (uint64_t)i < v->count)
        return v->data[i];
    if (v && (v->array || !dsc_gguf_integer(v, 0, &period) || period < 1)) {
        wrong(m, key, "a number of layers, or true or false for each layer");
        return false;
    }
    return i % period < period - 1;
}

// Gemma 3 of 27B scales the scores by the width of a layer.
static void add_gemma3(maker *m, int64_t layers, int64_t hidden, int64_t heads, int64_t head)
{
    enum { LAYERS_27B = 62 };
    json_t *types = json_array(), *full = scaling(m);
    const double theta = real(m, "rope.freq_base", NULL, true, 0);
    const double local = real(m, "rope.freq_base_swa", NULL, false, 10000);
    integer(m, "attention.sliding_window", "sliding_window", true);
    for (int64_t i = 0; i < layers && i < LIVE_MAX_LAYERS; i++)
        json_array_append_new(
            types, json_string(has_window(m, i) ? "sliding_attention" : "full_attention"));
    set(m, "layer_types", types);
    full = full ? full : json_object();
    json_object_set_new(full, "rope_theta", json_real(theta));
    set(m, "rope_parameters",
        json_pack("{s:o,s:{s:f}}", "full_attention", full, "sliding_attention", "rope_theta",
                  local));
    set(m, "query_pre_attn_scalar",
        json_real(layers == LAYERS_27B && heads > 0 ? (double)hidden / (double)heads
                                                    : (double)head));
}

static void add_llama(maker *m, int64_t layers)
{
    const int64_t heads = integer(m, "attention.head_count", "num_attention_heads", true);
    const int64_t hidden = integer(m, "embedding_length", "hidden_size", true);
    integer(m, "attention.head_count_kv", "num_key_value_heads", false);
    if (missing(m, "attention.head_count_kv", false))
        set(m, "num_key_value_heads", json_integer(heads));
    int64_t head = integer(m, "attention.key_length", NULL, false);
    if (!head && heads > 0)
        head = hidden / heads;
    set(m, "head_dim", json_integer(head));
    const int64_t value = integer(m, "attention.value_length", NULL, false);
    if (value && value != head)
        wrong(m, "attention.value_length", "the length of keys: others are not supported");
    real(m, "attention.layer_norm_rms_epsilon", m->a->eps, true, 0);
    integer(m, "feed_forward_length", "intermediate_size", true);
    if (has_tensor(m, "blk.0.attn_q.bias"))
        set(m, "attention_bias", json_true());
    if (has_tensor(m, "blk.0.ffn_gate.bias"))
        set(m, "mlp_bias", json_true());
    check_rotated(m, head);
    if (m->a->family == LIVE_GEMMA3)
        add_gemma3(m, layers, hidden, heads, head);
    else
        add_rope(m);
}

static void add_gpt2(maker *m)
{
    integer(m, "attention.head_count", "num_attention_heads", true);
    integer(m, "embedding_length", "hidden_size", true);
    integer(m, "feed_forward_length", "intermediate_size", true);
    real(m, "attention.layer_norm_epsilon", m->a->eps, true, 0);
}

int live_gguf_arch_config(json_t **out, const live_gguf_arch *a, const dsc_gguf *file,
                          const char *dtype, dsc_error *err)
{
    maker m = {.a = a, .file = file, .out = json_object(), .err = err};
    const dsc_gguf_tensor *embed = dsc_gguf_tensor_find(file, "token_embd.weight");
    *out = NULL;
    if (!m.out)
        return dsc_fail(err, DSC_ENOMEM, "out of memory");
    if (!embed || embed->rank != 2)
        m.rc = dsc_fail(err, DSC_EINPUT, "%s: tensor 'token_embd.weight' is missing or no matrix",
                        dsc_gguf_path(file));
    else
        set(&m, "vocab_size", json_integer(embed->shape[0]));
    set(&m, "model_type", json_string(a->model_type));
    set(&m, "dtype", json_string(dtype));
    set(&m, "tie_word_embeddings", json_boolean(!has_tensor(&m, "output.weight")));
    check_features(&m);
    const int64_t layers = integer(&m, "block_count", "num_hidden_layers", true);
    integer(&m, "context_length", "max_position_embeddings", true);
    if (a->family == LIVE_GPT2)
        add_gpt2(&m);
    else
        add_llama(&m, layers);
    add_ends(&m);
    if (m.rc)
        json_decref(m.out);
    else
        *out = m.out;
    return m.rc;
}

int64_t live_gguf_pairs(const live_gguf_arch *a, const dsc_gguf *file, const dsc_gguf_tensor *t)
{
    live_module module;
    int64_t layer, heads = 0;
    bool bias;
    if (!a->pairs || !find_module(t->name, &module, &layer, &bias) ||
        (module != LIVE_QUERY && module != LIVE_KEY))
        return 0;
    const dsc_gguf_value *v = find(file, a, "attention.head_count");
    const dsc_gguf_value *kv = find(file, a, "attention.head_count_kv");
    if (module == LIVE_KEY && kv)
        v = kv;
    const int64_t rows = t->shape[0];
    // Otherwise the shape is refused later, when it is compared with the configuration.
    if (!v || !dsc_gguf_integer(v, 0, &heads) || heads < 1 || rows % (2 * heads))
        return 0;
    return rows / heads;
}

int live_gguf_arch_complete(live_config *c, const live_gguf_arch *a, const dsc_gguf *file,
                            dsc_error *err)
{
    const dsc_gguf_tensor *t = dsc_gguf_tensor_find(file, LIVE_ROPE_TENSOR);
    if (a->family == LIVE_GEMMA3)
        c->norm_plus_one = false; // llama.cpp's converter has added the 1
    if (!t)
        return DSC_OK;
    if (t->type != DSC_GGML_F32 || t->rank != 1 || t->count != c->rotated / 2 ||
        t->count > LIVE_ROPE_FACTORS_MAX)
        return dsc_fail(err, DSC_EINPUT,
                        "%s: tensor '%s' must have %" PRId64 " numbers of type F32, at most %d",
                        dsc_gguf_path(file), LIVE_ROPE_TENSOR, c->rotated / 2,
                        LIVE_ROPE_FACTORS_MAX);
    if (c->rope != LIVE_ROPE_PLAIN)
        return dsc_fail(err, DSC_EINPUT,
                        "%s: tensor '%s' and rope.scaling.type are not supported together",
                        dsc_gguf_path(file), LIVE_ROPE_TENSOR);
    memcpy(c->rope_divisor, t->data, (size_t)t->count * sizeof(float));
    for (int64_t i = 0; i < t->count; i++)
        if (!(c->rope_divisor[i] > 0) || !isfinite(c->rope_divisor[i]))
            return dsc_fail(err, DSC_EINPUT, "%s: tensor '%s': number %" PRId64 " is not positive",
                            dsc_gguf_path(file), LIVE_ROPE_TENSOR, i);
    c->rope = LIVE_ROPE_FACTORS;
    return DSC_OK;
}

// SPDX-License-Identifier: Apache-2.0
// Shapes of dense transformers: presets, config.json, and the numbers of weights, cache entries and
// attention operations that the roofline needs.
#include "sim/cost/model_shape.h"

#include "base/json_file.h"
#include "base/option.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

// Values are from the config.json of the models on Hugging Face. Vicuna's and CodeLlama's shapes
// are Llama's; T5 is version 1.1, which Leviathan et al. and DistillSpec use.
// clang-format off
#define LLAMA(n, l, h, f, a, kv, v) {.name = n, .kind = DSC_MODEL_LLAMA, .layers = l, .hidden = h, \
    .feed_forward = f, .heads = a, .kv_heads = kv, .head = (h) / (a), .vocab = v}
#define QWEN2(n, l, h, f, a, kv, v, t) {.name = n, .kind = DSC_MODEL_QWEN2, .layers = l, \
    .hidden = h, .feed_forward = f, .heads = a, .kv_heads = kv, .head = (h) / (a), .vocab = v, \
    .tied = t}
#define T5(n, l, h, f, a) {.name = n, .kind = DSC_MODEL_T5, .layers = l, .encoder_layers = l, \
    .hidden = h, .feed_forward = f, .heads = a, .kv_heads = a, .head = 64, .vocab = 32128}
static const dsc_model_shape presets[] = {
    //    name                  layers hidden    ff heads kv  vocabulary
    LLAMA("llama-2-7b",             32,  4096, 11008, 32, 32,  32000),
    LLAMA("llama-2-13b",            40,  5120, 13824, 40, 40,  32000),
    LLAMA("llama-2-70b",            80,  8192, 28672, 64,  8,  32000),
    LLAMA("llama-3-8b",             32,  4096, 14336, 32,  8, 128256),
    LLAMA("llama-3-70b",            80,  8192, 28672, 64,  8, 128256),
    LLAMA("vicuna-7b",              32,  4096, 11008, 32, 32,  32000),
    LLAMA("vicuna-13b",             40,  5120, 13824, 40, 40,  32000),
    LLAMA("vicuna-33b",             60,  6656, 17920, 52, 52,  32000),
    LLAMA("yi-6b",                  32,  4096, 11008, 32,  4,  64000),
    LLAMA("yi-34b",                 60,  7168, 20480, 56,  8,  64000),
    LLAMA("codellama-7b",           32,  4096, 11008, 32, 32,  32016),
    LLAMA("codellama-34b",          48,  8192, 22016, 64,  8,  32000),
    LLAMA("codellama-70b",          80,  8192, 28672, 64,  8,  32016),
    LLAMA("deepseek-coder-1.3b",    24,  2048,  5504, 16, 16,  32256),
    LLAMA("deepseek-coder-6.7b",    32,  4096, 11008, 32, 32,  32256),
    LLAMA("deepseek-coder-33b",     62,  7168, 19200, 56,  8,  32256),
    QWEN2("qwen2.5-0.5b",           24,   896,  4864, 14,  2, 151936, true),
    QWEN2("qwen2.5-1.5b",           28,  1536,  8960, 12,  2, 151936, true),
    QWEN2("qwen2.5-3b",             36,  2048, 11008, 16,  2, 151936, true),
    QWEN2("qwen2.5-7b",             28,  3584, 18944, 28,  4, 152064, false),
    QWEN2("qwen2.5-14b",            48,  5120, 13824, 40,  8, 152064, false),
    QWEN2("qwen2.5-32b",            64,  5120, 27648, 40,  8, 152064, false),
    QWEN2("qwen2.5-72b",            80,  8192, 29568, 64,  8, 152064, false),
    T5("t5-small",                   8,   512,  1024,  6),
    T5("t5-base",                   12,   768,  2048, 12),
    T5("t5-large",                  24,  1024,  2816, 16),
    T5("t5-xxl",                    24,  4096, 10240, 64),
};
#undef LLAMA
#undef QWEN2
#undef T5
// clang-format on
enum { PRESETS = sizeof presets / sizeof *presets };

const dsc_model_shape *dsc_model_shape_presets(size_t *count)
{
    *count = PRESETS;
    return presets;
}

// --- counting ----------------------------------------------------------------------------------

static double feed_forward(const dsc_model_shape *s)
{
    return (double)((s->plain ? 2 : 3) * s->hidden * s->feed_forward);
}

double dsc_model_shape_parameters(const dsc_model_shape *s)
{
    double inner = (double)(s->heads * s->head), keys = (double)(s->kv_heads * s->head);
    double hidden = (double)s->hidden, embedding = (double)(s->vocab * s->hidden);
    double embeddings = s->tied ? embedding : 2 * embedding;
    if (s->kind != DSC_MODEL_T5) {
        double biases = s->kind == DSC_MODEL_QWEN2 ? inner + 2 * keys : 0;
        double layer = 2 * hidden * (inner + keys) + biases + feed_forward(s) + 2 * hidden;
        return (double)s->layers * layer + hidden + embeddings;
    }
    double attention = 4 * hidden * inner, buckets = (double)(32 * s->heads);
    double encoder = attention + feed_forward(s) + 2 * hidden;
    double decoder = 2 * attention + feed_forward(s) + 3 * hidden;
    return (double)s->encoder_layers * encoder + (double)s->layers * decoder +
           2 * (hidden + buckets) + embeddings;
}

double dsc_model_shape_weights(const dsc_model_shape *s)
{
    double inner = (double)(s->heads * s->head), keys = (double)(s->kv_heads * s->head);
    double layer = 2 * (double)s->hidden * (inner + keys) + feed_forward(s);
    if (s->kind == DSC_MODEL_T5) // queries and output of the attention to the encoder's keys
        layer += 2 * (double)s->hidden * inner;
    return (double)s->layers * layer + (double)(s->vocab * s->hidden);
}

// T5 has a KV cache for the prompt (the encoder's) and one for the output, of the same size per
// token.
double dsc_model_shape_cache(const dsc_model_shape *s)
{
    return (double)(2 * s->layers * s->kv_heads * s->head);
}

double dsc_model_shape_attention(const dsc_model_shape *s)
{
    return (double)(4 * s->layers * s->heads * s->head);
}

// --- config.json -------------------------------------------------------------------------------

enum { LONGEST_FILE = 1 << 20, LARGEST = 10000000 };

// A required field, or one with the default `absent` > 0.
static int get(const char *path, json_t *j, const char *name, int64_t absent, int64_t *out,
               dsc_error *err)
{
    json_t *x = json_object_get(j, name);
    *out = absent;
    if (absent > 0 && (!x || json_is_null(x)))
        return DSC_OK;
    *out = json_integer_value(x); // 0 if it is not an integer
    if (*out >= 1 && *out <= LARGEST)
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT, "%s: field '%s' must be a whole number from 1 to %d", path,
                    name, LARGEST);
}

static int read_llama(dsc_model_shape *s, const char *path, json_t *j, dsc_error *err)
{
    s->tied = json_is_true(json_object_get(j, "tie_word_embeddings"));
    int rc = get(path, j, "hidden_size", 0, &s->hidden, err);
    if (!rc)
        rc = get(path, j, "intermediate_size", 0, &s->feed_forward, err);
    if (!rc)
        rc = get(path, j, "num_hidden_layers", 0, &s->layers, err);
    if (!rc)
        rc = get(path, j, "num_attention_heads", 0, &s->heads, err);
    if (!rc)
        rc = get(path, j, "num_key_value_heads", s->heads, &s->kv_heads, err);
    if (!rc && !json_object_get(j, "head_dim") && s->hidden % s->heads)
        return dsc_fail(err, DSC_EINPUT,
                        "%s: hidden_size %" PRId64 " is no multiple of %" PRId64 " heads", path,
                        s->hidden, s->heads);
    if (!rc)
        rc = get(path, j, "head_dim", s->hidden / s->heads, &s->head, err);
    return rc ? rc : get(path, j, "vocab_size", 0, &s->vocab, err);
}

static int read_t5(dsc_model_shape *s, const char *path, json_t *j, dsc_error *err)
{
    const char *forward = json_string_value(json_object_get(j, "feed_forward_proj"));
    s->tied = !json_is_false(json_object_get(j, "tie_word_embeddings"));
    s->plain = !forward || strncmp(forward, "gated", 5) != 0;
    int rc = get(path, j, "d_model", 0, &s->hidden, err);
    if (!rc)
        rc = get(path, j, "d_ff", 0, &s->feed_forward, err);
    if (!rc)
        rc = get(path, j, "d_kv", 0, &s->head, err);
    if (!rc)
        rc = get(path, j, "num_heads", 0, &s->heads, err);
    if (!rc)
        rc = get(path, j, "num_layers", 0, &s->encoder_layers, err);
    if (!rc)
        rc = get(path, j, "num_decoder_layers", s->encoder_layers, &s->layers, err);
    s->kv_heads = s->heads;
    return rc ? rc : get(path, j, "vocab_size", 0, &s->vocab, err);
}

static int read_config(dsc_model_shape *s, const char *path, json_t *j, dsc_error *err)
{
    static const char *const refused[] = {"num_local_experts", "num_experts", "n_routed_experts",
                                          "kv_lora_rank", "quantization_config"};
    const char *type = json_string_value(json_object_get(j, "model_type"));
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (json_object_get(j, refused[i]))
            return dsc_fail(err, DSC_EINPUT,
                            "%s: field '%s' is not supported: the model must be dense and 16-bit",
                            path, refused[i]);
    if (type && (strcmp(type, "llama") == 0 || strcmp(type, "mistral") == 0))
        return read_llama(s, path, j, err);
    if (type && strcmp(type, "qwen2") == 0) {
        s->kind = DSC_MODEL_QWEN2;
        return read_llama(s, path, j, err);
    }
    if (type && strcmp(type, "t5") == 0) {
        s->kind = DSC_MODEL_T5;
        return read_t5(s, path, j, err);
    }
    return dsc_fail(err, DSC_EINPUT,
                    "%s: model_type '%.40s' is not one of llama, mistral, qwen2, t5", path,
                    type ? type : "(none)");
}

static int load(dsc_model_shape *s, const char *path, dsc_error *err)
{
    json_t *j;
    int rc = dsc_json_file(&j, path, LONGEST_FILE, err);
    if (!rc)
        rc = read_config(s, path, j, err);
    json_decref(j);
    return rc;
}

int dsc_model_shape_find(dsc_model_shape *out, const char *text, dsc_error *err)
{
    size_t n = strlen(text);
    *out = (dsc_model_shape){0};
    if (strchr(text, '/') || (n > 5 && strcmp(text + n - 5, ".json") == 0))
        return load(out, text, err);
    const char *name[PRESETS];
    for (size_t i = 0; i < PRESETS; i++) {
        name[i] = presets[i].name;
        if (strcasecmp(text, name[i]) == 0) {
            *out = presets[i];
            return DSC_OK;
        }
    }
    return dsc_unknown_name("model shape", text, name, PRESETS,
                            "draftscope list costs -v shows them; or give a config.json", err);
}

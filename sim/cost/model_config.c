// SPDX-License-Identifier: Apache-2.0
// Reads the shape of a model from the config.json of Hugging Face.
#include "sim/cost/model_shape.h"

#include "base/json_file.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

enum { LONGEST_FILE = 1 << 20, LARGEST = 10000000 };

// A field and where its value goes. `absent` > 0: the default; 0: the field is required.
typedef struct field {
    const char *name;
    int64_t *out;
    int64_t absent;
} field;

static int get(const char *path, json_t *j, const field *f, size_t count, dsc_error *err)
{
    for (size_t i = 0; i < count; i++) {
        json_t *x = json_object_get(j, f[i].name);
        *f[i].out = f[i].absent;
        if (f[i].absent > 0 && (!x || json_is_null(x)))
            continue;
        *f[i].out = json_integer_value(x); // 0 if it is not an integer
        if (*f[i].out < 1 || *f[i].out > LARGEST)
            return dsc_fail(err, DSC_EINPUT, "%s: field '%s' must be a whole number from 1 to %d",
                            path, f[i].name, LARGEST);
    }
    return DSC_OK;
}

#define GET(...)                                                                                   \
    get(path, j, (const field[]){__VA_ARGS__}, sizeof(field[]){__VA_ARGS__} / sizeof(field), err)

static int read_decoder(dsc_model_shape *s, const char *path, json_t *j, dsc_error *err)
{
    s->tied = json_is_true(json_object_get(j, "tie_word_embeddings"));
    int rc = GET({"hidden_size", &s->hidden, 0}, {"intermediate_size", &s->feed_forward, 0},
                 {"num_hidden_layers", &s->layers, 0}, {"num_attention_heads", &s->heads, 0},
                 {"vocab_size", &s->vocab, 0});
    if (!rc)
        rc = GET({"num_key_value_heads", &s->kv_heads, s->heads});
    if (!rc && !json_object_get(j, "head_dim") && s->hidden % s->heads)
        return dsc_fail(err, DSC_EINPUT,
                        "%s: hidden_size %" PRId64 " is no multiple of %" PRId64 " heads", path,
                        s->hidden, s->heads);
    return rc ? rc : GET({"head_dim", &s->head, s->hidden / s->heads});
}

// EAGLE-3 heads are configurations of Llama with a reduced vocabulary.
static int read_llama(dsc_model_shape *s, const char *path, json_t *j, dsc_error *err)
{
    int rc = read_decoder(s, path, j, err);
    if (rc || !json_object_get(j, "draft_vocab_size"))
        return rc;
    s->draft_head = DSC_HEAD_EAGLE3;
    return GET({"draft_vocab_size", &s->vocab, 0});
}

static int read_qwen2(dsc_model_shape *s, const char *path, json_t *j, dsc_error *err)
{
    s->kind = DSC_MODEL_QWEN2;
    return read_decoder(s, path, j, err);
}

static int read_qwen3(dsc_model_shape *s, const char *path, json_t *j, dsc_error *err)
{
    s->kind = DSC_MODEL_QWEN3;
    return read_decoder(s, path, j, err);
}

static int check_experts(const dsc_model_shape *s, const char *path, dsc_error *err)
{
    if (s->experts_per_token > s->experts)
        return dsc_fail(err, DSC_EINPUT,
                        "%s: num_experts_per_tok is %" PRId64 " of %" PRId64 " experts", path,
                        s->experts_per_token, s->experts);
    if (s->dense_layers >= s->layers)
        return dsc_fail(err, DSC_EINPUT,
                        "%s: none of %" PRId64 " layers has experts (first_k_dense_replace, "
                        "mlp_only_layers, decoder_sparse_step)",
                        path, s->layers);
    return DSC_OK;
}

static int read_mixtral(dsc_model_shape *s, const char *path, json_t *j, dsc_error *err)
{
    int rc = read_decoder(s, path, j, err);
    s->expert_feed_forward = s->feed_forward;
    if (!rc)
        rc = GET({"num_local_experts", &s->experts, 0},
                 {"num_experts_per_tok", &s->experts_per_token, 0});
    return rc ? rc : check_experts(s, path, err);
}

static int read_gpt_oss(dsc_model_shape *s, const char *path, json_t *j, dsc_error *err)
{
    s->kind = DSC_MODEL_GPT_OSS;
    return read_mixtral(s, path, j, err);
}

// Whether a list of numbers of layers contains `layer`.
static bool lists(json_t *list, int64_t layer)
{
    json_t *x;
    size_t i;
    bool found = false;
    json_array_foreach(list, i, x) found |= json_is_integer(x) && json_integer_value(x) == layer;
    return found;
}

// Every decoder_sparse_step-th layer has experts, except mlp_only_layers. transformers 5 writes
// num_local_experts for num_experts.
static int read_qwen3_moe(dsc_model_shape *s, const char *path, json_t *j, dsc_error *err)
{
    int64_t step;
    const char *experts = json_object_get(j, "num_experts") ? "num_experts" : "num_local_experts";
    int rc = read_qwen3(s, path, j, err);
    if (!rc)
        rc = GET({experts, &s->experts, 0}, {"num_experts_per_tok", &s->experts_per_token, 0},
                 {"moe_intermediate_size", &s->expert_feed_forward, 0},
                 {"decoder_sparse_step", &step, 1});
    if (rc)
        return rc;
    for (int64_t i = 0; i < s->layers; i++)
        s->dense_layers += (i + 1) % step != 0 || lists(json_object_get(j, "mlp_only_layers"), i);
    return check_experts(s, path, err);
}

static int read_smollm3(dsc_model_shape *s, const char *path, json_t *j, dsc_error *err)
{
    int rc = read_decoder(s, path, j, err);
    s->tied = !json_is_false(json_object_get(j, "tie_word_embeddings"));
    return rc;
}

// Missing sizes are those of transformers' configuration class.
static int read_gemma3_text(dsc_model_shape *s, const char *path, json_t *j, dsc_error *err)
{
    s->kind = DSC_MODEL_GEMMA3;
    s->tied = !json_is_false(json_object_get(j, "tie_word_embeddings"));
    return GET({"hidden_size", &s->hidden, 2304}, {"intermediate_size", &s->feed_forward, 9216},
               {"num_hidden_layers", &s->layers, 26}, {"num_attention_heads", &s->heads, 8},
               {"vocab_size", &s->vocab, 262208}, {"num_key_value_heads", &s->kv_heads, 4},
               {"head_dim", &s->head, 256});
}

static int read_gemma3(dsc_model_shape *s, const char *path, json_t *j, dsc_error *err)
{
    json_t *text = json_object_get(j, "text_config");
    if (!json_is_object(text))
        return dsc_fail(err, DSC_EINPUT, "%s: field 'text_config' is missing or not an object",
                        path);
    return read_gemma3_text(s, path, text, err);
}

static int read_deepseek(dsc_model_shape *s, const char *path, json_t *j, dsc_error *err)
{
    s->kind = DSC_MODEL_DEEPSEEK;
    s->tied = json_is_true(json_object_get(j, "tie_word_embeddings"));
    int rc =
        GET({"hidden_size", &s->hidden, 0}, {"intermediate_size", &s->feed_forward, 0},
            {"num_hidden_layers", &s->layers, 0}, {"num_attention_heads", &s->heads, 0},
            {"vocab_size", &s->vocab, 0}, {"qk_nope_head_dim", &s->head, 0},
            {"qk_rope_head_dim", &s->rope, 0}, {"v_head_dim", &s->value_head, 0},
            {"q_lora_rank", &s->query_rank, 0}, {"kv_lora_rank", &s->cache_rank, 0},
            {"n_routed_experts", &s->experts, 0}, {"num_experts_per_tok", &s->experts_per_token, 0},
            {"moe_intermediate_size", &s->expert_feed_forward, 0},
            {"n_shared_experts", &s->shared_experts, 0},
            {"first_k_dense_replace", &s->dense_layers, 0});
    s->kv_heads = s->heads;
    return rc ? rc : check_experts(s, path, err);
}

static int read_t5(dsc_model_shape *s, const char *path, json_t *j, dsc_error *err)
{
    const char *forward = json_string_value(json_object_get(j, "feed_forward_proj"));
    s->kind = DSC_MODEL_T5;
    s->tied = !json_is_false(json_object_get(j, "tie_word_embeddings"));
    s->plain = !forward || strncmp(forward, "gated", 5) != 0;
    int rc = GET({"d_model", &s->hidden, 0}, {"d_ff", &s->feed_forward, 0}, {"d_kv", &s->head, 0},
                 {"num_heads", &s->heads, 0}, {"num_layers", &s->encoder_layers, 0},
                 {"vocab_size", &s->vocab, 0});
    s->kv_heads = s->heads;
    return rc ? rc : GET({"num_decoder_layers", &s->layers, s->encoder_layers});
}

// The format that the weights are published in.
static int read_quantization(dsc_model_shape *s, const char *path, json_t *j, dsc_error *err)
{
    json_t *q = json_object_get(j, "quantization_config");
    const char *method = json_string_value(json_object_get(q, "quant_method"));
    const int64_t bits = json_integer_value(json_object_get(q, "bits"));
    const bool four = method && (strcmp(method, "awq") == 0 || strcmp(method, "gptq") == 0);
    if (!q || json_is_null(q))
        return DSC_OK;
    if (method && strcmp(method, "mxfp4") == 0) { // of gpt-oss; attention stays in 16 bits
        s->weights = "mxfp4";
        s->only_experts = true;
    } else if (method && strcmp(method, "fp8") == 0) {
        s->weights = "fp8";
    } else if (four && bits == 4) {
        s->weights = "w4a16";
    } else {
        return dsc_fail(
            err, DSC_EINPUT,
            "%s: field 'quantization_config' has a quant_method that is not fp8, mxfp4, "
            "or awq or gptq with 4 bits: remove the field and give weights=",
            path);
    }
    return DSC_OK;
}

static int read_config(dsc_model_shape *s, const char *path, json_t *j, dsc_error *err)
{
    static const struct {
        const char *type;
        int (*read)(dsc_model_shape *s, const char *path, json_t *j, dsc_error *err);
    } types[] = {{"llama", read_llama},
                 {"mistral", read_llama},
                 {"mixtral", read_mixtral},
                 {"qwen2", read_qwen2},
                 {"qwen3", read_qwen3},
                 {"qwen3_moe", read_qwen3_moe},
                 {"deepseek_v3", read_deepseek},
                 {"gpt_oss", read_gpt_oss},
                 {"t5", read_t5},
                 {"smollm3", read_smollm3},
                 {"gemma3", read_gemma3},
                 {"gemma3_text", read_gemma3_text}};
    const char *type = json_string_value(json_object_get(j, "model_type"));
    for (size_t i = 0; type && i < sizeof types / sizeof *types; i++)
        if (strcmp(type, types[i].type) == 0) {
            int rc = types[i].read(s, path, j, err);
            return rc ? rc : read_quantization(s, path, j, err);
        }
    return dsc_fail(err, DSC_EINPUT,
                    "%s: model_type '%.40s' is not one of llama, mistral, mixtral, qwen2, qwen3, "
                    "qwen3_moe, smollm3, gemma3_text, gemma3, deepseek_v3, gpt_oss, t5",
                    path, type ? type : "(none)");
}

int dsc_model_config_read(dsc_model_shape *s, const char *path, dsc_error *err)
{
    json_t *j;
    int rc = dsc_json_file(&j, path, LONGEST_FILE, err);
    *s = (dsc_model_shape){0};
    if (!rc)
        rc = read_config(s, path, j, err);
    json_decref(j);
    return rc;
}

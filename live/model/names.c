// SPDX-License-Identifier: Apache-2.0
// Tables of tensor names, one per architecture, as transformers, EAGLE and Medusa write them.
#include "live/model/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// '#' stands for the layer, the second one for the expert; for Medusa, for the head and the block.
static const char *const llama[LIVE_MODULES] = {
    [LIVE_EMBED] = "embed_tokens",
    [LIVE_FINAL_NORM] = "norm",
    [LIVE_HEAD] = "lm_head",
    [LIVE_JOIN] = "fc",
    [LIVE_NORM1] = "layers.#.input_layernorm",
    [LIVE_QUERY] = "layers.#.self_attn.q_proj",
    [LIVE_KEY] = "layers.#.self_attn.k_proj",
    [LIVE_VALUE] = "layers.#.self_attn.v_proj",
    [LIVE_QUERY_NORM] = "layers.#.self_attn.q_norm",
    [LIVE_KEY_NORM] = "layers.#.self_attn.k_norm",
    [LIVE_ATTENTION_OUT] = "layers.#.self_attn.o_proj",
    [LIVE_NORM2] = "layers.#.post_attention_layernorm",
    [LIVE_GATE] = "layers.#.mlp.gate_proj",
    [LIVE_UP] = "layers.#.mlp.up_proj",
    [LIVE_DOWN] = "layers.#.mlp.down_proj",
    [LIVE_ROUTER] = "layers.#.mlp.gate",
    [LIVE_EXPERT_GATE] = "layers.#.mlp.experts.#.gate_proj",
    [LIVE_EXPERT_UP] = "layers.#.mlp.experts.#.up_proj",
    [LIVE_EXPERT_DOWN] = "layers.#.mlp.experts.#.down_proj",
};
static const char *const gemma3[LIVE_MODULES] = {
    [LIVE_EMBED] = "embed_tokens",
    [LIVE_FINAL_NORM] = "norm",
    [LIVE_HEAD] = "lm_head",
    [LIVE_NORM1] = "layers.#.input_layernorm",
    [LIVE_QUERY] = "layers.#.self_attn.q_proj",
    [LIVE_KEY] = "layers.#.self_attn.k_proj",
    [LIVE_VALUE] = "layers.#.self_attn.v_proj",
    [LIVE_QUERY_NORM] = "layers.#.self_attn.q_norm",
    [LIVE_KEY_NORM] = "layers.#.self_attn.k_norm",
    [LIVE_ATTENTION_OUT] = "layers.#.self_attn.o_proj",
    [LIVE_POST_NORM1] = "layers.#.post_attention_layernorm",
    [LIVE_NORM2] = "layers.#.pre_feedforward_layernorm",
    [LIVE_GATE] = "layers.#.mlp.gate_proj",
    [LIVE_UP] = "layers.#.mlp.up_proj",
    [LIVE_DOWN] = "layers.#.mlp.down_proj",
    [LIVE_POST_NORM2] = "layers.#.post_feedforward_layernorm",
};
static const char *const eagle3[LIVE_MODULES] = {
    [LIVE_EMBED] = "embed_tokens",
    [LIVE_FINAL_NORM] = "norm",
    [LIVE_HEAD] = "lm_head",
    [LIVE_JOIN] = "fc",
    [LIVE_FEATURE_NORM] = "midlayer.hidden_norm",
    [LIVE_NORM1] = "midlayer.input_layernorm",
    [LIVE_QUERY] = "midlayer.self_attn.q_proj",
    [LIVE_KEY] = "midlayer.self_attn.k_proj",
    [LIVE_VALUE] = "midlayer.self_attn.v_proj",
    [LIVE_ATTENTION_OUT] = "midlayer.self_attn.o_proj",
    [LIVE_NORM2] = "midlayer.post_attention_layernorm",
    [LIVE_GATE] = "midlayer.mlp.gate_proj",
    [LIVE_UP] = "midlayer.mlp.up_proj",
    [LIVE_DOWN] = "midlayer.mlp.down_proj",
};
static const char *const gpt2[LIVE_MODULES] = {
    [LIVE_EMBED] = "wte",
    [LIVE_POSITIONS] = "wpe",
    [LIVE_FINAL_NORM] = "ln_f",
    [LIVE_HEAD] = "lm_head",
    [LIVE_NORM1] = "h.#.ln_1",
    [LIVE_QKV] = "h.#.attn.c_attn",
    [LIVE_ATTENTION_OUT] = "h.#.attn.c_proj",
    [LIVE_NORM2] = "h.#.ln_2",
    [LIVE_UP] = "h.#.mlp.c_fc",
    [LIVE_DOWN] = "h.#.mlp.c_proj",
};
static const char *const neox[LIVE_MODULES] = {
    [LIVE_EMBED] = "embed_in",
    [LIVE_FINAL_NORM] = "final_layer_norm",
    [LIVE_HEAD] = "embed_out",
    [LIVE_NORM1] = "layers.#.input_layernorm",
    [LIVE_QKV] = "layers.#.attention.query_key_value",
    [LIVE_ATTENTION_OUT] = "layers.#.attention.dense",
    [LIVE_NORM2] = "layers.#.post_attention_layernorm",
    [LIVE_UP] = "layers.#.mlp.dense_h_to_4h",
    [LIVE_DOWN] = "layers.#.mlp.dense_4h_to_h",
};
static const char *const medusa[LIVE_MODULES] = {
    [LIVE_MEDUSA_LINEAR] = "#.#.linear",
    [LIVE_MEDUSA_OUT] = "#.#",
};

// The prefixes in use, the usual one first, and a tensor that shows which one it is.
static const struct {
    const char *const *names;
    const char *prefix[5];
    live_module sign;
} families[] = {
    [LIVE_LLAMA] = {llama, {"model.", "", NULL}, LIVE_EMBED},
    [LIVE_GEMMA3] = {gemma3,
                     {"model.", "language_model.model.", "model.language_model.", "", NULL},
                     LIVE_EMBED},
    [LIVE_GPT2] = {gpt2, {"transformer.", "", NULL}, LIVE_EMBED},
    [LIVE_NEOX] = {neox, {"gpt_neox.", "", NULL}, LIVE_EMBED},
    [LIVE_EAGLE] = {llama, {"", "model.", NULL}, LIVE_JOIN},
    [LIVE_EAGLE3] = {eagle3, {"", "model.", NULL}, LIVE_JOIN},
    [LIVE_MEDUSA] = {medusa, {"", "medusa_head.", NULL}, LIVE_MEDUSA_LINEAR},
};

bool live_name_known(live_family family, live_module m)
{
    return families[family].names[m] != NULL;
}

void live_name(char out[LIVE_TENSOR_NAME], live_family family, const char *prefix, live_module m,
               bool bias, int64_t i, int64_t j)
{
    const char *pattern = families[family].names[m];
    // The output matrix of a multimodal model is a part of the same whole as its decoder.
    const char *of_head = strcmp(prefix, "language_model.model.") ? "" : "language_model.";
    size_t at = (size_t)snprintf(out, LIVE_TENSOR_NAME, "%s", m == LIVE_HEAD ? of_head : prefix);
    for (const char *p = pattern; *p; p++) {
        if (*p == '#') {
            at += (size_t)snprintf(out + at, LIVE_TENSOR_NAME - at, "%" PRId64, i);
            i = j;
        } else {
            out[at++] = *p;
        }
    }
    snprintf(out + at, LIVE_TENSOR_NAME - at, "%s", bias ? ".bias" : ".weight");
}

const char *const *live_name_prefixes(live_family family, live_module *sign)
{
    *sign = families[family].sign;
    return families[family].prefix;
}

bool live_name_ends_in(const char *name, const char *suffix)
{
    size_t n = strlen(name), m = strlen(suffix);
    return n > m && strcmp(name + n - m, suffix) == 0;
}

static bool begins_with(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

live_leftover live_name_leftover(live_family family, const char *name)
{
    static const struct {
        const char *suffix;
        bool anywhere; // not in this family only
        live_family family;
    } buffers[] = {
        {".rotary_emb.inv_freq", true, LIVE_LLAMA}, {".position_ids", true, LIVE_LLAMA},
        {".attn.bias", false, LIVE_GPT2},           {".attn.masked_bias", false, LIVE_GPT2},
        {".attention.bias", false, LIVE_NEOX},      {".attention.masked_bias", false, LIVE_NEOX}};
    static const char *const parts[] = {"vision_tower.", "multi_modal_projector.",
                                        "model.vision_tower.", "model.multi_modal_projector."};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        if ((buffers[i].anywhere || buffers[i].family == family) &&
            live_name_ends_in(name, buffers[i].suffix))
            return LIVE_LEFT_COMPUTED;
    if (strcmp(name, LIVE_ROPE_TENSOR) == 0)
        return LIVE_LEFT_COMPUTED;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && family == LIVE_GEMMA3; i++)
        if (begins_with(name, parts[i]))
            return LIVE_LEFT_PART;
    return LIVE_LEFT_UNKNOWN;
}

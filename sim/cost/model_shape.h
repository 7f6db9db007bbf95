// SPDX-License-Identifier: Apache-2.0
// Shapes of transformer decoders, dense or with a mixture of experts, and of draft heads: the
// numbers that a forward pass reads and multiplies.
#ifndef DSC_SIM_MODEL_SHAPE_H
#define DSC_SIM_MODEL_SHAPE_H

#include "base/status.h"
#include "sim/cost/hardware.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum dsc_model_shape_kind {
    DSC_MODEL_LLAMA,    // decoder: attention, gated feed-forward, no biases (also Mistral, Mixtral)
    DSC_MODEL_QWEN2,    // as LLAMA, with biases on the query, key and value projections
    DSC_MODEL_QWEN3,    // as LLAMA, with a norm of each query and key head
    DSC_MODEL_GPT_OSS,  // experts with biases, attention with biases and sinks
    DSC_MODEL_DEEPSEEK, // multi-head latent attention: the cache holds one latent vector per token
    DSC_MODEL_T5,       // encoder and decoder; a pass is one of the decoder, the encoder runs once
    DSC_MODEL_GEMMA3,   // as QWEN3, with four norms per layer
} dsc_model_shape_kind;

// A head that drafts from the target's hidden states: one layer and the projection of its inputs.
typedef enum dsc_draft_head {
    DSC_HEAD_NONE,
    DSC_HEAD_EAGLE,  // (embedding, hidden state) projected to one; the target's output matrix
    DSC_HEAD_EAGLE3, // three hidden states projected once per draft; attention reads (embedding,
                     // hidden state); an output matrix over a reduced vocabulary
    DSC_HEAD_MTP, // (embedding, hidden state) projected to one, a layer of the target, its output
} dsc_draft_head;

typedef struct dsc_model_shape {
    const char *name; // of a preset, else NULL
    dsc_model_shape_kind kind;
    int64_t layers; // of the decoder
    int64_t hidden, feed_forward;
    int64_t heads, kv_heads, head; // head: numbers in one
    int64_t vocab;
    bool tied;              // the output matrix is the input embedding
    int64_t encoder_layers; // T5
    bool plain;             // T5: two feed-forward matrices (ReLU) instead of three (gated)
    // Experts; 0: the model is dense.
    int64_t experts, experts_per_token;
    int64_t expert_feed_forward;
    int64_t shared_experts;                           // that every token is multiplied by
    int64_t dense_layers;                             // layers that have no experts
    int64_t query_rank, cache_rank, rope, value_head; // DEEPSEEK; `head` is the part without RoPE
    dsc_draft_head draft_head;
    const char *weights; // number format that the checkpoint is published in; NULL: 16 bits
    bool only_experts;   // that format is the experts' alone
} dsc_model_shape;

// A preset by its name, or the config.json of Hugging Face when `text` contains a '/' or ends in
// ".json": model_type llama, mistral, mixtral, qwen2, qwen3, qwen3_moe, smollm3, gemma3_text,
// gemma3 (its text_config), deepseek_v3, gpt_oss or t5. Windows of attention are ignored.
// DSC_EUSAGE: no such preset (with the nearest name); DSC_EINPUT: a file that is not such a
// configuration.
int dsc_model_shape_find(dsc_model_shape *out, const char *text, dsc_error *err);
const dsc_model_shape *dsc_model_shape_presets(size_t *count);

// The draft model of a target: "eagle", "eagle3" or "mtp", a head in the target's width, or else
// what dsc_model_shape_find takes. DSC_EUSAGE: an EAGLE head of a target without a dense layer.
int dsc_model_shape_draft(dsc_model_shape *out, const char *text, const dsc_model_shape *target,
                          dsc_error *err);

// Reads a config.json into *s. DSC_EINPUT.
int dsc_model_config_read(dsc_model_shape *s, const char *path, dsc_error *err);

// Whether all layers are dense ones of a decoder, as live mode runs them.
bool dsc_model_shape_is_dense(const dsc_model_shape *s);

// Parameters of the matrices of a forward pass, by part. Each is one multiplication and one
// addition per token that passes it.
typedef struct dsc_model_work {
    double attention;     // of all layers
    double feed_forward;  // of all layers, for every token: routers and shared experts included
    double expert;        // of one expert in one layer
    double expert_layers; // layers with experts
    double output;        // to the vocabulary
    double first;         // in the first pass of a draft only
} dsc_model_work;
dsc_model_work dsc_model_shape_work(const dsc_model_shape *s);

// Number of parameters. Of a draft head: without the embedding and the output that are the
// target's.
double dsc_model_shape_parameters(const dsc_model_shape *s);
// Parameters of all matrices of a pass, all experts included: all but the input embedding, from
// which a pass reads one row per token.
double dsc_model_shape_weights(const dsc_model_shape *s);
// Those that one token is multiplied by.
double dsc_model_shape_active(const dsc_model_shape *s);
// Numbers in the KV cache per token of the context.
double dsc_model_shape_cache(const dsc_model_shape *s);
// Operations for the attention of one token to another.
double dsc_model_shape_attention(const dsc_model_shape *s);

#endif

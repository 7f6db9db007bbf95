// SPDX-License-Identifier: Apache-2.0
// The contents of a checkpoint's config.json, as one description of a decoder block that covers
// every supported architecture, so that the forward pass (live/model/model.c) is written once.
#ifndef DSC_LIVE_CONFIG_H
#define DSC_LIVE_CONFIG_H

#include "live/device/backend.h"
#include "sim/cost/model_shape.h"

#include <stdbool.h>

typedef enum live_family {
    LIVE_LLAMA, // also Mistral, Qwen2, Qwen3 and SmolLM3, whose tensors have the same names
    LIVE_GPT2,
    LIVE_NEOX,   // GPT-NeoX, Pythia
    LIVE_EAGLE,  // EAGLE-1 head: joins embedding and feature, one Llama block, no norm around it
    LIVE_EAGLE3, // EAGLE-3 head: features of three layers, one Llama block, its own vocabulary
    LIVE_MEDUSA, // Medusa-1 heads: no blocks
    LIVE_GEMMA3, // the text part
} live_family;

enum { LIVE_MAX_ENDS = 8, LIVE_MAX_LAYERS = 1000, LIVE_NAME = 32, LIVE_TAPS = 3 };

// What distinguishes a layer from the others (bits).
enum {
    LIVE_LAYER_FULL = 1,      // attends to all tokens, although the model has a window
    LIVE_LAYER_UNROTATED = 2, // queries and keys are not rotated (SmolLM3)
    LIVE_LAYER_DENSE = 4,     // one feed-forward, although the model has experts (Qwen3-MoE)
};

// How rotary angles are scaled (rope_scaling).
// LIVE_ROPE_FACTORS: each angle is divided by a number of the file (GGUF).
typedef enum live_rope {
    LIVE_ROPE_PLAIN,
    LIVE_ROPE_LINEAR,
    LIVE_ROPE_LLAMA3,
    LIVE_ROPE_FACTORS,
    LIVE_ROPE_YARN,
    LIVE_ROPE_DYNAMIC, // plain up to `positions`; longer texts are refused
} live_rope;

enum { LIVE_ROPE_FACTORS_MAX = 256 };

typedef struct live_config {
    live_family family;
    char model_type[LIVE_NAME]; // "llama", "qwen3", ...
    int64_t layers, hidden, feed_forward;
    int64_t heads, kv_heads, head; // head: numbers in one
    int64_t vocab;
    int64_t positions; // the longest context that the model was trained on
    // Sliding-window attention: tokens that a token attends to, itself included; 0: all. It is that
    // of all layers but those with LIVE_LAYER_FULL.
    int64_t window;
    uint8_t layer[LIVE_MAX_LAYERS]; // LIVE_LAYER_* of each layer
    dsc_dtype dtype;                // of the weights as stored: F32, F16, BF16
    live_norm norm;
    double norm_epsilon;
    live_activation activation;
    bool parallel; // attention and feed-forward read the same input (NeoX)
    bool qkv_bias, out_bias, feed_bias;
    bool qk_norm;           // RMS norm of each query and key head (Qwen3)
    bool norm_plus_one;     // norms multiply by 1 + the stored weight (Gemma)
    bool post_norms;        // norms of the outputs of attention and feed-forward (Gemma 3)
    double embed_scale;     // embeddings are multiplied by it, rounded to their dtype; 0: by 1
    double attention_scale; // of the scores; 0: 1 / sqrt(head)
    bool tied;              // the output matrix is the input embedding
    bool learned_positions; // learned position embeddings instead of rotation (GPT-2)
    int64_t rotated;        // numbers of a head that are rotated; 0: none
    double rope_theta;
    double local_theta; // rope_theta of the layers with a window, whose angles are not scaled;
                        // 0: all layers have the same rotation
    live_rope rope;
    double rope_factor, rope_low, rope_high;   // Llama-3: low_freq_factor, high_freq_factor
    int64_t rope_original;                     // original_max_position_embeddings
    float rope_divisor[LIVE_ROPE_FACTORS_MAX]; // [rotated / 2] of LIVE_ROPE_FACTORS
    double rope_fast, rope_slow;               // YaRN: beta_fast, beta_slow
    bool rope_truncate;                        // YaRN
    double rope_attention; // YaRN: the rotated queries and keys are multiplied by it; 0: by 1
    int64_t experts, experts_per_token; // 0: none
    int64_t expert_feed_forward;
    bool experts_normalized; // the weights of a token's experts sum to 1
    int64_t medusa_heads, medusa_layers;
    int64_t draft_vocab; // EAGLE-3: tokens that the head can draft; else 0
    // EAGLE-3: the layers of the target whose inputs are its features, ascending; the number of
    // layers stands for the output of the last one. All 0: live_config_taps.
    int64_t tap[LIVE_TAPS];
    bool norm_before_residual;  // EAGLE-3: the residual stream begins with the normed feature
    bool fc_bias;               // EAGLE
    bool own_embedding;         // an EAGLE head has its own embedding; false: it uses the target's
    int32_t begin;              // bos_token_id, or -1
    int32_t end[LIVE_MAX_ENDS]; // eos_token_id, from generation_config.json if present
    int ends;
    bool normed; // false (EAGLE): no norm before the first block's attention and none
                 // after the last block
} live_config;

// The window of layer i; 0: it attends to all tokens.
static inline int64_t live_config_window(const live_config *c, int64_t i)
{
    return c->layer[i] & LIVE_LAYER_FULL ? 0 : c->window;
}

// Whether layer i has experts.
static inline bool live_config_is_sparse(const live_config *c, int64_t i)
{
    return c->experts > 0 && !(c->layer[i] & LIVE_LAYER_DENSE);
}

// Whether some layers have a window and others have none.
static inline bool live_config_mixes_windows(const live_config *c)
{
    bool full = false, windowed = false;
    for (int64_t i = 0; i < c->layers; i++)
        live_config_window(c, i) ? (windowed = true) : (full = true);
    return full && windowed;
}

// Whether these are heads of a target: they read its features.
static inline bool live_config_is_head(const live_config *c)
{
    return c->family == LIVE_EAGLE || c->family == LIVE_EAGLE3 || c->family == LIVE_MEDUSA;
}

// Whether this head reads its own features when it drafts more than one token.
static inline bool live_config_is_eagle(const live_config *c)
{
    return c->family == LIVE_EAGLE || c->family == LIVE_EAGLE3;
}

// The layers of a target of `layers` layers whose inputs an EAGLE-3 head reads: c->tap, or, as the
// public engines have it, 2, layers / 2 and layers - 3. DSC_EUSAGE if the target lacks one, or if
// these are not three layers.
int live_config_taps(const live_config *c, int64_t layers, int64_t tap[LIVE_TAPS], dsc_error *err);

// Reads FOLDER/config.json, and generation_config.json if present, or the metadata of a GGUF file
// (live/model/gguf.h). Accepts the old and the new
// spelling of a key (n_embd and hidden_size, torch_dtype and dtype, rope_scaling and
// rope_parameters). DSC_EINPUT names the file and the key that is missing, of the wrong type, out
// of range, or that requests an unsupported feature (never ignored). For an unsupported
// architecture the message lists the supported ones.
int live_config_read(live_config *out, const char *folder, dsc_error *err);

// A preset of sim/cost/model_shape.h, or the path of a config.json, for random weights.
int live_config_of_shape(live_config *out, const char *text, dsc_error *err);

// Bytes of the weights, and bytes of the KV cache of one token.
double live_config_weight_bytes(const live_config *c, dsc_dtype dtype);
double live_config_cache_bytes(const live_config *c, dsc_dtype dtype);

// inv_freq[rotated / 2]: the scaled angle per position of each pair. `local`: of the layers that
// have local_theta.
void live_config_rope(const live_config *c, bool local, float *inv_freq);

#endif

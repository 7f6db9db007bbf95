// SPDX-License-Identifier: Apache-2.0
// Names of the parts of a decoder in the checkpoints of each architecture.
#ifndef DSC_LIVE_NAMES_H
#define DSC_LIVE_NAMES_H

#include "live/model/config.h"

typedef enum live_module {
    LIVE_EMBED,
    LIVE_POSITIONS,
    LIVE_FINAL_NORM,
    LIVE_HEAD, // the output matrix; its name has no prefix, or "language_model."
    LIVE_JOIN,
    LIVE_FEATURE_NORM, // EAGLE-3
    LIVE_NORM1,        // of layer i, from here on
    LIVE_QKV,          // either one tensor, or the next three
    LIVE_QUERY,
    LIVE_KEY,
    LIVE_VALUE,
    LIVE_QUERY_NORM,
    LIVE_KEY_NORM,
    LIVE_ATTENTION_OUT,
    LIVE_POST_NORM1, // of the output of the attention
    LIVE_NORM2,
    LIVE_GATE,
    LIVE_UP,
    LIVE_DOWN,
    LIVE_ROUTER,
    LIVE_EXPERT_GATE, // of expert j
    LIVE_EXPERT_UP,
    LIVE_EXPERT_DOWN,
    LIVE_POST_NORM2,    // of the output of the feed-forward
    LIVE_MEDUSA_LINEAR, // of head i, block j
    LIVE_MEDUSA_OUT,
    LIVE_MODULES
} live_module;

enum { LIVE_TENSOR_NAME = 128 };

// The factors of the rotation in a GGUF file; the configuration has them (rope_divisor).
#define LIVE_ROPE_TENSOR "rope_freqs.weight"

// Writes a name such as "model.layers.3.self_attn.q_proj.weight". `prefix` is that of
// live_checkpoint_prefix.
void live_name(char out[LIVE_TENSOR_NAME], live_family family, const char *prefix, live_module m,
               bool bias, int64_t i, int64_t j);

// Whether the architecture stores this part as a tensor of its own (Llama: LIVE_QUERY, not
// LIVE_QKV).
bool live_name_known(live_family family, live_module m);

// Prefixes of the names ("model.", "transformer.", ... or ""), the usual one first, ended by NULL.
// *sign is a module whose name shows which prefix a checkpoint uses.
const char *const *live_name_prefixes(live_family family, live_module *sign);

bool live_name_ends_in(const char *name, const char *suffix); // in more than the suffix

// Tensors of a checkpoint that the forward pass does not need.
typedef enum live_leftover {
    LIVE_LEFT_UNKNOWN,  // results without it would be wrong
    LIVE_LEFT_COMPUTED, // a buffer that can be computed (rotary frequencies, causal masks, position
                        // numbers) and that old checkpoints store
    LIVE_LEFT_PART,     // of the vision tower of a multimodal Gemma 3
} live_leftover;
live_leftover live_name_leftover(live_family family, const char *name);

#endif

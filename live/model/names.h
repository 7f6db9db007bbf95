// SPDX-License-Identifier: Apache-2.0
// What each architecture calls the parts of a decoder in its checkpoints.
#ifndef DSC_LIVE_NAMES_H
#define DSC_LIVE_NAMES_H

#include "live/model/config.h"

typedef enum live_module {
    LIVE_EMBED,
    LIVE_POSITIONS,
    LIVE_FINAL_NORM,
    LIVE_HEAD, // the output matrix; its name has no prefix
    LIVE_JOIN,
    LIVE_NORM1, // of layer i, from here on
    LIVE_QKV,   // in one tensor, or
    LIVE_QUERY,
    LIVE_KEY,
    LIVE_VALUE,
    LIVE_QUERY_NORM,
    LIVE_KEY_NORM,
    LIVE_ATTENTION_OUT,
    LIVE_NORM2,
    LIVE_GATE,
    LIVE_UP,
    LIVE_DOWN,
    LIVE_MEDUSA_LINEAR, // of head i, block j
    LIVE_MEDUSA_OUT,
    LIVE_MODULES
} live_module;

enum { LIVE_TENSOR_NAME = 128 };

// "model.layers.3.self_attn.q_proj.weight". `prefix` of live_checkpoint_prefix.
void live_name(char out[LIVE_TENSOR_NAME], live_family family, const char *prefix, live_module m,
               bool bias, int64_t i, int64_t j);

// Whether the architecture has such a tensor of its own (Llama: LIVE_QUERY, not LIVE_QKV).
bool live_name_known(live_family family, live_module m);

// What stands in front of the names: "model.", "transformer.", ... or "", the usual one first,
// ended by NULL. *sign: a module that shows which of them a checkpoint has.
const char *const *live_name_prefixes(live_family family, live_module *sign);

// Tensors that are computed, not learnt, and that old checkpoints store: angles and causal masks.
bool live_name_computed(const char *name);

#endif

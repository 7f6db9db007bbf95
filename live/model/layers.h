// SPDX-License-Identifier: Apache-2.0
// What distinguishes the layers of a model from each other, as config.json defines it.
#ifndef DSC_LIVE_LAYERS_H
#define DSC_LIVE_LAYERS_H

#include "live/model/config.h"
#include "live/model/keys.h"

// Which layers of an architecture have sliding-window attention.
typedef enum live_windows {
    LIVE_WINDOWS_NONE,
    LIVE_WINDOWS_ALL,          // all (Mistral)
    LIVE_WINDOWS_SWITCHED,     // with use_sliding_window: layer_types, or from max_window_layers on
                               // (Qwen)
    LIVE_WINDOWS_SWITCHED_ALL, // all, with use_sliding_window (Qwen3-MoE)
    LIVE_WINDOWS_PATTERN,      // layer_types, or all but every sliding_window_pattern-th (Gemma 3)
    LIVE_WINDOWS_UNROTATED // with use_sliding_window: layer_types, or those that are not rotated
                           // (SmolLM3: no_rope_layers, no_rope_layer_interval)
} live_windows;

// Sets window and layer[] of *c, whose number of layers is already set. `window` is the value of a
// missing sliding_window. Records errors in k->err.
int live_layers_read(live_config *c, live_windows which, int64_t window, const live_keys *k);

// Sets the sizes of the experts of a Qwen3-MoE and the layers that have them (num_experts,
// decoder_sparse_step, mlp_only_layers). Records errors in k->err.
int live_experts_read(live_config *c, const live_keys *k);

#endif

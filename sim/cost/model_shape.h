// SPDX-License-Identifier: Apache-2.0
// Shapes of dense transformer decoders: the numbers that a forward pass reads and multiplies.
#ifndef DSC_SIM_MODEL_SHAPE_H
#define DSC_SIM_MODEL_SHAPE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum dsc_model_shape_kind {
    DSC_MODEL_LLAMA, // decoder: attention, gated feed-forward, no biases (also Mistral)
    DSC_MODEL_QWEN2, // as LLAMA, with biases on the query, key and value projections
    DSC_MODEL_T5,    // encoder and decoder; a pass is one of the decoder, the encoder runs once
} dsc_model_shape_kind;

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
} dsc_model_shape;

// A preset by its name, or the config.json of Hugging Face when `text` contains a '/' or ends in
// ".json": model_type llama, mistral, qwen2 or t5. DSC_EUSAGE: no such preset (with the nearest
// name); DSC_EINPUT: a file that is not such a configuration, or of a model that is not dense or
// not 16-bit.
int dsc_model_shape_find(dsc_model_shape *out, const char *text, dsc_error *err);
const dsc_model_shape *dsc_model_shape_presets(size_t *count);

// Number of parameters.
double dsc_model_shape_parameters(const dsc_model_shape *s);
// Parameters of the matrices that every token of a pass is multiplied by: all but the input
// embedding, from which a pass reads one row per token. Each is one multiplication and one addition
// per token.
double dsc_model_shape_weights(const dsc_model_shape *s);
// Numbers in the KV cache per token of the context.
double dsc_model_shape_cache(const dsc_model_shape *s);
// Operations for the attention of one token to another.
double dsc_model_shape_attention(const dsc_model_shape *s);

#endif

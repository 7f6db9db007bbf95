// SPDX-License-Identifier: Apache-2.0
// The weights of a model on a device, loaded from a Hugging Face folder or random.
#ifndef DSC_LIVE_WEIGHTS_H
#define DSC_LIVE_WEIGHTS_H

#include "base/sha256.h"
#include "live/device/backend.h"
#include "live/model/config.h"

// Matrices that are multiplied by the same input are stored as one, one row block after another.
// Vectors (norms, biases) are F32. What an architecture lacks is NULL or has no rows.
typedef struct live_layer {
    float *norm1, *norm1_bias; // [hidden] before the attention
    live_matrix qkv;           // [(heads + 2 kv_heads) * head][hidden]: queries, keys, values
    float *qkv_bias;
    live_matrix qkv_feature; // EAGLE-3: the columns of qkv for the feature; qkv has the embedding's
    float *q_norm, *k_norm;  // [head]
    live_matrix out;         // [hidden][heads * head]
    float *out_bias;
    float *post_norm1;         // [hidden] of the output of the attention, Gemma 3
    float *norm2, *norm2_bias; // before the feed-forward
    live_matrix up;            // [2 feed_forward][hidden]: gate, up; or [feed_forward][hidden]
    float *up_bias;
    live_matrix down; // [hidden][feed_forward]
    // Of a layer with experts, which has no `up` and `down`, as in live_experts.
    live_matrix router, expert_up, expert_down;
    float *down_bias;
    float *post_norm2; // [hidden] of the output of the feed-forward, Gemma 3
} live_layer;

typedef struct live_medusa_head {
    live_matrix linear; // [hidden][hidden], one per residual block, stacked: [layers * hidden]
    float *linear_bias;
    live_matrix out; // [vocab][hidden]
} live_medusa_head;

typedef struct live_weights {
    live_config config;
    live_backend *backend;
    live_matrix embed;     // [vocab][hidden]; no rows: the head uses the target's
    live_matrix positions; // [positions][hidden], GPT-2
    live_matrix
        head; // [vocab][hidden], EAGLE-3 [draft_vocab][hidden]; when tied, the same data as embed
    float *norm, *norm_bias;
    float *inv_freq;   // [rotated / 2]
    float *local_freq; // [rotated / 2] of the layers with config.local_theta
    float embed_scale; // config.embed_scale, rounded to the embedding's dtype; 1: none
    live_layer *layer; // [config.layers], in host memory
    live_matrix join;  // EAGLE: [hidden][2 hidden], multiplied by (embedding, feature);
                       // EAGLE-3: [hidden][LIVE_TAPS * hidden], by the features of the target
    float *join_bias;
    float *feature_norm; // EAGLE-3: [hidden] of the feature, before the attention
    // EAGLE-3: [vocab] the draft token of each token, or -1. On the device.
    int32_t *column;
    bool *drafted; // EAGLE-3: [vocab] whether a token is a draft token, in host memory; NULL: all,
                   // or random weights, whose tokens have no meaning
    live_medusa_head *medusa; // [config.medusa_heads], in host memory
    bool borrowed;            // the arrays are those of other weights: live/model/kept_layers.h
    double bytes;             // on the device; 0 if borrowed
    double load_s;            // wall time of loading
    double file_bytes;
    char fingerprint[DSC_SHA256_HEX]; // live/model/fingerprint.h
} live_weights;

// Loads FOLDER (model.safetensors, or shards by model.safetensors.index.json) onto the backend.
// Before anything is allocated, checks that every tensor is present with its shape and a supported
// dtype, then that memory suffices. While reading, checks that no tensor contains NaN or infinity
// (the message gives its name and index). A tensor that the model of config.json does not have is
// an error, except what live_name_leftover (live/model/names.h) lists. *unused (unless NULL, owned
// by the caller) describes a part of the checkpoint that is not run, or is "". If the folder has
// pickled weights only, the error contains the command that converts them. DSC_EINPUT, DSC_ENOMEM
// (needed and free sizes). config.dtype becomes that of the stored matrices.
int live_weights_load(live_weights **out, const char *folder, live_backend *b, char **unused,
                      dsc_error *err);
// Loads FOLDER with all matrices rounded to *dtype (F32, F16 or BF16; to nearest, ties to even), or
// as stored if it is NULL. DSC_EINPUT: a number is beyond the range of the dtype.
int live_weights_load_as(live_weights **out, const char *folder, const dsc_dtype *dtype,
                         live_backend *b, char **unused, dsc_error *err);
// Random weights of a shape: uniform, with the variance that keeps activations of order one, and
// identical for a seed on every device. dtype is F32, F16 or BF16.
int live_weights_random(live_weights **out, const live_config *c, dsc_dtype dtype, uint64_t seed,
                        live_backend *b, dsc_error *err);
// Weights with the arrays of `w`, but room for `layers` layers of its own, for passes on `b`.
// Freed before `w`. DSC_ENOMEM.
int live_weights_borrow(live_weights **out, const live_weights *w, size_t layers, live_backend *b,
                        dsc_error *err);
void live_weights_free(live_weights *w); // NULL allowed

#endif

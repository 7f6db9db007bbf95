// SPDX-License-Identifier: Apache-2.0
// The forward pass, written once over the operations of live/device/backend.h.
#ifndef DSC_LIVE_MODEL_H
#define DSC_LIVE_MODEL_H

#include "live/model/weights.h"
#include "theory/rows/softmax.h"

// Buffers for the activations of one model's passes, on its device. All addresses are fixed, so
// that a device may record a pass and replay it.
typedef struct live_room {
    live_backend *backend;
    int64_t rows, outputs; // maxima of a pass
    float *state;          // [rows][hidden] the residual stream
    float *normed;  // [rows][hidden], [rows][2 hidden] for EAGLE, [rows][3 hidden] for EAGLE-3
    float *qkv;     // [rows][(heads + 2 kv_heads) * head]
    void *mixed;    // [rows][heads * head] in the cache's dtype
    float *up;      // [rows][2 feed_forward]; for Medusa heads [rows][hidden]
    void *acted;    // [rows][feed_forward] in the cache's dtype
    float *feature; // [rows][hidden] the last hidden states, after the final norm
    float *picked;  // [outputs][hidden] those whose logits are computed
    float *logits;  // [outputs][vocab]
    float *narrow;  // [outputs][draft_vocab], EAGLE-3
    float *into;    // [outputs][vocab] on the device, used instead of `logits`; NULL: `logits`
    void *device_summary, *host_summary; // live_summary_at: on the device, and copied by a pass
} live_room;

// The summary of a pass with `outputs` rows of logits, in one piece at `base` so that one copy
// brings it to the host. Without `dist`, sum, kept and max_logit are NULL.
live_summary live_summary_at(void *base, int64_t outputs, int64_t vocab, bool dist);

int live_room_new(live_room *out, const live_weights *w, int64_t rows, int64_t outputs,
                  dsc_error *err);
void live_room_free(live_room *r);
double live_room_bytes(const live_config *c, int64_t rows, int64_t outputs);

// The KV cache of a model.
int live_cache_new(live_cache *out, const live_weights *w, int64_t sequences, int64_t slots,
                   dsc_error *err);
void live_cache_free(live_cache *c, live_backend *b);

// The features that passes write for the tokens of their slots, or that a head reads.
typedef struct live_features {
    float *rows; // [max(taps, 1)][slots][hidden]; NULL: none
    int64_t slots;
    int taps;               // 0: the last hidden states, after the final norm
    int64_t tap[LIVE_TAPS]; // the layers whose inputs are kept, as in live_config.tap
} live_features;

static inline int live_features_planes(const live_features *f)
{
    return !f->rows ? 0 : f->taps ? f->taps : 1;
}

static inline float *live_features_plane(const live_features *f, int i, int64_t hidden)
{
    return f->rows + i * f->slots * hidden;
}

// One pass of any model. Returns when the work has been submitted; live_pass_type.wait waits for
// it.
//
// A complete model embeds the tokens, runs the blocks, writes to the KV cache, and leaves the
// logits of the batch's outputs and their summary in the room. `features`, unless NULL or without
// rows, are written to the rows of the slots.
//
// An EAGLE head does so over (token, feature) pairs, with the embedding and the output matrix of
// `target`. batch->feature selects rows of `source`, the features; the output features are written
// to `features` at the slots. An EAGLE-3 head has its own output matrix. It reads the taps of the
// target, or (source == features) its own output features.
//
// All Medusa heads run on one feature (row batch->feature[0] of source): [heads][vocab] logits.
int live_pass(const live_weights *w, const live_weights *target, live_cache *cache, live_room *room,
              const live_features *source, const live_features *features, const live_batch *batch,
              dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// The forward pass, written once over the operations of live/device/backend.h.
#ifndef DSC_LIVE_MODEL_H
#define DSC_LIVE_MODEL_H

#include "live/model/weights.h"
#include "theory/rows/softmax.h"

// Room for the activations of one model's passes, on its device. All addresses are fixed, so that
// a device may record a pass and replay it.
typedef struct live_room {
    live_backend *backend;
    int64_t rows, outputs; // of a pass, at most
    float *state;          // [rows][hidden] the residual stream
    float *normed;         // [rows][max(hidden, 2 hidden for EAGLE)]
    float *qkv;            // [rows][(heads + 2 kv_heads) * head]
    void *mixed;           // [rows][heads * head] in the cache's dtype
    float *up;             // [rows][2 feed_forward], of Medusa heads [rows][hidden]
    void *acted;           // [rows][feed_forward] in the cache's dtype
    float *feature;        // [rows][hidden] the last hidden states, after the final norm
    float *picked;         // [outputs][hidden] those whose logits are wanted
    float *logits;         // [outputs][vocab]
    float *into;           // where they go instead; NULL: there
    void *said, *heard;    // on the device and, after the pass, here: see live_said
} live_room;

// What a pass says of its rows of logits, in one piece so that one copy brings it to the host.
typedef struct live_said {
    // Where the batch had a distribution (live_backend_type.summarize), else NULL; blocks of
    // DSC_SOFTMAX_BLOCK tokens.
    double *sum;     // [outputs][blocks]
    live_kept *kept; // [outputs]
    float *peak;     // [outputs][blocks]
    int32_t *best;   // [outputs] the most probable token; -1: the row is not of numbers
    float *margin;   // [outputs] by how much it leads
    size_t bytes;
} live_said;

// The parts of what lies at `base`, after a pass with so many outputs.
live_said live_said_at(void *base, int64_t outputs, int64_t vocab, bool dist);

int live_room_new(live_room *out, const live_weights *w, int64_t rows, int64_t outputs,
                  dsc_error *err);
void live_room_free(live_room *r);
double live_room_bytes(const live_config *c, int64_t rows, int64_t outputs);

// Keys and values of a model.
int live_cache_new(live_cache *out, const live_weights *w, int64_t sequences, int64_t slots,
                   dsc_error *err);
void live_cache_free(live_cache *c, live_backend *b);

// One pass of a whole model: embeds the tokens, runs the blocks, writes keys and values to the
// cache, and leaves logits of the batch's outputs, and what is said of them, in the room.
// `features`, when not NULL, is [slots][hidden]: the last hidden states go to the rows of
// their slots. Returns when the work is asked for; live_backend_type.wait waits for it.
int live_model_pass(const live_weights *w, live_cache *cache, live_room *room, float *features,
                    const live_batch *batch, dsc_error *err);

// One pass of an EAGLE head over (token, feature) pairs: `source`[...][hidden] are the features
// that batch->feature picks rows of; what comes out goes to `features` at the slots. Embedding and
// output matrix are the target's.
int live_eagle_pass(const live_weights *w, const live_weights *target, live_cache *cache,
                    live_room *room, const float *source, float *features, const live_batch *batch,
                    dsc_error *err);

// All Medusa heads on one feature (row batch->feature[0] of source): [heads][vocab] logits.
int live_medusa_pass(const live_weights *w, live_room *room, const float *source,
                     const live_batch *batch, dsc_error *err);

#endif

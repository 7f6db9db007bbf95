// SPDX-License-Identifier: Apache-2.0
// The arrays of a model's weights, each with the tensors that it is made of: what loading fills
// from files, random weights from numbers, and freeing frees.
#ifndef DSC_LIVE_LAYOUT_H
#define DSC_LIVE_LAYOUT_H

#include "live/model/names.h"
#include "live/model/weights.h"

// How a tensor lies in its array.
typedef enum live_order {
    LIVE_ROWS,        // as in the file
    LIVE_TRANSPOSED,  // the file has [cols][rows] (GPT-2's Conv1D)
    LIVE_INTERLEAVED, // the file has [heads][3][head] rows, the array [3][heads][head] (NeoX)
} live_order;

typedef struct live_part {
    live_module module;
    bool bias;
    int64_t i, j;      // layer; Medusa's head and block
    int64_t row, rows; // of the array
    live_order order;
} live_part;

typedef enum live_kind {
    LIVE_WEIGHT,    // of a product
    LIVE_EMBEDDING, // rows are looked up
    LIVE_RESIDUAL,  // of a product that is added to the residual stream
    LIVE_SCALE,     // of a norm, 1 when nothing has been learnt
    LIVE_SHIFT,     // a bias, 0 when nothing has been learnt
} live_kind;

// One array: a matrix, or a vector of `rows` F32 numbers (cols 1).
typedef struct live_place {
    live_matrix *matrix;
    float **vector;
    live_kind kind;
    int64_t rows, cols;
    size_t part, parts; // of live_layout.part, from the first row to the last
} live_place;

typedef struct live_layout {
    live_place *place;
    live_part *part;
    size_t places, parts, place_capacity, part_capacity;
} live_layout;

// Of w->config; allocates w->layer and w->medusa (in host memory), which the places point into.
int live_layout_new(live_layout *out, live_weights *w, dsc_error *err);
void live_layout_free(live_layout *l);

// Allocates every array on w->backend; matrices are of the dtypes that they have. Refused when the
// device has less memory than that (DSC_ENOMEM, both in the message). Adds up w->bytes, uploads
// w->inv_freq, and lets a tied output matrix be the embedding.
int live_layout_alloc(const live_layout *l, live_weights *w, dsc_error *err);

#endif

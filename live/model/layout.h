// SPDX-License-Identifier: Apache-2.0
// The arrays of a model's weights and the checkpoint tensors that each is assembled from. Loading,
// random initialization and freeing all iterate over this list.
#ifndef DSC_LIVE_LAYOUT_H
#define DSC_LIVE_LAYOUT_H

#include "live/model/names.h"
#include "live/model/weights.h"

// How a tensor of the file is arranged in its array.
typedef enum live_order {
    LIVE_ROWS,        // as in the file
    LIVE_TRANSPOSED,  // the file has [cols][rows] (GPT-2's Conv1D)
    LIVE_LEFT,        // the file has [rows][2 cols]; the first columns
    LIVE_RIGHT,       // the same; the last columns
    LIVE_INTERLEAVED, // the file has [heads][3][head] rows, the array [3][heads][head] (NeoX)
} live_order;

typedef struct live_part {
    live_module module;
    bool bias;
    int64_t i, j;      // layer; for Medusa, head and block
    int64_t row, rows; // of the array
    live_order order;
} live_part;

typedef enum live_kind {
    LIVE_WEIGHT,    // of a product
    LIVE_EMBEDDING, // indexed by token or position
    LIVE_RESIDUAL,  // of a product that is added to the residual stream
    LIVE_SCALE,     // of a norm; 1 in random weights
    LIVE_SHIFT,     // a bias; 0 in random weights
} live_kind;

// One array: a matrix, or a vector of `rows` F32 numbers (cols = 1).
typedef struct live_array {
    live_matrix *matrix;
    float **vector;
    live_kind kind;
    int64_t rows, cols;
    size_t part, parts; // in live_layout.part, from the first row to the last
} live_array;

typedef struct live_layout {
    live_array *array;
    live_part *part;
    size_t arrays, parts, array_capacity, part_capacity;
} live_layout;

// Builds the list for w->config. Allocates w->layer and w->medusa in host memory; the list points
// into them.
int live_layout_new(live_layout *out, live_weights *w, dsc_error *err);
void live_layout_free(live_layout *l);

// The file has every matrix as [rows][cols] (GGUF).
void live_layout_untransposed(live_layout *l);

// Allocates every array on w->backend; matrices keep their dtypes. DSC_ENOMEM (both sizes in the
// message) if the device has less memory than that. Sums w->bytes, uploads w->inv_freq, and lets a
// tied output matrix share the embedding's data.
int live_layout_alloc(const live_layout *l, live_weights *w, dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// Internal: the curve of a pair of rows known up to cells, W(c) = sum (target - c draft)+ between
// two bounds.
//
// A cell is an interval of the ratio target/draft with the draft and the target mass of the tokens
// in it. A cell that is too wide is split by the next bits of the ratio, which needs its tokens:
// one look at the slots of all. Cells, and the cells of a split one, lie in the same arrays.
#ifndef DSC_THEORY_ACCEPTANCE_CELLS_H
#define DSC_THEORY_ACCEPTANCE_CELLS_H

#include "theory/acceptance.h"
#include "theory/acceptance_kernel.h"

#include <stdbool.h>

enum {
    DSC_FAN = 128,   // cells of a split cell, at most
    DSC_NODES = 256, // split cells, at most
    DSC_PLACES = DSC_SLOTS + DSC_NODES * (DSC_FAN + 1),
    DSC_BOTTOM = DSC_SINKS - 1, // the bottom cell once its parts are added
    DSC_TOP = DSC_SLOTS - DSC_SINKS,
};

// Consecutive cells: the cell of a ratio with bits b is at + ((b - first) >> shift).
typedef struct dsc_node {
    int64_t first;
    int shift;
    uint32_t at, count;
} dsc_node;

// A token of a split cell.
typedef struct dsc_token {
    float draft, target, ratio;
} dsc_token;

// place i is a cell; the place after the last cell of a node closes it.
typedef struct dsc_cells {
    double draft_sum, target_sum;
    dsc_mass *above; // [DSC_PLACES] mass of the tokens in cell i and of all of larger ratio
    double *floor;   // [DSC_PLACES] ratios of cell i are in [floor[i], floor[i + 1])
    uint16_t *child; // [DSC_PLACES] the node that splits cell i, or 0
    dsc_node *node;  // [DSC_NODES + 1]; node 0: the slots of the histogram
    size_t nodes;
    uint16_t *slot;   // [vocab] of each token
    uint32_t *found;  // [vocab]
    dsc_token *token; // those of split slots
    size_t tokens, vocab_capacity, token_capacity;
} dsc_cells;

int dsc_cells_init(dsc_cells *c, dsc_error *err);
void dsc_cells_fini(dsc_cells *c);
int dsc_cells_reserve(dsc_cells *c, size_t vocab, dsc_error *err);

// Forgets the last pair; the inner slots begin at ratio 2^(DSC_LOWEST_OCTAVE + octave), |octave| <=
// 100.
void dsc_cells_reset(dsc_cells *c, int octave);
// DSC_EINPUT: an element of the rows, which begin at token `begin`, is negative or not finite. A -0
// is all right.
int dsc_cells_check(const float *draft, const float *target, size_t begin, size_t n,
                    dsc_error *err);
// After the histogram went into above[0, DSC_SLOTS).
void dsc_cells_close(dsc_cells *c);

// Splits the given cells (a cell is listed once). false: no room, or a cell is one single float.
// DSC_ENOMEM.
int dsc_cells_split(dsc_cells *c, const dsc_rows_kernel *kernel, const float *draft,
                    const float *target, size_t vocab, const uint32_t *cell, size_t count,
                    bool *done, dsc_error *err);

// The smallest cell that holds ratio `x`.
size_t dsc_cells_find(const dsc_cells *c, double x);

#endif

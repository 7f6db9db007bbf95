// SPDX-License-Identifier: Apache-2.0
// Internal: the two loops over all tokens that dsc_acceptance_of_rows is made of, in portable C
// (the specification) and for some instruction sets. All of them give the same bits.
//
// A token's cell is read off the bits of the fp32 quotient target/draft: the bits of a positive
// float, taken as an integer, grow with the float, so their upper part is a piecewise linear
// logarithm. Division rounds correctly and therefore monotonically: cells partition the tokens
// by their true ratio, with known thresholds (acceptance_cells.c).
#ifndef DSC_THEORY_ACCEPTANCE_KERNEL_H
#define DSC_THEORY_ACCEPTANCE_KERNEL_H

#include "theory/rows/overlap.h"

#include <stddef.h>
#include <stdint.h>

// Slots of a histogram: [0, SINKS) one bottom cell, in parts; CELLS_PER_OCTAVE cells for each
// octave of the ratio from 2^LOWEST_OCTAVE on; SINKS parts of a top cell. Token i of either end
// goes to part i % SINKS: tokens outside a support come in long runs, and additions to one place
// wait for one another.
enum {
    DSC_CELL_SHIFT = 14, // bits of the ratio below the cell: 2^9 cells per octave
    DSC_LOWEST_OCTAVE = -10,
    DSC_OCTAVES = 17,
    DSC_SINKS = 8,
    DSC_INNER_CELLS = DSC_OCTAVES << (23 - DSC_CELL_SHIFT),
    DSC_ROWS_AHEAD = 512, // tokens that are being read are best fetched so much earlier
    DSC_SLOTS = DSC_INNER_CELLS + 2 * DSC_SINKS,
};

typedef struct dsc_rows_kernel {
    const char *name;
    int (*supported)(void); // by this processor

    // Adds the masses of tokens 0 .. n-1, in this order, to sum[DSC_SLOTS] and writes their slots
    // to slot[n]. `first`: bits of the least ratio above the bottom. Signs are ignored. Returns
    // the largest bit pattern of both rows: up to 7f800000 all were finite and none had a sign.
    // Additions leave the memory idle: from ahead[0] and ahead[1] on, as many bytes as the rows
    // have are fetched meanwhile. They need not be there.
    uint32_t (*histogram)(const float *draft, const float *target, size_t n, int32_t first,
                          dsc_mass *sum, uint16_t *slot, const void *const *ahead);

    // The tokens whose slot is one of wanted[count], ascending, into found[]; returns how many.
    size_t (*select)(const uint16_t *slot, size_t n, const uint16_t *wanted, size_t count,
                     uint32_t *found);
} dsc_rows_kernel;

enum { DSC_ROWS_NOT_FINITE = 0x7f800000 };

extern const dsc_rows_kernel dsc_rows_kernel_c;
// Fastest first; ends with NULL.
extern const dsc_rows_kernel *const dsc_rows_kernels[];
// The first that this processor supports.
const dsc_rows_kernel *dsc_rows_kernel_best(void);

// The portable loops from token `begin` on, for the last tokens of the others.
uint32_t dsc_rows_histogram_c(const float *draft, const float *target, size_t begin, size_t n,
                              int32_t first, dsc_mass *sum, uint16_t *slot);
size_t dsc_rows_select_c(const uint16_t *slot, size_t begin, size_t n, const uint16_t *wanted,
                         size_t count, uint32_t *found);

#endif

// SPDX-License-Identifier: Apache-2.0
// Internal: the two loops over all tokens of a pair of fp32 rows, on which theory/rows_curve.h is
// built: masses by cells of the ratio target/draft, and the tokens of some cells.
//
// A token's cell follows from the bits of the fp32 quotient target/draft. The bits of a positive
// float, taken as an integer, grow with the float, so their upper part is a piecewise linear
// logarithm. Division rounds correctly and therefore monotonically: cells partition the tokens by
// their true ratio, with known edges (dsc_ratio_cell_edge).
#ifndef DSC_THEORY_RATIO_CELLS_H
#define DSC_THEORY_RATIO_CELLS_H

#include "theory/rows/overlap.h"

#include <stddef.h>
#include <stdint.h>

// Cells: [0, SINKS) are parts of one bottom cell; then come 2^9 cells for each octave of the ratio
// from 2^LOWEST_OCTAVE on; the last SINKS are parts of one top cell. In the bottom and in the top
// cell, token i goes to part i % SINKS: tokens outside a support come in long runs, and additions
// to one place would wait for one another.
enum {
    DSC_CELL_SHIFT = 14, // bits of the ratio below those that choose the cell
    DSC_LOWEST_OCTAVE = -10,
    DSC_OCTAVES = 17,
    DSC_SINKS = 8,
    DSC_INNER_CELLS = DSC_OCTAVES << (23 - DSC_CELL_SHIFT),
    DSC_CELLS = DSC_INNER_CELLS + 2 * DSC_SINKS,
    DSC_BOTTOM = DSC_SINKS - 1, // the bottom cell after its parts are added up
    DSC_TOP = DSC_CELLS - DSC_SINKS,
};

// Adds the masses of tokens 0, 1, .., n - 1, in this order, to sum[DSC_CELLS] and writes their
// cells to cell[n]. Signs are ignored. Returns the largest bit pattern of both rows: below
// DSC_NOT_FINITE all elements were finite and had no sign. The memory from ahead[0] and ahead[1]
// on, as many bytes as the rows have, is prefetched meanwhile; it may lie beyond an array.
enum { DSC_NOT_FINITE = 0x7f800000 };
uint32_t dsc_ratio_histogram(const float *draft, const float *target, size_t n, dsc_mass *sum,
                             uint16_t *cell, const void *const *ahead);

// Writes the tokens whose cell is one of wanted[count] to found[n], ascending, and returns their
// number.
size_t dsc_ratio_select(const uint16_t *cell, size_t n, const uint16_t *wanted, size_t count,
                        uint32_t *found);

// The ratios of cell c, DSC_BOTTOM <= c <= DSC_TOP, are in [edge(c), edge(c + 1)). The fp32
// quotient rounds to nearest, so it is at or above the float e exactly when the true ratio is above
// the middle between e and the float before it. Edges are these middles, exact in double.
double dsc_ratio_cell_edge(int c);

#endif

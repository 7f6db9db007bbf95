// SPDX-License-Identifier: Apache-2.0
// Internal: the curve of a pair of fp32 rows, exact at any ratio, without sorting the tokens.
//
// One pass over both rows adds the masses up by cells of the ratio target/draft, as for
// dsc_acceptance_of_rows; rows of logarithms are made distributions block by block on the way
// (log_row.h). The masses below a ratio are those of the cells below it and of some tokens of its
// own cell; these are looked up when a cell is first asked for, by one look at all slots. Who knows
// beforehand roughly which ratios to ask for has all their cells looked up at once: between
// `prepare` and `look_up` (theory/rows/overlap.h) the masses are estimates that cost nothing, the
// tokens of a cell evenly spread over it, and what they are asked for is remembered.
#ifndef DSC_THEORY_ROWS_CURVE_H
#define DSC_THEORY_ROWS_CURVE_H

#include "theory/acceptance_cells.h"
#include "theory/rows/log_row.h"

enum { DSC_WANTED = 512 };

typedef struct dsc_rows_curve {
    dsc_overlap base; // without residuals; `prepare` takes any number of questions
    const dsc_rows_kernel *kernel;
    dsc_cells cells;
    dsc_row_source draft, target;
    double draft_alone; // mass of tokens that the target never writes
    // Tokens of the slots that were looked up; those of slot s begin at begin[s], UINT32_MAX: not
    // yet, UINT32_MAX - 1: it is among wanted[].
    dsc_mass *token; // [vocab]
    size_t tokens, capacity;
    uint32_t begin[DSC_SLOTS], count[DSC_SLOTS];
    uint16_t wanted[DSC_WANTED + DSC_SINKS];
    size_t wants;
    bool sketch;
} dsc_rows_curve; // zero-initialise

int dsc_rows_curve_init(dsc_rows_curve *c, dsc_error *err);
void dsc_rows_curve_fini(dsc_rows_curve *c);

// Takes a pair of rows, which must stay until the next; overlap_below is in their own units. They
// are distributions up to a factor that is the same within 2: DSC_EINPUT otherwise, and when an
// element is negative or not finite.
int dsc_rows_curve_set(dsc_rows_curve *c, const dsc_row_source *draft, const dsc_row_source *target,
                       size_t vocab, dsc_error *err);

#endif

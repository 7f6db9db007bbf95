// SPDX-License-Identifier: Apache-2.0
// Internal: the curve W of a pair of fp32 rows (theory/curve.h), exact at any ratio, without
// sorting the tokens.
//
// One pass over both rows adds the masses up by cells of the ratio target/draft
// (theory/ratio_cells.h); rows of logarithms become distributions block by block on the way
// (theory/rows/log_row.h). The masses up to a ratio are those of the cells below it and of some
// tokens of its own cell. The tokens of a cell are looked up when a question first falls into it,
// by one pass over the cells of all tokens. A caller that knows roughly which ratios it will need
// has all their cells looked up at once: after dsc_rows_curve_prepare answers are estimates and
// their cells are noted; dsc_rows_curve_look_up looks up all of these.
#ifndef DSC_THEORY_ROWS_CURVE_H
#define DSC_THEORY_ROWS_CURVE_H

#include "theory/ratio_cells.h"
#include "theory/rows/log_row.h"

enum { DSC_WANTED = 512 };

typedef struct dsc_rows_curve {
    dsc_row_source draft, target;
    size_t vocab;
    double draft_sum, target_sum;  // of the rows
    double draft_alone;            // draft mass of the tokens with target probability 0
    dsc_mass above[DSC_CELLS + 1]; // masses of the tokens in cell i and in all later ones
    double edge[DSC_CELLS + 1];    // dsc_ratio_cell_edge
    uint16_t *cell;                // [vocab] of each token
    uint32_t *found;               // [vocab] scratch
    // Tokens of the cells that were looked up. Those of cell i begin at begin[i]; UINT32_MAX: it
    // was not looked up; UINT32_MAX - 1: it is one of wanted[].
    dsc_mass *token; // [vocab]
    size_t tokens, cell_capacity, found_capacity, token_capacity;
    uint32_t begin[DSC_CELLS], count[DSC_CELLS];
    uint16_t wanted[DSC_WANTED + DSC_SINKS];
    size_t wants;
    bool estimates; // between prepare and look_up
} dsc_rows_curve;

void dsc_rows_curve_init(dsc_rows_curve *c);
void dsc_rows_curve_fini(dsc_rows_curve *c);

// Takes a pair of rows, which must stay until the next pair. They are distributions up to a factor,
// and their sums differ by less than a factor of 2. DSC_EINPUT: they do not, or an element is
// negative or not finite. DSC_EUSAGE: more than 2^31 - 1 tokens. DSC_ENOMEM.
int dsc_rows_curve_set(dsc_rows_curve *c, const dsc_row_source *draft, const dsc_row_source *target,
                       size_t vocab, dsc_error *err);

// Masses of the tokens with target <= at draft, in the rows' own units. Between prepare and look_up
// a cell that was not looked up is estimated, as if its tokens were evenly spread over it.
dsc_mass dsc_rows_curve_below(dsc_rows_curve *c, double at);
// Returns these masses for at > 0; *above receives the masses of the other tokens, without
// cancellation.
dsc_mass dsc_rows_curve_divide(dsc_rows_curve *c, double at, dsc_mass *above);
void dsc_rows_curve_prepare(dsc_rows_curve *c);
void dsc_rows_curve_look_up(dsc_rows_curve *c);

// The masses below cell i, and the cell of a ratio.
dsc_mass dsc_rows_curve_below_cell(const dsc_rows_curve *c, size_t i);
size_t dsc_rows_curve_cell(const dsc_rows_curve *c, double ratio);

#endif

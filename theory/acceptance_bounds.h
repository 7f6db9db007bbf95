// SPDX-License-Identifier: Apache-2.0
// Internal: the acceptance quantities between bounds, from cells.
#ifndef DSC_THEORY_ACCEPTANCE_BOUNDS_H
#define DSC_THEORY_ACCEPTANCE_BOUNDS_H

#include "theory/acceptance_cells.h"

// Tests and benchmarks read it too.
struct dsc_acceptance_work {
    const dsc_rows_kernel *kernel; // the fastest here; a test may put in another
    dsc_cells cells;
    int splits;  // of the last pair: how often cells were split,
    bool sorted; // and whether that did not do, and the tokens were sorted
};

enum { DSC_MOST_DOUBTS = 6 * DSC_MAX_DRAFTS };

// The cells whose width keeps some quantity from being certain enough, each once.
typedef struct dsc_doubts {
    uint32_t cell[DSC_MOST_DOUBTS];
    size_t count;
} dsc_doubts;

// out[k - 1] for k = 1..kmax, and in error[k - 1] how far each is from the truth at most, but for
// rounding: half the distance of its bounds; rho is never too small. With no doubts every
// acceptance is within half of DSC_ACCEPTANCE_CERTIFIED, and rho within 4e-6 of itself.
void dsc_bounds_evaluate(const dsc_cells *c, int kmax, dsc_rule_acceptance *out,
                         dsc_rule_acceptance *error, dsc_doubts *doubts);

#endif

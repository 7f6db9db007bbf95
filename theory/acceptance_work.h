// SPDX-License-Identifier: Apache-2.0
// Internal: what a dsc_acceptance_work is, for tests and benchmarks.
#ifndef DSC_THEORY_ACCEPTANCE_WORK_H
#define DSC_THEORY_ACCEPTANCE_WORK_H

#include "theory/acceptance_bounds.h"

struct dsc_acceptance_work {
    const dsc_rows_kernel *kernel; // the fastest here; a test may put in another
    dsc_cells cells;
    int splits;  // of the last pair: how often cells were split,
    bool sorted; // and whether that did not do, and the tokens were sorted
};

#endif

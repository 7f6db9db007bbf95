// SPDX-License-Identifier: Apache-2.0
// The distribution of the number of tokens in a pass over a batch of independent sequences.
#ifndef DSC_SIM_WIDTH_DIST_H
#define DSC_SIM_WIDTH_DIST_H

#include "base/memory.h"

#include <stdint.h>

typedef struct dsc_width_dist {
    double *chance; // [count] probabilities of least, least + step, ... tokens; they sum to 1
    size_t count;
    int64_t least, step; // step: the largest that has all sums; drafts of one length: their length
} dsc_width_dist;

enum { DSC_WIDTH_DIST_MOST = 1 << 22 }; // values that a sum can have

// The sum of `batch` >= 1 independent widths with the distribution of the histogram: width[m] calls
// on m + 1 tokens, at least one call. batch 1 gives the histogram itself, more its convolution,
// without both ends of mass below 1e-10. DSC_EUSAGE: more than
// DSC_WIDTH_DIST_MOST values.
int dsc_width_dist_init(dsc_width_dist *out, const int64_t *width, int64_t length, int64_t batch,
                        dsc_error *err);
void dsc_width_dist_fini(dsc_width_dist *dist);

#endif

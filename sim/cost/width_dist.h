// SPDX-License-Identifier: Apache-2.0
// How many tokens a pass over a batch has, when its sequences draft independently.
#ifndef DSC_SIM_WIDTH_DIST_H
#define DSC_SIM_WIDTH_DIST_H

#include "base/memory.h"

#include <stdint.h>

typedef struct dsc_width_dist {
    double *chance; // [count] of least, least + 1, ... tokens; they add up to 1
    size_t count;
    int64_t least;
} dsc_width_dist;

enum { DSC_WIDTH_DIST_MOST = 1 << 22 }; // lengths that a sum can have

// The sum of `batch` >= 1 independent widths, each as in the histogram: width[m] calls on m + 1
// tokens, at least one in all. batch 1: the histogram itself; more: its convolution, by Fourier
// transform, without the ends of a mass below 1e-10 each. DSC_EUSAGE: more than
// DSC_WIDTH_DIST_MOST.
DSC_API int dsc_width_dist_init(dsc_width_dist *out, const int64_t *width, int64_t length,
                                int64_t batch, dsc_error *err);
DSC_API void dsc_width_dist_fini(dsc_width_dist *dist);

#endif

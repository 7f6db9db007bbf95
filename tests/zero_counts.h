// SPDX-License-Identifier: Apache-2.0
// Counts of a test whose histogram is an array of its own.
#ifndef DSC_TESTS_ZERO_COUNTS_H
#define DSC_TESTS_ZERO_COUNTS_H

#include "sim/counts.h"

#include <string.h>

// Zero counts without widths and draft lengths, with room for 0 .. most accepted tokens a call.
static inline dsc_counts zero_counts(int64_t *histogram, int64_t most)
{
    memset(histogram, 0, (size_t)(most + 1) * sizeof *histogram);
    return (dsc_counts){.histogram = histogram, .histogram_length = most + 1};
}

#endif

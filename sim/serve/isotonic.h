// SPDX-License-Identifier: Apache-2.0
// Isotonic regression: the never decreasing function of a score with the least squared error.
#ifndef DSC_SIM_ISOTONIC_H
#define DSC_SIM_ISOTONIC_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct dsc_isotonic_sample {
    double score;
    bool success;
} dsc_isotonic_sample;

// Blocks of neighboring scores with one value each.
typedef struct dsc_isotonic {
    double *from;  // [blocks] the lowest score, ascending
    double *value; // [blocks] share of successes, ascending
    size_t blocks;
} dsc_isotonic;

// Fits `sample`, which is sorted by score, in O(n log n). count >= 1; scores are not NaN. Freed by
// dsc_isotonic_fini.
int dsc_isotonic_fit(dsc_isotonic *out, dsc_isotonic_sample *sample, size_t count, dsc_error *err);
void dsc_isotonic_fini(dsc_isotonic *f);

// The value of the block that contains the score: scores between two blocks are in the lower one,
// those below all blocks in the first.
double dsc_isotonic_value(const dsc_isotonic *f, double score);

#endif

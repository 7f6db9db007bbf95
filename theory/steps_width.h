// SPDX-License-Identifier: Apache-2.0
// Internal to theory/steps.c and its test: the choice of the vector width.
#ifndef DSC_THEORY_STEPS_WIDTH_H
#define DSC_THEORY_STEPS_WIDTH_H

#include "theory/steps.h"

// dsc_steps_sample in vectors of 16, 32 or 64 bytes; 0: the widest that this processor has. The
// results are equal. DSC_EABSENT: this processor lacks that width.
int dsc_steps_sample_width(int width, const dsc_acceptance *dist, int length, uint64_t seed,
                           int64_t steps, int64_t *histogram, dsc_error *err);

#endif

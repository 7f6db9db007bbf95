// SPDX-License-Identifier: Apache-2.0
// Monte Carlo simulation of verification steps: the number of draft tokens that each of many steps
// accepts, sampled step by step. Closed forms and sums over distributions are checked against it.
#ifndef DSC_THEORY_STEPS_H
#define DSC_THEORY_STEPS_H

#include "theory/block.h"

// Samples `steps` steps of `length` draft tokens and adds the number of steps that accepted m to
// histogram[m], m = 0 .. length. The distribution is exact to the rounding of doubles: a random
// byte decides a step unless it falls where 8 bits are too few; then more bits decide. The result
// is a function of (distribution, length, seed, steps) on every machine. DSC_EUSAGE: as
// dsc_block_accepted, or steps < 0.
int dsc_steps_sample(const dsc_acceptance *dist, int length, uint64_t seed, int64_t steps,
                     int64_t *histogram, dsc_error *err);

// dsc_steps_sample in vectors of 16, 32 or 64 bytes, for tests; 0: the widest that this processor
// has. The results are equal. DSC_EABSENT: this processor lacks that width.
int dsc_steps_sample_width(int width, const dsc_acceptance *dist, int length, uint64_t seed,
                           int64_t steps, int64_t *histogram, dsc_error *err);

// The mean of m over a histogram and the standard error of that mean. NaN without steps; the error
// is also NaN with one step.
typedef struct dsc_steps_mean {
    double accepted, error;
} dsc_steps_mean;
dsc_steps_mean dsc_steps_summary(const int64_t *histogram, int length);

#endif

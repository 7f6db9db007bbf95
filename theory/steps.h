// SPDX-License-Identifier: Apache-2.0
// Monte Carlo of steps: how many draft tokens each of many rounds accepts, drawn round by round.
// What closed forms and sums over distributions are checked against.
#ifndef DSC_THEORY_STEPS_H
#define DSC_THEORY_STEPS_H

#include "theory/block.h"

// Draws `steps` rounds of `length` draft tokens and adds to histogram[m], m = 0 .. length, those
// that accepted m. The distribution is drawn from as it is, to the rounding of doubles: a random
// byte decides a round unless it falls where 8 bits are too few, and more bits do then. The result
// is a function of (distribution, length, seed, steps), on every machine. DSC_EUSAGE: as
// dsc_block_accepted, or steps < 0.
DSC_API int dsc_steps_sample(const dsc_acceptance *dist, int length, uint64_t seed, int64_t steps,
                             int64_t *histogram, dsc_error *err);

// Mean of m under such a histogram, and the standard error of that mean; NaN without steps, the
// error also with one.
typedef struct dsc_steps_mean {
    double accepted, error;
} dsc_steps_mean;
DSC_API dsc_steps_mean dsc_steps_summary(const int64_t *histogram, int length);

#endif

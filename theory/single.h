// SPDX-License-Identifier: Apache-2.0
// Rejection sampling with one draft token per position: Leviathan et al. 2023 Alg. 1, SpecTr Alg. 1
// (maximal coupling).
//
// Outside their domains (curves that were initialized, probabilities in [0, 1], distributions) the
// functions return NaN and fill arrays with NaN. They write nothing where the array is NULL.
#ifndef DSC_THEORY_SINGLE_H
#define DSC_THEORY_SINGLE_H

#include "theory/curve.h"

#ifdef __cplusplus
extern "C" {
#endif

// Pr(accept) = sum min(draft, target) = 1 - TV = 1 - W(1), SpecTr Eq. (1).
DSC_API double dsc_single_acceptance(const dsc_curve *c);

// Pr(accept draft token x) = min(1, target(x)/draft(x)); draft_x > 0.
DSC_API double dsc_single_token(double draft_x, double target_x);

// Pr(accepted | the output is y) = min(1, draft(y)/target(y)); target_y > 0. This is conditional
// replay: the output of a lossless rule has the target's distribution.
DSC_API double dsc_single_given(double draft_y, double target_y);

// dist[0] = Pr(rejected | y), dist[1] = Pr(accepted, so that 1 draft continues with y | y).
DSC_API void dsc_single_survivors(double draft_y, double target_y, double dist[2]);

// The residual distribution, sampled after a rejection: (target - draft)+ / (1 - acceptance), into
// residual[vocab]; all zero when acceptance is 1 (it is then never used).
DSC_API void dsc_single_residual(const double *draft, const double *target, size_t vocab,
                                 double *residual);

#ifdef __cplusplus
}
#endif

#endif

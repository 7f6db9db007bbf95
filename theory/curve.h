// SPDX-License-Identifier: Apache-2.0
// Given a draft and a target distribution, define W(c), c >= 0; every acceptance quantity of one
// position follows from this curve:
//
//   W(c) = sum over tokens x of (target(x) - c draft(x))+
//
// W is convex and decreasing, W(0) = 1, and W(inf) is the target mass outside the draft's support.
// It is stored as the tokens sorted by ratio target/draft, where tokens of equal ratio are merged
// into an atom. This is the sorted reference, exact for the full vocabulary in O(V log V). SpecTr
// (Sun et al. 2023) writes p for the draft and q for the target distribution.
#ifndef DSC_THEORY_CURVE_H
#define DSC_THEORY_CURVE_H

#include "base/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

// The atoms in ascending order of ratio. Prefix and suffix sums are both stored, so that small
// prefixes and small tails keep their relative accuracy.
typedef struct dsc_curve {
    size_t atoms;
    double *ratio;                      // [atoms] strictly ascending; the last may be +inf
    double *draft_below, *target_below; // [atoms + 1] mass of atoms 0 .. i-1
    double *draft_above, *target_above; // [atoms + 1] mass of atoms i .. atoms-1
} dsc_curve;                            // zero-initialize; dsc_curve_fini frees

// Builds the curve of two distributions of `vocab` >= 1 tokens. Elements are finite and >= 0 and
// each distribution sums to 1 within DSC_PROBS_TOLERANCE (dsc_probs_check ensures that; the masses
// are used as they are). Tokens of probability 0 in both are left out. DSC_EUSAGE: a row is NULL or
// no distribution, or `c` is NULL. DSC_ENOMEM.
DSC_API int dsc_curve_init(dsc_curve *c, const double *draft, const double *target, size_t vocab,
                           dsc_error *err);
DSC_API void dsc_curve_fini(dsc_curve *c);

// Number of atoms n whose ratio is <= `ratio`; draft_below[n] and target_below[n] are their masses.
// 0 when `c` is NULL. O(log atoms).
DSC_API size_t dsc_curve_count(const dsc_curve *c, double ratio);

// W(c), c >= 0, in [0, 1]. NaN for another c, and for a curve that is NULL or was not initialized.
// O(log atoms).
DSC_API double dsc_curve_w(const dsc_curve *c, double at);

#ifdef __cplusplus
}
#endif

#endif

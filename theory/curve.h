// SPDX-License-Identifier: Apache-2.0
// One convex curve that holds every single-position quantity of a draft distribution and a target
// distribution:
//
//   W(c) = sum over tokens x of (target(x) - c draft(x))+,   c >= 0,
//
// convex, decreasing, W(0) = 1, W(inf) = target mass outside the draft's support. The curve is kept
// as the tokens sorted by ratio target/draft, tokens of one ratio merged into an atom: this is the
// sorted reference, exact at full vocabulary in O(V log V). SpecTr (Sun et al. 2023) writes p for
// the draft distribution and q for the target distribution.
#ifndef DSC_THEORY_CURVE_H
#define DSC_THEORY_CURVE_H

#include "base/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

// Atoms ascending in ratio. Prefix sums come with suffix sums so that both small prefixes and
// small tails keep their relative accuracy.
typedef struct dsc_curve {
    size_t atoms;
    double *ratio;                      // [atoms] strictly ascending; the last may be +inf
    double *draft_below, *target_below; // [atoms + 1] mass of atoms 0 .. i-1
    double *draft_above, *target_above; // [atoms + 1] mass of atoms i .. atoms-1
} dsc_curve;                            // zero-initialise; dsc_curve_fini frees

// Builds the curve of two distributions of `vocab` >= 1 tokens. Entries are finite and >= 0 and
// each row sums to 1 (dsc_probs_check sees to that; the masses are taken as they are). Tokens that
// neither distribution can draw are left out. DSC_ENOMEM.
DSC_API int dsc_curve_init(dsc_curve *c, const double *draft, const double *target, size_t vocab,
                           dsc_error *err);
DSC_API void dsc_curve_fini(dsc_curve *c);

// Number of atoms whose ratio is <= `ratio`: P(ratio) is draft_below[that], Q(ratio)
// target_below[that]. O(log atoms).
DSC_API size_t dsc_curve_count(const dsc_curve *c, double ratio);

// W(c), c >= 0, in [0, 1]. O(log atoms).
DSC_API double dsc_curve_w(const dsc_curve *c, double at);

#ifdef __cplusplus
}
#endif

#endif

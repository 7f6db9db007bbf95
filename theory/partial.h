// SPDX-License-Identifier: Apache-2.0
// Rows of which only some tokens are listed (the top m of an API, say), the rest known by its total
// mass: the curve of every completion lies between two curves, and so every acceptance quantity
// in an interval. Both tails 0: the exact point.
#ifndef DSC_THEORY_PARTIAL_H
#define DSC_THEORY_PARTIAL_H

#include "theory/curve.h"
#include "theory/interval.h"

typedef struct dsc_partial_row {
    const int32_t *id;         // [count] no token twice
    const double *probability; // [count]
    size_t count;
    double tail; // mass of the tokens that are not listed, >= 0
    double most; // none of those has more (of a top-m list: its smallest); 0: not known
} dsc_partial_row;

// low and high with W_low <= W <= W_high everywhere, for all distributions that the rows may stand
// for (up to 1e-14 of rounding; tails below 1e-200 count as 0). Listed masses and tail, which sum
// to 1 within DSC_PROBS_TOLERANCE, are divided by their sum. DSC_EINPUT: that sum, an id outside
// [0, vocab) or twice, a mass negative or not finite, or a tail that the tokens left cannot hold.
// DSC_ENOMEM. On success the caller owns both curves.
DSC_API int dsc_partial_curves(const dsc_partial_row *draft, const dsc_partial_row *target,
                               size_t vocab, dsc_curve *low, dsc_curve *high, dsc_error *err);

typedef struct dsc_partial {
    int k;
    dsc_interval single, specinfer, kseq, kseq_rho, otm; // as in theory/acceptance.h
} dsc_partial;

// What is between two such curves, for k >= 1 drafts.
DSC_API dsc_partial dsc_partial_between(const dsc_curve *low, const dsc_curve *high, int k);

// Both steps, for k[count]. Errors as dsc_partial_curves.
DSC_API int dsc_partial_acceptance(const dsc_partial_row *draft, const dsc_partial_row *target,
                                   size_t vocab, const int *k, size_t count, dsc_partial *out,
                                   dsc_error *err);

#endif

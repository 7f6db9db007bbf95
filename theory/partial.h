// SPDX-License-Identifier: Apache-2.0
// Distributions of which only some tokens are listed (an API's top m, for example) and the rest is
// known by its total mass. The curves of all completions lie between two curves, so every
// acceptance quantity lies in an interval. With both tails 0 the interval is a point.
#ifndef DSC_THEORY_PARTIAL_H
#define DSC_THEORY_PARTIAL_H

#include "theory/curve.h"

typedef struct dsc_partial_row {
    const int32_t *id;         // [count] no token twice
    const double *probability; // [count]
    size_t count;
    double tail; // mass of the unlisted tokens, >= 0
    double most; // no unlisted token has more mass (in a top-m list, the smallest listed mass); 0:
                 // unknown
} dsc_partial_row;

// Computes curves with W_low <= W <= W_high everywhere, for all distributions that complete the
// rows (up to 1e-14 of rounding; tails below 1e-200 count as 0). Listed masses and tail must sum to
// 1 within DSC_PROBS_TOLERANCE and are divided by their sum. DSC_EINPUT: that sum, an id outside
// [0, vocab) or listed twice, a mass that is negative or not finite, or a tail that the unlisted
// tokens cannot hold. DSC_ENOMEM. On success the caller owns both curves.
int dsc_partial_curves(const dsc_partial_row *draft, const dsc_partial_row *target, size_t vocab,
                       dsc_curve *low, dsc_curve *high, dsc_error *err);

// A quantity that is known to lie in [low, high].
typedef struct dsc_interval {
    double low, high;
} dsc_interval;

typedef struct dsc_partial {
    int k;
    dsc_interval single, specinfer, kseq, kseq_rho, otm; // the quantities of theory/acceptance.h
} dsc_partial;

// The intervals between two such curves, for k >= 1 drafts.
dsc_partial dsc_partial_between(const dsc_curve *low, const dsc_curve *high, int k);

// Both steps, for the numbers of drafts k[count]. Errors are those of dsc_partial_curves.
int dsc_partial_acceptance(const dsc_partial_row *draft, const dsc_partial_row *target,
                           size_t vocab, const int *k, size_t count, dsc_partial *out,
                           dsc_error *err);

#endif

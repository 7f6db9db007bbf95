// SPDX-License-Identifier: Apache-2.0
// One draft sequence verified by one target call: accepted drafts, block efficiency, speed-up, and
// the best draft length; under i.i.d. acceptance (Leviathan, Kalman and Matias 2023, Eq. (1) and
// Theorem 3.8) and under conditional acceptance rates by position.
// "Accepted" never counts the token that the target adds itself; block efficiency does.
#ifndef DSC_THEORY_BLOCK_H
#define DSC_THEORY_BLOCK_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DSC_BLOCK_LONGEST = 4096 }; // draft tokens

// How drafts are accepted.
typedef struct dsc_acceptance {
    double rate; // in [0, 1], each draft token's, when `conditional acceptance rate` is NULL
    // [conditional acceptance rates] in [0, 1]: of position j + 1 when the j before it were
    // accepted. Nothing is known of longer drafts, which are refused.
    const double *conditional_rate;
    int conditional_rates;
} dsc_acceptance;

// What a step costs, in units of a target call on one token. A step that drafts L tokens takes
// 1 + L (draft + slope).
typedef struct dsc_block_cost {
    double draft; // >= 0, a draft token
    double slope; // >= 0, a further token in the target call
} dsc_block_cost;

// Expected accepted drafts of L draft tokens with i.i.d. acceptance rate a: a (1 - a^L)/(1 - a),
// L at a = 1; to rounding for every a in [0, 1] and L >= 0.
DSC_API double dsc_iid_accepted(double rate, int length);

// The rate at which dsc_iid_accepted(rate, length) is `accepted`, in [0, length]; length >= 1.
DSC_API double dsc_iid_rate(double accepted, int length);

// accepted[0 .. most]: expected accepted drafts by draft length, 0 for length 0;
// sum over j <= L of the product of the first j conditional acceptance rates. DSC_EUSAGE: a rate
// outside [0, 1], or `most` beyond the conditional acceptance rates or DSC_BLOCK_LONGEST.
DSC_API int dsc_block_accepted(const dsc_acceptance *dist, int most, double *accepted,
                               dsc_error *err);

// Tokens per unit of time, one token per target call being 1:
// (accepted + 1)/(1 + length (draft + slope)).
DSC_API double dsc_block_speedup(double accepted, int length, dsc_block_cost cost);

typedef struct dsc_block_best {
    int length; // the shortest of the best
    double accepted, speedup;
} dsc_block_best;

// The best draft length in [least, most], 0 <= least <= most, by looking at every one. Length 0 is
// no speculation, speed-up 1. DSC_EUSAGE as dsc_block_accepted, or a negative cost.
DSC_API int dsc_block_best_length(const dsc_acceptance *dist, int least, int most,
                                  dsc_block_cost cost, dsc_block_best *best, dsc_error *err);

// Conditional acceptance rates from counts (the Kaplan-Meier estimate). A round that drafted L
// tokens and had m < L accepted says that positions 1 .. m were accepted and m + 1 was not; one
// that had all L accepted says nothing of position L + 1: it is censored there.
typedef struct dsc_conditional_count {
    int64_t at_risk;  // rounds that drafted this position and accepted all before it
    int64_t accepted; // of these, rounds that accepted it too
} dsc_conditional_count;

// Adds `times` rounds to count[most], position j + 1 in count[j]. DSC_EUSAGE unless
// 0 <= accepted <= drafted <= most and times >= 0.
DSC_API int dsc_conditional_add(dsc_conditional_count *count, int most, int accepted, int drafted,
                                int64_t times, dsc_error *err);

// accepted/at_risk; NaN when no round says anything.
DSC_API double dsc_conditional_rate(const dsc_conditional_count *count);

#ifdef __cplusplus
}
#endif

#endif

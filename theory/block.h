// SPDX-License-Identifier: Apache-2.0
// One draft sequence verified by one target call: accepted drafts, block efficiency, speedup, and
// the best draft length, under i.i.d. acceptance (Leviathan, Kalman and Matias 2023, Eq. (1) and
// Theorem 3.8) and under conditional acceptance rates by position.
//
// "Accepted" never counts the token that the target adds itself; block efficiency does.
//
// Outside its domain a function returns NaN, or DSC_EUSAGE where it has a status; so it does when a
// pointer is NULL.
#ifndef DSC_THEORY_BLOCK_H
#define DSC_THEORY_BLOCK_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DSC_BLOCK_LONGEST = 4096 }; // draft tokens

// The acceptance of drafts: i.i.d., or by position.
typedef struct dsc_acceptance {
    double
        rate; // in [0, 1]: probability that a draft token is accepted, if conditional_rate is NULL
    // [conditional_rates] in [0, 1]: probability that position j + 1 is accepted, given that
    // positions 1 to j were. Longer drafts are refused.
    const double *conditional_rate;
    int conditional_rates;
} dsc_acceptance;

// Cost of a step in units of a target call on one token. A step that drafts L tokens costs 1 + L
// (draft + slope).
typedef struct dsc_block_cost {
    double draft; // >= 0, cost of a draft token
    double slope; // >= 0, cost of one more token in the target call
} dsc_block_cost;

// Expected number of accepted tokens among L draft tokens with i.i.d. acceptance rate a: a (1 -
// a^L)/(1 - a), and L at a = 1. Exact to rounding for every a in [0, 1] and L >= 0.
DSC_API double dsc_iid_accepted(double rate, int length);

// The inverse: the rate at which dsc_iid_accepted(rate, length) equals `accepted`, in [0, length];
// length >= 1.
DSC_API double dsc_iid_rate(double accepted, int length);

// Expected accepted drafts by draft length, into accepted[0 .. most]: the sum over j <= L of the
// product of the first j conditional acceptance rates, 0 for length 0. DSC_EUSAGE: a rate is
// outside [0, 1], or `most` exceeds the number of conditional acceptance rates or
// DSC_BLOCK_LONGEST.
DSC_API int dsc_block_accepted(const dsc_acceptance *dist, int most, double *accepted,
                               dsc_error *err);

// Speedup over one token per target call: (accepted + 1)/(1 + length (draft + slope)). accepted >=
// 0 and length >= 0; all are finite.
DSC_API double dsc_block_speedup(double accepted, int length, dsc_block_cost cost);

typedef struct dsc_block_best {
    int length; // the shortest of equally good lengths
    double accepted, speedup;
} dsc_block_best;

// Finds the best draft length in [least, most], 0 <= least <= most, by trying all. Length 0 means
// no speculation, speedup 1. DSC_EUSAGE as dsc_block_accepted, or a cost is negative.
DSC_API int dsc_block_best_length(const dsc_acceptance *dist, int least, int most,
                                  dsc_block_cost cost, dsc_block_best *best, dsc_error *err);

// Conditional acceptance rates from counts (Kaplan-Meier estimate). A step that drafted L tokens
// and accepted m < L of them counts as accepted at positions 1 .. m and rejected at m + 1. A step
// that accepted all L gives no information about position L + 1: it is censored there.
typedef struct dsc_conditional_count {
    int64_t at_risk;  // steps that drafted this position and accepted all earlier ones
    int64_t accepted; // those of them that accepted this position too
} dsc_conditional_count;

// Adds `times` equal steps to count[most]; position j + 1 is count[j]. DSC_EUSAGE unless 0 <=
// accepted <= drafted <= most and times >= 0, and when the counts would overflow.
DSC_API int dsc_conditional_add(dsc_conditional_count *count, int most, int accepted, int drafted,
                                int64_t times, dsc_error *err);

// accepted/at_risk; NaN unless 0 <= accepted <= at_risk and at_risk > 0.
DSC_API double dsc_conditional_rate(const dsc_conditional_count *count);

#ifdef __cplusplus
}
#endif

#endif

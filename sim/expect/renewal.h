// SPDX-License-Identifier: Apache-2.0
// Expected target calls of a random walk over an output, exact and for all draft lengths at once.
//
// A call that begins at position s accepts at least i draft tokens with probability reach_i(s), if
// its draft is that long. The positions where calls begin are a renewal process. With drafts of L
// tokens and B_L(s) = Pr(a call begins at s), B_L(0) = 1, token t is an accepted draft token with
// probability
//
//   A_L(t) = sum over i = 1 .. L of B_L(t + 1 - i) reach_i(t + 1 - i),
//
// and otherwise the target's own, after which a call begins: B_L(t + 1) = 1 - A_L(t). Summed over
// t, the terms are the expected number of calls that accept i tokens or more. Since reach does not
// depend on L, one pass computes all lengths, with O(L) additions for each position and length. The
// last token is always the target's own.
//
// This is the backward recurrence C(t) = 1 + sum over a of Pr(a accepted) C(t + a + 1) run
// forwards: C(0) = sum of B_L(s).
#ifndef DSC_SIM_RENEWAL_H
#define DSC_SIM_RENEWAL_H

#include "base/memory.h"

// Number of lengths that are computed side by side.
enum { DSC_RENEWAL_LANES = 8 };
typedef struct dsc_renewal_tile dsc_renewal_tile;

typedef struct dsc_renewal {
    int64_t positions, at; // the process is known up to B_L(at)
    int64_t longest;       // reach is needed for 1 .. longest
    size_t lanes, tiles;
    size_t base; // of the tiles' rows
    dsc_renewal_tile *tile;
    void (*step)(dsc_renewal_tile *x, size_t tiles, size_t base, const double *reach, int64_t open,
                 double place); // for this processor's vectors
} dsc_renewal;

// A walk over `positions` >= 1 output tokens with drafts of length limit[lanes], ascending. All
// memory is the arena's, about 16 (longest + 1) numbers for each lane. `width`: vectors of 16, 32
// or 64 bytes; 0: the widest of this processor. The results are equal to the bit. DSC_EABSENT: this
// processor does not have them.
int dsc_renewal_init(dsc_renewal *r, int width, int64_t positions, const int32_t *limit,
                     size_t lanes, dsc_arena *arena, dsc_error *err);

// Takes token t = r->at, t < positions - 1. reach[i], 1 <= i <= open <= longest, is reach_i of a
// call that began at t + 1 - i; those that began earlier reach no further than t.
void dsc_renewal_step(dsc_renewal *r, const double *reach, int64_t open);

// After positions - 1 steps, for one length, expected values: target calls; draft tokens, where a
// draft has its full length or the rest of the output; calls that accept i tokens or more, i <=
// longest.
double dsc_renewal_calls(const dsc_renewal *r, size_t lane);
double dsc_renewal_places(const dsc_renewal *r, size_t lane); // sum of the calls' positions
double dsc_renewal_tokens(const dsc_renewal *r, size_t lane);
// The probability that a call begins `ago` < min(length, positions - 1) tokens before the last one.
double dsc_renewal_begins(const dsc_renewal *r, size_t lane, int64_t ago);
double dsc_renewal_at_least(const dsc_renewal *r, size_t lane, int64_t i);

#endif

// SPDX-License-Identifier: Apache-2.0
// The part of a rule descriptor that replays several drafts along a recorded output y: given y at a
// position, the probability that m of k independent drafts are accepted with the token y, m = 0 for
// a rejection. The rules that have it define it in sim/verify/; sim/expect/position_dist.h calls
// it.
#ifndef DSC_SIM_REPLAY_DIST_H
#define DSC_SIM_REPLAY_DIST_H

#include "sim/verifier.h"
#include "theory/otm_sampler.h"

enum { DSC_POSITION_DRAFTS = DSC_STATISTICS_K_MAX };

// Index of the distribution of k drafts, [0..k], among those of 1, 2, .. drafts.
static inline size_t dsc_position_dist_at(int k)
{
    return (size_t)(k - 1) * (size_t)(k + 2) / 2;
}

// One thread's scratch memory, reused from position to position. Zero-initialize.
typedef struct dsc_position_room {
    double *row[DSC_SIDES]; // [vocab_size] probabilities
    size_t capacity[DSC_SIDES];
    dsc_otm_sampler *otm;
} dsc_position_room;

// Distributions go to dist[dsc_position_dist_at(drafts + 1)]; 1 <= drafts <= DSC_POSITION_DRAFTS.
struct dsc_replay_dist {
    const char *column; // of the trace, with the sufficient statistics
    size_t recorded;    // offset of the flag in dsc_trace_info that the trace has it
    // From the statistics of a position, recorded for up to `most` drafts. y[side]: probability of
    // the output's token.
    void (*from_statistics)(const dsc_sufficient *s, int64_t position, int most,
                            const double y[DSC_SIDES], int drafts, double *dist);
    // From the rows in *room, which are distributions of `vocab` tokens. DSC_ENOMEM.
    int (*from_rows)(dsc_position_room *room, size_t vocab, const double y[DSC_SIDES], int drafts,
                     double *dist, dsc_error *err);
};

#endif

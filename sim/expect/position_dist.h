// SPDX-License-Identifier: Apache-2.0
// Distributions of several independent drafts at a recorded position, given the token y that the
// target emitted there: rejected, or accepted with m of the drafts equal to y. Those m drafts are
// what the next position is verified with. Source: the statistics of the trace, or its rows.
#ifndef DSC_SIM_POSITION_DISTS_H
#define DSC_SIM_POSITION_DISTS_H

#include "sim/replay_dist.h"

void dsc_position_room_fini(dsc_position_room *r);

// How the distributions of a rule for 1 .. drafts drafts follow from a trace.
typedef struct dsc_position_source {
    const dsc_verifier_type *rule; // has a replay_dist
    int drafts;                    // in [1, DSC_POSITION_DRAFTS]
    bool recorded;                 // from statistics; false: from the rows
    int statistics_k;              // of the trace
    int32_t vocab_size;            // of the trace
} dsc_position_source;

// The rule's statistics with draft_logp and target_logp if they are recorded for that number of
// drafts, else the rows of both models. DSC_EUSAGE: what is missing, and how to record it.
int dsc_position_source_find(dsc_position_source *out, const dsc_trace_info *info,
                             const dsc_verifier_type *rule, int drafts, dsc_error *err);

// Natural logarithm of the probability of the output's token under a model: from the column, else
// from the row. -inf is possible for the draft only. DSC_EINPUT: the row does not contain the
// token, or the target's probability is 0.
int dsc_position_logp(const dsc_request *q, dsc_model_side side, int64_t position, double *logp,
                      dsc_error *err);

// The distributions of both models at a position, normalized, into room->row. DSC_EINPUT: a row
// does not list all of its mass, or gives the output's token no target probability.
int dsc_position_rows(dsc_position_room *room, const dsc_request *q, int64_t position, size_t vocab,
                      dsc_error *err);

// The distributions of 1 .. drafts drafts, dist[dsc_position_dist_at(drafts + 1)]: from statistics
// as exact as these (fp32), from rows to rounding. Rows take a sort of the vocabulary and, for otm,
// a sampler per k; draftscope trace reduce does that once. DSC_EINPUT: a row that does not list all
// its mass.
int dsc_position_dists(const dsc_position_source *source, const dsc_request *q, int64_t position,
                       dsc_position_room *room, double *dist, dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// What k independent drafts come to at a recorded position, given the token y that the target
// really emitted there: rejected, or accepted with m of them equal to y (they are what the next
// position is verified with). From the statistics that a trace holds, else from the rows.
#ifndef DSC_SIM_POSITION_DISTS_H
#define DSC_SIM_POSITION_DISTS_H

#include "sim/verifier.h"
#include "traces/trace/trace.h"

enum { DSC_POSITION_DRAFTS = DSC_STATISTICS_K_MAX };

// One thread's room, reused from position to position. Zero-initialise.
typedef struct dsc_position_room {
    double *row[DSC_SIDES]; // [vocab_size]
    size_t capacity[DSC_SIDES];
    dsc_otm_sampler *otm;
} dsc_position_room;

DSC_API void dsc_position_room_fini(dsc_position_room *r);

// Where the distribution of k drafts, [0..k], begins among those of 1, 2, .. drafts.
static inline size_t dsc_position_dist_at(int k)
{
    return (size_t)(k - 1) * (size_t)(k + 2) / 2;
}

// The column that holds what the rule needs for two drafts and more; NULL: this rule's
// distributions are not known here (kseq, specinfer and otm are).
DSC_API const char *dsc_position_column(const dsc_verifier_type *rule);

// How the distributions of a rule for 1 .. drafts drafts are had from a trace.
typedef struct dsc_position_source {
    const dsc_verifier_type *rule;
    int drafts;         // in [1, DSC_POSITION_DRAFTS]
    bool recorded;      // as statistics; false: from the rows
    int statistics_k;   // of the trace
    int32_t vocab_size; // likewise
} dsc_position_source;

// The column with draft_logp and target_logp if they are recorded for so many drafts, else the
// rows of both models. DSC_EUSAGE says in a sentence what is missing.
DSC_API int dsc_position_source_find(dsc_position_source *out, const dsc_trace_info *info,
                                     const dsc_verifier_type *rule, int drafts, dsc_error *err);

// ln of the probability that a model gave to the output's token: the column, else the row. -inf is
// the draft's only. DSC_EINPUT: the row does not say, or the target excludes its own token.
DSC_API int dsc_position_logp(const dsc_request *q, dsc_model_side side, int64_t position,
                              double *logp, dsc_error *err);

// The distributions of 1 .. drafts drafts, dist[dsc_position_dist_at(drafts + 1)]. Of recorded
// statistics they are as exact as these (fp32), of rows to rounding; rows take a sort of the
// vocabulary and, for otm, a sampler per k: draftscope trace reduce does that once. DSC_EINPUT: a
// row that does not list all its mass.
DSC_API int dsc_position_dists(const dsc_position_source *source, const dsc_request *q,
                               int64_t position, dsc_position_room *room, double *dist,
                               dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// Reduces recorded distributions to sufficient statistics: all that conditional replay along the
// recorded output needs of two distributions, in a few hundred bytes per position.
#ifndef DSC_SIM_REDUCE_H
#define DSC_SIM_REDUCE_H

#include "traces/trace/trace.h"

typedef struct dsc_reduce {
    int K; // statistics for k = 1..K drafts, in [1, DSC_STATISTICS_K_MAX]
    int32_t
        rank_depth; // depth of draft_rank, in [1, 65535]; 0: 1, unless ranks are recorded already
    bool keep_rows; // keep the distributions; else they are left out
    bool force;     // replace an existing trace
    int threads;    // >= 1; no result depends on it
    const char *provenance; // JSON object, or NULL: that of the source
    // Called for each column that these rows do not determine, with the reason. May be NULL.
    void (*note)(void *user, const char *message);
    // Called between requests with the output tokens done and all of them; nonzero stops with
    // DSC_EINTERRUPT. May be NULL.
    int (*progress)(void *user, int64_t done, int64_t total);
    void *user;
} dsc_reduce;

// Writes trace `out`: `in` with, at every output position and from the rows of draft and target,
//   target_logp, draft_logp   log-probability of the output's token y,
//   argmax, entropy           of both models,
//   draft_rank                [j][d]: rank of token j + d in the draft's row j + d. The rows follow
//                             the recorded output, so the start of a draft does not matter,
//   kseq, specinfer, otm      of theory/sufficient.h, at y.
// Rows are normalized. A column that some row does not determine, because mass is unlisted, is kept
// from `in` or else left out, with a note; all other columns of `in` are kept. DSC_EINPUT: the
// probability of a token is neither in a row nor in a column, rows are missing, or the target's row
// excludes a token; the message has request and position. Memory: a shard of `out` and the scratch
// of `threads` positions.
int dsc_reduce_trace(const dsc_trace *in, const char *out, const dsc_reduce *o, dsc_error *err);

#endif

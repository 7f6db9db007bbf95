// SPDX-License-Identifier: Apache-2.0
// Rows to sufficient statistics: what conditional replay along the recorded output needs of two
// distributions over the vocabulary, in a few hundred bytes a position.
#ifndef DSC_SIM_REDUCE_H
#define DSC_SIM_REDUCE_H

#include "traces/trace/trace.h"

typedef struct dsc_reduce {
    int K;                  // statistics for k = 1..K drafts, in [1, DSC_STATISTICS_K_MAX]
    int32_t rank_depth;     // of draft_rank, in [1, 65535]; 0: 1, unless ranks are recorded already
    bool keep_rows;         // else they are left out
    bool force;             // replace an existing trace
    int threads;            // >= 1; no result depends on it
    const char *provenance; // JSON object, or NULL: the source's
    // What cannot be made of these rows, and why. May be NULL.
    void (*note)(void *user, const char *message);
    // Between requests: output tokens done and in all; nonzero stops with DSC_EINTERRUPT. May be
    // NULL.
    int (*progress)(void *user, int64_t done, int64_t total);
    void *user;
} dsc_reduce;

// Writes trace `out`: `in` with, at every output position and from the rows of draft and target,
//   target_logp, draft_logp   of the output's token y,
//   argmax, entropy           of both,
//   draft_rank                [j][d]: rank of token j + d in the draft's row j + d. The rows are
//                             those after the recorded output, so where a draft started does not
//                             matter,
//   kseq, specinfer, otm     of theory/sufficient.h, at y.
// Rows are divided by their sums. A column that some row leaves open, because mass is unlisted, is
// kept as `in` has it or else left out, with a note; the rest of `in` is kept. A token's
// probability that no row and no column of `in` says is DSC_EINPUT, naming request and position,
// as are missing rows and a token that the target's row excludes. Memory: a shard of `out` and
// what `threads` positions need.
DSC_API int dsc_reduce_trace(const dsc_trace *in, const char *out, const dsc_reduce *o,
                             dsc_error *err);

#endif

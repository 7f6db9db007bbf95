// SPDX-License-Identifier: Apache-2.0
// What a recorder keeps of a draft model's trees at each position: the candidates of a dynamic
// draft tree, and the marginals of a parallel drafter (traces/trace/trace.h).
#ifndef DSC_LIVE_RECORD_TREES_H
#define DSC_LIVE_RECORD_TREES_H

#include "sim/draft/candidate_tree.h"

typedef struct live_record_trees {
    int32_t steps, topk, nodes; // of the candidates; steps 0: not recorded
    int32_t offsets, top;       // of the marginals; offsets 0: not recorded
    int32_t *token;             // [n][nodes], as in dsc_tree_candidates
    uint16_t *parent;
    float *logp;
    uint16_t *scored;  // [n][steps]
    int32_t *marginal; // [n][offsets][top], as in dsc_marginals
    float *marginal_logp, *logp_y;
    dsc_candidate_tree tree; // of the request
    int32_t *place;          // [most candidates] number among the recorded ones from 1; 0: none
} live_record_trees;         // set the numbers first; the rest is zero

// Parses "S:K" or "S:K:N" (a dynamic tree's --num-steps, --eagle-topk and the best candidates to
// keep; without N all of them), and "D:M" (offsets, tokens of each). DSC_EUSAGE.
int live_record_candidates(live_record_trees *t, const char *text, dsc_error *err);
int live_record_marginals(live_record_trees *t, const char *text, dsc_error *err);
// The nodes that a session of the draft model needs room for.
static inline int64_t live_record_trees_nodes(const live_record_trees *t)
{
    return t->steps ? dsc_candidate_tree_expanded(t->steps, t->topk) : 0;
}

// Starts on a request of n positions; the memory is of in->arena.
int live_record_trees_begin(live_record_trees *t, const dsc_drafter_input *in, size_t n,
                            dsc_error *err);
// Records position j, where the output before it is committed. The draft model scores the
// candidates as nodes that are appended to `draft`.
int live_record_trees_grow(live_record_trees *t, int64_t j, dsc_draft *draft, dsc_error *err);
// Records the marginals at position j, whose pass has been scored. `own`: the probability of the
// output's tokens is that before the temperature. row[vocab] is scratch.
int live_record_trees_marginals(live_record_trees *t, int64_t j, dsc_token_view output, bool own,
                                double *row, dsc_error *err);
void live_record_trees_put(const live_record_trees *t, dsc_request_input *q);
void live_record_trees_describe(const live_record_trees *t, dsc_trace_info *info);

#endif

// SPDX-License-Identifier: Apache-2.0
// The way down a draft that all rules share which decide one position after the other: who is a
// candidate, what happens at the end of the draft and of the output, and whose distributions are
// asked. Internal to sim/verify/.
//
// Several nodes may carry the same path (K independent sequences). Those on the accepted path are
// live; the candidates for the next position are the children of all live nodes, and of the i.i.d.
// ones each is a draw of its own (SpecTr Alg. 3).
#ifndef DSC_SIM_VERIFY_TREE_VERIFY_H
#define DSC_SIM_VERIFY_TREE_VERIFY_H

#include "sim/verify_room.h"

// --- live nodes ----------------------------------------------------------------------------

typedef struct dsc_tree_verify {
    const dsc_draft *draft;
    dsc_verify_room *room;
    size_t live, candidates; // room->live[], room->candidate[] and room->token[]
} dsc_tree_verify;

// Starts at the last committed token: its candidates are the draft's first tokens. DSC_ENOMEM.
int dsc_tree_verify_begin(dsc_tree_verify *w, const dsc_verify_input *in, dsc_error *err);
// One deeper: the candidates that carry `token` are live now.
void dsc_tree_verify_step(dsc_tree_verify *w, int32_t token);
// A live node, whose path is that of all; -1: the last committed token.
int32_t dsc_tree_verify_node(const dsc_tree_verify *w);
// Whether the target was asked what follows the live nodes.
bool dsc_tree_verify_scored(const dsc_tree_verify *w);

// --- one position --------------------------------------------------------------------------

// A distribution of the target and that of the draft model which the candidates were drawn from, if
// they were.
typedef struct dsc_position {
    const dsc_verify_input *in;
    uint32_t depth;       // accepted so far
    const int32_t *token; // [count] the candidates in order
    int count;
    bool drawn; // else each candidate's distribution is of itself alone (TOPK)
    const double *draft_of, *target_of; // [count] their masses
    dsc_overlap *dists;
    dsc_rows_overlap rows; // of distributions that were written out
} dsc_position;

// Uniform number `index` < 4096 of the position.
double dsc_position_uniform(const dsc_position *at, uint32_t index);
double dsc_verify_uniform(const dsc_verify_input *in, uint32_t depth, uint32_t index);

// Decides a position: sets *chosen to an index of token[], or to -1 and *token to the correction.
typedef int (*dsc_choose)(dsc_position *at, int *chosen, int32_t *token, dsc_error *err);

// Verifies a whole draft, position by position. After the draft's last token the bonus is drawn
// from the target's distribution. A token that ends the output is the last of the step, whoever
// proposed it, and counts as the target's own: there is no room for a bonus behind it.
int dsc_tree_verify_run(const dsc_verify_input *in, dsc_choose choose, dsc_verdict *out,
                        dsc_error *err);

// Fills in the distributions after a node, and the candidates' masses. DSC_EABSENT when a
// distribution is not known token by token.
int dsc_position_overlap(dsc_position *at, int32_t node, dsc_error *err);
// A token from what is left of the target's distribution, or, where rounding left nothing, from
// that distribution.
int32_t dsc_position_draw(dsc_position *at, const dsc_residual *residual, double u);

// The distribution of a model after `node`. DSC_EABSENT when it has none or it is not known token
// by token.
int dsc_verify_dist(dsc_model *m, int32_t node, dsc_dist *dist, dsc_error *err);
// The token after `node`, at u in [0, 1) of the target's distribution.
int dsc_verify_draw(const dsc_verify_input *in, int32_t node, double u, int32_t *token,
                    dsc_error *err);
// The token at u in [0, 1) when x has the weight weight[x] >= 0; `weight` has a positive sum.
int32_t dsc_draw(const double *weight, size_t count, double u);
// A distribution as a dense row in the room; of the draft model or the target after `node`.
// DSC_EABSENT when it is not known token by token.
int dsc_tree_verify_dist(dsc_model *m, int32_t node, double **row, size_t *capacity, size_t *vocab,
                         dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// Tree traversal shared by all rules that verify position by position: candidate selection, the end
// of the draft and of the output, and which distributions are read. Internal to sim/verify/.
//
// Several nodes may carry the same path (K independent sequences). The nodes on the accepted path
// are live. The candidates for the next position are the children of all live nodes; each sampled
// child counts as a sample of its own, equal tokens included (SpecTr, Sun et al. 2023, Alg. 3).
#ifndef DSC_SIM_VERIFY_TREE_VERIFY_H
#define DSC_SIM_VERIFY_TREE_VERIFY_H

#include "sim/verify_room.h"

// --- live nodes ----------------------------------------------------------------------------

typedef struct dsc_tree_verify {
    const dsc_draft *draft;
    dsc_verify_room *room;
    size_t live, candidates; // room->live[], room->candidate[] and room->token[]
} dsc_tree_verify;

// Starts at the last committed token, whose candidates are the draft's first tokens. DSC_ENOMEM.
int dsc_tree_verify_begin(dsc_tree_verify *w, const dsc_verify_input *in, dsc_error *err);
// Goes one level down: the candidates that carry `token` become the live nodes.
void dsc_tree_verify_step(dsc_tree_verify *w, int32_t token);
// One live node; all have the same path. -1: the last committed token.
int32_t dsc_tree_verify_node(const dsc_tree_verify *w);
// Returns whether the target has scored the live nodes.
bool dsc_tree_verify_scored(const dsc_tree_verify *w);

// --- a chain -------------------------------------------------------------------------------

// Verifies a single chain by rejection sampling against weight target + (1 - weight) draft, 0 <=
// weight <= 1; 1 is the target itself.
int dsc_chain_verify(const dsc_verify_input *in, double weight, dsc_verdict *out, dsc_error *err);

// --- one position --------------------------------------------------------------------------

// The candidates of one position with the target distribution there and, for sampled candidates,
// the draft distribution.
typedef struct dsc_position {
    const dsc_verify_input *in;
    uint32_t depth;       // number of accepted tokens
    const int32_t *token; // [count] the candidates in order
    int count;
    bool drawn; // sampled; false: each candidate's draft distribution is all on itself (TOPK)
    const double *draft_of, *target_of; // [count] probabilities of the candidates
    dsc_overlap *dists;
    dsc_rows_overlap rows; // for distributions on the host, as rows
} dsc_position;

// Uniform number `index` < 4096 in [0, 1) of the position.
double dsc_position_uniform(const dsc_position *at, uint32_t index);
double dsc_verify_uniform(const dsc_verify_input *in, uint32_t depth, uint32_t index);

// Decides one position: sets *chosen to the index of the accepted candidate, or to -1 and *token to
// the correction.
typedef int (*dsc_choose)(dsc_position *at, int *chosen, int32_t *token, dsc_error *err);

// Verifies a whole draft, position by position. After the draft's last token, the bonus is sampled
// from the target distribution. A token that ends the output is the last of the step and counts as
// the target's own even if it was proposed, because no bonus can follow it.
int dsc_tree_verify_run(const dsc_verify_input *in, dsc_choose choose, dsc_verdict *out,
                        dsc_error *err);

// Sets the distributions after `node` and the candidates' probabilities. DSC_EABSENT when a
// distribution is not known token by token.
int dsc_position_overlap(dsc_position *at, int32_t node, dsc_error *err);
// A sample of the residual of the target distribution, or, where rounding left nothing, of the
// target distribution.
int32_t dsc_position_draw(dsc_position *at, const dsc_residual *residual, double u);

// The distribution of a model after `node`. DSC_EABSENT when it has none or it is not known token
// by token.
int dsc_verify_dist(dsc_model *m, int32_t node, dsc_dist *dist, dsc_error *err);
// The token after `node`, at u in [0, 1) of the target's distribution.
int dsc_verify_draw(const dsc_verify_input *in, int32_t node, double u, int32_t *token,
                    dsc_error *err);
// The token at u in [0, 1) of the distribution proportional to weight[count] >= 0, whose sum is
// positive.
int32_t dsc_draw(const double *weight, size_t count, double u);
// Writes a model's distribution after `node` to *row of the room, which grows to *vocab elements.
// DSC_EABSENT when it is not known token by token.
int dsc_tree_verify_dist(const dsc_verify_input *in, dsc_model *m, int32_t node, double **row,
                         size_t *capacity, size_t *vocab, dsc_error *err);

#endif

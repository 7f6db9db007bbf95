// SPDX-License-Identifier: Apache-2.0
// Drafting along a tree that is fixed before the run (EAGLE-1, Li et al. 2024; Sequoia, Chen et al.
// 2024), shared by the methods whose `prepare` makes a dsc_tree. Internal to sim/draft/.
//
// Each level takes one pass of the draft model over the nodes above it, which gives their
// candidates. The first pass of a step is over the tokens that the last step committed: like
// EAGLE's draft head, the draft model keeps nothing of the tree.
//   TOPK: the child of rank r is the draft model's (r + 1)-th most probable token, before any
//     temperature, ties by ascending id.
//   SAMPLED: children are samples of its distribution (the prefix tree of SpecTr, Sun et al. 2023,
//     Alg. 4).
//   SAMPLED_WITHOUT_REPLACEMENT: children are samples without replacement, in order.
// Samples have no ranks: the children of a node are its first samples, whatever ranks the tree
// skips, because a rule could not account for samples that it does not get. A token that ends the
// output has no children, and a child is missing if the draft model has no further token of
// positive probability.
#ifndef DSC_SIM_DRAFT_GROW_TREE_H
#define DSC_SIM_DRAFT_GROW_TREE_H

#include "sim/drafter.h"
#include "theory/tree.h"

typedef struct dsc_grow_tree {
    dsc_drafter_input in;
    const dsc_tree *tree;
    int32_t *node;     // [tree->nodes] node of the draft; -1: the root; some may be missing
    int32_t *sibling;  // [most ranks] candidates of a node, or its children so far
    double *row;       // [vocab] NULL until there is a vocabulary
    int64_t committed; // output tokens at the last proposal
} dsc_grow_tree;

// Makes *tree, whose arrays it takes over, the result of a `prepare`. DSC_ENOMEM: it is freed.
int dsc_grow_tree_keep(dsc_tree *tree, void **prepared, dsc_error *err);

// Members of a descriptor; config->prepared is a dsc_tree, which release frees.
int64_t dsc_grow_tree_limit(const dsc_config *config);
int64_t dsc_grow_tree_width(const dsc_config *config);
int dsc_grow_tree_levels(const dsc_config *config, int32_t nodes[DSC_MAX_LEVELS + 1]);
void dsc_grow_tree_release(void *prepared);
int dsc_grow_tree_begin(void *state, const dsc_drafter_input *in, dsc_error *err);
int dsc_grow_tree_propose(void *state, const int32_t *output, int64_t length, dsc_draft *draft,
                          dsc_error *err);

#define DSC_GROW_TREE_MEMBERS                                                                      \
    .state_size = sizeof(dsc_grow_tree), .release = dsc_grow_tree_release,                         \
    .limit = dsc_grow_tree_limit, .width = dsc_grow_tree_width, .levels = dsc_grow_tree_levels,    \
    .begin = dsc_grow_tree_begin, .propose = dsc_grow_tree_propose

#endif

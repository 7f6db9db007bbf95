// SPDX-License-Identifier: Apache-2.0
// Draft trees: the expected number of tokens of a tree, trees of the literature, and the best tree
// for given acceptance rates and costs.
//
// Node 0, the root, is the last decided token. Nodes 1, 2, ... are draft tokens, level by level,
// siblings together and by rank. The rank of a child is its place among the candidates that the
// drafter orders at its parent, 0 for the best. A target call takes all nodes including the root,
// accepts a path and adds one token.
//
// DSC_EUSAGE: a pointer is NULL, where nothing else is stated; functions without a status then
// return NaN, or a choice of 0 nodes with NaN.
#ifndef DSC_THEORY_TREE_H
#define DSC_THEORY_TREE_H

#include "base/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    DSC_TREE_NODES = 1024, // at most, including the root
    DSC_TREE_DEPTH = 64,   // at most, for the deepest node; the root has depth 0
    DSC_TREE_RANKS = 1024,
};

typedef struct dsc_tree {
    int nodes;                      // >= 1
    int depth;                      // depth of the deepest node
    int32_t *parent, *rank, *level; // [nodes]; the root's are -1, -1, 0
} dsc_tree;                         // zero-initialize; dsc_tree_fini frees

// The rank of the target's token: rate[d * ranks + r] = Pr(it is the candidate of rank r below a
// node of depth d that was accepted itself). These events exclude each other, so a row sums to at
// most 1. A single row holds at every depth; with several rows, deeper trees are refused.
typedef struct dsc_tree_acceptance {
    const double *rate; // [depths][ranks]
    int depths, ranks;
} dsc_tree_acceptance;

DSC_API int dsc_tree_acceptance_check(const dsc_tree_acceptance *dist,
                                      dsc_error *err); // DSC_EUSAGE

// A tree whose nodes other than the root are to be filled in. DSC_EUSAGE: `nodes` is outside 1 to
// DSC_TREE_NODES. DSC_ENOMEM.
DSC_API int dsc_tree_new(dsc_tree *t, size_t nodes, dsc_error *err);
DSC_API void dsc_tree_fini(dsc_tree *t);

// A tree by name: "chain:L", "K^D" (all K children down to depth D), "eagle" (EAGLE-1, 25 draft
// tokens), "medusa" (mc_sim_7b_63, 63). DSC_EUSAGE: the name is unknown or the tree is too large.
DSC_API int dsc_tree_named(dsc_tree *t, const char *name, dsc_error *err);

// A tree from text: one draft token per line, in any order, as the ranks on its path from the root
// ("0,1,0"); '#' opens a comment. DSC_EINPUT with `what` and the line: a line is not a path, a path
// is given twice, or its parent is missing.
DSC_API int dsc_tree_parse(dsc_tree *t, const char *text, const char *what, dsc_error *err);

// probability[nodes] that each node is accepted: the product of the acceptance rates on its path, 1
// for the root; may be NULL. *expected is their sum, the expected tokens per target call including
// the target's own (the root's 1). DSC_EUSAGE: the distribution lacks a rank or depth of the tree.
DSC_API int dsc_tree_expect(const dsc_tree *t, const dsc_tree_acceptance *dist, double *probability,
                            double *expected, dsc_error *err);

// Cost of a step with a tree: `depth` draft forward passes and one target call.
typedef struct dsc_tree_cost {
    double draft;         // >= 0, a draft forward pass (one level of the tree)
    const double *target; // [m - 1]: > 0, a target call on m tokens, m = 1 .. nodes
} dsc_tree_cost;

// Speedup over one token per target call: expected * target(1)/(depth * draft + target(nodes)). NaN
// for fewer than 1 node and a negative depth.
DSC_API double dsc_tree_speedup(double expected, int nodes, int depth, const dsc_tree_cost *cost);

// --- the best tree -------------------------------------------------------------------------

// The best trees of every size and depth, by Sequoia's dynamic program (Chen et al. 2024).
typedef struct dsc_tree_plan dsc_tree_plan;

// Plans for up to `budget` nodes (including the root) and `depth` levels below the root. The
// children of a node are its first candidates, without gaps. The time is about budget^2 min(ranks,
// budget) depth/2 additions, and depth/2 times that when the distribution has several rows.
// DSC_EUSAGE: budget is outside 1 to DSC_TREE_NODES, depth is outside 0 to DSC_TREE_DEPTH, the
// distribution is invalid or has fewer rows than `depth`. *out is owned by the caller; the
// distribution is copied.
DSC_API int dsc_tree_plan_new(dsc_tree_plan **out, const dsc_tree_acceptance *dist, int budget,
                              int depth, dsc_error *err);
DSC_API void dsc_tree_plan_free(dsc_tree_plan *p);

// The largest expected number of tokens of a tree with exactly `nodes` nodes and at most `depth`
// levels; -INFINITY when no such tree exists, NaN when an argument is outside the plan's range.
DSC_API double dsc_tree_plan_expected(const dsc_tree_plan *p, int nodes, int depth);

// A tree that reaches it. DSC_EUSAGE: no such tree exists.
DSC_API int dsc_tree_plan_tree(const dsc_tree_plan *p, int nodes, int depth, dsc_tree *t,
                               dsc_error *err);

typedef struct dsc_tree_choice {
    int nodes, depth;
    double expected, speedup;
} dsc_tree_choice;

// The size and depth with the greatest speedup; of equal ones the shallower, then the smaller.
DSC_API dsc_tree_choice dsc_tree_plan_best(const dsc_tree_plan *p, const dsc_tree_cost *cost);

#ifdef __cplusplus
}
#endif

#endif

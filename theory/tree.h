// SPDX-License-Identifier: Apache-2.0
// Draft trees: the tokens a tree is expected to yield, trees of the literature, and the best tree
// for given acceptances and costs.
//
// A tree hangs below the token that is already decided: node 0 is this root, node 1, 2, ... are
// draft tokens, level by level, siblings together and by rank. A child is known by its rank among
// the candidates that the drafter orders at its parent, 0 the best. A target call takes all nodes,
// the root included, accepts a path and adds one token.
#ifndef DSC_THEORY_TREE_H
#define DSC_THEORY_TREE_H

#include "base/memory.h"

enum {
    DSC_TREE_NODES = 1024, // at most, root included
    DSC_TREE_DEPTH = 64,   // of the deepest node; the root's is 0
    DSC_TREE_RANKS = 1024,
};

typedef struct dsc_tree {
    int nodes;                      // >= 1
    int depth;                      // of the deepest node
    int32_t *parent, *rank, *level; // [nodes]; of the root: -1, -1, 0
} dsc_tree;                         // zero-initialise; dsc_tree_fini frees

// Which candidate the target's token is: rate[d * ranks + r] = Pr(it is the candidate of rank r
// below a node of depth d that was accepted itself). Ranks exclude each other: a row sums to at
// most 1. With one row it holds at every depth; with several, deeper trees are refused.
typedef struct dsc_tree_acceptance {
    const double *rate; // [depths][ranks]
    int depths, ranks;
} dsc_tree_acceptance;

DSC_API int dsc_tree_acceptance_check(const dsc_tree_acceptance *dist,
                                      dsc_error *err); // DSC_EUSAGE

DSC_API void dsc_tree_fini(dsc_tree *t);

// A tree by name: "chain:L", "K^D" (all K children down to depth D), "eagle" (EAGLE-1, 25 draft
// tokens), "medusa" (mc_sim_7b_63, 63). DSC_EUSAGE: no such name, or too large.
DSC_API int dsc_tree_named(dsc_tree *t, const char *name, dsc_error *err);

// A tree from text: a draft token per line, as the ranks on its path from the root, "0,1,0"; in any
// order; '#' opens a comment. DSC_EINPUT with `what` and the line: no path, a path given twice, or
// one whose parent is not there.
DSC_API int dsc_tree_parse(dsc_tree *t, const char *text, const char *what, dsc_error *err);

// probability[nodes]: that a node is accepted, the product of the acceptances on its path; 1 for
// the root. Returns in *expected their sum, the tokens expected per target call, its own token
// (the root's 1) included. `probability` may be NULL. DSC_EUSAGE: a rank or depth the distribution
// does not know.
DSC_API int dsc_tree_expect(const dsc_tree *t, const dsc_tree_acceptance *dist, double *probability,
                            double *expected, dsc_error *err);

// What a step with a tree costs: depth draft forwards and one target call.
typedef struct dsc_tree_cost {
    double draft;         // >= 0, a draft forward (a level of the tree)
    const double *target; // [m - 1]: > 0, a target call on m tokens, m = 1 .. nodes
} dsc_tree_cost;

// expected * target(1)/(depth * draft + target(nodes)), against one token per call.
DSC_API double dsc_tree_speedup(double expected, int nodes, int depth, const dsc_tree_cost *cost);

// --- the best tree -------------------------------------------------------------------------

// The best trees of every size and depth: Sequoia's dynamic programme (Chen et al. 2024).
typedef struct dsc_tree_plan dsc_tree_plan;

// For up to `budget` nodes (root included) and `depth` levels below the root. Children of a node
// are its first candidates, without gaps. Time is about budget^2 min(ranks, budget) depth/2
// additions, depth/2 times that when the distribution has several rows. DSC_EUSAGE: budget not from
// 1 to DSC_TREE_NODES, depth not from 0 to DSC_TREE_DEPTH, a bad distribution, or fewer rows than
// depth. *out owned by the caller; the distribution is copied.
DSC_API int dsc_tree_plan_new(dsc_tree_plan **out, const dsc_tree_acceptance *dist, int budget,
                              int depth, dsc_error *err);
DSC_API void dsc_tree_plan_free(dsc_tree_plan *p);

// The most tokens that a tree of exactly `nodes` nodes and at most `depth` levels is expected to
// yield; -INFINITY when there is no such tree. Arguments within the plan's.
DSC_API double dsc_tree_plan_expected(const dsc_tree_plan *p, int nodes, int depth);

// Such a tree. DSC_EUSAGE when there is none.
DSC_API int dsc_tree_plan_tree(const dsc_tree_plan *p, int nodes, int depth, dsc_tree *t,
                               dsc_error *err);

typedef struct dsc_tree_choice {
    int nodes, depth;
    double expected, speedup;
} dsc_tree_choice;

// The size and depth with the greatest speed-up; of equals the shallower, then the smaller.
DSC_API dsc_tree_choice dsc_tree_plan_best(const dsc_tree_plan *p, const dsc_tree_cost *cost);

#endif

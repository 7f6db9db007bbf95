// SPDX-License-Identifier: Apache-2.0
// The best draft tree of a parallel drafter: DDTree (Ringel and Romano 2026, arXiv 2604.12989,
// and vllm-project/vllm pull request 42910, build_ddtree_tree). Offsets are independent of each
// other, so a path has the product of its tokens' marginals, and a path is never more probable than
// its prefixes. If the target's tokens had these marginals, the expected number of accepted tokens
// would be the sum of the probabilities of the tree's paths: the `budget` most probable paths
// are a tree, and no tree of that size has a larger sum. Internal to sim/draft/.
#ifndef DSC_SIM_DRAFT_BEST_FIRST_H
#define DSC_SIM_DRAFT_BEST_FIRST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A path of the tree; `rank` is that of its last token among the candidates of the level.
typedef struct dsc_best_first_node {
    double probability; // product along the path
    int32_t parent;     // an earlier node, or -1: the root
    int32_t level, rank;
} dsc_best_first_node;

// Candidates, in descending order of probability on each level.
typedef struct dsc_best_first_input {
    const double *probability; // [levels][ranks]; 0: there is no further candidate
    const bool *ends;          // [levels][ranks] nothing follows the candidate
    size_t levels, ranks;
} dsc_best_first_input;

// Writes the most probable paths, at most `budget`, into node[budget], in descending order of
// probability, of equal ones the one found first. heap[budget + 1] is scratch. Paths of probability
// 0 are left out. Returns their number. O(budget log budget).
size_t dsc_best_first(const dsc_best_first_input *in, size_t budget, dsc_best_first_node *node,
                      dsc_best_first_node *heap);

#ifdef __cplusplus
}
#endif

#endif

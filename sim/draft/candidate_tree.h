// SPDX-License-Identifier: Apache-2.0
// The candidates of EAGLE-2's dynamic draft tree (Li et al. 2024, arXiv 2406.16858):
//
//   expansion  The first level is the K most probable tokens. The K best candidates of a level get
//              K children each, which are the candidates of the next level; S levels, S passes.
//   reranking  Of the candidates of all levels the N - 1 best are verified after the root.
//
// A candidate's score is the sum of the log-probabilities on its path, before any temperature. No
// score exceeds the parent's and parents come first, so the best candidates are a tree. Candidates
// are numbered level by level, children of the better parent first and by rank below one parent,
// and equal scores are ordered by that number. The names and the order are those of SGLang
// (python/sglang/srt/speculative/spec_utils.py at 2dd501d, select_top_k_tokens; eagle_utils.py at
// 003ddbc, organize_draft_results, whose num_draft_token includes the root) and of the EAGLE
// repository (eagle/model/cnets.py at 148042c, topK_genrate): its top_k is K, its total_token is N,
// and its depth is S - 1, because it does not count the pass over the committed tokens. Both use
// torch.topk, which leaves the order of equal scores open, on float32 scores; here they are double.
// The engines also expand an EOS token, whose children can never be accepted. Here a token that
// ends the output keeps its place among the K best and has no children.
//
// A trace contains the best candidates of a setting (dsc_tree_candidates, traces/trace/trace.h),
// best first. Fewer steps are a part of them, and so are fewer children as far as the candidates
// that those would expand were expanded. Internal to sim/draft/ and to the recorder of live runs.
#ifndef DSC_SIM_DRAFT_CANDIDATE_TREE_H
#define DSC_SIM_DRAFT_CANDIDATE_TREE_H

#include "sim/drafter.h"

enum { DSC_CANDIDATE_ROOT = -1, DSC_CANDIDATE_NONE = -2 }; // NONE: in no draft

typedef struct dsc_candidate {
    double score;
    int32_t token;
    int32_t parent; // candidate, or ROOT
    int32_t level;  // 0: after the root
    int32_t grown;  // node of the draft of expanded candidates, or NONE
    int32_t kept;   // node of the verified draft, or NONE
} dsc_candidate;

typedef struct dsc_ranked {
    double score;
    int32_t candidate;
} dsc_ranked;

typedef struct dsc_candidate_tree {
    dsc_drafter_input in;
    int64_t steps, topk;
    dsc_candidate *candidate; // [count] room for dsc_candidate_tree_most
    dsc_ranked *ranked;       // the same room
    int32_t *open;            // [K] candidates that get children, or ROOT
    int32_t *top;             // [K] tokens of the children of one candidate
    double *row;              // [vocab] NULL until there is a vocabulary
    int32_t count, opened;
    int64_t scored[DSC_MAX_LEVELS]; // tokens in each pass; 0: there was no such pass
} dsc_candidate_tree;

// The most candidates of S steps and K children, and the most that are expanded after the root.
static inline int64_t dsc_candidate_tree_most(int64_t steps, int64_t topk)
{
    return topk + (steps - 1) * topk * topk;
}
static inline int64_t dsc_candidate_tree_expanded(int64_t steps, int64_t topk)
{
    return (steps - 1) * topk;
}

// Starts on a request; the memory is of in->arena. steps is in [1, DSC_MAX_LEVELS], topk >= 1.
int dsc_candidate_tree_init(dsc_candidate_tree *t, const dsc_drafter_input *in, int64_t steps,
                            int64_t topk, dsc_error *err);
// Expands the candidates after the committed output with the draft model, which scores them as
// nodes that are appended to `grown`; `fresh` tokens are in the first pass.
int dsc_candidate_tree_grow(dsc_candidate_tree *t, int64_t fresh, dsc_draft *grown, dsc_error *err);
// Sorts the candidates from `first` on into t->ranked, the best first; returns their number.
int32_t dsc_candidate_tree_rank(dsc_candidate_tree *t, int32_t first);
// Appends the `most` best recorded candidates of the setting to *draft, and counts the draft
// model's passes. DSC_EUSAGE: the recording lacks some of them.
int dsc_candidate_tree_replay(dsc_candidate_tree *t, int64_t most, int64_t fresh, dsc_draft *draft,
                              dsc_error *err);

#endif

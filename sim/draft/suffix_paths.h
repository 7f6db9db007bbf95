// SPDX-License-Identifier: Apache-2.0
// The most frequent path below each match of a suffix index, and the match with the best one.
// Settings only change where a path ends, so all of them share the paths. Internal to sim/draft/.
#ifndef DSC_SIM_DRAFT_SUFFIX_PATHS_H
#define DSC_SIM_DRAFT_SUFFIX_PATHS_H

#include "sim/draft/suffix_index.h"

// Limits of a draft.
typedef struct dsc_suffix_limits {
    int64_t length, depth; // tokens of the draft; of match and draft together
    double factor, offset; // a match of m tokens drafts at most factor m + offset
    double probability;    // the smallest of a token's path
} dsc_suffix_limits;

// The largest number of tokens below a match of m tokens.
int64_t dsc_suffix_most(const dsc_suffix_limits *limits, int64_t m);

typedef struct dsc_suffix_path {
    int32_t state;      // of the match
    int32_t end;        // the state after the last token, -1: it has no continuation
    int64_t count;      // tokens found so far
    int32_t *token;     // [longest]
    float *probability; // [longest] of the path up to there
    float *sum;         // [longest + 1] of probability[0, i)
} dsc_suffix_path;

typedef struct dsc_suffix_paths {
    const dsc_suffix_index *index;
    dsc_arena *arena;
    int64_t longest;       // tokens of any path
    dsc_suffix_path *path; // [depth] those of this position, the longest match first
    int32_t paths;         // that have memory
    int32_t *of;           // [depth + 1] the path of a match of m tokens
    int32_t match;         // the longest match that has a path, 0: none
} dsc_suffix_paths;

// The index has to outlive the paths and has at most the depth `depth`.
int dsc_suffix_paths_init(dsc_suffix_paths *p, const dsc_suffix_index *index, int32_t depth,
                          int64_t longest, dsc_arena *arena, dsc_error *err);
// Begins the paths of a position: those below the last 1 to m tokens, of which `state` contains the
// last m, as far as they occur `least` times.
int dsc_suffix_paths_begin(dsc_suffix_paths *p, int32_t state, int32_t m, int32_t least,
                           dsc_error *err);
// The path with the largest sum of probabilities under the limits, of the longest match among equal
// ones, or NULL: no path has more than *score, which then keeps its value, as *drafted does. Else
// *drafted: its tokens to draft; *score: their sum of probabilities.
const dsc_suffix_path *dsc_suffix_paths_choose(dsc_suffix_paths *p, const dsc_suffix_limits *limits,
                                               int64_t *drafted, float *score);

#endif

// SPDX-License-Identifier: Apache-2.0
// The two-dimensional window of lookahead decoding (Fu et al. 2024, "Break the Sequential
// Dependency of LLM Inference Using Lookahead Decoding", section 3.1): Jacobi iteration on W
// positions ahead, whose last N - 1 iterates are kept, so that its diagonals are n-grams of the
// model's own output.
//
// Level 0 is a chain after the current token; diagonal i follows token i - 1 of level 0 (i = 0: the
// current token) and has a token of each level 1, 2, ..., N - 2. In the tree of draft nodes, a
// token attends to its path. The model's argmax after each diagonal is the new level. A diagonal
// with its new token is a phrase. Then level 0 is dropped and level 1 takes its place, one position
// later.
//
// The levels fill up one per pass, and W + N - 3 seeds cover the positions passed meanwhile.
// However many tokens a step emits, the window moves on by one, as in the authors' code. Internal
// to sim/draft/.
#ifndef DSC_SIM_DRAFT_WINDOW_H
#define DSC_SIM_DRAFT_WINDOW_H

#include "sim/draft/phrase_pool.h"
#include "sim/drafter.h"

typedef struct dsc_window {
    int64_t level;     // N >= 2
    int64_t filled;    // the last level that is filled, in [0, N - 2]
    int64_t diagonals; // W + N - 2 - filled
    int32_t *first;    // [diagonals - 1] level 0
    int32_t *diagonal; // [diagonals][N - 1] levels 1..filled, then the new level
    int32_t tip, base; // in the draft: its parent node, its first node
} dsc_window;

// Level 0 is sampled from the prompt's tokens (token 0 for an empty prompt). Width W >= 1.
int dsc_window_begin(dsc_window *w, int64_t width, int64_t level, const dsc_drafter_input *in,
                     dsc_error *err);
// Returns whether all levels are filled. Until then there are no phrases.
bool dsc_window_full(const dsc_window *w);
// Appends the window to a draft, scored only, below node `tip` (-1: the last committed token).
int dsc_window_append(dsc_window *w, int32_t tip, dsc_draft *draft, dsc_error *err);
// After the draft was scored: reads the new level, adds a full window's phrases to the pool and
// moves on. `current` is the token at the tip.
int dsc_window_step(dsc_window *w, dsc_model *model, int32_t current, dsc_phrase_pool *pool,
                    dsc_error *err);
// The largest number of nodes of a window.
int64_t dsc_window_nodes(int64_t width, int64_t level);

#endif

// SPDX-License-Identifier: Apache-2.0
// The two-dimensional window of lookahead decoding (Fu et al. 2024, "Break the Sequential
// Dependency of LLM Inference Using Lookahead Decoding", section 3.1): Jacobi iteration on W
// positions ahead, whose last N - 1 iterates are kept, so that its diagonals are n-grams which the
// model itself wrote.
//
// Level 0 is a chain behind the current token; diagonal i hangs from the token before it (i = 0:
// from the current token) and has a token of each level 1, 2, ..., N - 2. As a tree of draft nodes:
// what a token sees is its path. What the model says after the end of each diagonal is the new
// level. Diagonals with their new token are phrases; then level 0 is forgotten and level 1 takes
// its place, one position on.
//
// The levels fill up one per pass, and W + N - 3 seeds make room for the positions passed
// meanwhile. However many tokens a step emits, the window goes on by one (as the authors' code
// does). Internal to sim/draft/.
#ifndef DSC_SIM_DRAFT_WINDOW_H
#define DSC_SIM_DRAFT_WINDOW_H

#include "sim/draft/phrase_pool.h"
#include "sim/drafter.h"

typedef struct dsc_window {
    int64_t level;     // N >= 2
    int64_t filled;    // the last level that is there, in [0, N - 2]
    int64_t diagonals; // W + N - 2 - filled
    int32_t *first;    // [diagonals - 1] level 0
    int32_t *diagonal; // [diagonals][N - 1] levels 1..filled, then what the model says
    int32_t tip, base; // where it hangs in the draft: its parent, its first node
} dsc_window;

// Level 0 is drawn from the prompt's tokens (0 of an empty prompt). Width W >= 1.
int dsc_window_begin(dsc_window *w, int64_t width, int64_t level, const dsc_drafter_input *in,
                     dsc_error *err);
// Whether all levels are there. Until then there are no phrases.
bool dsc_window_full(const dsc_window *w);
// Appends it to a draft, scored only, below node `tip` (-1: the last committed token).
int dsc_window_append(dsc_window *w, int32_t tip, dsc_draft *draft, dsc_error *err);
// After the draft was scored: reads the new level, adds a full window's phrases to the pool and
// goes on. `current` is the token at the tip.
int dsc_window_step(dsc_window *w, dsc_model *model, int32_t current, dsc_phrase_pool *pool,
                    dsc_error *err);
// The most nodes that it ever has.
int64_t dsc_window_nodes(int64_t width, int64_t level);

#endif

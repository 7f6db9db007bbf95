// SPDX-License-Identifier: Apache-2.0
// How long forward passes take: by the tokens in them, the context before these, and the sequences
// that take them together. The table is what `--cost table:FILE` reads (sim/cost/cost_table.c).
#ifndef DSC_LIVE_PROFILE_H
#define DSC_LIVE_PROFILE_H

#include "base/option.h"
#include "base/table.h"
#include "live/model/weights.h"

// Lists are ascending, without repetition, and not empty.
typedef struct live_grid {
    const int64_t *tokens, *context, *batch; // of each sequence; of each sequence; sequences
    size_t tokens_count, context_count, batch_count;
} live_grid;

typedef struct live_profile_options {
    const live_weights *target, *draft; // draft: a model or a head of the target; NULL: none
    live_grid grid;
    int repeats; // >= 1, of each pass, in rounds: the mean of the rounds' medians is the result
    uint64_t seed;
    // After each cell of the grid, in each of the rounds over it; nonzero stops. May be NULL.
    int (*progress)(void *user, int64_t done, int64_t total);
    void *user;
} live_profile_options;

// Fills *t: comment lines with what the device was measured to do, columns, and a row for each
// cell, sorted as the cost table wants it. Each pass is run three times before it is timed. Memory
// is checked before anything is. DSC_EINTERRUPT: progress asked to stop; DSC_ENOMEM: in a pass. *t
// then has the grid by the rounds that are complete or, in the first, the rows of all `tokens` that
// are: a full grid too. DSC_ENOMEM before the passes or behind them: no rows. DSC_EUSAGE: a grid
// beyond what the model can do (learned positions, heads in batches).
int live_profile(dsc_table *t, const live_profile_options *o, dsc_error *err);

// "1:128", "0,512:4096:512": as lists of an INT option (dsc_option_list), but for ranges without a
// step, which stand for their ends and few points between: powers of two and, when `halves`, those
// half-way (1, 2, 3, 4, 6, 8, 12, ...), else powers of four from 64. Sorted. *out is owned by the
// caller.
int live_profile_points(const dsc_option *o, const char *text, bool halves, int64_t **out,
                        size_t *count, dsc_error *err);

#endif

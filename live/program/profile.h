// SPDX-License-Identifier: Apache-2.0
// Measures forward-pass latency by the tokens in a pass, the context before them, the number of
// sequences, and the prefill tokens next to them. `--cost table:FILE` reads the table
// (sim/cost/cost_table.c).
#ifndef DSC_LIVE_PROFILE_H
#define DSC_LIVE_PROFILE_H

#include "base/option.h"
#include "base/table.h"
#include "live/model/weights.h"

// Lists are ascending, without repetition and not empty.
typedef struct live_grid {
    const int64_t *tokens, *context, *batch; // per sequence; per sequence; sequences
    size_t tokens_count, context_count, batch_count;
    // Tokens of a part of one more sequence's prompt, after as many tokens as the others, in the
    // same pass: >= 1, measured at the first and the last point of each list above. May be empty.
    const int64_t *prefill;
    size_t prefill_count;
} live_grid;

typedef struct live_profile_options {
    const live_weights *target, *draft; // draft: a draft model or a head of the target; NULL: none
    live_grid grid;
    int repeats; // >= 1, of each pass, in rounds; the result is the mean of the rounds' medians
    uint64_t seed;
    // Called after each cell of the grid in each round; nonzero stops. May be NULL.
    int (*progress)(void *user, int64_t done, int64_t total);
    void *user;
} live_profile_options;

// Cells whose quartiles are more than DSC_COST_WIDE apart (sim/cost/cost.h) after all rounds are
// measured up to three times as often; the comment `spread` says how many and how many remain so.
//
// Fills *t with comment lines (measured rates of the device), columns, and a row per cell in the
// order that the cost table requires: cells with prefill tokens, which have no draft model, follow
// the others. Each pass runs three times before it is timed. Memory is
// checked before any pass. On DSC_EINTERRUPT (progress returned nonzero) and on DSC_ENOMEM during a
// pass, *t has the grid from the completed rounds or, in the first round, the rows of all completed
// `tokens`, which form a complete grid as well, without prefill tokens. DSC_ENOMEM before or after
// the passes: no rows. DSC_EUSAGE: a grid that the model does not support (learned positions, heads
// in batches).
int live_profile(dsc_table *t, const live_profile_options *o, dsc_error *err);

// Parses "1:128" or "0,512:4096:512" as a list of an INT option (dsc_option_list), except that a
// range without a step means its ends and a few points between: powers of two and, with `halves`,
// those half-way (1, 2, 3, 4, 6, 8, 12, ...), else powers of four from 64. Sorted. *out is owned by
// the caller.
int live_profile_points(const dsc_option *o, const char *text, bool halves, int64_t **out,
                        size_t *count, dsc_error *err);

#endif

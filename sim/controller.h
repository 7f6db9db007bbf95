// SPDX-License-Identifier: Apache-2.0
// Controllers of the draft length: which of a few candidate lengths the next step drafts, given
// what earlier steps accepted. Methods (sim/draft/adaptive.c) have one per request or run, and the
// serving policy `ema` (sim/serve/serve_policy_ema.c) has one per engine.
#ifndef DSC_SIM_CONTROLLER_H
#define DSC_SIM_CONTROLLER_H

#include <stdbool.h>
#include <stdint.h>

enum { DSC_MOST_CANDIDATES = 16 };

// Draft lengths, ascending and distinct. Controllers choose by index.
typedef struct dsc_candidates {
    int32_t k[DSC_MOST_CANDIDATES], count;
} dsc_candidates;

// Adds a length and returns its index, -1 where there is no room. One that is there stays.
int32_t dsc_candidates_add(dsc_candidates *c, int32_t k);
// Reads "1/3/7", lengths in [least, most] in any order, and moves *text after it. False: the text
// does not begin so, or there is no room.
bool dsc_candidates_read(dsc_candidates *c, int32_t least, int32_t most, const char **text);

// --- moving average ------------------------------------------------------------------------------

typedef struct dsc_ema {
    // Settings, by SGLang's names.
    double ema_alpha, update_interval, warmup_batches, down_hysteresis, up_hysteresis,
        ceiling_coeff;
    // Of a run:
    int32_t current; // index of the length of the next step
    double average;  // of the number of accepted draft tokens
    int64_t batches; // that verified drafts
} dsc_ema;

void dsc_ema_begin(dsc_ema *x, const dsc_candidates *c, int32_t initial); // initial: an index
// The end of a batch that drafted k[current] tokens; `accepted`: the mean number of them that a
// request accepted, not read where that is 0.
void dsc_ema_update(dsc_ema *x, const dsc_candidates *c, double accepted);

// --- upper confidence bounds ---------------------------------------------------------------------

typedef enum dsc_ucb_radius { DSC_UCB_PAPER, DSC_UCB_CODE, DSC_UCB_UCB1 } dsc_ucb_radius;

typedef struct dsc_ucb {
    dsc_ucb_radius radius;
    double delta;              // PAPER: confidence parameter in (0, 1]
    double exploration_weight; // CODE and UCB1
    // Of a run:
    double sum[DSC_MOST_CANDIDATES];    // of the rewards of each candidate
    int64_t steps[DSC_MOST_CANDIDATES]; // that drafted it
    int64_t all;                        // of all candidates
} dsc_ucb;

void dsc_ucb_begin(dsc_ucb *x);
// The index of the length of the next step. Ties go to the shortest.
int32_t dsc_ucb_choose(const dsc_ucb *x, const dsc_candidates *c);
void dsc_ucb_update(dsc_ucb *x, int32_t chosen, double reward);

#endif

// SPDX-License-Identifier: Apache-2.0
// A linear cost from mean step times of a server at several loads.
#ifndef DSC_SIM_STEP_TIMES_H
#define DSC_SIM_STEP_TIMES_H

#include "sim/cost/cost.h"

#include <stddef.h>

// What was measured at one load.
typedef struct dsc_step_time {
    double step_s;  // mean time of a decoding step, > 0
    double batch;   // mean number of sequences in it, > 0
    double drafted; // mean number of draft tokens of a sequence in it; 0: no speculation
} dsc_step_time;

// Fits step_s = fixed_s + per_token_s x batch x (drafted + 1) to the steps without drafts. A draft
// token is thus charged like the token of another sequence, which is not too little: it needs no
// KV cache of its own. What steps with drafts take beyond this line is charged to the passes of the
// draft model, draft_s for each draft token. With one load of steps without drafts the line goes
// through all steps, so that per_token_s contains the draft model. With none the time of such a
// step is unknown (dsc_cost.no_plain). The note says which. DSC_EINPUT: one load without drafts,
// which tells the time of a pass of one token per sequence only; loads that do not differ.
// `name` begins messages.
int dsc_step_times_fit(dsc_cost *cost, const dsc_step_time *t, size_t n, const char *name,
                       dsc_error *err);

#endif

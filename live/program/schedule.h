// SPDX-License-Identifier: Apache-2.0
// Runs the steps of a simulated server (sim/serve/serve_steps.h) on models and compares their times
// with the predicted ones: predicted against measured for serving, without a server. The host's
// overhead is not run, and not compared.
#ifndef DSC_LIVE_SCHEDULE_H
#define DSC_LIVE_SCHEDULE_H

#include "base/table.h"
#include "live/model/weights.h"

typedef struct live_schedule_options {
    const char *path;                   // of the schedule
    const live_weights *target, *draft; // draft: a draft model, not a head; NULL: none
    int64_t most;                       // >= 1 steps at most, evenly spaced over the schedule
    int repeats; // >= 1, in rounds over the steps; the result is their median
    uint64_t seed;
    // Called after each step in each round; nonzero stops. May be NULL.
    int (*progress)(void *user, int64_t done, int64_t total);
    void *user;
} live_schedule_options;

// Sums over the steps that were run, seconds.
typedef struct live_schedule_totals {
    int64_t steps, all; // that were run; of the schedule
    double predicted_target_s, predicted_draft_s, measured_target_s, measured_draft_s;
} live_schedule_totals;

// Fills *t with columns and a row per step. On DSC_EINTERRUPT *t has the steps that ran at least
// once. DSC_EINPUT: the file is not a schedule. DSC_EUSAGE: it has draft passes and there is no
// draft model, or the other way round, or a sequence exceeds a model's context window. DSC_ENOMEM
// states the needed and the free size.
int live_schedule(dsc_table *t, live_schedule_totals *out, const live_schedule_options *o,
                  dsc_error *err);

#endif

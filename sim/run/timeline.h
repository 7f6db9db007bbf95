// SPDX-License-Identifier: Apache-2.0
// The draft/target timeline of a request: a table with a row for each interval in which a model
// works.
#ifndef DSC_SIM_TIMELINE_H
#define DSC_SIM_TIMELINE_H

#include "base/table.h"
#include "sim/cost/cost.h"
#include "sim/loop.h"

// Places a step: draft model and target start together when they overlap, else the target starts
// when the draft model is done. The step ends when both are done.
typedef struct dsc_timeline_step {
    double start_s, draft_end_s, target_start_s, target_end_s, end_s;
} dsc_timeline_step;

dsc_timeline_step dsc_timeline_place(double start_s, bool parallel, double draft_s,
                                     double target_s);

// Adds the columns: lane ("draft" or "target"), step, start_s, end_s, tokens (in the forward passes
// of the lane), and proposed, accepted and emitted tokens of the step. With cost `unit` a second is
// the time of a target call.
int dsc_timeline_columns(dsc_table *t, dsc_error *err);
// Adds the rows of a step that begins at *now_s: one for the draft model if it was called, and one
// for the target. *now_s becomes the end of the step.
int dsc_timeline_add(dsc_table *t, double *now_s, const dsc_cost *cost, const dsc_step_record *step,
                     dsc_error *err);

#endif

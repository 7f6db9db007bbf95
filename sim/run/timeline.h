// SPDX-License-Identifier: Apache-2.0
// When the models of a run are at work: the steps of a request one after the other, as a table with
// a row for each stretch of work.
#ifndef DSC_SIM_TIMELINE_H
#define DSC_SIM_TIMELINE_H

#include "base/table.h"
#include "sim/cost/cost.h"
#include "sim/loop.h"

// A step: draft model and target begin together when they overlap, else the target begins when the
// draft model is done. The step ends when both are.
typedef struct dsc_timeline_step {
    double start_s, draft_end_s, target_start_s, target_end_s, end_s;
} dsc_timeline_step;

DSC_API dsc_timeline_step dsc_timeline_place(double start_s, bool parallel, double draft_s,
                                             double target_s);

// Columns: lane ("draft" or "target"), step, start_s, end_s, tokens (in the lane's forward
// passes), and, of the whole step, proposed, accepted and emitted. In a unit cost a second is the
// time of a target call.
DSC_API int dsc_timeline_columns(dsc_table *t, dsc_error *err);
// Adds the rows of a step that begins at *now_s, which becomes its end: one for the draft model
// when it made a call, and one for the target.
DSC_API int dsc_timeline_add(dsc_table *t, double *now_s, const dsc_cost *cost,
                             const dsc_step_record *step, dsc_error *err);

#endif

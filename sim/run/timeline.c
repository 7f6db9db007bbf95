// SPDX-License-Identifier: Apache-2.0
// Timelines: start and end of the work of each model, by the cost model, step by step.
#include "sim/run/timeline.h"

#include <math.h>

dsc_timeline_step dsc_timeline_place(double start_s, bool parallel, double draft_s, double target_s)
{
    dsc_timeline_step s = {.start_s = start_s, .draft_end_s = start_s + draft_s};
    s.target_start_s = parallel ? start_s : s.draft_end_s;
    s.target_end_s = s.target_start_s + target_s;
    s.end_s = fmax(s.draft_end_s, s.target_end_s);
    return s;
}

static const dsc_column columns[] = {
    {"lane", DSC_CELL_TEXT, "draft or target: the model that works"},
    {"step", DSC_CELL_INT, "number of the step in the request, from 0"},
    {"start_s", DSC_CELL_REAL, "start of the work, by the cost model"},
    {"end_s", DSC_CELL_REAL, "end of the work, by the cost model"},
    {"tokens", DSC_CELL_INT, "tokens in the forward passes"},
    {"proposed", DSC_CELL_INT, "draft tokens that the target verifies in the step"},
    {"accepted", DSC_CELL_INT, "draft tokens of the step that were accepted"},
    {"emitted", DSC_CELL_INT, "output tokens of the step, the bonus token included"},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

int dsc_timeline_columns(dsc_table *t, dsc_error *err)
{
    return dsc_table_add_columns(t, columns, COLUMNS, err);
}

static int add_row(dsc_table *t, const char *lane, double start_s, double end_s, int64_t tokens,
                   const dsc_step_record *step, dsc_error *err)
{
    const dsc_cell cell[COLUMNS] = {dsc_cell_text(lane),
                                    dsc_cell_int(step->step),
                                    dsc_cell_real(start_s),
                                    dsc_cell_real(end_s),
                                    dsc_cell_int(tokens),
                                    dsc_cell_int(step->draft_tokens),
                                    dsc_cell_int(step->accepted_tokens),
                                    dsc_cell_int(step->emitted_tokens)};
    return dsc_table_add_row(t, cell, err);
}

int dsc_timeline_add(dsc_table *t, double *now_s, const dsc_cost *cost, const dsc_step_record *step,
                     dsc_error *err)
{
    int64_t calls = step->draft_calls;
    int64_t each = calls ? (step->draft_call_tokens + calls - 1) / calls : 0; // tokens in a call
    dsc_pass pass = {(double)each, (double)step->context, 1, false};
    double draft_s, target_s;
    int rc = dsc_cost_drafts(cost, pass, (double)step->target_call_tokens, (double)calls,
                             calls && !step->parallel, &draft_s, err);
    pass.tokens = (double)step->target_call_tokens;
    pass.again = step->parallel || !calls;
    if (!rc)
        rc = dsc_cost_target(cost, pass, &target_s, err);
    if (rc)
        return rc;
    dsc_timeline_step s = dsc_timeline_place(*now_s, step->parallel, draft_s, target_s);
    if (calls)
        rc = add_row(t, "draft", s.start_s, s.draft_end_s, step->draft_call_tokens, step, err);
    if (!rc)
        rc = add_row(t, "target", s.target_start_s, s.target_end_s, step->target_call_tokens, step,
                     err);
    *now_s = s.end_s;
    return rc;
}

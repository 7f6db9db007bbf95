// SPDX-License-Identifier: Apache-2.0
// The steps of a simulated server, run on the demo models: `draftscope live profile --schedule`
// measured the seconds in the table, served-steps-cost.tsv was measured by `draftscope live
// profile` on the same machine, and served-steps-schedule.jsonl is what was run. The steps are
// priced again here, so a change of the price shows.
#include "cli/validate/validate.h"
#include "sim/serve/serve_steps.h"

#include <math.h>
#include <stdlib.h>

typedef struct sums {
    double target_s, draft_s;
    int64_t steps;
} sums;

static int add_step(sums *s, const dsc_cost *cost, const dsc_serve_record *r, dsc_error *err)
{
    dsc_serve_step step;
    double target_s, draft_s;
    const dsc_serve_price price = {
        .cost = cost, .drafting = DSC_SERVE_DRAFT_EACH, .prefill_s = NAN};
    dsc_serve_record_sum(r, &step);
    int rc = dsc_serve_target_time(&price, &step, &target_s, err);
    if (!rc)
        rc = dsc_serve_draft_time(&price, &step, &draft_s, err);
    if (rc)
        return rc;
    s->target_s += target_s;
    s->draft_s += draft_s;
    s->steps++;
    return DSC_OK;
}

static int add_steps(sums *s, const dsc_cost *cost, const char *path, dsc_error *err)
{
    dsc_serve_steps *file;
    dsc_serve_record r = {0};
    bool more = true;
    int rc = dsc_serve_steps_open(&file, path, err);
    if (rc)
        return rc;
    while (!rc && !(rc = dsc_serve_steps_next(file, &r, &more, err)) && more)
        rc = add_step(s, cost, &r, err);
    dsc_serve_record_fini(&r);
    dsc_serve_steps_close(file);
    return rc;
}

static int begin(void *state, const validate_row *row, dsc_error *err)
{
    char *schedule = NULL, *table = NULL;
    dsc_buffer text = {0};
    dsc_cost cost = {0};
    int rc = validate_path(&schedule, row->folder, "served-steps-schedule.jsonl", err);
    if (!rc)
        rc = validate_path(&table, row->folder, "served-steps-cost.tsv", err);
    if (!rc)
        rc = dsc_buffer_printf(&text, err, "table:%s", table);
    if (!rc)
        rc = dsc_cost_parse(&cost, text.data, err);
    if (!rc)
        rc = add_steps(state, &cost, schedule, err);
    dsc_cost_fini(&cost);
    dsc_buffer_fini(&text);
    free(schedule);
    free(table);
    return rc;
}

static int predict(validate_figure *f, const validate_row *row, dsc_error *err)
{
    const sums *s = row->state;
    (void)err;
    if (validate_is(f, "total_s"))
        f->predicted = s->target_s + s->draft_s;
    else if (validate_is(f, "target_s"))
        f->predicted = s->target_s;
    else if (validate_is(f, "draft_s"))
        f->predicted = s->draft_s;
    else if (validate_is(f, "steps"))
        f->predicted = (double)s->steps;
    return DSC_OK;
}

const validate_row_type validate_steps = {
    .name = "served-steps",
    .summary = "steps of a simulated server, run on the demo models: their seconds in sum",
    .state_size = sizeof(sums),
    .begin = begin,
    .predict = predict,
};

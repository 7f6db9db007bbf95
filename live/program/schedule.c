// SPDX-License-Identifier: Apache-2.0
// Runs steps in the order of the schedule, round after round. A step is the target's pass over all
// of its sequences, then the draft model's passes for the next drafts, one token of each sequence
// that drafts, so that passes follow each other as they do in a server. Sequence i of a step has
// place i in the KV cache; contents and tokens do not matter to the time.
#include "live/program/schedule.h"

#include "base/file.h"
#include "base/order.h"
#include "live/program/bench.h"
#include "sim/serve/serve_steps.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { TARGET, DRAFT, SIDES };
// Runs of a step in every round that are not counted. A GPU records a pass and replays it only from
// its fourth run on (live/program/profile.c).
enum { WARM_UP_HOST = 1, WARM_UP_DEVICE = 3 };

// A step to run.
typedef struct stage {
    int64_t number, sequences, decode_tokens, prefill_tokens, longest;
    live_span *span;                 // [sequences] of the target's pass
    int32_t *passes, *draft_context; // [sequences]
    double predicted[SIDES];
    double *time[SIDES]; // [repeats] seconds
    int done;            // repeats so far
} stage;

typedef struct schedule {
    const live_schedule_options *o;
    live_bench bench[SIDES];
    live_bench_size size[SIDES];
    int64_t all, longest; // steps of the file; most draft passes of one
    stage *stage;         // [stages]
    size_t stages;
    int64_t vocab;
    live_span *work;        // [sequences] of a draft pass
    dsc_arena steps, lists; // of the schedule; of a step
} schedule;

// --- the file ------------------------------------------------------------------------------------

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

// Takes the sizes of a step's passes into account.
static void measure_record(schedule *s, const dsc_serve_record *r)
{
    live_bench_size *target = &s->size[TARGET], *draft = &s->size[DRAFT];
    int64_t rows = 0, outputs = 0, drafting = 0;
    for (int64_t n = 0; n < r->sequences; n++) {
        const int64_t tokens = r->list[DSC_STEPS_TOKENS][n],
                      passes = r->list[DSC_STEPS_DRAFT_PASSES][n];
        rows += tokens;
        outputs += r->list[DSC_STEPS_PREFILL][n] ? 1 : tokens;
        target->slots = larger(target->slots, r->list[DSC_STEPS_CONTEXT][n] + tokens);
        drafting += passes > 0;
        s->longest = larger(s->longest, passes);
        if (passes)
            draft->slots = larger(draft->slots, r->list[DSC_STEPS_DRAFT_CONTEXT][n] + passes);
    }
    target->rows = larger(target->rows, rows);
    target->outputs = larger(target->outputs, outputs);
    target->sequences = larger(target->sequences, r->sequences);
    draft->sequences = draft->rows = draft->outputs = larger(draft->sequences, drafting);
}

static int keep_record(schedule *s, const dsc_serve_record *r, dsc_error *err)
{
    const size_t n = (size_t)r->sequences, repeats = (size_t)s->o->repeats;
    stage *x = &s->stage[s->stages];
    *x = (stage){
        .number = r->number, .sequences = r->sequences, .predicted = {r->target_s, r->draft_s}};
    int rc = dsc_arena_new(&s->steps, &x->span, n, err);
    if (!rc)
        rc = dsc_arena_new(&s->steps, &x->passes, n, err);
    if (!rc)
        rc = dsc_arena_new(&s->steps, &x->draft_context, n, err);
    for (int side = 0; side < SIDES && !rc; side++)
        rc = dsc_arena_new(&s->steps, &x->time[side], repeats, err);
    if (rc)
        return rc;
    s->stages++;
    for (size_t i = 0; i < n; i++) {
        const bool prefill = r->list[DSC_STEPS_PREFILL][i] != 0;
        const int32_t tokens = (int32_t)r->list[DSC_STEPS_TOKENS][i];
        x->span[i] = (live_span){tokens, (int32_t)r->list[DSC_STEPS_CONTEXT][i], prefill};
        x->passes[i] = (int32_t)r->list[DSC_STEPS_DRAFT_PASSES][i];
        x->draft_context[i] = (int32_t)r->list[DSC_STEPS_DRAFT_CONTEXT][i];
        *(prefill ? &x->prefill_tokens : &x->decode_tokens) += tokens;
        x->longest = larger(x->longest, x->passes[i]);
    }
    return DSC_OK;
}

// Reads the file: first for its sizes, then, with `keep`, the steps to run.
static int read_file(schedule *s, bool keep, dsc_error *err)
{
    dsc_serve_steps *file;
    dsc_serve_record r = {0};
    bool more = true;
    int64_t at = 0;
    int rc = dsc_serve_steps_open(&file, s->o->path, err);
    if (rc)
        return rc;
    const int64_t kept = s->all < s->o->most ? s->all : s->o->most;
    while (!rc && !(rc = dsc_serve_steps_next(file, &r, &more, err)) && more) {
        if (!keep)
            measure_record(s, &r);
        else if ((int64_t)s->stages < kept && at == (int64_t)s->stages * s->all / kept)
            rc = keep_record(s, &r, err);
        at++;
    }
    s->all = at;
    dsc_serve_record_fini(&r);
    dsc_serve_steps_close(file);
    return rc;
}

// --- room ----------------------------------------------------------------------------------------

static int check_models(const schedule *s, dsc_error *err)
{
    const live_schedule_options *o = s->o;
    const live_weights *const model[SIDES] = {o->target, o->draft};
    if (!s->all)
        return dsc_fail(err, DSC_EINPUT, "%s: the schedule has no steps", o->path);
    if (!o->draft != !s->longest)
        return dsc_fail(err, DSC_EUSAGE, "%s: the schedule has %s", o->path,
                        s->longest ? "passes of a draft model: --draft names one"
                                   : "no passes of a draft model: leave --draft out");
    if (o->draft && live_config_is_head(&o->draft->config))
        return dsc_fail(
            err, DSC_EUSAGE,
            "--draft: the passes of a schedule are those of a draft model in batches; a "
            "head runs one sequence");
    for (int side = 0; side < SIDES; side++)
        if (model[side] && model[side]->config.positions &&
            s->size[side].slots > model[side]->config.positions)
            return dsc_fail(err, DSC_EUSAGE,
                            "%s: a sequence of %" PRId64
                            " tokens: the context window of the %s is %" PRId64,
                            o->path, s->size[side].slots, side ? "draft model" : "target",
                            model[side]->config.positions);
    return DSC_OK;
}

static int open_all(schedule *s, dsc_error *err)
{
    const live_schedule_options *o = s->o;
    struct stat before;
    const bool exists = stat(o->path, &before) == 0;
    int rc = read_file(s, false, err);
    if (!rc)
        rc = check_models(s, err);
    if (!rc)
        rc =
            dsc_arena_new(&s->steps, &s->stage, (size_t)(s->all < o->most ? s->all : o->most), err);
    if (!rc)
        rc = dsc_arena_new(&s->steps, &s->work, (size_t)s->size[TARGET].sequences, err);
    if (!rc)
        rc = read_file(s, true, err);
    if (!rc && exists) // the room is that of the first reading
        rc = dsc_check_unchanged(o->path, &before, err);
    s->vocab = o->target->config.vocab;
    if (!rc)
        rc =
            live_bench_open(&s->bench[TARGET], o->target, o->target, s->size[TARGET], o->seed, err);
    if (!rc && o->draft) {
        s->vocab = o->draft->config.vocab < s->vocab ? o->draft->config.vocab : s->vocab;
        rc = live_bench_open(&s->bench[DRAFT], o->draft, o->target, s->size[DRAFT], o->seed, err);
    }
    return rc;
}

// --- steps ---------------------------------------------------------------------------------------

// Draft pass `which` of a step, from 0: one token of each sequence whose draft is longer.
static int draft_pass(schedule *s, const stage *x, int64_t which, double *seconds, dsc_error *err)
{
    const live_batch *batch;
    size_t n = 0;
    for (int64_t i = 0; i < x->sequences; i++)
        if (x->passes[i] > which)
            s->work[n++] = (live_span){1, x->draft_context[i] + (int32_t)which, false};
    const int rc = live_spans_batch(&batch, &s->lists, s->work, n, s->vocab, err);
    return rc ? rc : live_bench_pass(&s->bench[DRAFT], batch, seconds, err);
}

static int run_stage(schedule *s, stage *x, bool counted, dsc_error *err)
{
    const live_batch *batch;
    double target_s = 0, draft_s = 0;
    dsc_arena_reset(&s->lists);
    int rc = live_spans_batch(&batch, &s->lists, x->span, (size_t)x->sequences, s->vocab, err);
    if (!rc)
        rc = live_bench_pass(&s->bench[TARGET], batch, &target_s, err);
    for (int64_t i = 0; i < x->longest && !rc; i++) {
        double seconds = 0;
        rc = draft_pass(s, x, i, &seconds, err);
        draft_s += seconds;
    }
    if (rc || !counted)
        return rc;
    x->time[TARGET][x->done] = target_s;
    x->time[DRAFT][x->done++] = draft_s;
    return DSC_OK;
}

// A step runs a few times in a row in every round, as the passes of a cost table do: the predicted
// times come from there.
static int run_turn(schedule *s, stage *x, dsc_error *err)
{
    const int warm = s->bench[TARGET].b->on_host ? WARM_UP_HOST : WARM_UP_DEVICE;
    const int to =
        x->done + LIVE_IN_A_ROW < s->o->repeats ? x->done + LIVE_IN_A_ROW : s->o->repeats;
    int rc = DSC_OK;
    for (int i = 0; i < warm && !rc; i++)
        rc = run_stage(s, x, false, err);
    while (x->done < to && !rc)
        rc = run_stage(s, x, true, err);
    return rc;
}

static int run_all(schedule *s, dsc_error *err)
{
    const live_schedule_options *o = s->o;
    const int rounds = (o->repeats + LIVE_IN_A_ROW - 1) / LIVE_IN_A_ROW;
    const int64_t total = (int64_t)s->stages * rounds;
    int64_t done = 0;
    int rc = DSC_OK;
    for (int round = 0; round < rounds && !rc; round++)
        for (size_t i = 0; i < s->stages && !rc; i++) {
            rc = run_turn(s, &s->stage[i], err);
            if (!rc && o->progress && o->progress(o->user, ++done, total) && done < total)
                rc = dsc_fail(err, DSC_EINTERRUPT, "interrupted");
        }
    return rc;
}

// --- the table -----------------------------------------------------------------------------------

static const dsc_column columns[] = {
    {"step", DSC_CELL_INT, "number of the step in the schedule"},
    {"sequences", DSC_CELL_INT, "sequences in the target's pass"},
    {"decode_tokens", DSC_CELL_INT, "tokens of sequences that decode, drafts included"},
    {"prefill_tokens", DSC_CELL_INT, "tokens of sequences that compute a part of their prompt"},
    {"draft_passes", DSC_CELL_INT, "passes of the draft model after the target's"},
    {"predicted_s", DSC_CELL_REAL, "predicted seconds of all passes, without the host's overhead"},
    {"measured_s", DSC_CELL_REAL, "measured_target_s + measured_draft_s"},
    {"measured_s_low", DSC_CELL_REAL, "first quartile of the repeats of all passes, seconds"},
    {"measured_s_high", DSC_CELL_REAL, "third quartile of the repeats of all passes, seconds"},
    {"predicted_target_s", DSC_CELL_REAL, "predicted seconds of the target's pass"},
    {"measured_target_s", DSC_CELL_REAL,
     "seconds of the target's pass, mean of the rounds' medians"},
    {"predicted_draft_s", DSC_CELL_REAL, "predicted seconds of the draft model's passes"},
    {"measured_draft_s", DSC_CELL_REAL,
     "seconds of the draft model's passes, mean of the rounds' medians"},
    {"error_percent", DSC_CELL_REAL, "100 (predicted_s - measured_s) / measured_s"},
    {"repeats", DSC_CELL_INT, "number of measurements"},
};

static int add_row(dsc_table *t, schedule *s, stage *x, live_schedule_totals *out, dsc_error *err)
{
    double *sum;
    const int n = x->done;
    const int rc = dsc_arena_new(&s->steps, &sum, (size_t)n, err);
    if (rc)
        return rc;
    for (int i = 0; i < n; i++)
        sum[i] = x->time[TARGET][i] + x->time[DRAFT][i];
    const double predicted = x->predicted[TARGET] + x->predicted[DRAFT];
    const double target = live_typical(x->time[TARGET], n), draft = live_typical(x->time[DRAFT], n);
    qsort(sum, (size_t)n, sizeof *sum, dsc_by_real);
    out->steps++;
    out->predicted_target_s += x->predicted[TARGET];
    out->predicted_draft_s += x->predicted[DRAFT];
    out->measured_target_s += target;
    out->measured_draft_s += draft;
    const dsc_cell cell[] = {dsc_cell_int(x->number),
                             dsc_cell_int(x->sequences),
                             dsc_cell_int(x->decode_tokens),
                             dsc_cell_int(x->prefill_tokens),
                             dsc_cell_int(x->longest),
                             dsc_cell_real(predicted),
                             dsc_cell_real(target + draft),
                             dsc_cell_real(live_quantile(sum, n, 0.25)),
                             dsc_cell_real(live_quantile(sum, n, 0.75)),
                             dsc_cell_real(x->predicted[TARGET]),
                             dsc_cell_real(target),
                             dsc_cell_real(x->predicted[DRAFT]),
                             dsc_cell_real(draft),
                             dsc_cell_real(100 * (predicted / (target + draft) - 1)),
                             dsc_cell_int(n)};
    return dsc_table_add_row(t, cell, err);
}

static int add_table(dsc_table *t, schedule *s, live_schedule_totals *out, dsc_error *err)
{
    int rc = dsc_table_add_columns(t, columns, sizeof columns / sizeof *columns, err);
    for (size_t i = 0; i < s->stages && !rc; i++)
        if (s->stage[i].done)
            rc = add_row(t, s, &s->stage[i], out, err);
    return rc;
}

int live_schedule(dsc_table *t, live_schedule_totals *out, const live_schedule_options *o,
                  dsc_error *err)
{
    schedule s = {.o = o};
    *out = (live_schedule_totals){0};
    int rc = open_all(&s, err);
    if (!rc)
        rc = run_all(&s, err);
    if (!rc || rc == DSC_EINTERRUPT) {
        dsc_error late;
        const int added = add_table(t, &s, out, &late);
        if (added) {
            *err = late;
            rc = added;
        }
    }
    out->all = s.all;
    live_bench_close(&s.bench[TARGET]);
    live_bench_close(&s.bench[DRAFT]);
    dsc_arena_fini(&s.steps);
    dsc_arena_fini(&s.lists);
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
// draftscope live profile: measures a cost table of the models on this machine, or the steps of a
// simulated server. Reads the options, calls live_profile (live/program/profile.h) or live_schedule
// (live/program/schedule.h) and writes the table.
#include "base/outfile.h"
#include "cli/guard.h"
#include "cli/result.h"
#include "live/program/live.h"
#include "live/program/pair.h"
#include "live/program/profile.h"
#include "live/program/schedule.h"

#include <stdio.h>
#include <stdlib.h>

enum { TOKENS, CONTEXT, BATCH, PREFILL, REPEATS, SCHEDULE, MAX_STEPS, AXES = PREFILL + 1 };
// clang-format off
static const dsc_option options[] = {
    {.name = "tokens", .kind = DSC_OPTION_INT, .metavar = "LIST", .initial = "1:128", .min = 1,
     .max = 1 << 16, .list = true,
     .help = "numbers of tokens of each sequence in a pass, as values and ranges a:b:step; a:b "
             "means a, b and the values 2, 3, 4, 6, 8, 12, ... between them"},
    {.name = "context", .kind = DSC_OPTION_INT, .metavar = "LIST", .initial = "0:1024", .min = 0,
     .max = 1 << 24, .list = true,
     .help = "context lengths: tokens of each sequence before the pass, as values and ranges; a:b "
             "means a, b and the values 64, 256, 1024, ... between them"},
    {CLI_OPTION_BATCH, .metavar = "LIST", .initial = "1", .max = 1 << 12,
     .help = "numbers of sequences in a pass, as values and ranges (see --tokens)"},
    {.name = "prefill-tokens", .kind = DSC_OPTION_INT, .metavar = "LIST", .initial = "16,64,256",
     .min = 0, .max = 1 << 20, .list = true,
     .help = "numbers of tokens of one more sequence's prompt in a pass, as values and ranges (see "
             "--tokens), measured at the ends of the other lists; 0: none"},
    {.name = "repeats", .kind = DSC_OPTION_INT, .metavar = "R", .initial = "9", .min = 1,
     .max = 100000,
     .help = "number of measurements of each pass or step, in rounds of three after uncounted "
             "passes; the result is the mean of the rounds' medians"},
    {.name = "schedule", .kind = DSC_OPTION_TEXT, .metavar = "STEPS",
     .help = "run the steps of a server that draftscope serve --schedule wrote, and compare their "
             "times with the predicted ones"},
    {.name = "max-steps", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "200", .min = 1,
     .max = 1000000,
     .help = "with --schedule: maximum number of steps to run, evenly spaced over the schedule"},
    {.name = "output", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "FILE.tsv",
     .help = "write the cost table to this file, for draftscope sim --cost table:FILE; or the "
             "table of steps"},
    CLI_OPTION_FORCE,
    CLI_OPTION_PROGRESS,
};
// clang-format on
// Sampling and context length do not affect the cost of a pass, so those model options are left
// out.
enum { MODEL_OPTIONS = LIVE_PAIR_TEMPERATURE };

// A grid can be kept from the first cell on.
static int on_progress(void *user, int64_t done, int64_t total)
{
    cli_set_patience(LIVE_PATIENCE_S);
    return cli_progress_step(user, done, total);
}

// Reads the axes into lists, which the grid uses.
static int read_grid(live_grid *g, int64_t *list[AXES], const dsc_option_value *value,
                     dsc_error *err)
{
    size_t count[AXES] = {0};
    int rc = DSC_OK;
    for (int i = 0; i < AXES && !rc; i++)
        rc =
            live_profile_points(&options[i], value[i].text, i != CONTEXT, &list[i], &count[i], err);
    if (rc)
        return rc;
    const bool none = list[PREFILL][0] == 0;
    *g = (live_grid){list[TOKENS],   list[CONTEXT], list[BATCH],          count[TOKENS],
                     count[CONTEXT], count[BATCH],  list[PREFILL] + none, count[PREFILL] - none};
    return DSC_OK;
}

// Options of the other kind of measurement.
static int check_options(const cli_call *call, dsc_error *err)
{
    const bool schedule = call->value[SCHEDULE].given;
    if (call->more[LIVE_PAIR_MIDDLE].given)
        return dsc_fail(err, DSC_EUSAGE,
                        "--middle: a cost table covers a target and a draft model only");
    for (int i = 0; i < AXES && schedule; i++)
        if (call->value[i].given)
            return dsc_fail(err, DSC_EUSAGE,
                            "--%s cannot be combined with --schedule, whose steps have their own "
                            "passes",
                            options[i].name);
    return call->value[MAX_STEPS].given && !schedule
               ? dsc_fail(err, DSC_EUSAGE, "--max-steps needs --schedule")
               : DSC_OK;
}

// An interruption, a lack of memory or a device that fails leaves a complete grid of fewer repeats
// or of fewer tokens, which is kept.
static int keep(const dsc_table *t, int rc, const cli_call *call, dsc_error *err)
{
    dsc_error late;
    if (!t->rows)
        return rc == DSC_EINTERRUPT ? dsc_fail(err, rc, "interrupted: nothing was written") : rc;
    const int written = cli_result_write(t, call, &late);
    if (written) {
        *err = late;
        return written;
    }
    const double most = dsc_table_real(t, t->rows - 1, 0);
    if (rc == DSC_EINTERRUPT)
        return dsc_fail(err, rc, "interrupted: passes of up to %.0f tokens are in %.500s", most,
                        call->out);
    if (rc == DSC_ENOMEM)
        err->status = DSC_EABSENT; // the device lacks the memory, as in a run
    return dsc_error_prefix(err, rc, "passes of up to %.0f tokens are in %.500s", most, call->out);
}

static int measure(const live_pair *p, const live_grid *g, const cli_call *call, dsc_error *err)
{
    cli_progress progress;
    dsc_table t = {0};
    live_profile_options o = {.target = p->weights[LIVE_TARGET],
                              .draft = p->weights[LIVE_DRAFT],
                              .grid = *g,
                              .repeats = (int)call->value[REPEATS].integer,
                              .progress = on_progress,
                              .user = &progress};
    int rc = cli_result_comments(&t, err);
    if (!rc)
        rc = live_pair_comments(&t, p, err);
    cli_progress_init(&progress, call->progress, "cells");
    if (!rc)
        rc = live_profile(&t, &o, err);
    cli_progress_end(&progress);
    const char *spread = dsc_table_get_comment(&t, "spread");
    if (!rc && spread)
        fprintf(stderr, "draftscope: note: %s\n", spread);
    if (!rc)
        rc = cli_result_write(&t, call, err);
    else if (rc == DSC_EINTERRUPT || rc == DSC_ENOMEM || rc == DSC_EDEVICE)
        rc = keep(&t, rc, call, err);
    dsc_table_fini(&t);
    return live_pair_failed(p, rc, err);
}

// --- a schedule ----------------------------------------------------------------------------------

static double error_percent(double predicted, double measured)
{
    return 100 * (predicted / measured - 1);
}

// One line on stderr, which the table has as a comment.
static int sum_up(dsc_table *t, const live_schedule_totals *x, dsc_error *err)
{
    char text[400], draft[120] = "";
    const double predicted = x->predicted_target_s + x->predicted_draft_s;
    const double measured = x->measured_target_s + x->measured_draft_s;
    if (x->measured_draft_s > 0)
        snprintf(draft, sizeof draft, ", draft model %+.1f %%",
                 error_percent(x->predicted_draft_s, x->measured_draft_s));
    snprintf(text, sizeof text,
             "%lld of %lld steps: predicted %.6g s, measured %.6g s, error %+.1f %% (target %+.1f "
             "%%%s)",
             (long long)x->steps, (long long)x->all, predicted, measured,
             error_percent(predicted, measured),
             error_percent(x->predicted_target_s, x->measured_target_s), draft);
    fprintf(stderr, "draftscope: %s\n", text);
    return dsc_table_comment(t, "total", text, err);
}

static int run_schedule(const live_pair *p, const cli_call *call, dsc_error *err)
{
    cli_progress progress;
    dsc_table t = {0};
    live_schedule_totals totals;
    const live_schedule_options o = {.path = call->value[SCHEDULE].text,
                                     .target = p->weights[LIVE_TARGET],
                                     .draft = p->weights[LIVE_DRAFT],
                                     .most = call->value[MAX_STEPS].integer,
                                     .repeats = (int)call->value[REPEATS].integer,
                                     .progress = on_progress,
                                     .user = &progress};
    int rc = cli_result_comments(&t, err);
    if (!rc)
        rc = live_pair_comments(&t, p, err);
    if (!rc)
        rc = dsc_table_comment(&t, "schedule", o.path, err);
    cli_progress_init(&progress, call->progress, "steps");
    if (!rc)
        rc = live_schedule(&t, &totals, &o, err);
    cli_progress_end(&progress);
    if (t.rows && (!rc || rc == DSC_EINTERRUPT)) {
        dsc_error late;
        int written = sum_up(&t, &totals, &late);
        if (!written)
            written = cli_result_write(&t, call, &late);
        if (written)
            *err = late;
        rc = written ? written : rc;
    }
    if (rc == DSC_EINTERRUPT)
        rc = dsc_fail(err, rc, "interrupted: %zu steps are %s%.500s", t.rows,
                      t.rows ? "in " : "measured, nothing was written", t.rows ? call->out : "");
    dsc_table_fini(&t);
    return live_pair_failed(p, rc, err);
}

// --- the command ---------------------------------------------------------------------------------

static int execute(const cli_call *call, dsc_error *err)
{
    const live_want want = {.draft = live_pair_has_draft(call->more)};
    live_pair pair = {0};
    live_grid grid = {0};
    int64_t *list[AXES] = {NULL};
    int rc = check_options(call, err);
    if (!rc)
        rc = read_grid(&grid, list, call->value, err);
    if (!rc)
        rc = dsc_outfile_check(call->out, call->force, err);
    if (!rc)
        rc = live_pair_read(&pair, call->more, &want, err);
    if (!rc)
        rc = live_pair_open(&pair, err);
    if (!rc)
        rc = call->value[SCHEDULE].given ? run_schedule(&pair, call, err)
                                         : measure(&pair, &grid, call, err);
    live_pair_close(&pair);
    for (int i = 0; i < AXES; i++)
        free(list[i]);
    return rc;
}

const cli_command live_cmd_profile = {
    .name = "profile",
    .summary = "measure forward-pass latency as a cost table",
    CLI_OPTIONS(options),
    .more = {"Models", live_pair_options, MODEL_OPTIONS},
    .usage = "live profile --target DIR [--draft DIR] [--schedule STEPS] -o FILE.tsv [OPTIONS]",
    .about = "Measures forward-pass latency by tokens, context length, batch size and prefill "
             "tokens, together with the device's memory bandwidth and multiplication rate. Use the "
             "table as --cost of draftscope sim, sweep, tune and serve, and draw it with "
             "draftscope plot cost. When "
             "interrupted, it keeps the tokens that were measured at every context and batch. "
             "Passes whose quartiles are more than 1.5x apart are measured up to three times as "
             "often; the comment 'spread' of the table counts them. With --schedule, runs the "
             "steps of a simulated server instead, each with its sequences, contexts, parts of "
             "prompts and draft passes, and prints predicted and measured times.",
    .what = "no argument",
    .needs_out = "-o FILE.tsv is required",
    .execute = execute,
};

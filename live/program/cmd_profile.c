// SPDX-License-Identifier: Apache-2.0
// draftscope live profile: measures a cost table of the models on this machine. Reads the options,
// calls live_profile (live/program/profile.h) and writes the table.
#include "base/outfile.h"
#include "cli/guard.h"
#include "cli/result.h"
#include "live/program/live.h"
#include "live/program/pair.h"
#include "live/program/profile.h"

#include <stdio.h>
#include <stdlib.h>

enum { TOKENS, CONTEXT, BATCH, REPEATS };
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
    {.name = "repeats", .kind = DSC_OPTION_INT, .metavar = "R", .initial = "9", .min = 1,
     .max = 100000,
     .help = "number of measurements of each pass, in rounds of three after three warm-up "
             "passes; the result is the mean of the rounds' medians"},
    {.name = "output", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "FILE.tsv",
     .help = "write the cost table to this file, for draftscope sim --cost table:FILE"},
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

// Reads the three axes into lists, which the grid uses.
static int read_grid(live_grid *g, int64_t *list[3], const dsc_option_value *value, dsc_error *err)
{
    static const int axis[] = {TOKENS, CONTEXT, BATCH};
    size_t count[3] = {0};
    int rc = DSC_OK;
    for (int i = 0; i < 3 && !rc; i++)
        rc = live_profile_points(&options[axis[i]], value[axis[i]].text, axis[i] != CONTEXT,
                                 &list[i], &count[i], err);
    *g = (live_grid){list[0], list[1], list[2], count[0], count[1], count[2]};
    return rc;
}

// An interruption or a lack of memory leaves a complete grid of fewer repeats or of fewer tokens,
// which is kept.
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
    err->status = DSC_EABSENT; // the device lacks the memory, as in a run
    return dsc_error_prefix(err, DSC_EABSENT, "passes of up to %.0f tokens are in %.500s", most,
                            call->out);
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
    else if (rc == DSC_EINTERRUPT || rc == DSC_ENOMEM)
        rc = keep(&t, rc, call, err);
    dsc_table_fini(&t);
    return live_pair_failed(p, rc, err);
}

static int execute(const cli_call *call, dsc_error *err)
{
    const live_want want = {.draft = live_pair_has_draft(call->more)};
    live_pair pair = {0};
    live_grid grid = {0};
    int64_t *list[3] = {NULL};
    int rc = call->more[LIVE_PAIR_MIDDLE].given
                 ? dsc_fail(err, DSC_EUSAGE,
                            "--middle: a cost table covers a target and a draft model only")
                 : read_grid(&grid, list, call->value, err);
    if (!rc)
        rc = dsc_outfile_check(call->out, call->force, err);
    if (!rc)
        rc = live_pair_read(&pair, call->more, &want, err);
    if (!rc)
        rc = live_pair_open(&pair, err);
    if (!rc)
        rc = measure(&pair, &grid, call, err);
    live_pair_close(&pair);
    for (int i = 0; i < 3; i++)
        free(list[i]);
    return rc;
}

const cli_command live_cmd_profile = {
    .name = "profile",
    .summary = "measure forward-pass latency as a cost table",
    CLI_OPTIONS(options),
    .more = {"Models", live_pair_options, MODEL_OPTIONS},
    .usage = "live profile --target DIR [--draft DIR] -o FILE.tsv [OPTIONS]",
    .about = "Measures forward-pass latency by tokens, context length and batch size, together "
             "with the device's memory bandwidth and multiplication rate. Use the table as --cost "
             "of draftscope sim, sweep and tune, and draw it with draftscope plot cost. When "
             "interrupted, it keeps the tokens that were measured at every context and batch. "
             "Passes whose quartiles are more than 1.5x apart are measured up to three times as "
             "often; the comment 'spread' of the table counts them.",
    .what = "no argument",
    .needs_out = "-o FILE.tsv is required",
    .execute = execute,
};

// SPDX-License-Identifier: Apache-2.0
// draftscope live profile: measures a cost table of the models on this machine. Reads the options,
// calls live_profile (live/program/profile.h) and writes the table.
#include "base/outfile.h"
#include "live/program/live.h"
#include "live/program/pair.h"
#include "live/program/profile.h"
#include "cli/guard.h"

#include <stdlib.h>

enum { TOKENS, CONTEXT, BATCH, REPEATS, OUT, FORCE, PROGRESS, OPTIONS };
// clang-format off
static const dsc_option options[OPTIONS] = {
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
static const char usage[] = "live profile --target DIR [--draft DIR] -o FILE.tsv [OPTIONS]";
static const char about[] =
    "Measures forward-pass latency by tokens, context length and batch size, together with the "
    "device's memory bandwidth and multiplication rate. Use the table as --cost of draftscope sim, "
    "sweep and tune, and draw it with draftscope plot cost. When interrupted, it keeps the tokens "
    "that were measured at every context and batch.";
// Sampling and context length do not affect the cost of a pass, so those model options are left
// out.
enum { MODEL_OPTIONS = LIVE_PAIR_TEMPERATURE };

static int on_progress(void *user, int64_t done, int64_t total)
{
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

static int add_comments(dsc_table *t, const live_pair *p, dsc_error *err)
{
    int rc = dsc_table_comment(t, "draftscope", PACKAGE_VERSION, err);
    if (!rc)
        rc = dsc_table_comment(t, "command", cli_command_line(), err);
    return rc ? rc : live_pair_comments(t, p, err);
}

static int write_table(const dsc_table *t, dsc_outfile *f, dsc_error *err)
{
    dsc_table_write_tsv_head(t, f->stream);
    for (size_t i = 0; i < t->rows; i++)
        dsc_table_write_tsv_row(t, i, f->stream);
    return dsc_outfile_commit(f, err);
}

// An interruption or a lack of memory leaves a complete grid of fewer repeats or of fewer tokens,
// which is kept.
static int keep(const dsc_table *t, int rc, const char *path, dsc_outfile *f, dsc_error *err)
{
    dsc_error late;
    if (!t->rows)
        return rc == DSC_EINTERRUPT ? dsc_fail(err, rc, "interrupted: nothing was written") : rc;
    const int written = write_table(t, f, &late);
    if (written) {
        *err = late;
        return written;
    }
    const double most = dsc_table_real(t, t->rows - 1, 0);
    if (rc == DSC_EINTERRUPT)
        return dsc_fail(err, rc, "interrupted: passes of up to %.0f tokens are in %.500s", most,
                        path);
    err->status = DSC_EABSENT; // the device lacks the memory, as in a run
    return dsc_error_prefix(err, DSC_EABSENT, "passes of up to %.0f tokens are in %.500s", most,
                            path);
}

static int measure(const live_pair *p, const live_grid *g, const dsc_option_value *value,
                   dsc_outfile *f, dsc_error *err)
{
    cli_progress progress;
    dsc_table t = {0};
    live_profile_options o = {.target = p->weights[LIVE_TARGET],
                              .draft = p->weights[LIVE_DRAFT],
                              .grid = *g,
                              .repeats = (int)value[REPEATS].integer,
                              .progress = on_progress,
                              .user = &progress};
    int rc = add_comments(&t, p, err);
    cli_progress_init(&progress, value[PROGRESS].integer, "cells");
    cli_set_patience(LIVE_PATIENCE_S);
    if (!rc)
        rc = dsc_outfile_open(f, value[OUT].text, value[FORCE].given, err);
    if (!rc)
        rc = live_profile(&t, &o, err);
    cli_progress_end(&progress);
    if (!rc)
        rc = write_table(&t, f, err);
    else if (rc == DSC_EINTERRUPT || rc == DSC_ENOMEM)
        rc = keep(&t, rc, value[OUT].text, f, err);
    dsc_table_fini(&t);
    return live_pair_failed(p, rc, err);
}

static int profile(const dsc_option_value *value, const dsc_option_value *models, dsc_error *err)
{
    const live_want want = {.draft = live_pair_has_draft(models)};
    live_pair pair = {0};
    live_grid grid = {0};
    int64_t *list[3] = {NULL};
    dsc_outfile file = {0};
    int rc = read_grid(&grid, list, value, err);
    if (!rc)
        rc = dsc_outfile_check(value[OUT].text, value[FORCE].given, err);
    if (!rc)
        rc = live_pair_read(&pair, models, &want, err);
    if (!rc)
        rc = live_pair_open(&pair, err);
    if (!rc)
        rc = measure(&pair, &grid, value, &file, err);
    dsc_outfile_abort(&file);
    live_pair_close(&pair);
    for (int i = 0; i < 3; i++)
        free(list[i]);
    return rc;
}

static int run(int argc, char **argv, dsc_error *err)
{
    const cli_help_section help[] = {{"Options", options, OPTIONS},
                                     {"Models", live_pair_options, MODEL_OPTIONS}};
    if (cli_asks_help(argc, argv)) {
        cli_print_help(usage, about, help, 2);
        return DSC_OK;
    }
    dsc_option_value value[OPTIONS], models[LIVE_PAIR_OPTIONS] = {[LIVE_PAIR_TOP_P] = {.real = 1}};
    dsc_option_set sets[] = {{.table = options, .count = OPTIONS, .value = value},
                             {.table = live_pair_options, .count = MODEL_OPTIONS, .value = models}};
    size_t words;
    int rc = cli_parse(sets, 2, argc, argv, &words, err);
    if (!rc)
        rc = cli_check_positionals(words, 0, 0, "no argument", err);
    if (!rc && models[LIVE_PAIR_MIDDLE].given)
        rc = dsc_fail(err, DSC_EUSAGE,
                      "--middle: a cost table covers a target and a draft model only");
    if (!rc && (!value[OUT].text || !*value[OUT].text))
        rc = dsc_fail(err, DSC_EUSAGE, "-o FILE.tsv is required");
    return rc ? rc : profile(value, models, err);
}

const cli_command live_cmd_profile = {
    .name = "profile",
    .summary = "measure forward-pass latency as a cost table",
    .run = run,
    .option = options,
    .options = OPTIONS,
};

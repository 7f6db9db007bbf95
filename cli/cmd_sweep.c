// SPDX-License-Identifier: Apache-2.0
// draftscope sweep: a grid of configurations over a trace, into a table.
#include "cli/simulate.h"
#include "sim/sweep.h"

#include <string.h>

enum {
    METHOD,
    OUT,
    RULE,
    COST,
    SEED,
    THREADS,
    ENGINE,
    BLOCK,
    SHARD,
    REQUEST_BLOCK,
    PROGRESS,
    FORCE,
    OPTIONS
};
// clang-format off
static const dsc_option options[OPTIONS] = {
    {.name = "method", .kind = DSC_OPTION_TEXT, .metavar = "NAME", .help = "drafting method"},
    {.name = "out", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "FILE",
     .help = "result table: JSON lines when the name ends in .jsonl, else TSV"},
    {.name = "rule", .kind = DSC_OPTION_TEXT, .metavar = "NAME", .initial = "greedy",
     .help = "verification rule"},
    CLI_OPTION_COST,
    CLI_OPTION_SEED,
    CLI_OPTION_THREADS,
    {.name = "engine", .kind = DSC_OPTION_CHOICE, .choices = "auto|loop|expect", .initial = "auto",
     .help = "loop: step by step; expect: all draft lengths in one pass, without draws"},
    {.name = "block", .kind = DSC_OPTION_INT, .metavar = "C", .initial = "0", .min = 0,
     .max = 1000000,
     .help = "configurations per pass over the trace, what an interruption can cost; 0: chosen"},
    {.name = "shard", .kind = DSC_OPTION_TEXT, .metavar = "I/N",
     .help = "counts only share I of N of the grid and the trace, for draftscope merge; I from 1"},
    {.name = "request-block", .kind = DSC_OPTION_INT, .metavar = "R", .initial = "0", .min = 0,
     .max = INT64_MAX, .help = "with --shard: requests that stay together; 0: chosen"},
    CLI_OPTION_PROGRESS,
    CLI_OPTION_FORCE,
};
// clang-format on
static const char usage[] = "sweep TRACE --method NAME [--PARAMETER LIST]... -o FILE [OPTIONS]";
static const char about[] =
    "Replays a trace with every combination of the given parameter values. Each parameter of the "
    "method takes a list: values and ranges first:last[:step], joined by commas (1:8, 4,8,16:32:4, "
    "paper,code). Finished configurations are kept in FILE.part while it runs; after an "
    "interruption "
    "(Ctrl-C, kill) the same command goes on from there. With --shard I/N, N processes, on any "
    "machines, do a share each, and draftscope merge adds up what they wrote.";

// What changes no row of the result.
static const char *const without[] = {"out",           "threads",  "engine", "block", "shard",
                                      "request-block", "progress", "force",  NULL};

typedef struct context {
    cli_progress progress;
    const char *what; // is done one after the other
} context;

static int on_progress(void *user, int64_t done, int64_t total)
{
    return cli_progress_step(&((context *)user)->progress, done, total);
}

static void on_resume(void *user, size_t done, size_t total)
{
    fprintf(stderr, "draftscope: going on after %zu of %zu %s\n", done, total,
            ((context *)user)->what);
}

// The sweep in words, so that a part file is taken up by the one it belongs to only.
static int describe(dsc_table *comments, const dsc_trace *trace, const dsc_grid *grid,
                    const dsc_option_value *list, const dsc_sweep_options *o, dsc_error *err)
{
    dsc_buffer b = {0};
    dsc_engine_choice engine;
    int rc = dsc_grid_words(&b, grid->drafter, list, err);
    if (!rc)
        rc = dsc_table_comment(comments, "grid", b.data, err);
    dsc_buffer_fini(&b);
    if (!rc && o->run.rule != &dsc_verifier_greedy)
        rc = dsc_table_comment(comments, "rule", o->run.rule->name, err);
    if (!rc)
        rc = dsc_sweep_choose(trace, grid, o, &engine, err);
    if (!rc && engine.expected)
        rc = dsc_table_comment(comments, "engine", engine.why, err);
    return rc;
}

// --shard, --block and --request-block. No shards: *split is zero.
static int read_split(dsc_split *split, const dsc_option_value *value, dsc_error *err)
{
    *split = (dsc_split){.configuration_block = value[BLOCK].integer,
                         .request_block = value[REQUEST_BLOCK].integer};
    if (value[SHARD].given)
        return dsc_split_shard(split, value[SHARD].text, err);
    return value[REQUEST_BLOCK].given
               ? dsc_fail(err, DSC_EUSAGE, "--request-block goes with --shard I/N")
               : DSC_OK;
}

static int sweep(const dsc_trace *trace, const dsc_grid *grid, const dsc_option_value *value,
                 const dsc_option_value *list, dsc_error *err)
{
    dsc_split split;
    context c = {.what = value[SHARD].given ? "cells" : "configurations"};
    dsc_table comments = {0};
    uint64_t seed = (uint64_t)value[SEED].integer;
    dsc_sweep_options o = {
        .run = {.engine = (dsc_engine)value[ENGINE].integer,
                .threads = cli_threads(value[THREADS].integer),
                .seed = seed,
                .progress = on_progress,
                .user = &c},
        .block = (size_t)value[BLOCK].integer,
        .force = value[FORCE].given,
        .jsonl = cli_ends_with(value[OUT].text, ".jsonl"),
        .resumed = on_resume,
    };
    int rc = read_split(&split, value, err);
    o.run.rule = rc ? NULL : dsc_verifier_find(value[RULE].text, err);
    if (!rc)
        rc = o.run.rule ? dsc_cost_parse(&o.cost, value[COST].text, err) : DSC_EUSAGE;
    if (!rc)
        rc = cli_comments(&comments, trace, seed, value[COST].text, err);
    if (!rc)
        rc = describe(&comments, trace, grid, list, &o, err);
    if (!rc)
        rc = cli_note_missing_references(trace, NULL, grid->drafter, list, err);
    cli_progress_init(&c.progress, value[PROGRESS].integer,
                      split.shards ? "request-configurations" : "token-configurations");
    cli_catch_signals();
    if (!rc && split.shards)
        rc = dsc_sweep_shard(trace, grid, &comments, &split, value[OUT].text, &o, err);
    else if (!rc)
        rc = dsc_sweep(trace, grid, &comments, value[OUT].text, &o, err);
    cli_progress_end(&c.progress);
    if (rc == DSC_EINTERRUPT)
        dsc_fail(err, rc, "interrupted: finished %s are in %s.part; the same command goes on",
                 c.what, value[OUT].text);
    dsc_table_fini(&comments);
    return rc;
}

static int run(int argc, char **argv, dsc_error *err)
{
    if (cli_asks_help(argc, argv)) {
        cli_print_method_help(usage, about, options, OPTIONS, false, argc, argv);
        return DSC_OK;
    }
    const dsc_drafter_type *drafter;
    dsc_option_value value[OPTIONS], list[DSC_MAX_PARAMETERS];
    size_t words;
    int rc = cli_find_method(argc, argv, &drafter, err);
    if (rc)
        return rc;
    dsc_option_set sets[] = {{options, OPTIONS, value, false},
                             {drafter->option, drafter->option_count, list, true}};
    rc = dsc_options_parse(sets, 2, argc, argv, &words, err);
    if (!rc)
        rc = cli_check_positionals(words, 1, 1, "one trace", err);
    if (!rc && (!value[OUT].text || !*value[OUT].text))
        rc = dsc_fail(err, DSC_EUSAGE, "-o FILE expected");
    if (!rc)
        rc = cli_canonical_command("sweep", argv[0], sets, 2, without, err);
    if (rc)
        return rc;
    dsc_grid grid;
    dsc_trace *trace;
    rc = dsc_grid_init(&grid, drafter, list, err);
    if (rc)
        return rc;
    rc = dsc_trace_open(&trace, argv[0], err);
    if (!rc) {
        rc = sweep(trace, &grid, value, list, err);
        dsc_trace_close(trace);
    }
    dsc_grid_fini(&grid);
    return rc;
}

const cli_command cli_sweep = {"sweep", "replay a trace with a grid of configurations", run};

// SPDX-License-Identifier: Apache-2.0
// draftscope sweep: runs a grid of configurations over a trace or a synthetic model and writes a
// result table with a row per configuration; with --shard it counts one share of the grid.
#include "cli/simulate.h"
#include "cli/workload.h"
#include "sim/sweep/sweep.h"

#include <stdlib.h>
#include <string.h>

enum {
    METHOD,
    OUT,
    COST,
    SEED,
    THREADS,
    ENGINE,
    BATCH,
    BLOCK,
    SHARD,
    REQUEST_BLOCK,
    PROGRESS,
    FORCE,
    OPTIONS
};
// clang-format off
static const dsc_option options[OPTIONS] = {
    {.name = "method", .kind = DSC_OPTION_TEXT, .metavar = "NAME[,NAME...]",
     .help = "drafting methods (see: draftscope list methods)"},
    {.name = "output", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "FILE",
     .help = "result table: JSON lines when the name ends in .jsonl, else TSV"},
    CLI_OPTION_COST,
    CLI_OPTION_SEED,
    CLI_OPTION_THREADS,
    {.name = "engine", .kind = DSC_OPTION_CHOICE, .choices = "auto|loop|expect", .initial = "auto",
     .help = "loop: run step by step; expect: all draft lengths in one pass (no Monte Carlo)"},
    {CLI_OPTION_BATCH, .metavar = "LIST", .max = DSC_MAX_BATCH,
     .help = "number of sequences that run together; the table has a row for each"},
    {.name = "block", .kind = DSC_OPTION_INT, .metavar = "C", .initial = "0", .min = 0,
     .max = 1000000,
     .help = "number of configurations per pass over the trace, which an interruption can lose; 0: "
             "automatic"},
    {.name = "shard", .kind = DSC_OPTION_TEXT, .metavar = "I/N",
     .help = "compute share I of N of the grid and the trace, I from 1; merge joins the shares"},
    {.name = "request-block", .kind = DSC_OPTION_INT, .metavar = "R", .initial = "0", .min = 0,
     .max = INT64_MAX, .help = "number of requests per unit of work, with --shard; 0: automatic"},
    CLI_OPTION_PROGRESS,
    CLI_OPTION_FORCE,
};
// clang-format on
static const char usage[] =
    "sweep TRACE --method NAME[,NAME...] [--PARAMETER LIST]... -o FILE [OPTIONS]";
static const char about[] =
    "Runs every combination of the given parameter values over a trace or the output of a "
    "synthetic model. Each parameter of a method takes a list: values and ranges "
    "first:last[:step], joined by commas (1:8, 1..8, 1-8, 4,8,16:32:4, paper,code). Several "
    "methods and rules make one table; a parameter is then set for all methods that have it, or, "
    "as --METHOD.PARAMETER, for one. Finished configurations are kept in FILE.part while it runs; "
    "after an interruption (Ctrl-C, kill) the same command continues. With --shard I/N each of N "
    "processes, on any machines, computes one share, and draftscope merge joins their files.";

// These options change no row of the result.
static const char *const without[] = {"output",        "threads",  "engine", "block", "shard",
                                      "request-block", "progress", "force",  NULL};

typedef struct context {
    cli_progress progress; // the first field, as the user of cli_progress_step
    const char *what;      // the units that progress counts
} context;

static void on_resume(void *user, size_t done, size_t total)
{
    fprintf(stderr, "draftscope: going on after %zu of %zu %s\n", done, total,
            ((context *)user)->what);
}

// Writes down which grids are computed as expectations, and why.
static int describe_engine(dsc_table *comments, const dsc_trace *trace, const dsc_grids *grids,
                           const dsc_sweep_options *o, dsc_error *err)
{
    dsc_buffer b = {0};
    int rc = DSC_OK;
    for (size_t i = 0; i < grids->count && !rc; i++) {
        const dsc_grid *g = &grids->grid[i];
        dsc_engine_choice engine;
        rc = dsc_sweep_choose(trace, g, o, &engine, err);
        if (rc || !engine.expected)
            continue;
        cli_note_temperature(trace, g->drafter, &engine);
        rc = grids->count == 1 ? dsc_buffer_puts(&b, engine.why, err)
                               : dsc_buffer_printf(&b, err, "%s%s %s: %s", b.length ? "; " : "",
                                                   g->drafter->name, g->rule->name, engine.why);
    }
    if (!rc && b.length)
        rc = dsc_table_comment(comments, "engine", b.data, err);
    dsc_buffer_fini(&b);
    return rc;
}

// Describes the sweep in the comments: a part file is continued only by the sweep that it belongs
// to.
static int describe(dsc_table *comments, const dsc_trace *trace, const dsc_grids *grids,
                    const dsc_sweep_options *o, dsc_error *err)
{
    dsc_buffer b = {0};
    int rc = dsc_grids_words(&b, grids, err);
    if (!rc)
        rc = dsc_table_comment(comments, "grid", b.data, err);
    dsc_buffer_fini(&b);
    return rc ? rc : describe_engine(comments, trace, grids, o, err);
}

// Reads --shard, --block and --request-block; without --shard *split has no shards.
static int read_split(dsc_split *split, const dsc_option_value *value, dsc_error *err)
{
    *split = (dsc_split){.configuration_block = value[BLOCK].integer,
                         .request_block = value[REQUEST_BLOCK].integer};
    if (value[SHARD].given)
        return dsc_split_shard(split, value[SHARD].text, err);
    return value[REQUEST_BLOCK].given
               ? dsc_fail(err, DSC_EUSAGE, "--request-block requires --shard I/N")
               : DSC_OK;
}

// The parsed command line.
typedef struct request {
    const dsc_drafter_type *method[CLI_MAX_METHODS];
    size_t methods;
    dsc_option_value value[OPTIONS], load[CLI_WORKLOAD_OPTIONS];
    dsc_option_value list[CLI_MAX_METHODS][DSC_MAX_PARAMETERS];
} request;

// The grid of a method with a rule. One that does not fit is left out, with a note, when there may
// be others (`left_out` is not NULL).
static int add_grid(dsc_grids *grids, const dsc_trace *trace, const request *q, size_t method,
                    const dsc_verifier_type *rule, dsc_buffer *left_out, const dsc_sweep_options *o,
                    dsc_error *err)
{
    dsc_grid g;
    dsc_engine_choice engine;
    int rc = dsc_grid_init(&g, q->method[method], rule, q->list[method], err);
    if (rc)
        return rc;
    rc = dsc_sweep_choose(trace, &g, o, &engine, err);
    if (!rc)
        return dsc_grids_add(grids, &g, err);
    dsc_grid_fini(&g);
    if (rc != DSC_EUSAGE || !left_out)
        return rc;
    return dsc_buffer_printf(left_out, err, "draftscope: left out: %s\n", err->message);
}

// Makes the grids: every method with every rule.
static int make_grids(dsc_grids *grids, const dsc_trace *trace, const request *q,
                      const cli_workload *models, const dsc_sweep_options *o, dsc_error *err)
{
    const char *rules = q->load[CLI_WORKLOAD_RULE].text;
    bool several = q->methods > 1 || (rules && strchr(rules, ','));
    dsc_buffer left_out = {0};
    int rc = DSC_OK;
    for (size_t m = 0; m < q->methods && !rc; m++) {
        size_t n = 0;
        for (const char *at = rules; !rc && (at || !rules);
             at = rules && at[n] ? at + n + 1 : NULL) {
            char name[64] = "";
            n = rules ? strcspn(at, ",") : 0;
            snprintf(name, sizeof name, "%.*s", (int)n, rules ? at : "");
            const dsc_verifier_type *rule =
                cli_workload_rule(models, trace, rules ? name : NULL, q->method[m], err);
            rc = rule ? add_grid(grids, trace, q, m, rule, several ? &left_out : NULL, o, err)
                      : DSC_EUSAGE;
            if (!rules)
                break;
        }
    }
    if (!rc && !grids->count) {
        dsc_error last = *err;
        rc = dsc_fail(err, DSC_EUSAGE, "no valid (method, rule) combination. First problem: %.900s",
                      last.message);
    } else if (!rc && left_out.length) {
        fputs(left_out.data, stderr);
    }
    dsc_buffer_fini(&left_out);
    return rc;
}

static int comment(dsc_table *comments, const dsc_trace *trace, const request *q,
                   const cli_workload *models, const dsc_grids *grids, const dsc_sweep_options *o,
                   dsc_error *err)
{
    int rc = cli_comments(comments, trace, o->run.seed, q->value[COST].text, err);
    if (!rc)
        rc = cli_workload_comments(comments, q->load, err);
    if (!rc && o->cost.note[0])
        rc = dsc_table_comment(comments, "cost_note", o->cost.note, err);
    if (!rc && o->batches)
        rc = dsc_table_comment(comments, "batch", q->value[BATCH].text, err);
    if (!rc)
        rc = describe(comments, trace, grids, o, err);
    for (size_t m = 0; m < q->methods && !rc; m++)
        rc = cli_note_missing_references(trace, models->target, q->method[m], q->list[m], err);
    return rc;
}

static int sweep(const dsc_trace *trace, const request *q, dsc_error *err)
{
    const dsc_option_value *value = q->value;
    dsc_split split;
    cli_workload models;
    dsc_grids grids = {0};
    dsc_table comments = {0};
    context c = {.what = value[SHARD].given ? "cells" : "configurations"};
    dsc_sweep_options o = {
        .run = {.engine = (dsc_engine)value[ENGINE].integer,
                .threads = cli_threads(value[THREADS].integer),
                .seed = (uint64_t)value[SEED].integer,
                .workload = &models.load,
                .progress = cli_progress_step,
                .user = &c},
        .block = (size_t)value[BLOCK].integer,
        .force = value[FORCE].given,
        .jsonl = cli_ends_with(value[OUT].text, ".jsonl"),
        .resumed = on_resume,
    };
    int64_t *batch = NULL;
    int rc = read_split(&split, value, err);
    if (!rc && value[BATCH].given)
        rc = dsc_option_list(&options[BATCH], value[BATCH].text, &batch, &o.batches, err);
    o.batch = batch;
    if (!rc)
        rc = dsc_cost_parse(&o.cost, value[COST].text, err);
    o.run.widths = !rc && !o.cost.type->linear;
    if (!rc)
        rc = cli_workload_make(&models, q->load, q->method, q->methods, trace != NULL, err);
    if (rc) {
        dsc_cost_fini(&o.cost);
        free(batch);
        return rc;
    }
    rc = make_grids(&grids, trace, q, &models, &o, err);
    if (!rc)
        rc = comment(&comments, trace, q, &models, &grids, &o, err);
    cli_progress_init(&c.progress, value[PROGRESS].integer,
                      split.shards ? "request-configurations" : "token-configurations");
    if (!rc && split.shards)
        rc = dsc_sweep_shard(trace, &grids, &comments, &split, value[OUT].text, &o, err);
    else if (!rc)
        rc = dsc_sweep(trace, &grids, &comments, value[OUT].text, &o, err);
    cli_progress_end(&c.progress);
    if (rc == DSC_EINTERRUPT)
        dsc_fail(err, rc, "interrupted: finished %s are in %s.part; the same command goes on",
                 c.what, value[OUT].text);
    dsc_cost_fini(&o.cost);
    free(batch);
    dsc_table_fini(&comments);
    dsc_grids_fini(&grids);
    cli_workload_free(&models);
    return rc;
}

static int parse(request *q, int argc, char **argv, size_t *words, dsc_error *err)
{
    dsc_option_set sets[2 + CLI_MAX_METHODS] = {
        {.table = options, .count = OPTIONS, .value = q->value},
        {.table = cli_workload_options, .count = CLI_WORKLOAD_OPTIONS, .value = q->load},
    };
    int rc = cli_find_methods(sets, 2, argc, argv, q->method, &q->methods, err);
    if (rc)
        return rc;
    for (size_t m = 0; m < q->methods; m++) {
        const dsc_drafter_type *d = q->method[m];
        sets[2 + m] = (dsc_option_set){.table = d->option,
                                       .count = d->option_count,
                                       .value = q->list[m],
                                       .lists = true,
                                       .owner = q->methods > 1 ? d->name : NULL,
                                       .synonyms = q->methods > 1 ? d->synonyms : NULL};
    }
    rc = cli_parse(sets, 2 + q->methods, argc, argv, words, err);
    for (size_t m = 0; m < q->methods && !rc; m++)
        cli_apply_preset(q->value[METHOD].text, q->method[m], q->list[m]);
    if (!rc)
        rc = cli_check_positionals(*words, 0, 1, "one trace", err);
    if (!rc && (!q->value[OUT].text || !*q->value[OUT].text))
        rc = dsc_fail(err, DSC_EUSAGE, "-o FILE expected");
    return rc ? rc
              : cli_canonical_command("sweep", *words ? argv[0] : NULL, sets, 2 + q->methods,
                                      without, err);
}

static int run(int argc, char **argv, dsc_error *err)
{
    if (cli_asks_help(argc, argv)) {
        const cli_help_section own[] = {{"Options", options, OPTIONS},
                                        {"Models", cli_workload_options, CLI_WORKLOAD_OPTIONS}};
        cli_print_method_help(usage, about, own, 2, argc, argv);
        return DSC_OK;
    }
    request q;
    size_t words;
    dsc_trace *trace = NULL;
    int rc = parse(&q, argc, argv, &words, err);
    if (!rc && words)
        rc = dsc_trace_open(&trace, argv[0], err);
    if (!rc)
        rc = sweep(trace, &q, err);
    dsc_trace_close(trace);
    return rc;
}

const cli_command cli_sweep = {
    .name = "sweep",
    .summary = "run a grid of configurations over a trace or a synthetic model",
    .run = run,
    .option = options,
    .options = OPTIONS,
};

// SPDX-License-Identifier: Apache-2.0
// draftscope sweep: runs a grid of configurations over a trace or a synthetic model and writes a
// result table with a row per configuration; with --shard it counts one share of the grid.
#include "cli/result.h"
#include "cli/simulate.h"
#include "sim/rule_text.h"
#include "sim/sweep/sweep.h"

#include <string.h>
#include <unistd.h>

enum { METHOD, OUT, JSON, COST, SEED, THREADS, ENGINE, BATCH, BLOCK, SHARD, REQUEST_BLOCK };
// clang-format off
static const dsc_option options[] = {
    {.name = "method", .kind = DSC_OPTION_TEXT, .metavar = "NAME[,NAME...]",
     .help = "drafting methods (see: draftscope list methods)"},
    {.name = "output", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "FILE",
     .help = "result table: JSON lines when the name ends in .jsonl, else TSV; - is standard "
             "output"},
    {.name = "json", .kind = DSC_OPTION_FLAG,
     .help = "JSON lines instead of TSV; without -o they are printed"},
    CLI_OPTION_COST,
    CLI_OPTION_SEED,
    CLI_OPTION_THREADS,
    {.name = "evaluate", .kind = DSC_OPTION_CHOICE, .choices = "auto|loop|expect",
     .initial = "auto",
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
    CLI_OPTION_BY,
    CLI_OPTION_PROGRESS,
    CLI_OPTION_FORCE,
};
// clang-format on
// These options change no row of the result.
static const char *const without[] = {"output", "json",          "threads",  "evaluate", "block",
                                      "shard",  "request-block", "progress", "force",    NULL};

typedef struct context {
    cli_simulation s; // the first field, as the user of dsc_sweep
    const cli_call *call;
    const char *what; // the units that progress counts
    dsc_sweep_options options;
    dsc_grids grids;
} context;

static void on_resume(void *user, size_t done, size_t total)
{
    context *c = user;
    cli_progress_resume(&c->s.progress, done, total, c->what);
}

// Writes down which grids are computed as expectations, and why.
static int describe_engine(dsc_table *comments, const context *c, dsc_error *err)
{
    dsc_buffer b = {0};
    int rc = DSC_OK;
    for (size_t i = 0; i < c->grids.count && !rc; i++) {
        const dsc_grid *g = &c->grids.grid[i];
        dsc_engine_choice engine;
        rc = dsc_sweep_choose(c->s.trace, g, &c->options, &engine, err);
        if (rc || !engine.expected)
            continue;
        cli_note_temperature(c->s.trace, g->drafter, &engine);
        rc = c->grids.count == 1 ? dsc_buffer_puts(&b, engine.why, err)
                                 : dsc_buffer_printf(&b, err, "%s%s %s: %s", b.length ? "; " : "",
                                                     g->drafter->name, g->rule->name, engine.why);
    }
    if (!rc && b.length)
        rc = dsc_table_comment(comments, "evaluate", b.data, err);
    dsc_buffer_fini(&b);
    return rc;
}

// Reads --shard, --block and --request-block; without --shard *split has no shards.
static int read_split(dsc_split *split, const dsc_option_value *value, dsc_error *err)
{
    *split = (dsc_split){.configuration_block = value[BLOCK].integer,
                         .request_block = value[REQUEST_BLOCK].integer};
    if (value[SHARD].given && value[JSON].given)
        return dsc_fail(err, DSC_EUSAGE,
                        "--shard and --json cannot be combined: draftscope merge -o FILE.jsonl "
                        "writes JSON lines");
    if (value[SHARD].given)
        return dsc_split_shard(split, value[SHARD].text, err);
    return value[REQUEST_BLOCK].given
               ? dsc_fail(err, DSC_EUSAGE, "--request-block requires --shard I/N")
               : DSC_OK;
}

// The grid of a method with a rule. One that does not fit is left out, with a note, when there may
// be others (`left_out` is not NULL).
static int add_grid(context *c, size_t method, const dsc_verifier_type *rule, dsc_buffer *left_out,
                    dsc_error *err)
{
    dsc_grid g;
    dsc_engine_choice engine;
    int rc = dsc_grid_init(&g, c->call->method[method], rule, c->call->list[method], err);
    if (rc)
        return rc;
    rc = dsc_sweep_choose(c->s.trace, &g, &c->options, &engine, err);
    if (!rc)
        return dsc_grids_add(&c->grids, &g, err);
    dsc_grid_fini(&g);
    if (rc != DSC_EUSAGE || !left_out)
        return rc;
    return dsc_buffer_printf(left_out, err, "draftscope: left out: %s\n", err->message);
}

// The grids of a method: with every rule of --rule, or with the default one.
static int add_grids(context *c, size_t method, dsc_buffer *left_out, dsc_error *err)
{
    const char *rules = c->call->more[CLI_WORKLOAD_RULE].text;
    int rc = DSC_OK;
    for (bool more = true; more && !rc;) {
        char name[128] = "";
        const size_t n = rules ? dsc_rule_text_length(rules) : 0;
        snprintf(name, sizeof name, "%.*s", (int)n, rules ? rules : "");
        const dsc_verifier_type *rule =
            cli_simulation_rule(&c->s, rules ? name : NULL, c->call->method[method], err);
        rc = rule ? add_grid(c, method, rule, left_out, err) : DSC_EUSAGE;
        more = rules && rules[n];
        rules = more ? rules + n + 1 : rules;
    }
    return rc;
}

static int make_grids(context *c, dsc_error *err)
{
    const char *rules = c->call->more[CLI_WORKLOAD_RULE].text;
    bool several = c->call->methods > 1 || (rules && rules[dsc_rule_text_length(rules)]);
    dsc_buffer left_out = {0};
    int rc = DSC_OK;
    for (size_t m = 0; m < c->call->methods && !rc; m++)
        rc = add_grids(c, m, several ? &left_out : NULL, err);
    if (!rc && !c->grids.count) {
        dsc_error last = *err;
        rc = dsc_fail(err, DSC_EUSAGE, "no valid (method, rule) combination. First problem: %.900s",
                      last.message);
    } else if (!rc && left_out.length) {
        fputs(left_out.data, stderr);
    }
    dsc_buffer_fini(&left_out);
    return rc;
}

// Describes the sweep in the comments: a part file is continued only by the sweep that it belongs
// to.
static int comment(dsc_table *comments, const context *c, dsc_error *err)
{
    const cli_call *call = c->call;
    dsc_buffer b = {0};
    int rc = cli_simulation_comments(&c->s, call, comments, err);
    if (!rc && c->s.cost.note[0])
        rc = dsc_table_comment(comments, "cost_note", c->s.cost.note, err);
    if (!rc && c->s.batches)
        rc = dsc_table_comment(comments, "batch", call->value[BATCH].text, err);
    if (!rc)
        rc = dsc_grids_words(&b, &c->grids, err);
    if (!rc)
        rc = dsc_table_comment(comments, "grid", b.data, err);
    dsc_buffer_fini(&b);
    if (!rc)
        rc = describe_engine(comments, c, err);
    for (size_t m = 0; m < call->methods && !rc; m++)
        rc = cli_note_missing_references(c->s.trace, c->s.target, call->method[m], call->list[m],
                                         err);
    return rc;
}

// A person on a terminal sees the best rows of the table that was written.
static int print_best(const context *c, dsc_error *err)
{
    dsc_table t = {0};
    if (!isatty(STDERR_FILENO) || !strcmp(c->call->out, "-"))
        return DSC_OK;
    int rc = dsc_table_read(&t, c->call->out, err);
    if (!rc)
        rc = cli_result_print_best(&t, stderr, err);
    dsc_table_fini(&t);
    return rc;
}

static int sweep(context *c, const dsc_split *split, dsc_error *err)
{
    dsc_table comments = {0};
    int rc = make_grids(c, err);
    if (!rc)
        rc = comment(&comments, c, err);
    cli_progress_init(&c->s.progress, c->call->progress,
                      split->shards ? "request-configurations" : "token-configurations");
    if (!rc && split->shards)
        rc = dsc_sweep_shard(c->s.trace, &c->grids, &comments, split, c->call->out, &c->options,
                             err);
    else if (!rc)
        rc = dsc_sweep(c->s.trace, &c->grids, &comments, c->call->out, &c->options, err);
    cli_progress_end(&c->s.progress);
    if (rc == DSC_EINTERRUPT && !strcmp(c->call->out, "-"))
        dsc_fail(err, rc, "interrupted: nothing was written");
    else if (rc == DSC_EINTERRUPT)
        dsc_fail(err, rc, "interrupted: finished %s are in %s.part; the same command goes on",
                 c->what, c->call->out);
    if (!rc && !split->shards)
        rc = print_best(c, err);
    dsc_table_fini(&comments);
    dsc_grids_fini(&c->grids);
    return rc;
}

static int execute(const cli_call *call, dsc_error *err)
{
    dsc_split split;
    context c = {.call = call, .what = call->value[SHARD].given ? "cells" : "configurations"};
    int rc = read_split(&split, call->value, err);
    if (!rc)
        rc = cli_simulation_open(&c.s, call, err);
    c.options = (dsc_sweep_options){.run = c.s.run,
                                    .cost = c.s.cost,
                                    .batch = c.s.batch,
                                    .batches = c.s.batches,
                                    .block = (size_t)call->value[BLOCK].integer,
                                    .by = c.s.by.field ? &c.s.by : NULL,
                                    .force = call->force,
                                    .jsonl = call->json || cli_ends_with(call->out, ".jsonl"),
                                    .resumed = on_resume};
    if (!rc)
        rc = sweep(&c, &split, err);
    cli_simulation_close(&c.s);
    return rc;
}

const cli_command cli_sweep = {
    .name = "sweep",
    .summary = "run a grid of configurations over a trace or a synthetic model",
    CLI_OPTIONS(options),
    .more = {"Models", cli_workload_options, CLI_WORKLOAD_OPTIONS},
    .methods = CLI_METHOD_LISTS,
    .without = without,
    .usage = "sweep TRACE --method NAME[,NAME...] [--PARAMETER LIST]... -o FILE [OPTIONS]",
    .about =
        "Runs every combination of the given parameter values over a trace or the output of a "
        "synthetic model. Each parameter of a method takes a list: values and ranges "
        "first:last[:step], joined by commas (1:8, 1..8, 1-8, 4,8,16:32:4, paper,code). Several "
        "methods and rules make one table; a parameter is then set for all methods that have it, "
        "or, as --METHOD.PARAMETER, for one. Finished configurations are kept in FILE.part while "
        "it runs; after an interruption (Ctrl-C, kill) the same command continues. With --shard "
        "I/N each of N processes, on any machines, computes one share, and draftscope merge joins "
        "their files.",
    .needs_out = "-o FILE or --json expected",
    .execute = execute,
};

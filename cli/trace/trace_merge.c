// SPDX-License-Identifier: Apache-2.0
// draftscope trace merge and append: joins the requests of several traces, in a new trace or as new
// shards of the first one.
#include "cli/trace/trace.h"
#include "traces/trace/trace_join.h"

#include <stdio.h>

// Only merge has the last two.
enum { COMMON, RENAME, SHARD_TOKENS, PROGRESS, BOTH, OUT = BOTH, FORCE, OPTIONS };
// clang-format off
static const dsc_option options[OPTIONS] = {
    {.name = "common", .kind = DSC_OPTION_FLAG,
     .help = "drop the columns that some trace lacks instead of failing"},
    {.name = "rename", .kind = DSC_OPTION_FLAG,
     .help = "prefix each request id with the number of its trace and a slash, as in 2/q7"},
    CLI_OPTION_SHARD_TOKENS,
    CLI_OPTION_PROGRESS,
    CLI_OPTION_TRACE_OUT,
    CLI_OPTION_FORCE,
};
// clang-format on

// Joins the traces into `out`, or appends to the first one when `out` is NULL.
static int join(char **path, size_t count, const char *out, const dsc_option_value *value,
                dsc_error *err)
{
    cli_progress progress;
    const char *const *paths = (const char *const *)path;
    const dsc_join_options o = {
        .force = out && value[FORCE].given,
        .common = value[COMMON].given,
        .rename = value[RENAME].given,
        .shard_tokens = value[SHARD_TOKENS].integer,
        .version = PACKAGE_VERSION,
        .command = cli_command_line(),
        .progress = cli_progress_step,
        .note = cli_trace_note,
        .user = &progress,
    };
    cli_progress_init(&progress, value[PROGRESS].integer, "requests");
    int rc = out ? dsc_trace_merge(paths, count, out, &o, err)
                 : dsc_trace_append(paths[0], paths + 1, count - 1, &o, err);
    cli_progress_end(&progress);
    return rc;
}

static int merge(char **argv, size_t words, const dsc_option_value *value, dsc_error *err)
{
    return join(argv, words, value[OUT].text, value, err);
}

static int append(char **argv, size_t words, const dsc_option_value *value, dsc_error *err)
{
    return join(argv, words, NULL, value, err);
}

static const cli_trace_description merge_description = {
    .usage = "trace merge TRACE... -o NAME.dst",
    .about =
        "Writes the requests of all traces, in order, as a new trace. The traces must have the "
        "same tokenizer and the same columns. A folder NAME.dst.tmp that an interrupted run left "
        "is a trace of the finished requests and can be merged like any other.",
    .option = options,
    .options = OPTIONS,
    .least = 1,
    .most = -1,
    .what = "at least one trace",
    .run = merge,
};

static const cli_trace_description append_description = {
    .usage = "trace append TRACE TRACE...",
    .about = "Appends the requests of the other traces, in order, to the first one, as new shards. "
             "Readers see the old trace until the command has finished, and keep it when the "
             "command is interrupted.",
    .option = options,
    .options = BOTH,
    .least = 2,
    .most = -1,
    .what = "a trace and the traces to append",
    .run = append,
};

static int run_merge(int argc, char **argv, dsc_error *err)
{
    return cli_trace_run(&merge_description, argc, argv, err);
}

const cli_command cli_trace_merge = {
    .name = "merge",
    .summary = "join traces into a new one",
    .run = run_merge,
    .option = options,
    .options = OPTIONS,
};

static int run_append(int argc, char **argv, dsc_error *err)
{
    return cli_trace_run(&append_description, argc, argv, err);
}

const cli_command cli_trace_append = {
    .name = "append",
    .summary = "append the requests of other traces to a trace",
    .run = run_append,
    .option = options,
    .options = BOTH,
};

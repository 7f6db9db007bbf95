// SPDX-License-Identifier: Apache-2.0
// draftscope trace merge and append: joins the requests of several traces, in a new trace or as new
// shards of the first one.
#include "cli/trace/trace.h"
#include "traces/trace/trace_join.h"

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

// Appends to the first trace where the command has no -o.
static int join(const cli_call *call, dsc_error *err)
{
    const dsc_option_value *value = call->value;
    cli_progress progress;
    const char *const *path = (const char *const *)call->word;
    const dsc_join_options o = {
        .force = call->force,
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
    int rc = call->out ? dsc_trace_merge(path, call->words, call->out, &o, err)
                       : dsc_trace_append(path[0], path + 1, call->words - 1, &o, err);
    cli_progress_end(&progress);
    return rc;
}

const cli_command cli_trace_merge = {
    .name = "merge",
    .summary = "join traces into a new one",
    .option = options,
    .options = OPTIONS,
    .usage = "trace merge TRACE... -o NAME.dst",
    .about =
        "Writes the requests of all traces, in order, as a new trace. The traces must have the "
        "same tokenizer and the same columns. A folder NAME.dst.tmp that an interrupted run left "
        "is a trace of the finished requests and can be merged like any other.",
    .least = 1,
    .most = -1,
    .what = "at least one trace",
    .needs_out = CLI_TRACE_NEEDS_OUT,
    .execute = join,
};

const cli_command cli_trace_append = {
    .name = "append",
    .summary = "append the requests of other traces to a trace",
    .option = options,
    .options = BOTH,
    .usage = "trace append TRACE TRACE...",
    .about = "Appends the requests of the other traces, in order, to the first one, as new shards. "
             "Readers see the old trace until the command has finished, and keep it when the "
             "command is interrupted.",
    .least = 2,
    .most = -1,
    .what = "a trace and the traces to append",
    .execute = join,
};

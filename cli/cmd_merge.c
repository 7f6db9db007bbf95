// SPDX-License-Identifier: Apache-2.0
// draftscope merge: joins the shards of a sweep or of served loads into one table.
#include "cli/serve/serve_answer.h"
#include "sim/sweep/merge.h"

// clang-format off
static const dsc_option options[] = {
    {.name = "output", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "FILE",
     .help = "result table: JSON lines when the name ends in .jsonl, else TSV; - is standard "
             "output"},
    CLI_OPTION_PROGRESS,
    CLI_OPTION_FORCE,
};
// clang-format on
static int merge(const cli_call *call, dsc_error *err)
{
    cli_progress progress;
    cli_progress_init(&progress, call->progress, "shards");
    const dsc_merge_options o = {.version = PACKAGE_VERSION,
                                 .force = call->force,
                                 .jsonl = cli_ends_with(call->out, ".jsonl"),
                                 .progress = cli_progress_step,
                                 .user = &progress};
    int rc = dsc_merge((const char *const *)call->word, call->words, call->out, &o, err);
    cli_progress_end(&progress);
    return rc ? rc : cli_serve_answer_file(call->out, o.jsonl, err); // if it is of serve
}

const cli_command cli_merge = {
    .name = "merge",
    .summary = "join the shards of a sweep or of served loads into one table",
    CLI_OPTIONS(options),
    .usage = "merge SHARD... -o FILE [OPTIONS]",
    .about =
        "Joins the files of draftscope sweep, or draftscope serve, --shard 1/N ... N/N. The result "
        "equals, byte for byte, the table of one command without --shard. All N shards must be "
        "present, complete, and of one sweep: equal version, trace hash, seed, cost and options.",
    .least = 1,
    .most = -1,
    .what = "one or more shards of a sweep",
    .needs_out = "-o FILE expected",
    .execute = merge,
};

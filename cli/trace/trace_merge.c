// SPDX-License-Identifier: Apache-2.0
// draftscope trace merge, append: several traces as one.
#include "cli/trace/trace.h"
#include "traces/trace/trace_join.h"

#include <stdio.h>

// Both have these; merge has the last two as well.
enum { COMMON, RENAME, SHARD_TOKENS, PROGRESS, BOTH, OUT = BOTH, FORCE, OPTIONS };
// clang-format off
static const dsc_option options[OPTIONS] = {
    {.name = "common", .kind = DSC_OPTION_FLAG,
     .help = "leave out the columns that not all have, instead of refusing the traces"},
    {.name = "rename", .kind = DSC_OPTION_FLAG,
     .help = "put the number of the trace and a slash before the ids that are read, as in 2/q7"},
    CLI_OPTION_SHARD_TOKENS,
    CLI_OPTION_PROGRESS,
    {.name = "output", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "NAME.dst",
     .help = "the trace, a folder"},
    CLI_OPTION_FORCE,
};
// clang-format on

static int on_progress(void *user, int64_t done, int64_t total)
{
    return cli_progress_step(user, done, total);
}

static void on_note(void *user, const char *message)
{
    (void)user;
    fprintf(stderr, "draftscope: note: %s\n", message);
}

// `out` NULL: appends to the first.
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
        .progress = on_progress,
        .note = on_note,
        .user = &progress,
    };
    cli_progress_init(&progress, value[PROGRESS].integer, "requests");
    cli_catch_signals();
    int rc = out ? dsc_trace_merge(paths, count, out, &o, err)
                 : dsc_trace_append(paths[0], paths + 1, count - 1, &o, err);
    cli_progress_end(&progress);
    return rc;
}

static int run_merge(int argc, char **argv, dsc_error *err)
{
    const cli_help_section help[] = {{"Options", options, OPTIONS}};
    if (cli_asks_help(argc, argv)) {
        cli_print_help("trace merge TRACE... -o NAME.dst",
                       "Makes a trace of the requests of all, in order. The traces must have the "
                       "same tokenizer and the same columns. Of a NAME.dst.tmp that a killed or "
                       "failed run left it takes the requests that were finished.",
                       help, 1);
        return DSC_OK;
    }
    dsc_option_value value[OPTIONS];
    dsc_option_set set = {.table = options, .count = OPTIONS, .value = value};
    size_t words;
    int rc = cli_parse(&set, 1, argc, argv, &words, err);
    if (!rc)
        rc = cli_check_positionals(words, 1, -1, "a trace", err);
    if (!rc && (!value[OUT].text || !*value[OUT].text))
        rc = dsc_fail(err, DSC_EUSAGE, "-o NAME.dst expected");
    return rc ? rc : join(argv, words, value[OUT].text, value, err);
}

static int run_append(int argc, char **argv, dsc_error *err)
{
    const cli_help_section help[] = {{"Options", options, BOTH}};
    if (cli_asks_help(argc, argv)) {
        cli_print_help("trace append TRACE TRACE...",
                       "Adds the requests of the other traces, in order, to the first, as new "
                       "shards. Whoever reads it meanwhile sees it as it was; so does everybody "
                       "when this is stopped.",
                       help, 1);
        return DSC_OK;
    }
    dsc_option_value value[OPTIONS];
    dsc_option_set set = {.table = options, .count = BOTH, .value = value};
    size_t words;
    int rc = cli_parse(&set, 1, argc, argv, &words, err);
    if (!rc)
        rc = cli_check_positionals(words, 2, -1, "a trace and what to append to it", err);
    return rc ? rc : join(argv, words, NULL, value, err);
}

const cli_command cli_trace_merge = {
    .name = "merge",
    .summary = "join traces into a new one",
    .run = run_merge,
    .option = options,
    .options = OPTIONS,
};

const cli_command cli_trace_append = {
    .name = "append",
    .summary = "append the requests of other traces to a trace",
    .run = run_append,
    .option = options,
    .options = BOTH,
};

// SPDX-License-Identifier: Apache-2.0
// draftscope trace reduce: rows to sufficient statistics.
#include "cli/trace/trace.h"
#include "sim/reduce/reduce.h"
#include "traces/trace/trace_join.h"

#include <stdlib.h>

enum { OUT, DRAFTS, RANK_DEPTH, KEEP_LOGPROBS, THREADS, PROGRESS, FORCE, OPTIONS };
// clang-format off
static const dsc_option options[OPTIONS] = {
    {.name = "output", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "NAME.dst",
     .help = "the trace to write, a folder"},
    {DSC_OPTION_NUM_DRAFTS, .initial = "8", .min = 1,
     .max = DSC_STATISTICS_K_MAX, .help = "statistics for 1 to K drafts per position"},
    {.name = "rank-depth", .kind = DSC_OPTION_INT, .metavar = "D", .initial = "0", .min = 0,
     .max = 65535,
     .help = "ranks of D output tokens from each position on; 0: as recorded, or 1"},
    {.name = "keep-logprobs", .kind = DSC_OPTION_FLAG, .help = "leave the rows in"},
    CLI_OPTION_THREADS,
    CLI_OPTION_PROGRESS,
    CLI_OPTION_FORCE,
};
// clang-format on

static void on_note(void *user, const char *message)
{
    (void)user;
    fprintf(stderr, "draftscope: note: %s\n", message);
}

static int on_progress(void *user, int64_t done, int64_t total)
{
    return cli_progress_step(user, done, total);
}

static int reduce(dsc_trace *in, const dsc_option_value *value, dsc_error *err)
{
    cli_progress progress;
    char *provenance = NULL;
    const dsc_join_options from = {.version = PACKAGE_VERSION, .command = cli_command_line()};
    int rc = dsc_join_check_names(in, value[OUT].text, err);
    if (!rc)
        rc = dsc_join_provenance(&provenance, &in, 1, &from, err);
    if (rc)
        return rc;
    const dsc_reduce o = {
        .K = (int)value[DRAFTS].integer,
        .rank_depth = (int32_t)value[RANK_DEPTH].integer,
        .keep_rows = value[KEEP_LOGPROBS].given,
        .force = value[FORCE].given,
        .threads = cli_threads(value[THREADS].integer),
        .provenance = provenance,
        .note = on_note,
        .progress = on_progress,
        .user = &progress,
    };
    cli_progress_init(&progress, value[PROGRESS].integer, "tokens");
    cli_catch_signals();
    rc = dsc_reduce_trace(in, value[OUT].text, &o, err);
    cli_progress_end(&progress);
    free(provenance);
    return rc;
}

static int run(int argc, char **argv, dsc_error *err)
{
    const cli_help_section help[] = {{"Options", options, OPTIONS}};
    if (cli_asks_help(argc, argv)) {
        cli_print_help(
            "trace reduce TRACE -o NAME.dst",
            "Makes of the distributions of draft and target at every output token what replaying "
            "the output needs of them: a few hundred bytes for a vocabulary of any "
            "size. The rest of the trace is kept.",
            help, 1);
        return DSC_OK;
    }
    dsc_option_value value[OPTIONS];
    dsc_option_set set = {.table = options, .count = OPTIONS, .value = value};
    size_t words;
    dsc_trace *in;
    int rc = cli_parse(&set, 1, argc, argv, &words, err);
    if (!rc)
        rc = cli_check_positionals(words, 1, 1, "one trace", err);
    if (!rc && (!value[OUT].text || !*value[OUT].text))
        rc = dsc_fail(err, DSC_EUSAGE, "-o NAME.dst expected");
    if (!rc)
        rc = dsc_trace_open(&in, argv[0], err);
    if (rc)
        return rc;
    rc = reduce(in, value, err);
    dsc_trace_close(in);
    return rc;
}

const cli_command cli_trace_reduce = {
    .name = "reduce",
    .summary = "reduce distributions to sufficient statistics",
    .run = run,
    .option = options,
    .options = OPTIONS,
};

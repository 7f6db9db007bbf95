// SPDX-License-Identifier: Apache-2.0
// draftscope trace cut: a part of a trace.
#include "traces/trace/trace_cut.h"

#include "cli/trace/trace.h"

#include <stdio.h>
#include <stdlib.h>

enum { OUT, REQUESTS, SAMPLE, SEED, TOKENS, SHARD_TOKENS, PROGRESS, FORCE, OPTIONS };
// clang-format off
static const dsc_option options[OPTIONS] = {
    {.name = "output", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "NAME.dst",
     .help = "the trace, a folder"},
    {.name = "requests", .kind = DSC_OPTION_INT, .metavar = "RANGE", .min = 0, .max = INT64_MAX,
     .list = true, .help = "numbers of requests, from 0: 0:99 or 3,5,8 or 0:999:10"},
    {.name = "sample", .kind = DSC_OPTION_INT, .metavar = "N", .min = 1, .max = INT64_MAX,
     .help = "of these (or all) N at random, without replacement"},
    CLI_OPTION_SEED,
    {.name = "tokens", .kind = DSC_OPTION_INT, .metavar = "N", .min = 1, .max = INT64_MAX,
     .help = "of each output the first N tokens at most"},
    CLI_OPTION_SHARD_TOKENS,
    CLI_OPTION_PROGRESS,
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

static int cut_trace(const char *path, const dsc_option_value *value, dsc_error *err)
{
    cli_progress progress;
    int64_t *request = NULL;
    const dsc_join_options o = {
        .force = value[FORCE].given,
        .shard_tokens = value[SHARD_TOKENS].integer,
        .version = PACKAGE_VERSION,
        .command = cli_command_line(),
        .progress = on_progress,
        .note = on_note,
        .user = &progress,
    };
    dsc_cut cut = {
        .range = value[REQUESTS].text,
        .sample = value[SAMPLE].given ? value[SAMPLE].integer : 0,
        .seed = (uint64_t)value[SEED].integer,
        .tokens = value[TOKENS].given ? value[TOKENS].integer : 0,
    };
    int rc = DSC_OK;
    if (value[REQUESTS].given)
        rc =
            dsc_option_list(&options[REQUESTS], value[REQUESTS].text, &request, &cut.requests, err);
    cut.request = request;
    cli_progress_init(&progress, value[PROGRESS].integer, "requests");
    cli_catch_signals();
    if (!rc)
        rc = dsc_trace_cut(path, value[OUT].text, &cut, &o, err);
    cli_progress_end(&progress);
    free(request);
    return rc;
}

static int run(int argc, char **argv, dsc_error *err)
{
    const cli_help_section help[] = {{"Options", options, OPTIONS}};
    if (cli_asks_help(argc, argv)) {
        cli_print_help("trace cut TRACE -o NAME.dst",
                       "Makes a trace of a part of another: --requests first, then --sample, then "
                       "--tokens. The order of the requests stays.",
                       help, 1);
        return DSC_OK;
    }
    dsc_option_value value[OPTIONS];
    dsc_option_set set = {.table = options, .count = OPTIONS, .value = value};
    size_t words;
    int rc = cli_parse(&set, 1, argc, argv, &words, err);
    if (!rc)
        rc = cli_check_positionals(words, 1, 1, "one trace", err);
    if (!rc && (!value[OUT].text || !*value[OUT].text))
        rc = dsc_fail(err, DSC_EUSAGE, "-o NAME.dst expected");
    if (!rc && !value[REQUESTS].given && !value[SAMPLE].given && !value[TOKENS].given)
        rc =
            dsc_fail(err, DSC_EUSAGE, "what to keep is expected: --requests, --sample or --tokens");
    return rc ? rc : cut_trace(argv[0], value, err);
}

const cli_command cli_trace_cut = {
    .name = "cut",
    .summary = "keep some requests, or the beginnings of the outputs",
    .run = run,
    .option = options,
    .options = OPTIONS,
};

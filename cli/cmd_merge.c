// SPDX-License-Identifier: Apache-2.0
// draftscope merge: joins the shards of a sweep into one table.
#include "cli/cli.h"
#include "sim/sweep/merge.h"

enum { OUT, PROGRESS, FORCE, OPTIONS };
// clang-format off
static const dsc_option options[OPTIONS] = {
    {.name = "output", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "FILE",
     .help = "result table: JSON lines when the name ends in .jsonl, else TSV; - is standard output"},
    CLI_OPTION_PROGRESS,
    CLI_OPTION_FORCE,
};
// clang-format on
static const char usage[] = "merge SHARD... -o FILE [OPTIONS]";
static const char about[] =
    "Joins the files of draftscope sweep --shard 1/N ... N/N. The result equals, byte for byte, "
    "the "
    "table of one sweep without --shard. All N shards must be present, complete, and of one sweep: "
    "equal version, trace hash, seed, cost and grid.";

static int run(int argc, char **argv, dsc_error *err)
{
    if (cli_asks_help(argc, argv)) {
        cli_help_section section = {"Options", options, OPTIONS};
        cli_print_help(usage, about, &section, 1);
        return DSC_OK;
    }
    dsc_option_value value[OPTIONS];
    dsc_option_set set = {.table = options, .count = OPTIONS, .value = value};
    size_t words;
    int rc = cli_parse(&set, 1, argc, argv, &words, err);
    if (!rc)
        rc = cli_check_positionals(words, 1, -1, "one or more shards of a sweep", err);
    if (!rc && (!value[OUT].text || !*value[OUT].text))
        rc = dsc_fail(err, DSC_EUSAGE, "-o FILE expected");
    if (rc)
        return rc;
    cli_progress progress;
    cli_progress_init(&progress, value[PROGRESS].integer, "shards");
    const dsc_merge_options o = {.version = PACKAGE_VERSION,
                                 .force = value[FORCE].given,
                                 .jsonl = cli_ends_with(value[OUT].text, ".jsonl"),
                                 .progress = cli_progress_step,
                                 .user = &progress};
    rc = dsc_merge((const char *const *)argv, words, value[OUT].text, &o, err);
    cli_progress_end(&progress);
    return rc;
}

const cli_command cli_merge = {
    .name = "merge",
    .summary = "join the shards of a sweep into one table",
    .run = run,
    .option = options,
    .options = OPTIONS,
};

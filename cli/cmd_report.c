// SPDX-License-Identifier: Apache-2.0
// draftscope report: writes one self-contained page about result tables, or LaTeX.
#include "cli/cli.h"
#include "plots/report/report.h"

enum { OUT, LATEX, TITLE, FORCE, OPTIONS };
// clang-format off
static const dsc_option options[OPTIONS] = {
    {.name = "output", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "FILE",
     .help = "page to write (report.html); with --latex, NAME.tex or a folder for report.tex"},
    {.name = "latex", .kind = DSC_OPTION_FLAG,
     .help = "write LaTeX and a PDF for each figure instead of HTML"},
    {.name = "title", .kind = DSC_OPTION_TEXT, .metavar = "TEXT", .help = "title of the page"},
    CLI_OPTION_FORCE,
};
// clang-format on

static int run(int argc, char **argv, dsc_error *err)
{
    const cli_help_section help[] = {{"Options", options, OPTIONS}};
    if (cli_asks_help(argc, argv)) {
        cli_print_help(
            "report RESULT... -o FILE [OPTIONS]",
            "Writes one self-contained HTML page, or LaTeX. It contains a recommendation with its "
            "validation and caveats; chapters on workload, methods, best configuration by batch "
            "size, bounds, measured values and forward-pass latency, as far as the results cover "
            "them; limitations; and for each figure its numbers, commands and hashes. RESULT is a "
            "table, a trace NAME.dst, or the output of trace info --json. The page loads nothing "
            "from elsewhere.",
            help, 1);
        return DSC_OK;
    }
    dsc_option_value value[OPTIONS];
    dsc_option_set set = {.table = options, .count = OPTIONS, .value = value};
    size_t words;
    int rc = cli_parse(&set, 1, argc, argv, &words, err);
    if (!rc)
        rc = cli_check_positionals(words, 1, -1, "at least one result", err);
    if (!rc && (!value[OUT].text || !*value[OUT].text))
        rc = dsc_fail(err, DSC_EUSAGE, "-o FILE is required");
    if (rc)
        return rc;
    dsc_report_options o = {
        .title = value[TITLE].text, .force = value[FORCE].given, .latex = value[LATEX].given};
    return dsc_report_write((const char *const *)argv, words, value[OUT].text, &o, err);
}

const cli_command cli_report = {
    .name = "report",
    .summary = "write one page of figures and tables, HTML or LaTeX",
    .run = run,
    .option = options,
    .options = OPTIONS,
};

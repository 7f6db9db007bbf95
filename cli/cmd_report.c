// SPDX-License-Identifier: Apache-2.0
// draftscope report: one self-contained page of result tables, or LaTeX.
#include "cli/cli.h"
#include "plots/report/report.h"

enum { OUT, LATEX, TITLE, FORCE, OPTIONS };
// clang-format off
static const dsc_option options[OPTIONS] = {
    {.name = "output", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "FILE",
     .help = "the page, report.html; with --latex NAME.tex, or a folder for report.tex"},
    {.name = "latex", .kind = DSC_OPTION_FLAG,
     .help = "LaTeX instead, with a PDF beside it for each figure"},
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
            "Writes one self-contained HTML page, or LaTeX: what to deploy and what speaks against "
            "it; "
            "workload, methods, the best by batch size, bounds, predicted against measured, costs, "
            "and what is uncertain, as far as the results hold it; each figure with its numbers, "
            "and the commands and hashes that made them. RESULT is a table, a trace NAME.dst, or "
            "what trace info --json printed. Nothing is loaded from elsewhere.",
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
        rc = dsc_fail(err, DSC_EUSAGE, "-o FILE expected");
    if (rc)
        return rc;
    dsc_report_options o = {
        .title = value[TITLE].text, .force = value[FORCE].given, .latex = value[LATEX].given};
    return dsc_report_write((const char *const *)argv, words, value[OUT].text, &o, err);
}

const cli_command cli_report = {
    .name = "report",
    .summary = "one page of figures and tables, HTML or LaTeX",
    .run = run,
    .option = options,
    .options = OPTIONS,
};

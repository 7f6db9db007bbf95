// SPDX-License-Identifier: Apache-2.0
// draftscope report: writes one self-contained page about result tables, or LaTeX.
#include "cli/cli.h"
#include "plots/report/report.h"

enum { OUT, LATEX, TITLE };
// clang-format off
static const dsc_option options[] = {
    {.name = "output", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "FILE",
     .help = "page to write (report.html); with --latex, NAME.tex or a folder for report.tex"},
    {.name = "latex", .kind = DSC_OPTION_FLAG,
     .help = "write LaTeX and a PDF for each figure instead of HTML"},
    {.name = "title", .kind = DSC_OPTION_TEXT, .metavar = "TEXT", .help = "title of the page"},
    CLI_OPTION_FORCE,
};
// clang-format on

static int report(const cli_call *call, dsc_error *err)
{
    const dsc_report_options o = {
        .title = call->value[TITLE].text, .force = call->force, .latex = call->value[LATEX].given};
    return dsc_report_write((const char *const *)call->word, call->words, call->out, &o, err);
}

const cli_command cli_report = {
    .name = "report",
    .summary = "write one page of figures and tables, HTML or LaTeX",
    CLI_OPTIONS(options),
    .usage = "report RESULT... -o FILE [OPTIONS]",
    .about =
        "Writes one self-contained HTML page, or LaTeX. It begins with the verdicts of tune or "
        "advise, "
        "or with the best observed rows, and one figure. Chapters follow on workload, methods, "
        "results by condition, bounds, measured values and forward-pass latency, as far as the "
        "results cover them; then limitations, the columns, and commands and hashes. RESULT is a "
        "table, a trace NAME.dst, or the output of trace info --json. The page loads nothing from "
        "elsewhere.",
    .least = 1,
    .most = -1,
    .what = "at least one result",
    .needs_out = "-o FILE is required",
    .execute = report,
};

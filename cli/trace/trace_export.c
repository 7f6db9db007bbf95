// SPDX-License-Identifier: Apache-2.0
// draftscope trace export: a trace as text or as NumPy's files.
#include "base/file.h"
#include "cli/trace/trace.h"

#include <string.h>

enum { FORMAT, OUT, FORCE, OPTIONS };
enum { NPY = 4 }; // of the choices
// clang-format off
static const dsc_option options[OPTIONS] = {
    {.name = "format", .kind = DSC_OPTION_CHOICE,
     .choices = "jsonl|csv|csv-steps|csv-positions|npy", .initial = "jsonl",
     .help = "jsonl: everything, can be imported again; csv: a row of lengths per request, or a "
             "row per step or output token; npy: every column, a folder"},
    {.name = "output", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "FILE", .initial = "-",
     .help = "- is standard output; npy: the folder"},
    CLI_OPTION_FORCE,
};
// clang-format on

static int export_text(const dsc_trace *t, const dsc_option_value *value, dsc_error *err)
{
    const char *format = value[FORMAT].text;
    if (strcmp(value[OUT].text, "-") == 0)
        return dsc_trace_export(t, format, stdout, err);
    dsc_outfile out;
    int rc = dsc_outfile_open(&out, value[OUT].text, value[FORCE].given, err);
    if (rc)
        return rc;
    rc = dsc_trace_export(t, format, out.stream, err);
    if (!rc)
        rc = dsc_outfile_commit(&out, err);
    else
        dsc_outfile_abort(&out);
    return rc;
}

static int run(int argc, char **argv, dsc_error *err)
{
    const cli_help_section help[] = {{"Options", options, OPTIONS}};
    if (cli_asks_help(argc, argv)) {
        cli_print_help("trace export TRACE [--format NAME] [-o FILE]",
                       "Writes a trace as JSON lines, CSV or NumPy's files.", help, 1);
        return DSC_OK;
    }
    dsc_option_value value[OPTIONS];
    dsc_option_set set = {.table = options, .count = OPTIONS, .value = value};
    size_t words;
    int rc = cli_parse(&set, 1, argc, argv, &words, err);
    if (!rc)
        rc = cli_check_positionals(words, 1, 1, "one trace", err);
    bool npy = !rc && value[FORMAT].integer == NPY;
    if (npy && (!*value[OUT].text || strcmp(value[OUT].text, "-") == 0))
        rc = dsc_fail(err, DSC_EUSAGE, "-o FOLDER expected: npy is a file per column");
    if (rc)
        return rc;
    dsc_trace *t;
    rc = dsc_trace_open(&t, argv[0], err);
    if (rc)
        return rc;
    rc = npy ? dsc_trace_export_npy(t, value[OUT].text, value[FORCE].given, err)
             : export_text(t, value, err);
    dsc_trace_close(t);
    return rc;
}

const cli_command cli_trace_export = {
    .name = "export",
    .summary = "export a trace as JSON lines, CSV or NumPy files",
    .run = run,
    .option = options,
    .options = OPTIONS,
};

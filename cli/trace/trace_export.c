// SPDX-License-Identifier: Apache-2.0
// draftscope trace export: writes a trace as JSON lines, as CSV, or as one NumPy file per column.
#include "base/outfile.h"
#include "cli/trace/trace.h"
#include "traces/import/import.h"

#include <string.h>

enum { FORMAT };
enum { NPY = 4 }; // index in the choices of --format
// clang-format off
static const dsc_option options[] = {
    {.name = "format", .kind = DSC_OPTION_CHOICE,
     .choices = "jsonl|csv|csv-steps|csv-positions|npy", .initial = "jsonl",
     .help = "jsonl: the whole trace, which trace import reads; csv: lengths, one row per "
             "request; csv-steps, csv-positions: one row per step or output token; npy: a folder "
             "with one file per column"},
    {.name = "output", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "FILE", .initial = "-",
     .help = "file to write, or the folder for npy; - is standard output"},
    CLI_OPTION_FORCE,
};
// clang-format on

static int export_text(const dsc_trace *t, const cli_call *call, dsc_error *err)
{
    const char *format = call->value[FORMAT].text;
    if (strcmp(call->out, "-") == 0)
        return dsc_trace_export(t, format, stdout, err);
    dsc_outfile out = {0};
    int rc = dsc_outfile_open(&out, call->out, call->force, err);
    if (!rc)
        rc = dsc_trace_export(t, format, out.stream, err);
    if (!rc)
        rc = dsc_outfile_commit(&out, err);
    dsc_outfile_abort(&out);
    return rc;
}

static int export_trace(const cli_call *call, dsc_error *err)
{
    if (call->value[FORMAT].integer != NPY)
        return export_text(call->trace, call, err);
    return strcmp(call->out, "-") == 0
               ? dsc_fail(err, DSC_EUSAGE, "npy writes one file per column: add -o FOLDER")
               : dsc_trace_export_npy(call->trace, call->out, call->force, err);
}

const cli_command cli_trace_export = {
    .name = "export",
    .summary = "export a trace as JSON lines, CSV or NumPy files",
    CLI_OPTIONS(options),
    .usage = "trace export TRACE [--format NAME] [-o FILE]",
    .about = "Writes a trace as JSON lines, CSV or NumPy files.",
    .needs_out = CLI_TRACE_NEEDS_OUT,
    .opens_trace = true,
    .execute = export_trace,
};

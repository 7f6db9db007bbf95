// SPDX-License-Identifier: Apache-2.0
// The parts of draftscope trace that have a file of their own.
#ifndef DSC_CLI_TRACE_H
#define DSC_CLI_TRACE_H

#include "cli/cli.h"
#include "traces/import/import.h"
#include "traces/import/totals.h"

int cli_trace_append(int argc, char **argv, dsc_error *err);
int cli_trace_cut(int argc, char **argv, dsc_error *err);
int cli_trace_export(int argc, char **argv, dsc_error *err);
int cli_trace_info(int argc, char **argv, dsc_error *err);
int cli_trace_merge(int argc, char **argv, dsc_error *err);
int cli_trace_reduce(int argc, char **argv, dsc_error *err);
int cli_trace_synth(int argc, char **argv, dsc_error *err);

#define CLI_OPTION_SHARD_TOKENS                                                                    \
    {                                                                                              \
        .name = "shard-tokens", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "0", .min = 0,  \
        .max = 1 << 30, .help = "tokens after which a shard is closed; 0: 1 million"               \
    }

typedef struct cli_totals_options {
    const char *out; // a file, or "-": standard output
    bool force, skip_errors;
} cli_totals_options;
int cli_trace_totals(const dsc_totals_driver *driver, char **path, size_t count,
                     const cli_totals_options *o, dsc_error *err);

#endif

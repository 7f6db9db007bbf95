// SPDX-License-Identifier: Apache-2.0
// The parts of draftscope trace that have a file of their own.
#ifndef DSC_CLI_TRACE_H
#define DSC_CLI_TRACE_H

#include "cli/cli.h"
#include "traces/import/import.h"
#include "traces/import/totals.h"

extern const cli_command cli_trace_append, cli_trace_cut, cli_trace_export, cli_trace_info,
    cli_trace_merge, cli_trace_reduce, cli_trace_synth;

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

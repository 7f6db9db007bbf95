// SPDX-License-Identifier: Apache-2.0
// The subcommands of `draftscope trace` that have a file of their own.
#ifndef DSC_CLI_TRACE_H
#define DSC_CLI_TRACE_H

#include "cli/cli.h"

extern const cli_command cli_trace_append, cli_trace_cut, cli_trace_export, cli_trace_info,
    cli_trace_merge, cli_trace_reduce, cli_trace_synth;

// clang-format off
#define CLI_OPTION_SHARD_TOKENS                                                                    \
    {.name = "shard-tokens", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "0", .min = 0,     \
     .max = 1 << 30, .help = "number of tokens after which a shard is closed; 0: 1 million"}
#define CLI_OPTION_TRACE_OUT                                                                       \
    {.name = "output", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "NAME.dst",              \
     .help = "trace folder to write"}
// clang-format on

// The error of a command that writes a trace and lacks -o.
#define CLI_TRACE_NEEDS_OUT "give the trace to write: -o NAME.dst"

// Print a message on stderr, as callbacks for notes and for invalid lines that are left out.
static inline void cli_trace_note(void *user, const char *message)
{
    (void)user;
    fprintf(stderr, "draftscope: note: %s\n", message);
}
static inline void cli_trace_skipped(void *user, const char *message)
{
    (void)user;
    fprintf(stderr, "draftscope: skipped: %s\n", message);
}

#endif

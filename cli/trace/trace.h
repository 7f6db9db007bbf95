// SPDX-License-Identifier: Apache-2.0
// The subcommands of `draftscope trace` that have a file of their own, and their common runner.
#ifndef DSC_CLI_TRACE_H
#define DSC_CLI_TRACE_H

#include "cli/cli.h"
#include "traces/import/import.h"
#include "traces/import/totals.h"

extern const cli_command cli_trace_append, cli_trace_cut, cli_trace_export, cli_trace_info,
    cli_trace_merge, cli_trace_reduce, cli_trace_synth;

enum { CLI_TRACE_OPTIONS = 16 }; // of a subcommand, at most

#define CLI_OPTION_SHARD_TOKENS                                                                    \
    {                                                                                              \
        .name = "shard-tokens", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "0", .min = 0,  \
        .max = 1 << 30, .help = "number of tokens after which a shard is closed; 0: 1 million"     \
    }
#define CLI_OPTION_TRACE_OUT                                                                       \
    {                                                                                              \
        .name = "output", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "NAME.dst",           \
        .help = "trace folder to write"                                                            \
    }

// A subcommand with one table of options. An option --output without a default must be given.
typedef struct cli_trace_description {
    const char *usage, *about;
    const dsc_option *option; // [options]
    size_t options;
    int least, most;         // number of arguments, most < 0: any
    const char *what;        // what the arguments must be, for the error message
    void (*more_help)(void); // prints further sections of the help; NULL: none
    int (*run)(char **argv, size_t words, const dsc_option_value *value, dsc_error *err);
} cli_trace_description;

// Prints the help, or parses argv[0, argc) and calls run.
int cli_trace_run(const cli_trace_description *d, int argc, char **argv, dsc_error *err);

// A note callback: prints the message on stderr.
void cli_trace_note(void *user, const char *message);

typedef struct cli_totals_options {
    const char *out; // a file; "-": standard output
    bool force, skip_errors;
} cli_totals_options;
// Imports sources that have totals and no tokens, as a result table.
int cli_trace_totals(const dsc_totals_driver *driver, char **path, size_t count,
                     const cli_totals_options *o, dsc_error *err);

#endif

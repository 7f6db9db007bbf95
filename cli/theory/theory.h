// SPDX-License-Identifier: Apache-2.0
// The commands below `draftscope theory`, and what they share: how a result is written.
#ifndef DSC_CLI_THEORY_H
#define DSC_CLI_THEORY_H

#include "cli/cli.h"

extern const cli_command cli_theory_accept, cli_theory_speedup, cli_theory_length, cli_theory_tree,
    cli_theory_pearl, cli_theory_ouroboros;

#define CLI_OPTION_JSON                                                                            \
    {                                                                                              \
        .name = "json", .kind = DSC_OPTION_FLAG, .help = "JSON lines instead of a table"           \
    }
#define CLI_OPTION_OUT                                                                             \
    {                                                                                              \
        .name = "output", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "FILE",               \
        .initial = "-", .help = "file for the result; - is standard output"                        \
    }

// Comment lines of a result of theory: program and version, command.
int cli_theory_comments(dsc_table *t, dsc_error *err);

// Writes t: TSV with comments and header, or an object per row (`json`; to a file, the comments
// first). DSC_EUSAGE: `out` exists and `force` is false.
int cli_theory_write(const dsc_table *t, bool json, const char *out, bool force, dsc_error *err);

// Prints --help: usage, about, the options, the columns, and the formulas with their sources
// (name = where it is from or what it is for; help = the formula in plain text).
typedef struct cli_theory_help {
    const char *usage, *about;
    const dsc_option *option;
    size_t options;
    const dsc_column *column;
    size_t columns;
    const dsc_column *formula;
    size_t formulas;
} cli_theory_help;
void cli_theory_print_help(const cli_theory_help *h);

// Adds the columns and checks nothing else.
int cli_theory_columns(dsc_table *t, const dsc_column *column, size_t count, dsc_error *err);

#endif

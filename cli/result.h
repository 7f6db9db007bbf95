// SPDX-License-Identifier: Apache-2.0
// Result tables of commands that print one table: comment lines, columns, cells, output file.
#ifndef DSC_CLI_RESULT_H
#define DSC_CLI_RESULT_H

#include "cli/cli.h"

// Options of a command that writes one table.
// clang-format off
#define CLI_OPTIONS_RESULT                                                                         \
    {.name = "json", .kind = DSC_OPTION_FLAG, .help = "print JSON lines instead of a table"},      \
    {.name = "output", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "FILE", .initial = "-",  \
     .help = "file to write the result to; - is standard output"},                                 \
    CLI_OPTION_FORCE
// clang-format on

// Prints t as TSV with comments and header, or as JSON lines, which begin with the comments when
// `head` is set.
void cli_result_print(const dsc_table *t, bool json, bool head, FILE *f);
// Prints the given rows and columns for a person: aligned, rounded, and empty where there is no
// value.
void cli_result_align(const dsc_table *t, const size_t *row, size_t rows, const size_t *column,
                      size_t columns, FILE *f);
// For a person, on f: the five best rows of each batch size of a sweep's table, by speedup or, if
// its cost model is `unit`, by block efficiency; the parameters that differ among them.
int cli_result_print_best(const dsc_table *t, FILE *f, dsc_error *err);
// Writes t to the file of -o or to standard output: TSV with comments and header, or with --json an
// object per row (a file begins with the comments). DSC_EUSAGE: the file exists, without --force.
int cli_result_write(const dsc_table *t, const cli_call *call, dsc_error *err);

// Returns whether standard output is a terminal, where a person reads.
bool cli_result_terminal(void);

static inline dsc_cell cli_integer(int64_t x)
{
    return (dsc_cell){.type = DSC_CELL_INT, .i = x};
}

static inline dsc_cell cli_real(double x)
{
    return (dsc_cell){.type = DSC_CELL_REAL, .r = x};
}

static inline dsc_cell cli_text(const char *text)
{
    return (dsc_cell){.type = DSC_CELL_TEXT, .text = text};
}

#endif

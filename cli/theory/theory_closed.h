// SPDX-License-Identifier: Apache-2.0
// The commands of `draftscope theory`, and the runner of those on closed forms. A command is a
// description: its options, columns, formulas, and a function that computes one row. The runner
// computes a row for every combination of the list options, and writes the table.
#ifndef DSC_CLI_THEORY_CLOSED_H
#define DSC_CLI_THEORY_CLOSED_H

#include "cli/result.h"
#include "theory/block.h"

#include <math.h>
#include <string.h>

extern const cli_command cli_theory_accept, cli_theory_speedup, cli_theory_length, cli_theory_tree,
    cli_theory_pearl, cli_theory_ouroboros, cli_theory_certify, cli_theory_lossy,
    cli_theory_vocabulary, cli_theory_bound, cli_theory_regret;

// The numbers of sequences of --num-drafts into paths[DSC_CERTIFICATE_PATHS]
// (sim/expect/certificate.h). DSC_EUSAGE: there are more.
int cli_certificate_drafts(const dsc_option *option, const char *text, int *paths, size_t *count,
                           dsc_error *err);

// Options that several commands have. The acceptance options come first in a table of options:
// --alpha alone or, where `by_position` is set, all of these.
enum {
    CLI_CLOSED_ALPHA,
    CLI_CLOSED_ACCEPTANCE,
    CLI_CLOSED_BY_POSITION,
    CLI_CLOSED_LENGTH,
    CLI_CLOSED_HISTOGRAM,
    CLI_CLOSED_REQUEST_SD,
    CLI_CLOSED_RATES
};
// clang-format off
// The draft lengths to list.
#define CLI_OPTION_LENGTHS                                                                         \
    .name = "num-speculative-tokens", .letter = 'k', .synonyms = "length|gamma|k",                 \
    .kind = DSC_OPTION_INT, .metavar = "LIST"
#define CLI_OPTION_ALPHA                                                                           \
    {.name = "alpha", .kind = DSC_OPTION_REAL, .metavar = "LIST", .least = 0, .most = 1,           \
     .list = true,                                                                                 \
     .help = "i.i.d. per-token acceptance probabilities, as in .5:.95:.05; this is alpha_iid of a "\
             "result table, not draft_acceptance_rate (accepted / drafted tokens)"}
#define CLI_OPTIONS_ACCEPTANCE                                                                     \
    CLI_OPTION_ALPHA,                                                                              \
    {.name = "acceptance", .kind = DSC_OPTION_TEXT, .metavar = "SPEC",                             \
     .help = "acceptance as it was measured, in place of --alpha: rates:R1,R2,... by position, of "\
             "all drafts as vLLM prints it, conditional:H1,H2,... of those that came so far, "    \
             "al:LENGTH@K, rate:R@K, histogram:N0,N1,... or a table of totals (see: draftscope "  \
             "list models)"},                                                                      \
    {.name = "acceptance-by-position", .kind = DSC_OPTION_TEXT, .metavar = "H1,H2,...",            \
     .help = "as --acceptance conditional:H1,H2,...: rates of the drafts whose earlier tokens "    \
             "were accepted; vLLM's per-position rates are --acceptance rates:..."},               \
    {.name = "acceptance-length", .kind = DSC_OPTION_TEXT, .metavar = "L",                         \
     .help = "as --acceptance al:L@K, where -k K is one number: the mean acceptance length, "      \
             "bonus included, of drafts of K tokens"},                                             \
    {.name = "histogram", .kind = DSC_OPTION_TEXT, .metavar = "N0,N1,...",                         \
     .help = "as --acceptance histogram:N0,N1,...: numbers of steps that accepted 0, 1, ..., all " \
             "draft tokens"},                                                                      \
    {.name = "request-sd", .kind = DSC_OPTION_REAL, .metavar = "S", .initial = "0", .least = 0,    \
     .most = 10,                                                                                   \
     .help = "with conditional rates: they are those of the median request, and the "              \
             "logits of others differ by a normal effect with this standard deviation "            \
             "(effect_sd of theory length --trace)"}
#define CLI_OPTIONS_COST                                                                           \
    {.name = "draft-cost", .kind = DSC_OPTION_REAL, .metavar = "LIST", .initial = ".05",           \
     .least = 0, .most = 1e6, .list = true,                                                        \
     .help = "time to draft one token, in units of a target call"},                                \
    {.name = "target-slope", .kind = DSC_OPTION_REAL, .metavar = "LIST", .initial = "0",           \
     .least = 0, .most = 1e6, .list = true,                                                        \
     .help = "time that each further token adds to a target call, in units of a target call"}
#define CLI_COLUMN_ALPHA                                                                           \
    {"alpha", DSC_CELL_REAL,                                                                       \
     "i.i.d. per-token acceptance probability (alpha_iid); with rates by position, the one that "  \
     "gives the same number of accepted tokens"}
#define CLI_COLUMNS_COST                                                                           \
    {"draft_cost", DSC_CELL_REAL, "time to draft one token, in units of a target call"},           \
    {"target_slope", DSC_CELL_REAL,                                                                \
     "time that each further token adds to a target call, in units of a target call"}
// clang-format on

enum { CLI_CLOSED_COLUMNS = 16, CLI_CLOSED_AXES = 5 }; // at most

// The setting of one row.
typedef struct cli_point {
    // [options]. A list option that is an axis has this row's value in `integer` or `real`.
    const dsc_option_value *value;
    dsc_acceptance acceptance;
    double alpha;           // i.i.d. rate of the same number of accepted tokens
    const double *accepted; // [longest + 1] expected accepted tokens, by draft length
    int longest;
    bool first;          // the innermost axis is at its first value
    dsc_block_best best; // the command's own, kept until `first` is set again
} cli_point;

// `form` of a command.
typedef struct cli_closed {
    // DSC_EUSAGE: options that do not go together. NULL: all do.
    int (*check)(const dsc_option_value *value, dsc_error *err);

    bool by_position;          // takes all acceptance options
    int axis[CLI_CLOSED_AXES]; // [axes] list options, the outermost first
    int axes;
    int length[2]; // options whose largest values add up to the longest draft; 0: none
    int bounded;   // option whose default is the number of positions given; 0: none
    // Returns whether column c is part of the table. NULL: all are.
    bool (*shows)(const dsc_option_value *value, bool by_position, int c);
    // Computes x[columns], also of columns that are not shown; the first fields of the command are
    // the columns. NULL: there is no such table.
    int (*row)(cli_point *p, double *x, dsc_error *err);
    int choice; // option whose choice a column of text shows

    // Fills a table that is no grid: always where `row` is NULL, else when flag `instead` is given.
    // DSC_ECHECK: the table is complete and is written, then the command fails.
    int (*fill)(dsc_table *t, const dsc_option_value *value, dsc_error *err);
    int instead;
} cli_closed;

// The `execute` of a command whose `form` is a cli_closed.
int cli_closed_execute(const cli_call *call, dsc_error *err);

// Appends the value or values that item[0, length) has for an option of integers or numbers.
int cli_theory_append(const dsc_option *o, const char *item, size_t length, double **out,
                      size_t *capacity, size_t *count, dsc_error *err);
// Reads comma-separated numbers in [least, most]; a:b:step is a range. Unlike the values of a list
// option they may repeat. *out is owned by the caller. DSC_EUSAGE.
int cli_theory_vector(const char *option, const char *text, double least, double most, double **out,
                      size_t *count, dsc_error *err);

#endif

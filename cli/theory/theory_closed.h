// SPDX-License-Identifier: Apache-2.0
// What the commands on closed forms share: acceptance as rates, conditional acceptance rates or
// counts, lists of costs, lists of numbers that may repeat, and the end of every one of them.
#ifndef DSC_CLI_THEORY_CLOSED_H
#define DSC_CLI_THEORY_CLOSED_H

#include "cli/theory/theory.h"
#include "theory/block.h"

#include <math.h>

// clang-format off
// The draft lengths to list.
#define CLI_OPTION_LENGTHS                                                                         \
    .name = "num-speculative-tokens", .letter = 'k', .synonyms = "length|gamma|k",                 \
    .kind = DSC_OPTION_INT, .metavar = "LIST"
#define CLI_OPTION_ALPHA                                                                           \
    {                                                                                              \
        .name = "alpha", .kind = DSC_OPTION_REAL, .metavar = "LIST", .least = 0, .most = 1,        \
        .list = true,                                                                              \
        .help = "i.i.d. acceptance probability per draft token (alpha_iid, not "                   \
                "draft_acceptance_rate), as in .5:.95:.05"                                         \
    }
#define CLI_OPTION_BY_POSITION                                                                     \
    {                                                                                              \
        .name = "acceptance-by-position", .kind = DSC_OPTION_TEXT, .metavar = "H1,H2,...",         \
        .help = "conditional acceptance rate of each draft position, in place of --alpha"          \
    }
#define CLI_OPTION_HISTOGRAM                                                                       \
    {                                                                                              \
        .name = "histogram", .kind = DSC_OPTION_TEXT, .metavar = "N0,N1,...",                      \
        .help = "instead: rounds that accepted 0, 1, ..., all draft tokens"                        \
    }
#define CLI_OPTION_DRAFT_COST                                                                      \
    {                                                                                              \
        .name = "draft-cost", .kind = DSC_OPTION_REAL, .metavar = "LIST", .initial = ".05",        \
        .least = 0, .most = 1e6, .list = true,                                                     \
        .help = "time of a draft token over that of a target call"                                 \
    }
#define CLI_OPTION_TARGET_SLOPE                                                                    \
    {                                                                                              \
        .name = "target-slope", .kind = DSC_OPTION_REAL, .metavar = "LIST", .initial = "0",        \
        .least = 0, .most = 1e6, .list = true,                                                     \
        .help = "added to a target call by each further token in it"                               \
    }
// clang-format on

// Numbers in [least, most], joined by commas, which may repeat (unlike those of a list option,
// which stand for different settings); a:b:step is a range. *out owned by the caller. DSC_EUSAGE.
int cli_theory_vector(const char *option, const char *text, double least, double most, double **out,
                      size_t *count, dsc_error *err);

// How drafts are accepted: rates, one after the other, or one vector of conditional acceptance
// rates.
typedef struct cli_acceptance {
    double *alpha;
    double *conditional_rate; // NULL: the rates
    size_t count;             // of rates, or 1
    int conditional_rates;
} cli_acceptance; // zero-initialise; cli_acceptance_fini frees

// DSC_EUSAGE unless exactly one of the three options is given.
int cli_acceptance_init(cli_acceptance *l, const dsc_option_value *alpha,
                        const dsc_option_value *conditional_rate, const dsc_option_value *histogram,
                        dsc_error *err);
void cli_acceptance_fini(cli_acceptance *l);
dsc_acceptance cli_acceptance_at(const cli_acceptance *l, size_t i);

// The rate at which drafts of all the conditional acceptance rates' positions would accept as many
// under i.i.d.
double cli_acceptance_iid(const cli_acceptance *l);

// Every combination of the two cost options; *out owned by the caller.
int cli_theory_costs(const dsc_option_value *draft, const dsc_option_value *slope,
                     dsc_block_cost **out, size_t *count, dsc_error *err);

// Parses options without arguments. *done: --help was asked for and is printed.
int cli_theory_begin(const cli_theory_help *h, int argc, char **argv, dsc_option_value *value,
                     bool *done, dsc_error *err);

#endif

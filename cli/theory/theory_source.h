// SPDX-License-Identifier: Apache-2.0
// Interface between theory_rows.c and the sources of pairs of distributions (theory_families.c,
// theory_files.c, theory_trace.c).
#ifndef DSC_CLI_THEORY_SOURCE_H
#define DSC_CLI_THEORY_SOURCE_H

#include "cli/theory/theory_rows.h"

// A source sets count, state, read and close in its open function. close also frees the state that
// a failed open leaves.
struct cli_rows {
    const dsc_option_value *value; // [CLI_ROWS_OPTIONS], owned by the caller
    bool all;                      // --trace is valid without --request
    int64_t count;
    void *state;
    int (*read)(cli_rows *r, int64_t i, cli_pair *p, dsc_error *err);
    void (*close)(void *state);
    int (*comments)(const cli_rows *r, dsc_table *t, dsc_error *err); // or NULL
};

int cli_open_bernoulli(cli_rows *r, dsc_error *err);
int cli_open_uniform(cli_rows *r, dsc_error *err);
int cli_open_zipf(cli_rows *r, dsc_error *err);
int cli_open_files(cli_rows *r, dsc_error *err);
int cli_open_trace(cli_rows *r, dsc_error *err);

// --- theory_pair.c ---

// Gives p memory for two distributions over `vocab` tokens.
int cli_pair_reserve(cli_pair *p, int64_t vocab, dsc_error *err);

// Returns whether an option declares the input to be logits, not probabilities.
bool cli_rows_are_logits(const dsc_option_value *value);
// Converts logits or probabilities as read into a distribution, in place. `what` begins the error
// message.
int cli_rows_make_dist(const dsc_option_value *value, const char *what, double *row, int64_t vocab,
                       dsc_error *err);

void cli_listed_free(struct cli_listed *l);

#endif

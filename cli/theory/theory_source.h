// SPDX-License-Identifier: Apache-2.0
// What the sources of cli/theory/theory_rows.h are made of. Internal to theory_rows.c,
// theory_pair.c, theory_families.c, theory_files.c and theory_trace.c.
#ifndef DSC_CLI_THEORY_SOURCE_H
#define DSC_CLI_THEORY_SOURCE_H

#include "cli/theory/theory_rows.h"

// A source fills count, state, read and close in its open function; close may be given a state
// that is half made.
struct cli_rows {
    const dsc_option_value *value; // [CLI_ROWS_OPTIONS], the caller's
    int64_t count;
    void *state;
    int (*read)(cli_rows *r, int64_t i, cli_pair *p, dsc_error *err);
    void (*close)(void *state);
    int (*comments)(const cli_rows *r, dsc_table *t, dsc_error *err); // or NULL
};

int cli_open_bernoulli(cli_rows *r, const dsc_option_value *value, bool all, dsc_error *err);
int cli_open_uniform(cli_rows *r, const dsc_option_value *value, bool all, dsc_error *err);
int cli_open_zipf(cli_rows *r, const dsc_option_value *value, bool all, dsc_error *err);
int cli_open_files(cli_rows *r, const dsc_option_value *value, bool all, dsc_error *err);
int cli_open_trace(cli_rows *r, const dsc_option_value *value, bool all, dsc_error *err);

// --- theory_pair.c ---

// Room for two distributions of `vocab` tokens.
int cli_pair_reserve(cli_pair *p, int64_t vocab, dsc_error *err);

// Whether an option says that rows are logits, and not probabilities.
bool cli_rows_are_logits(const dsc_option_value *value);
// Turns a row as read into a distribution. `what` begins the message of a bad one.
int cli_rows_make_dist(const dsc_option_value *value, const char *what, double *row, int64_t vocab,
                       dsc_error *err);

// Memory of listed rows.
void cli_listed_free(struct cli_listed *l);

#endif

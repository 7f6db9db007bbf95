// SPDX-License-Identifier: Apache-2.0
// Interface between theory_rows.c and the sources of pairs of distributions (theory_families.c,
// theory_files.c, theory_trace.c).
#ifndef DSC_CLI_THEORY_SOURCE_H
#define DSC_CLI_THEORY_SOURCE_H

#include "cli/theory/theory_rows.h"

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

// SPDX-License-Identifier: Apache-2.0
// Sources of the pairs of distributions that `draftscope theory accept` reads: parametric families,
// files with one distribution per row, or a recorded trace.
#ifndef DSC_CLI_THEORY_ROWS_H
#define DSC_CLI_THEORY_ROWS_H

#include "base/option.h"
#include "base/table.h"
#include "theory/partial.h"

// The options that select a source; their values are dsc_option_value[CLI_ROWS_OPTIONS].
enum {
    CLI_ROWS_BERNOULLI,
    CLI_ROWS_UNIFORM,
    CLI_ROWS_ZIPF,
    CLI_ROWS_SEED,
    CLI_ROWS_DRAFT,
    CLI_ROWS_TARGET,
    CLI_ROWS_ROWS,
    CLI_ROWS_TRACE,
    CLI_ROWS_REQUEST,
    CLI_ROWS_POSITION,
    CLI_ROWS_NORMALIZE,
    CLI_ROWS_LOGITS,
    CLI_ROWS_TEMPERATURE,
    CLI_ROWS_TOP_K,
    CLI_ROWS_TOP_P,
    CLI_ROWS_OPTIONS
};
extern const dsc_option cli_rows_options[CLI_ROWS_OPTIONS];

// One pair of distributions. Zero-initialize; cli_pair_fini frees. Reading another pair into it
// reuses its memory.
typedef struct cli_pair {
    char label[96]; // "Ber(0.25) to Ber(0.5)", "row 3", "request 2 position 17"
    int64_t vocab;
    bool whole;             // draft and target are complete; else only the listed tokens are known
    double *draft, *target; // [vocab], each sums to 1
    size_t draft_capacity, target_capacity;
    dsc_partial_row draft_listed, target_listed; // theory/partial.h; they point into `listed`
    struct cli_listed *listed;
} cli_pair;
void cli_pair_fini(cli_pair *p);

// An open source. Its open function sets the fields after `all`.
typedef struct cli_rows {
    const dsc_option_value *value; // [CLI_ROWS_OPTIONS], owned by the caller
    bool all;                      // --trace is valid without --request
    int64_t count;                 // number of pairs
    void *state;                   // freed by `close`, also after a failed open
    // Reads pair i, 0 <= i < count, checked and normalized. A trace is fastest in ascending order
    // of i. DSC_EINPUT names the file, the row and the element.
    int (*read)(struct cli_rows *r, int64_t i, cli_pair *p, dsc_error *err);
    void (*close)(void *state);
    // Adds comment lines to a table: the trace and its hash, or the seed. NULL: none.
    int (*comments)(const struct cli_rows *r, dsc_table *t, dsc_error *err);
} cli_rows;

// Opens the source that the options name; cli_rows_close frees, also after an error. DSC_EUSAGE: no
// source, several sources, or an option that the source does not have; DSC_EINPUT: a bad file.
int cli_rows_open(cli_rows *r, const dsc_option_value *value, bool all, dsc_error *err);
void cli_rows_close(cli_rows *r);

// --- the sources (theory_families.c, theory_files.c, theory_trace.c) ---

int cli_open_bernoulli(cli_rows *r, dsc_error *err);
int cli_open_uniform(cli_rows *r, dsc_error *err);
int cli_open_zipf(cli_rows *r, dsc_error *err);
int cli_open_files(cli_rows *r, dsc_error *err);
int cli_open_trace(cli_rows *r, dsc_error *err);

// --- theory_pair.c: what they share ---

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

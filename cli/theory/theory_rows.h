// SPDX-License-Identifier: Apache-2.0
// Where the pairs of distributions come from that `draftscope theory accept` compares: families,
// files of rows, or a recorded trace.
#ifndef DSC_CLI_THEORY_ROWS_H
#define DSC_CLI_THEORY_ROWS_H

#include "base/option.h"
#include "base/table.h"
#include "theory/partial.h"

// The options that choose them; their values are an array dsc_option_value[CLI_ROWS_OPTIONS].
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

// One pair of distributions. Zero-initialise; cli_pair_fini frees. Reused from pair to pair.
typedef struct cli_pair {
    char label[96]; // "Ber(0.25) to Ber(0.5)", "row 3", "request 2 position 17"
    int64_t vocab;
    bool whole; // the distributions are in draft and target; else only the listed rows are known
    double *draft, *target;                      // [vocab], each sums to 1
    size_t capacity;                             // of both
    dsc_partial_row draft_listed, target_listed; // see theory/partial.h; point into `listed`
    struct cli_listed *listed;
} cli_pair;
void cli_pair_fini(cli_pair *p);

typedef struct cli_rows cli_rows;

// Opens what the options name. `all`: a trace may be given without a request. DSC_EUSAGE: none or
// several sources, or an option that does not go with the source; DSC_EINPUT: a bad file.
int cli_rows_open(cli_rows **out, const dsc_option_value *value, bool all, dsc_error *err);
void cli_rows_close(cli_rows *r);

int64_t cli_rows_count(const cli_rows *r); // pairs

// Comment lines of a table: trace and its hash, or seed.
int cli_rows_comments(const cli_rows *r, dsc_table *t, dsc_error *err);

// Reads pair i, 0 <= i < count, checked and normalised. For a trace, ascending i is fast.
// DSC_EINPUT names file, row and element.
int cli_rows_read(cli_rows *r, int64_t i, cli_pair *p, dsc_error *err);

#endif

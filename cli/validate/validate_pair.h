// SPDX-License-Identifier: Apache-2.0
// Comparison of two recorded runs of the same requests, A without and B with speculation:
// `draftscope validate A.dst B.dst`. It gives the measured speedup, and what is predicted from one
// of the runs.
#ifndef DSC_CLI_VALIDATE_PAIR_H
#define DSC_CLI_VALIDATE_PAIR_H

#include "cli/cli.h"
#include "cli/validate/validate_times.h"
#include "sim/cost/cost.h"
#include "traces/trace/trace_groups.h"

enum { VALIDATE_A, VALIDATE_B, VALIDATE_RUNS };

// Which of B's requests is which of A's, by id and otherwise by prompt (validate_pair_match.c).
typedef struct validate_matches {
    int64_t *request[VALIDATE_RUNS]; // [count] the requests of a pair, in the order of A
    int64_t *pair[VALIDATE_RUNS];    // [requests] the pair of a request, -1: none
    size_t count, by_prompt;         // pairs; those that were found by prompt
    size_t other_prompt;             // requests of B whose id is in A with another prompt
} validate_matches;                  // zero-initialize; validate_matches_fini frees

// DSC_EINPUT: an id occurs twice in a trace, the tokenizers or the models (metadata field `model`)
// differ, or no request is in both.
int validate_match(validate_matches *m, dsc_trace *const trace[VALIDATE_RUNS], dsc_error *err);
void validate_matches_fini(validate_matches *m);

// Where the predicted speedup comes from.
typedef enum validate_pair_source {
    VALIDATE_HELD_OUT, // B's calls, with step times of both runs fitted to the other groups
    VALIDATE_STEPS,    // B's recorded steps, with a cost model
    VALIDATE_METHOD,   // a method on A's text, with a cost model
} validate_pair_source;

typedef struct validate_pair {
    dsc_trace *trace[VALIDATE_RUNS];
    validate_matches matches;
    dsc_trace_groups by;                 // of A's requests; without a field there is one group
    size_t groups;                       // at least 1
    validate_turns turns[VALIDATE_RUNS]; // of the pairs; group: that of A's request
    double *tokens[VALIDATE_RUNS];       // [pairs]
    double *time_s[VALIDATE_RUNS];       // [pairs] measured
    double *rate[VALIDATE_RUNS];         // [pairs] tokens per second
    double *ones;                        // [pairs]
    int64_t *request;                    // [pairs] 0, 1, 2, ...
    validate_pair_source source;
    dsc_cost cost;
    double *predicted; // [1 + groups] speedup over all pairs and of each group; NaN: unknown
} validate_pair;       // zero-initialize

// The group of a pair, in [0, groups).
static inline int32_t validate_pair_group(const validate_pair *p, size_t pair)
{
    return p->by.field ? p->by.of[p->matches.request[VALIDATE_A][pair]] : 0;
}

// Fills p->predicted (validate_pair_predict.c). `config` is for VALIDATE_METHOD.
int validate_pair_predict(validate_pair *p, const dsc_config *config, const cli_call *call,
                          int threads, dsc_error *err);

// --- the command (validate_pair.c) ---------------------------------------------------------------

enum { VALIDATE_PAIR_COLUMNS = 17 };
extern const dsc_column validate_pair_columns[VALIDATE_PAIR_COLUMNS];

// What the options say: --by and the tables of options that live runs also have.
typedef struct validate_pair_options {
    const char *by, *cost; // or NULL
    int resamples, threads;
    uint64_t seed;
    double tolerance; // percent
} validate_pair_options;

// Fills the table, with its comments; *failed: rows whose verdict is fail. DSC_EINPUT, DSC_EUSAGE.
int validate_pair_run(dsc_table *t, const cli_call *call, const validate_pair_options *options,
                      size_t *failed, dsc_error *err);

#endif

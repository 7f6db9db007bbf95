// SPDX-License-Identifier: Apache-2.0
// Comparison of live runs with the simulator's predictions from a trace of the same models:
// `draftscope validate --trace T.dst --live RESULTS.jsonl`. A line of results is a run of one
// configuration, as `draftscope live run --json` prints it.
#ifndef DSC_CLI_VALIDATE_LIVE_H
#define DSC_CLI_VALIDATE_LIVE_H

#include "cli/cli.h"
#include "sim/cost/cost.h"
#include "sim/drafter.h"
#include "sim/tune/compare.h"
#include "sim/verifier.h"

#include <jansson.h>

// Counts and times of each request of a run.
enum {
    VALIDATE_OUTPUT_TOKENS,
    VALIDATE_TARGET_CALLS,
    VALIDATE_DRAFT_TOKENS,
    VALIDATE_ACCEPTED_TOKENS,
    VALIDATE_DRAFT_CALLS,
    VALIDATE_COUNTS,
    VALIDATE_TIME = VALIDATE_COUNTS,
    VALIDATE_PREFILL,
    VALIDATE_NLL, // only above temperature 0
    VALIDATE_ENTROPY,
    VALIDATE_PLAIN_TOKENS, // this and the next ones: only with --baseline
    VALIDATE_PLAIN_TIME,
    VALIDATE_PLAIN_PREFILL,
    VALIDATE_LISTS
};

typedef struct validate_requests {
    size_t requests;
    double *list[VALIDATE_LISTS]; // [requests]; NULL: not measured
    double *histogram;            // [requests][histogram_length] calls that accepted 0, 1, ...
    size_t histogram_length;
} validate_requests; // zero-initialize; validate_requests_fini frees

int validate_requests_init(validate_requests *r, size_t requests, size_t histogram_length,
                           int lists, dsc_error *err);
void validate_requests_fini(validate_requests *r);

enum { VALIDATE_SIDES = 3 }; // target, draft, middle
extern const char *const validate_sides[VALIDATE_SIDES];

// Hashes of a model; NULL: the run has no such model.
typedef struct validate_model {
    const char *config_sha256, *weights_sha256;
} validate_model;

// A line of results. The JSON object owns the texts.
typedef struct validate_line {
    size_t number; // line number in the file, from 1
    json_t *root;
    dsc_config config; // prepared
    const dsc_verifier_type *rule;
    double temperature, top_p;
    int64_t top_k, seed, max_tokens;
    int64_t first_request; // index in the trace; of a replayed run, among requests with an output
    bool same_rounding;    // rounding does not depend on the width: greedy outputs must be equal
    bool baseline;
    double divergences;     // NaN: not compared
    const char *trace_hash; // trace of a replayed run, else NULL
    const char *prompts_sha256, *outputs_sha256;
    validate_model model[VALIDATE_SIDES];
    validate_requests requests;
    dsc_counts counts; // totals for a cost model; counts.histogram is owned
    double draft_s, verify_s;
    bool outputs_equal; // outputs equal those of the trace
} validate_line;

// The index after the last request of the line.
static inline size_t validate_end(const validate_line *l)
{
    return (size_t)l->first_request + l->requests.requests;
}

typedef struct validate_results {
    const char *path;
    validate_line *line; // [count]
    size_t count, capacity;
} validate_results; // zero-initialize; validate_results_fini frees

// Reads all lines. DSC_EINPUT: "FILE:LINE: ...".
int validate_results_read(validate_results *r, const char *path, dsc_error *err);
void validate_results_fini(validate_results *r);
// Checks that every line and the trace have the same prompts, models and sampling options, and sets
// outputs_equal. DSC_EINPUT names the line and both values.
int validate_results_check(validate_results *r, const dsc_trace *trace, dsc_error *err);

// Returns whether two lines have the same configuration: method, rule, parameters, temperature,
// requests, and whether they are replayed.
bool validate_same(const validate_line *a, const validate_line *b);
// Describes the parameters that differ from their defaults, as in "length=4"; if none does, the
// first parameter that bounds the draft length, or the first one. *out is owned by the caller.
int validate_parameters(char **out, const dsc_config *config, dsc_error *err);

// --- predictions (validate_live_predict.c) -----------------------------------------------------

typedef struct validate_prediction {
    bool known;
    const validate_requests *requests; // `own`, or those of a replayed line
    validate_requests own;
    char source[96];   // "expect: draft_rank", "loop", "replayed run"
    char why[1024];    // reason where not known
    bool ends_unknown; // drafts may have ended elsewhere than in the run: at an EOS token that is
                       // not in the output, or at the end of an output that a stop string ended
    bool exact;        // nothing was sampled and nothing rounds: the counts must be equal
    // Times by the cost model; NaN without one, or where it lacks the time of a pass.
    bool measured_counts; // the times are for the measured counts
    double draft_s_per_call, verify_s_per_call, speedup;
    char cost_note[1024]; // reason for missing times
} validate_prediction;    // zero-initialize; validate_prediction_fini frees

// Predicts the line's configuration on the trace's requests by simulation. Where the simulator
// cannot, the counts come from `replayed` (or NULL), a line of the same configuration that replayed
// the trace. `cost` NULL: no times.
int validate_predict(validate_prediction *p, const dsc_trace *trace, const validate_line *line,
                     const validate_line *replayed, const dsc_cost *cost, int threads,
                     dsc_error *err);
void validate_prediction_fini(validate_prediction *p);

// --- the command (validate_live.c) -------------------------------------------------------------

enum {
    VALIDATE_TRACE,
    VALIDATE_LIVE,
    VALIDATE_COST,
    VALIDATE_BOOTSTRAP,
    VALIDATE_SEED,
    VALIDATE_THREADS,
    VALIDATE_Z,
    VALIDATE_POOLED,
    VALIDATE_SPEEDUP,
    VALIDATE_SECONDS,
    VALIDATE_LIVE_OPTIONS
};
extern const dsc_option validate_live_options[VALIDATE_LIVE_OPTIONS];
enum { VALIDATE_LIVE_COLUMNS = 16 };
extern const dsc_column validate_live_columns[VALIDATE_LIVE_COLUMNS];

// Numbers of configurations by verdict, and the largest errors.
typedef struct validate_summary {
    size_t configurations, passed, failed, unknown; // configurations
    size_t pooled_failed;
    double worst_z, worst_speedup; // absolute; NaN: none
    char first[512];               // describes the first failure, "" without one
} validate_summary;

// Fills the table, with its comments, and the summary. DSC_EINPUT, DSC_EUSAGE.
int validate_live(dsc_table *t, const dsc_option_value *value, validate_summary *summary,
                  dsc_error *err);
// Prints the summary on stderr; DSC_ECHECK when a configuration fails.
int validate_live_sum_up(const validate_summary *summary, dsc_error *err);

// --- the rows of the table (validate_live_rows.c) ----------------------------------------------

// One configuration: its lines, the measured sums and the prediction.
typedef struct validate_group {
    const validate_line *first;
    const validate_line **line; // [lines] of the results, in their order
    size_t lines;
    size_t seeds;               // number of different seeds
    char *parameters;           // owned
    validate_requests measured; // sums over the seeds
    validate_prediction predicted;
} validate_group;

typedef struct validate_comparison {
    dsc_table *table;
    const dsc_option_value *value;
    const dsc_trace *trace;
    validate_results results;
    validate_group *group; // [groups]
    size_t groups;
    const validate_line **line; // [results.count] memory of the groups' lines
    dsc_cost cost;
    bool costs;       // `cost` is set
    int64_t *request; // 0, 1, 2, ...
    validate_summary *summary;
    bool failed, unknown; // verdicts of the configuration whose rows are added
    size_t sampled;       // number of comparisons of sampled counts, for the family-wise threshold
} validate_comparison;

// Adds the rows of a configuration, which has been predicted.
int validate_put_group(validate_comparison *c, const validate_group *g, dsc_error *err);
// Returns whether two configurations are pooled: both are predicted, not replayed, and have one
// method and rule.
bool validate_pools(const validate_group *a, const validate_group *b);
// Adds the pooled row of configuration `first` and of the later ones that are pooled with it.
int validate_put_pooled(validate_comparison *c, size_t first, dsc_error *err);

#endif

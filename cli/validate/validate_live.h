// SPDX-License-Identifier: Apache-2.0
// What was measured on real models beside what the simulator makes of a trace of them: `draftscope
// validate --trace T.dst --live RESULTS.jsonl`. A line of results is a run of one configuration, as
// `draftscope live run --json` prints it.
#ifndef DSC_CLI_VALIDATE_LIVE_H
#define DSC_CLI_VALIDATE_LIVE_H

#include "cli/cli.h"
#include "sim/cost/cost.h"
#include "sim/drafter.h"
#include "sim/tune/compare.h"
#include "sim/verifier.h"

#include <jansson.h>

// What a run counts, and times, of each request.
enum {
    VALIDATE_OUTPUT_TOKENS,
    VALIDATE_TARGET_CALLS,
    VALIDATE_DRAFT_TOKENS,
    VALIDATE_ACCEPTED_TOKENS,
    VALIDATE_DRAFT_CALLS,
    VALIDATE_COUNTS,
    VALIDATE_TIME = VALIDATE_COUNTS,
    VALIDATE_PREFILL,
    VALIDATE_NLL, // above temperature 0
    VALIDATE_ENTROPY,
    VALIDATE_PLAIN_TOKENS, // from here on: with --baseline
    VALIDATE_PLAIN_TIME,
    VALIDATE_PLAIN_PREFILL,
    VALIDATE_LISTS
};

typedef struct validate_requests {
    size_t requests;
    double *list[VALIDATE_LISTS]; // [requests]; NULL: not there
    double *histogram;            // [requests][histogram_length] calls that accepted 0, 1, ...
    size_t histogram_length;
} validate_requests; // zero-initialise; validate_requests_fini

int validate_requests_init(validate_requests *r, size_t requests, size_t histogram_length,
                           int lists, dsc_error *err);
void validate_requests_fini(validate_requests *r);

enum { VALIDATE_SIDES = 3 }; // target, draft, middle
extern const char *const validate_sides[VALIDATE_SIDES];

// Hashes of a model; NULL: there is no such model.
typedef struct validate_model {
    const char *config_sha256, *weights_sha256;
} validate_model;

// A line. Texts are the JSON object's.
typedef struct validate_line {
    size_t number; // in the file, from 1
    json_t *root;
    dsc_config config; // prepared
    const dsc_verifier_type *rule;
    double temperature, top_p;
    int64_t top_k, seed, max_tokens;
    int64_t first_request; // of the trace, or, of a replayed run, of its requests with an output
    bool same_rounding;    // passes of any width round alike: greedy outputs must be equal
    bool baseline;
    double divergences;     // NaN: not compared
    const char *trace_hash; // of a replayed run, else NULL
    const char *prompts_sha256, *outputs_sha256;
    validate_model model[VALIDATE_SIDES];
    validate_requests requests;
    dsc_counts counts; // totals, as a cost model needs them; counts.histogram owned
    double draft_s, verify_s;
    bool outputs_equal; // to those of the trace
} validate_line;

// The request of the trace behind the last one of the line.
static inline size_t validate_end(const validate_line *l)
{
    return (size_t)l->first_request + l->requests.requests;
}

typedef struct validate_results {
    const char *path;
    validate_line *line; // [count]
    size_t count, capacity;
} validate_results; // zero-initialise; validate_results_fini

// Reads all lines. DSC_EINPUT: "FILE:LINE: ...".
int validate_results_read(validate_results *r, const char *path, dsc_error *err);
void validate_results_fini(validate_results *r);
// Holds every line against the trace: prompts, models, sampling; sets outputs_equal.
// DSC_EINPUT names the line and both values.
int validate_results_check(validate_results *r, const dsc_trace *trace, dsc_error *err);

// Whether two lines are of one configuration: method, rule, parameters, temperature, as many
// requests, replayed or not.
bool validate_same(const validate_line *a, const validate_line *b);
// "length=4": what is not at its default, else the first parameter that bounds the length, or the
// first. *out owned by the caller.
int validate_parameters(char **out, const dsc_config *config, dsc_error *err);

// --- predictions (validate_live_predict.c) -----------------------------------------------------

typedef struct validate_prediction {
    bool known;
    validate_requests requests;
    char source[96];   // "expect: draft_rank", "loop", "replayed run"
    char why[1024];    // not known: a sentence
    bool ends_unknown; // that a draft would have ended with an EOS token, off the output
    bool exact;        // nothing was drawn and nothing rounds: the counts must be equal
    // By the cost model; NaN without one, or where it does not know a pass.
    bool measured_counts; // priced are the counts that were measured
    double draft_s_per_call, verify_s_per_call, speedup;
    char cost_note[1024]; // why there is no price
} validate_prediction;    // zero-initialise; validate_prediction_fini

// What the simulator says of the line's configuration on the trace's requests, or, where it cannot,
// `replayed` (or NULL), a line of the same configuration that was made with the trace's steps.
// `cost` NULL: no prices.
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
extern const dsc_column validate_live_columns[];
extern const size_t validate_live_column_count;

// Whether it is asked for.
bool validate_live_asked(const dsc_option_value *value);
// Fills the table, with its comments. DSC_EINPUT, DSC_EUSAGE.
int validate_live(dsc_table *t, const dsc_option_value *value, dsc_error *err);
// Says on stderr how it went; DSC_ECHECK when a configuration fails.
int validate_live_sum_up(const dsc_table *t, dsc_error *err);

#endif

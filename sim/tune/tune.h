// SPDX-License-Identifier: Apache-2.0
// Searches for the best configuration and estimates how certain the ranking is.
//
// For each request and each configuration that was tried, two numbers are kept; the ratio of their
// sums over a set of requests is the objective. So the configuration is selected on some requests
// and reported on the others: on the selection set, the objective of the winner is the greatest of
// many and biased upward. Intervals and comparisons resample requests, the same for all
// configurations.
#ifndef DSC_SIM_TUNE_H
#define DSC_SIM_TUNE_H

#include "sim/cost/price.h"
#include "sim/run/run.h"
#include "sim/tune/search.h"
#include "sim/tune/space.h"

typedef enum dsc_objective {
    DSC_OBJECTIVE_SPEEDUP,          // seconds at one token per call / seconds
    DSC_OBJECTIVE_THROUGHPUT,       // tokens / seconds
    DSC_OBJECTIVE_BLOCK_EFFICIENCY, // tokens / target calls
} dsc_objective;

// A batch size and its cost model. Configurations are selected for each of them.
typedef struct dsc_tune_price {
    int64_t batch; // sequences
    const dsc_cost *cost;
} dsc_tune_price;

typedef struct dsc_tune_options {
    dsc_objective objective;
    dsc_search_kind search;
    const dsc_tune_price *price;
    size_t prices; // >= 1
    double
        split; // share of the requests in the selection set, in [0, 1); 0: select and report on all
    int resamples;    // a multiple of 4
    uint64_t seed;    // of split and resamples
    int64_t requests; // of the trace or the workload
} dsc_tune_options;

// Totals of a configuration over some requests.
typedef struct dsc_trial_totals {
    int64_t output_tokens;
    double num_draft_tokens, draft_calls;
    dsc_metrics metrics; // their lists are in dsc_tune.lists
} dsc_trial_totals;

// A configuration that was run.
typedef struct dsc_trial {
    const dsc_space *space;
    size_t point;
    const dsc_verifier_type *rule;
    dsc_trial_totals totals;  // of all requests
    dsc_trial_totals *groups; // [groups] of the run's groups, in dsc_tune.lists; NULL: no groups
    // [sides][prices][requests], owned: the objective is top/bottom
    double *top, *bottom;
} dsc_trial;

// The outcome of the search of one method, for one price.
typedef struct dsc_tune_report {
    const dsc_space *space;
    size_t price;
    dsc_search_result search;
    size_t tried,
        refused; // configurations of the space tried so far; those that the method refuses
} dsc_tune_report;

typedef struct dsc_tune {
    dsc_tune_options options;
    // 3 when a cost has quartiles, else 1: sums at typical times, at the third quartile of the
    // run's passes and at the first (dsc_cost.quartile)
    size_t sides;
    int64_t *request;            // [requests] the selection set in ascending order, then the others
    size_t selection, test;      // their numbers; without a split both sets contain all requests
    const int64_t *test_request; // [test]
    dsc_trial *trial;
    size_t trials, trial_capacity;
    dsc_arena lists; // of the trials' metrics
    dsc_tune_report *report;
    size_t reports, report_capacity;
    size_t refused;
    char why_refused[256]; // why the first one was refused
} dsc_tune;

// Splits the requests. DSC_EUSAGE: a split of fewer than 2 requests.
int dsc_tune_init(dsc_tune *t, const dsc_tune_options *options, dsc_error *err);
void dsc_tune_fini(dsc_tune *t);

// DSC_EUSAGE: the search cannot take this space. GOLDEN needs one parameter with several values
// that are numbers in ascending order.
int dsc_tune_check(dsc_search_kind search, const dsc_space *space, dsc_error *err);

// Searches a space for each price. The configurations that the search evaluates are run on all
// requests. `run`: engine, rule, workload, seed, threads; its progress gets output tokens x
// configurations. The space and the costs must outlive t. DSC_EUSAGE: as dsc_run; a search that
// cannot take the space; more memory than DSC_TUNE_MOST_BYTES. DSC_EINTERRUPT: the progress
// function stopped it; t contains the trials that were finished.
int dsc_tune_run(dsc_tune *t, const dsc_trace *trace, const dsc_space *space,
                 const dsc_run_options *run, dsc_error *err);
#define DSC_TUNE_MOST_BYTES ((size_t)1 << 30)

// Makes *out the same search on the requests of one group only, the selection set and the test set
// among them: it can be ranked and advised on. `of` [requests] are the groups that `run` had. It
// borrows from t, which must outlive it. dsc_tune_group_fini frees.
int dsc_tune_group(const dsc_tune *t, const int32_t *of, int32_t group, dsc_tune *out,
                   dsc_error *err);
void dsc_tune_group_fini(dsc_tune *out);

// Adds a zeroed trial; *out is valid until the next call. dsc_tune_run does the same; it is public
// for tests and for measurements from elsewhere.
int dsc_tune_add(dsc_tune *t, const dsc_space *space, size_t point, dsc_trial **out,
                 dsc_error *err);

// A row of the ranking.
typedef struct dsc_standing {
    size_t trial;
    double selection, test;              // the objective on both sets
    double low, high;                    // 95 % of test, over requests
    double ratio, ratio_low, ratio_high; // to the first, on the test set, in the same resamples
    bool significant;                    // the 95 % interval of ratio excludes 1
} dsc_standing;

// Ranks all trials by their objective on the selection set, the best first. Of equal trials the one
// with fewer draft tokens comes first, then the one that was tried first. Upper bounds come last.
// *out [t->trials] is the
// caller's.
int dsc_tune_rank(const dsc_tune *t, size_t price, int threads, dsc_standing **out, dsc_error *err);

// Lowers the number of resamples so that ranking and judging what an interrupted search found takes
// about a second.
void dsc_tune_hurry(dsc_tune *t);

// Draft tokens per output token: the tokens that the target verifies in addition to the output.
double dsc_trial_drafted(const dsc_trial *x);
// Whether the trial is an upper bound and no method that can be run (dsc_drafter_type.is_bound).
bool dsc_trial_is_bound(const dsc_trial *x);

#endif

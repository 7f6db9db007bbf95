// SPDX-License-Identifier: Apache-2.0
// Which configuration is the best, and how sure that is.
//
// What is kept is what each request gave with each configuration that was tried: two numbers whose
// sums over any set of requests make the objective. So the configuration is chosen on some of the
// requests and reported on the others (the figure it was chosen by is the greatest of many and too
// high), and intervals and comparisons come from resampling requests, the same for all
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

// What a run costs at a batch size. Configurations are chosen for each of them.
typedef struct dsc_tune_price {
    int64_t batch; // sequences
    const dsc_cost *cost;
} dsc_tune_price;

typedef struct dsc_tune_options {
    dsc_objective objective;
    dsc_search_kind search;
    const dsc_tune_price *price;
    size_t prices;    // >= 1
    double split;     // share of the requests to choose on, in [0, 1); 0: choose and report on all
    int resamples;    // a multiple of 4
    uint64_t seed;    // of split and resamples
    int64_t requests; // of the trace or the workload
} dsc_tune_options;

// A configuration that was run.
typedef struct dsc_trial {
    const dsc_space *space;
    size_t point;
    const dsc_verifier_type *rule;
    int64_t output_tokens;                // of all requests
    double num_draft_tokens, draft_calls; // likewise
    double *top, *bottom;                 // [prices][requests], owned: the objective is top/bottom
} dsc_trial;

// How the search of a method went, for one price.
typedef struct dsc_tune_report {
    const dsc_space *space;
    size_t price;
    dsc_search_result search;
    size_t tried, refused; // of the space so far; configurations that the method itself refuses
} dsc_tune_report;

typedef struct dsc_tune {
    dsc_tune_options options;
    int64_t *request; // [requests] those to choose on in ascending order, then the others
    size_t dev, test; // how many; without a split both are all of them
    const int64_t *test_request; // [test]
    dsc_trial *trial;
    size_t trials, trial_capacity;
    dsc_tune_report *report;
    size_t reports, report_capacity;
    size_t refused;
    char why_refused[256]; // the first of them
} dsc_tune;

// Splits the requests. DSC_EUSAGE: fewer than 2 requests and a split.
DSC_API int dsc_tune_init(dsc_tune *t, const dsc_tune_options *options, dsc_error *err);
DSC_API void dsc_tune_fini(dsc_tune *t);

// DSC_EUSAGE: the search cannot go through the space. GOLDEN takes one parameter with several
// values, numbers in ascending order.
DSC_API int dsc_tune_check(dsc_search_kind search, const dsc_space *space, dsc_error *err);

// Searches a space for each price, running what the search asks for, on all requests. `run`:
// engine, rule, workload, seed, threads; its progress gets output tokens x configurations. The
// space and the costs outlive t. DSC_EUSAGE: as dsc_run; a search that does not fit the space; more
// memory than DSC_TUNE_MOST_BYTES.
DSC_API int dsc_tune_run(dsc_tune *t, const dsc_trace *trace, const dsc_space *space,
                         const dsc_run_options *run, dsc_error *err);
#define DSC_TUNE_MOST_BYTES ((size_t)1 << 30)

// Room for a trial, zeroed; *out is valid until the next one. What dsc_tune_run does, for tests and
// for numbers from elsewhere.
DSC_API int dsc_tune_add(dsc_tune *t, const dsc_space *space, size_t point, dsc_trial **out,
                         dsc_error *err);

// A place in the ranking.
typedef struct dsc_standing {
    size_t trial;
    double dev, test;                    // the objective on both sets
    double low, high;                    // 95 % of test, over requests
    double ratio, ratio_low, ratio_high; // to the first, on the test set, in the same resamples
    bool significant;                    // the 95 % interval of ratio excludes 1
} dsc_standing;

// All trials by their objective on the requests to choose on, the best first; of equal ones that
// which drafts less, then that which was tried first. *out [t->trials] is the caller's.
DSC_API int dsc_tune_rank(const dsc_tune *t, size_t price, int threads, dsc_standing **out,
                          dsc_error *err);

// Draft tokens per output token: what verification pays for beyond the output itself.
DSC_API double dsc_trial_drafted(const dsc_trial *x);

#endif

// SPDX-License-Identifier: Apache-2.0
// Runs configurations over a whole trace: shard by shard, requests in parallel, in constant memory.
#ifndef DSC_SIM_RUN_H
#define DSC_SIM_RUN_H

#include "sim/verifier.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dsc_workload dsc_workload; // sim/model/workload.h

typedef enum dsc_engine {
    DSC_ENGINE_AUTO,   // EXPECT where it is possible, else LOOP
    DSC_ENGINE_LOOP,   // sim/loop.h
    DSC_ENGINE_EXPECT, // sim/expect/expect.h, sim/expect/expect_rule.h; DSC_EUSAGE for what
                       // neither can replay
} dsc_engine;

enum { DSC_MAX_THREADS = 1024, DSC_EVERY_REQUEST = -1 };

typedef struct dsc_run_options {
    dsc_engine engine;
    const dsc_verifier_type *rule; // NULL: greedy
    const dsc_workload *workload;  // models in addition to the trace or in its place; NULL: none
    bool widths;                   // count target calls by their tokens (loop only)
    int threads;                   // 1 to DSC_MAX_THREADS; results do not depend on it
    uint64_t seed;
    // Runs only requests [first, end); end 0: up to the last. The counts of ranges add up to those
    // of all requests unless the method carries state from one request to the next.
    int64_t first_request, end_request;
    // Of these, the first `warmup` are run and not counted, and `request` is not called for them.
    // They fill what a method carries from one request to the next.
    int64_t warmup;
    // Counts also groups of requests: request r of the trace is in group[r], 0 <= group[r] <
    // groups. NULL and 0: no groups.
    const int32_t *group; // [requests of the trace]
    int32_t groups;
    // Called between chunks of requests with the output tokens done and those of all requests.
    // Nonzero stops the run with DSC_EINTERRUPT.
    int (*progress)(void *user, int64_t done, int64_t total);
    // Called after each request, in the order of the trace or the workload, with the counts[count]
    // of the request, one for each configuration.
    int (*request)(void *user, const dsc_request *request, const dsc_counts *counts,
                   dsc_error *err);
    // Called after each step of request `watched`, or of all requests; those of different requests
    // come from several threads. It needs a single configuration and selects the loop.
    int (*step)(void *user, const dsc_step_record *record, dsc_error *err);
    int64_t watched; // or DSC_EVERY_REQUEST
    void *user;
    dsc_loop_steps steps; // of the loop
} dsc_run_options;

// The engine of a run, and the reason for it.
typedef struct dsc_engine_choice {
    dsc_engine engine; // LOOP or EXPECT
    bool expected;     // its results are expectations (dsc_counts.expected)
    bool recorded;     // the recording of a draft model replaces it in the loop
    char reads[64];    // columns of the trace, when `expected`: "draft_logp, target_logp"; else ""
    char why[128];     // "expectations given the recorded output, from draft_logp, target_logp"
} dsc_engine_choice;

// DSC_EUSAGE: method, rule, models, engine and the columns of the trace are not compatible, or an
// argument is not one that dsc_run takes.
DSC_API int dsc_run_choose(const dsc_trace *trace, const dsc_config *config, size_t count,
                           const dsc_run_options *options, dsc_engine_choice *out, dsc_error *err);

// The counts of every configuration, of all requests and then of each group of requests. The
// integers of the groups add up to those of all requests.
typedef struct dsc_results {
    dsc_counts *counts;     // [configurations][1 + groups]
    size_t count;           // of all of these
    int64_t *histograms;    // storage of all lists
    dsc_expected *expected; // [count] of counts[].expected, or NULL
} dsc_results;

DSC_API void dsc_results_fini(dsc_results *r); // nothing if r is NULL

// Runs all configurations (of one drafter, prepared) over the requests of the trace, or, when that
// is NULL, of the workload. *out is owned by the caller and valid only on DSC_OK. DSC_EUSAGE:
// method, rule, models and engine are not compatible; there is neither a trace nor a workload; a
// configuration is not prepared; options are outside their ranges; another pointer is NULL.
DSC_API int dsc_run(const dsc_trace *trace, const dsc_config *config, size_t count,
                    const dsc_run_options *options, dsc_results *out, dsc_error *err);

#ifdef __cplusplus
}
#endif

#endif

// SPDX-License-Identifier: Apache-2.0
// Configurations over a whole trace: shard by shard, requests in parallel, constant memory.
#ifndef DSC_SIM_RUN_H
#define DSC_SIM_RUN_H

#include "sim/verifier.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dsc_workload dsc_workload; // sim/model/workload.h

typedef enum dsc_engine {
    DSC_ENGINE_AUTO,   // expect where it can be, else the loop
    DSC_ENGINE_LOOP,   // sim/loop.h
    DSC_ENGINE_EXPECT, // sim/expect/expect.h, sim/expect/expect_rule.h; refused for what neither
                       // can replay
} dsc_engine;

typedef struct dsc_run_options {
    dsc_engine engine;
    const dsc_verifier_type *rule; // NULL: greedy
    const dsc_workload *workload;  // models beside the trace or in its place; NULL: none
    bool widths;                   // count target calls by their tokens (loop only)
    int threads;                   // >= 1; results do not depend on it
    uint64_t seed;
    // Of the requests only [first, end), end 0: to the last. Ranges add up to the whole unless the
    // method carries something from one request to the next.
    int64_t first_request, end_request;
    // Between chunks of requests: output tokens done, and in all requests; nonzero stops with
    // DSC_EINTERRUPT.
    int (*progress)(void *user, int64_t done, int64_t total);
    // After each request, in trace order (in that of the workload), with its own counts[count], one
    // for each configuration.
    int (*request)(void *user, const dsc_request *request, const dsc_counts *counts,
                   dsc_error *err);
    // After each step of request `watched`, from one thread; needs a single configuration and the
    // loop, which it chooses.
    int (*step)(void *user, const dsc_step_record *record, dsc_error *err);
    int64_t watched;
    void *user;
} dsc_run_options;

// What a run would be, and why.
typedef struct dsc_engine_choice {
    dsc_engine engine; // LOOP or EXPECT
    bool expected;     // its results are expectations (dsc_counts.expected)
    bool recorded;     // the loop's draft model is what the trace recorded of one
    char reads[64];    // of the trace, when `expected`: "draft_logp, target_logp"; else ""
    char why[128];     // "no draws: every probability is known from draft_logp, target_logp"
} dsc_engine_choice;

// DSC_EUSAGE: method, rule, models, engine and what the trace records do not fit together.
DSC_API int dsc_run_choose(const dsc_trace *trace, const dsc_config *config, size_t count,
                           const dsc_run_options *options, dsc_engine_choice *out, dsc_error *err);

// Counts of every configuration.
typedef struct dsc_results {
    dsc_counts *counts; // [count]
    size_t count;
    int64_t *histograms;    // storage, of the widths too
    dsc_expected *expected; // [count] of counts[].expected, or NULL
} dsc_results;

DSC_API void dsc_results_fini(dsc_results *r);

// Runs all configurations (of one drafter, prepared) over the requests of the trace, or, when that
// is NULL, of the workload. *out is owned by the caller and valid only on DSC_OK. DSC_EUSAGE:
// method, rule, models and engine do not fit together.
DSC_API int dsc_run(const dsc_trace *trace, const dsc_config *config, size_t count,
                    const dsc_run_options *options, dsc_results *out, dsc_error *err);

#ifdef __cplusplus
}
#endif

#endif

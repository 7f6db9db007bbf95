// SPDX-License-Identifier: Apache-2.0
// What a line of results says beyond the totals, so that it can be compared with a prediction
// (draftscope validate --live): each request by itself, the passes as a cost model needs them, and
// what it is a result of.
#ifndef DSC_LIVE_RUN_DETAIL_H
#define DSC_LIVE_RUN_DETAIL_H

#include "base/table.h"
#include "live/program/likelihood.h"
#include "live/program/provenance.h"
#include "live/program/run.h"

enum { LIVE_RESULT_SCHEMA = 1 };

// A request, and the same one by plain decoding.
typedef struct live_request_detail {
    int64_t output_tokens, target_calls, num_draft_tokens, num_accepted_tokens, draft_calls;
    double time_s, prefill_s;
    live_likelihood likelihood;
    int64_t baseline_output_tokens;
    double baseline_time_s, baseline_prefill_s;
} live_request_detail;

typedef struct live_detail {
    live_request_detail *request; // [requests]
    size_t requests, capacity;
    int64_t *histogram; // [requests][histogram_length]
    size_t histogram_length, histogram_capacity;
    bool likelihood;    // it is known
    dsc_sha256 outputs; // traces/trace/token_hash.h
} live_detail;          // live_detail_init, live_detail_fini

void live_detail_init(live_detail *d);
void live_detail_fini(live_detail *d);
// The request that was run last, and its output.
int live_detail_add(live_detail *d, const live_run *run, dsc_token_view output, dsc_error *err);
// Plain decoding of the request that was added last.
void live_detail_compare(live_detail *d, const live_measure *plain, int64_t tokens);

// How likely the output of the request that was added last is to the target.
void live_detail_likelihood(live_detail *d, live_likelihood x);

// What the line is a result of.
typedef struct live_origin {
    const live_pair *pair;
    const dsc_option_value *models; // the options that it was opened with
    const live_prompts *prompts;
    const dsc_counts *counts; // of all requests
    const char *trace_hash;   // of the trace that was forced, or NULL
    uint64_t seed;
    int64_t max_tokens;
    bool replay_draft; // by that trace too
    bool baseline, interrupted;
} live_origin;

// The row of `line`, and behind it these fields, in `t`, which is zero-initialised.
int live_detail_extend(const live_detail *d, const live_origin *o, const dsc_table *line,
                       dsc_table *t, dsc_error *err);
const dsc_column *live_detail_fields(size_t *count); // with their meaning, for --help

#endif

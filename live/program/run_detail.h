// SPDX-License-Identifier: Apache-2.0
// The part of a result line that makes it comparable with a prediction (draftscope validate
// --live): each request by itself, the passes as a cost model needs them, and the provenance.
#ifndef DSC_LIVE_RUN_DETAIL_H
#define DSC_LIVE_RUN_DETAIL_H

#include "live/program/likelihood.h"
#include "live/program/provenance.h"
#include "live/program/run_report.h"

enum { LIVE_RESULT_SCHEMA = 1 };

enum { LIVE_DETAIL_INTEGERS = 6, LIVE_DETAIL_REALS = 6 };

// The lists' entries of one request.
typedef struct live_request_detail {
    int64_t integer[LIVE_DETAIL_INTEGERS];
    double real[LIVE_DETAIL_REALS];
} live_request_detail;

typedef struct live_detail {
    live_request_detail *request; // [requests]
    size_t requests, capacity;
    int64_t *histogram; // [requests][histogram_length]
    size_t histogram_length, histogram_capacity;
    bool likelihood;    // the likelihoods are known
    dsc_sha256 outputs; // traces/trace/token_hash.h
} live_detail;          // live_detail_init, live_detail_fini

void live_detail_init(live_detail *d);
void live_detail_fini(live_detail *d);
// Adds the last request and its output.
int live_detail_add(live_detail *d, const live_run *run, dsc_token_view output, dsc_error *err);
// Adds plain decoding of the last request.
void live_detail_compare(live_detail *d, const live_measure *plain, int64_t tokens);

// Adds the likelihood of the last request's output under the target.
void live_detail_likelihood(live_detail *d, live_likelihood x);

// Provenance of the line.
typedef struct live_origin {
    const live_pair *pair;
    const live_prompts *prompts;
    const dsc_counts *counts; // of all requests
    const char *trace_hash;   // of the replayed trace, or NULL
    uint64_t seed;
    int64_t max_tokens;
    const dsc_ends *ends; // the target's
    const char *stop;     // the stop strings as a JSON list, or NULL
    bool replay_draft;    // the trace's drafts are replayed too
    bool baseline, interrupted;
} live_origin;

// Puts these fields into a row.
void live_detail_put(const live_detail *d, const live_origin *o, live_row *row);
const dsc_column *live_detail_fields(size_t *count); // with their meaning, for --help

#endif

// SPDX-License-Identifier: Apache-2.0
// What a live run adds up to: the counts of sim, the clock, and the comparison with plain decoding.
#ifndef DSC_LIVE_RUN_REPORT_H
#define DSC_LIVE_RUN_REPORT_H

#include "base/table.h"
#include "live/program/run.h"

// Where the output of a method first differs from that of plain decoding.
typedef struct live_divergence {
    int64_t request, position;
    double margin; // by how much the most probable token led there, in plain decoding
} live_divergence;

typedef struct live_report {
    const dsc_config *config;
    const dsc_verifier_type *rule;
    dsc_counts counts; // owned: live_run_counts
    live_measure measure;
    bool baseline; // compared with plain decoding
    bool texts;    // text by text: both say the most probable token
    // Of the requests that both have finished.
    double method_s, plain_s;
    int64_t method_tokens, plain_tokens;
    live_divergence *divergence; // [divergences]
    size_t divergences, capacity;
} live_report; // zero-initialise; live_report_fini

void live_report_fini(live_report *r);
// The request that was run last, or what there is of it.
void live_report_add(live_report *r, const live_run *run);
// The same request by the method and by plain decoding: tokens and margins of the outputs.
typedef struct live_output {
    const int32_t *token; // [count]
    const float *margin;  // [count]
    int64_t count;
} live_output;
int live_report_compare(live_report *r, int64_t request, const live_output *method,
                        const live_measure *time, const live_output *plain,
                        const live_measure *plain_time, dsc_error *err);

// One row: the fields of sim, then these. `t` is zero-initialised.
int live_report_table(const live_report *r, dsc_table *t, dsc_error *err);
const dsc_column *live_report_fields(size_t *count); // with their meaning, for --help

#endif

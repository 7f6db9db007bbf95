// SPDX-License-Identifier: Apache-2.0
// The results of a live run: the counts of sim, the wall times, and the comparison with plain
// decoding.
#ifndef DSC_LIVE_RUN_REPORT_H
#define DSC_LIVE_RUN_REPORT_H

#include "base/table.h"
#include "live/program/run.h"

// Where the output of a method first differs from that of plain decoding.
typedef struct live_divergence {
    int64_t request, position;
    double margin; // lead of the largest logit there, in plain decoding
} live_divergence;

typedef struct live_report {
    const dsc_config *config;
    const dsc_verifier_type *rule;
    dsc_counts counts; // owned: live_run_counts
    live_measure measure;
    bool baseline; // compared with plain decoding
    bool texts;    // outputs are compared too: both are greedy
    // Times of the requests that both have finished.
    double method_s, plain_s;
    int64_t method_tokens, plain_tokens;
    live_divergence *divergence; // [divergences]
    size_t divergences, capacity;
} live_report; // zero-initialize; live_report_fini

void live_report_fini(live_report *r);
// Adds the last request, or the part of it that was run.
void live_report_add(live_report *r, const live_run *run);
// The output of a request, with its tokens and margins.
typedef struct live_output {
    const int32_t *token; // [count]
    const float *margin;  // [count]
    int64_t count;
} live_output;
int live_report_compare(live_report *r, int64_t request, const live_output *method,
                        const live_measure *time, const live_output *plain,
                        const live_measure *plain_time, dsc_error *err);

// Fills one row: the fields of sim, then these. `t` is zero-initialized.
int live_report_table(const live_report *r, dsc_table *t, dsc_error *err);
// Fills one row of `t`, which is zero-initialized: that of `row`, and value[f] of each field that
// it has. A column of `row` with the name of a field has the field's meaning.
int live_report_extend(dsc_table *t, const dsc_table *row, const dsc_column *field,
                       const dsc_cell *value, const bool *has, size_t count, dsc_error *err);
const dsc_column *live_report_fields(size_t *count); // with their meaning, for --help

#endif

// SPDX-License-Identifier: Apache-2.0
// The results of a live run: the counts of sim, the wall times, and the comparison with plain
// decoding.
#ifndef DSC_LIVE_RUN_REPORT_H
#define DSC_LIVE_RUN_REPORT_H

#include "base/table.h"
#include "live/program/draft_vocabulary.h"
#include "live/program/run.h"
#include "sim/cost/price.h"

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
    bool baseline;          // compared with plain decoding
    bool texts;             // outputs are compared too: both are greedy
    const dsc_price *price; // of the counts (--cost); NULL: none
    // Times of the requests that both have finished.
    double method_s, plain_s;
    double method_prefill_s, plain_prefill_s; // of these
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

// A table of one row, which grows by a column at a time. It keeps the first failure, so that a row
// reads as a plain list of its fields.
typedef struct live_row {
    dsc_table sim, table; // the fields of sim; all fields
    dsc_cell *cell;       // [table.columns]
    size_t capacity;
    dsc_arena arena; // lists and texts of the cells
    int rc;
    dsc_error *err;
} live_row; // zero-initialize but for `err`; live_row_fini

static inline dsc_cell live_cell_list(const int64_t *list, size_t count)
{
    return (dsc_cell){.type = DSC_CELL_LIST, .list = list, .i = (int64_t)count};
}

static inline dsc_cell live_cell_reals(const double *list, size_t count)
{
    return (dsc_cell){.type = DSC_CELL_LIST, .reals = list, .i = (int64_t)count};
}

// The cell's text or list is kept by the caller until the end.
void live_row_put(live_row *r, const dsc_column *field, dsc_cell cell);
// Memory for a text or list, as long as the row; NULL after a failure.
void *live_row_new(live_row *r, size_t count, size_t size);
int live_row_end(live_row *r); // r->table then has the row
void live_row_fini(live_row *r);

// Seconds per token of plain decoding / those of the method, without the passes over prompts, which
// a predicted speedup does not contain; NaN without --baseline.
double live_report_decode_speedup(const live_report *r);
// The time of a step in passes of plain decoding by r->price: the tokens per step at break-even.
double live_report_step_cost(const live_report *r);
// Puts the fields of sim, then these.
void live_report_put(const live_report *r, live_row *row);
const dsc_column *live_report_fields(size_t *count); // with their meaning, for --help
// Puts the fields of a draft vocabulary; none where every token can be drafted.
void live_report_put_vocabulary(const live_draft_vocabulary *v, live_row *row);
const dsc_column *live_report_vocabulary_fields(size_t *count);

#endif

// SPDX-License-Identifier: Apache-2.0
// Result tables: their columns with definitions, the same for every method, and their rows.
#ifndef DSC_SIM_RESULT_H
#define DSC_SIM_RESULT_H

#include "base/table.h"
#include "sim/cost/price.h"
#include "sim/drafter.h"
#include "sim/verifier.h"

// Optional columns in addition to the fields that every method has.
enum {
    DSC_RESULT_REQUEST = 1,  // request, id: before all others (sim --per-request)
    DSC_RESULT_INTERVAL = 2, // block_efficiency_low, block_efficiency_high: after all others
    DSC_RESULT_EXPECTED = 4, // counts are expectations (dsc_counts.expected): real numbers
    DSC_RESULT_BATCH = 8,    // batch, tokens_per_s: after all others
    DSC_RESULT_SPREAD =
        16, // speedup_cost_low, speedup_cost_high: after all others (dsc_cost.spread)
};

// One row.
typedef struct dsc_result {
    const dsc_config *config; // prepared
    const dsc_verifier_type *rule;
    const dsc_counts *counts;
    const dsc_cost *cost;
    const char *by, *value; // column and value of a group of requests; NULL: none
    int64_t request;        // DSC_RESULT_REQUEST
    const char *id;
    double low, high; // DSC_RESULT_INTERVAL: 95 % CI over requests, NaN when unknown
    int64_t batch;    // batch size; 0: one sequence
    // DSC_RESULT_SPREAD: speedup at the quartiles of the cost; dsc_result_row sets them
    double cost_low, cost_high;
} dsc_result;

// Adds the columns: method, rule, the parameters, the fields of every method, and the methods' own
// counters. A table of several drafters has the columns of all of them, each name once; a row has
// NaN or "" where its method lacks the column.
int dsc_result_columns(dsc_table *t, const dsc_drafter_type *const *drafter, size_t count,
                       int parts, dsc_error *err);
// The same after a key column `by`, which names the group of requests that a row is of. NULL: none.
// DSC_EUSAGE: it is the name of another column.
int dsc_result_columns_by(dsc_table *t, const char *by, const dsc_drafter_type *const *drafter,
                          size_t count, int parts, dsc_error *err);
// Adds a row, `parts` as for the columns. Ratios without a denominator are NaN. Fails where
// dsc_price_run does.
int dsc_result_row(dsc_table *t, const dsc_result *result, int parts, dsc_error *err);
// Adds a row with a measured speedup and measured tokens per second. The cost is not used.
int dsc_result_row_timed(dsc_table *t, const dsc_result *result, double speedup,
                         double tokens_per_s, int parts, dsc_error *err);

// The fields of every method with their descriptions, for --help.
const dsc_column *dsc_result_fields(size_t *count);

// The column name of a parameter: the option's `column`, or its name with '_' for '-'. It differs
// from the names of all columns of results.
enum { DSC_PARAMETER_NAME = 64 };
void dsc_parameter_name(const dsc_option *o, char out[DSC_PARAMETER_NAME]);

#endif

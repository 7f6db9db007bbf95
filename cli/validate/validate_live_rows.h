// SPDX-License-Identifier: Apache-2.0
// Rows of `draftscope validate --live`: what is compared of a configuration, and how it is judged.
#ifndef DSC_CLI_VALIDATE_LIVE_ROWS_H
#define DSC_CLI_VALIDATE_LIVE_ROWS_H

#include "cli/validate/validate_live.h"

// One configuration: its lines, and what is known of it.
typedef struct validate_group {
    const validate_line *first;
    const validate_line **line; // [lines] of the results, in their order
    size_t lines;
    size_t seeds;               // different ones
    char *parameters;           // owned
    validate_requests measured; // of all seeds
    validate_prediction predicted;
} validate_group;

typedef struct validate_comparison {
    dsc_table *table;
    const dsc_option_value *value;
    const dsc_trace *trace;
    validate_results results;
    validate_group *group; // [groups]
    size_t groups;
    const validate_line **line; // [results.count] storage of all groups
    dsc_cost cost;
    bool costs;       // there is one
    int64_t *request; // 0, 1, 2, ...
    size_t drawn;     // comparisons of what was drawn, which chance has its turn in
} validate_comparison;

// The rows of a configuration, which has been predicted.
int validate_put_group(validate_comparison *c, const validate_group *g, dsc_error *err);
// Whether two configurations are pooled: of one method and rule, run freely, and predicted.
bool validate_pools(const validate_group *a, const validate_group *b);
// The pooled row of configuration `first` and of those behind it that are pooled with it.
int validate_put_pooled(validate_comparison *c, size_t first, dsc_error *err);
// Histograms of *r with another length, not shorter than what is used; *out owned by the caller.
int validate_widen(double **out, const validate_requests *r, size_t length, dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// Rows of `draftscope validate --live`: the quantities compared for a configuration and their
// verdicts.
#ifndef DSC_CLI_VALIDATE_LIVE_ROWS_H
#define DSC_CLI_VALIDATE_LIVE_ROWS_H

#include "cli/validate/validate_live.h"

// One configuration: its lines, the measured sums and the prediction.
typedef struct validate_group {
    const validate_line *first;
    const validate_line **line; // [lines] of the results, in their order
    size_t lines;
    size_t seeds;               // number of different seeds
    char *parameters;           // owned
    validate_requests measured; // sums over the seeds
    validate_prediction predicted;
} validate_group;

typedef struct validate_comparison {
    dsc_table *table;
    const dsc_option_value *value;
    const dsc_trace *trace;
    validate_results results;
    validate_group *group; // [groups]
    size_t groups;
    const validate_line **line; // [results.count] memory of the groups' lines
    dsc_cost cost;
    bool costs;       // `cost` is set
    int64_t *request; // 0, 1, 2, ...
    validate_summary *summary;
    bool failed, unknown; // verdicts of the configuration whose rows are added
    size_t sampled;       // number of comparisons of sampled counts, for the family-wise threshold
} validate_comparison;

// Adds the rows of a configuration, which has been predicted.
int validate_put_group(validate_comparison *c, const validate_group *g, dsc_error *err);
// Returns whether two configurations are pooled: both are predicted, not replayed, and have one
// method and rule.
bool validate_pools(const validate_group *a, const validate_group *b);
// Adds the pooled row of configuration `first` and of the later ones that are pooled with it.
int validate_put_pooled(validate_comparison *c, size_t first, dsc_error *err);

#endif

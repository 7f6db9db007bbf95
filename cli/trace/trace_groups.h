// SPDX-License-Identifier: Apache-2.0
// Statistics of draftscope trace info: over all requests, and over the requests with each value of
// a metadata field.
#ifndef DSC_CLI_TRACE_GROUPS_H
#define DSC_CLI_TRACE_GROUPS_H

#include "traces/trace/accept_tally.h"
#include "traces/trace/trace_groups.h"

#include <jansson.h>

typedef struct trace_group {
    const char *value; // of the metadata field; NULL: all requests
    int64_t requests, output_tokens;
    int64_t target_calls; // aligned steps and the prefills before them
    dsc_accept_tally steps, drafter[DSC_DRAFTERS_MAX];
    double entropy[DSC_SIDES]; // nats, summed over the output positions
    // Tokens and time of the requests whose metadata contain both.
    int64_t source_tokens;
    double source_s;
} trace_group;

typedef struct trace_groups {
    dsc_trace_groups by; // without a field: none
    trace_group *group;  // [1 + by.count]; all requests, then the values
} trace_groups;

// `by`: a metadata field, or NULL.
int trace_groups_init(trace_groups *g, const dsc_trace *t, const char *by, dsc_error *err);
int trace_groups_add(trace_groups *g, const dsc_trace_info *info, const dsc_request *q,
                     dsc_error *err);
void trace_groups_fini(trace_groups *g);

// Puts the fields of one group into an object. DSC_ENOMEM.
int trace_group_describe(const trace_group *g, const dsc_trace_info *info, json_t *to,
                         dsc_error *err);
// Puts "groups" into it: {"VALUE": {...}, ...} for every value of the metadata field.
int trace_groups_describe(const trace_groups *g, const dsc_trace_info *info, json_t *to,
                          dsc_error *err);

#endif

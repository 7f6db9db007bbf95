// SPDX-License-Identifier: Apache-2.0
// Groups the requests of a trace by the value of a metadata field, as in `category`. All commands
// that report by field or select by it use these groups.
#ifndef DSC_TRACES_TRACE_GROUPS_H
#define DSC_TRACES_TRACE_GROUPS_H

#include "traces/trace/trace.h"

// The group of the requests without the field, and the name of all requests in tables, which no
// value may have.
#define DSC_GROUP_NONE "(none)"
#define DSC_GROUP_ALL "all"
enum { DSC_GROUPS_MAX = 1000 };

typedef struct dsc_trace_groups {
    char *field;
    char **value;  // [count] in order of appearance; values other than strings are written as JSON
    int64_t *size; // [count] number of requests
    size_t count, value_capacity, size_capacity;
    int32_t *of;    // [requests] index of the request's value
} dsc_trace_groups; // zero-initialize; dsc_trace_groups_fini frees

// Reads the metadata of all requests. DSC_EUSAGE: no request has the field (the message lists those
// that exist), it has more than DSC_GROUPS_MAX values, or one of them is DSC_GROUP_ALL.
int dsc_trace_groups_init(dsc_trace_groups *g, const dsc_trace *t, const char *field,
                          dsc_error *err);
void dsc_trace_groups_fini(dsc_trace_groups *g);

// The values as a JSON array of strings, and its parser, which leaves out `of` and `size`. *out is
// owned by the caller. DSC_ENOMEM; DSC_EINPUT: it is not such a text.
int dsc_trace_groups_text(char **out, const dsc_trace_groups *g, dsc_error *err);
int dsc_trace_groups_parse(dsc_trace_groups *g, const char *field, const char *text,
                           dsc_error *err);

// --- conditions ----------------------------------------------------------------------------------

// Marks the requests whose field has one of the values, "FIELD=VALUE[,VALUE...]", in keeps
// [requests]; those that are not marked already stay out. DSC_EUSAGE: not of this form, or an
// unknown field or value, with those that exist.
int dsc_trace_where(const dsc_trace *t, const char *condition, uint8_t *keeps, dsc_error *err);

#endif

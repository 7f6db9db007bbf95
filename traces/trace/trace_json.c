// SPDX-License-Identifier: Apache-2.0
// Parses the JSON texts of a trace. A failed allocation is an error: a request whose metadata were
// not read would be counted as one without metadata.
#include "traces/trace/trace_json.h"

#include "base/json_file.h"

#include <string.h>

static int parse(json_t **out, const char *text, size_t length, dsc_error *err)
{
    json_error_t e;
    *out = NULL;
    return length && dsc_json_load(out, text, length, 0, &e, err) == DSC_ENOMEM ? DSC_ENOMEM
                                                                                : DSC_OK;
}

int dsc_request_metadata(json_t **out, const dsc_request *q, dsc_error *err)
{
    return parse(out, q->metadata.bytes, (size_t)q->metadata.length, err);
}

int dsc_trace_provenance(json_t **out, const dsc_trace_info *info, dsc_error *err)
{
    return parse(out, info->provenance, info->provenance ? strlen(info->provenance) : 0, err);
}

// Adds up "lossy_requests" of an object and of what it contains: joined traces keep the provenance
// of each.
static int64_t count_lossy(const json_t *value, int depth)
{
    enum { DEPTH = 64 };
    json_t *o = (json_t *)(uintptr_t)value; // Jansson's iterators take no const
    int64_t count = json_integer_value(json_object_get(value, "lossy_requests"));
    if (depth == DEPTH)
        return 0;
    for (void *at = json_object_iter(o); at; at = json_object_iter_next(o, at))
        count += count_lossy(json_object_iter_value(at), depth + 1);
    for (size_t i = 0; i < json_array_size(value); i++)
        count += count_lossy(json_array_get(value, i), depth + 1);
    return count;
}

int dsc_trace_lossy(int64_t *out, const dsc_trace_info *info, dsc_error *err)
{
    json_t *origin;
    int rc = dsc_trace_provenance(&origin, info, err);
    *out = rc ? 0 : count_lossy(origin, 0);
    json_decref(origin);
    return rc;
}

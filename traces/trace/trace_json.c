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

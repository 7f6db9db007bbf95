// SPDX-License-Identifier: Apache-2.0
// The JSON texts of a trace, parsed: metadata of requests and provenance.
#ifndef DSC_TRACES_TRACE_JSON_H
#define DSC_TRACES_TRACE_JSON_H

#include "traces/trace/trace.h"

#include <jansson.h>

// *out is a new reference, or NULL where the text is empty or not valid JSON, which is the
// trace's to verify. DSC_ENOMEM: the text was not read.
int dsc_request_metadata(json_t **out, const dsc_request *q, dsc_error *err);
int dsc_trace_provenance(json_t **out, const dsc_trace_info *info, dsc_error *err);

// The number of requests that lack a part of what their source had (dsc_import_options.lossy), by
// the provenance: of a part of a trace, that of the whole.
int dsc_trace_lossy(int64_t *out, const dsc_trace_info *info, dsc_error *err);

#endif

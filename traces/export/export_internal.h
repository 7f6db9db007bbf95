// SPDX-License-Identifier: Apache-2.0
// Formats that write a trace as text, request after request.
#ifndef DSC_TRACES_EXPORT_INTERNAL_H
#define DSC_TRACES_EXPORT_INTERNAL_H

#include "traces/trace/trace_internal.h"

#include <stdio.h>

// A failure to write shows in ferror(out), which the caller looks at after each request.
typedef struct dsc_export_format {
    const char *name;
    // What comes before the first request. DSC_EUSAGE: the trace has nothing of the kind.
    int (*begin)(const dsc_trace_info *info, FILE *out, dsc_error *err);
    int (*put)(const dsc_trace_info *info, const dsc_request *q, FILE *out, dsc_error *err);
} dsc_export_format;

enum { DSC_CSV_FORMATS = 3 };
extern const dsc_export_format dsc_csv_formats[DSC_CSV_FORMATS];

#endif

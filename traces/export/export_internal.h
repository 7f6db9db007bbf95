// SPDX-License-Identifier: Apache-2.0
// Export formats that write a trace as text, request by request.
#ifndef DSC_TRACES_EXPORT_INTERNAL_H
#define DSC_TRACES_EXPORT_INTERNAL_H

#include "traces/trace/trace_columns.h"

#include <stdio.h>

// The caller checks ferror(out) after each request.
typedef struct dsc_export_format {
    const char *name;
    // Writes the text before the first request. DSC_EUSAGE: the trace lacks data of this format.
    int (*begin)(const dsc_trace_info *info, FILE *out, dsc_error *err);
    int (*put)(const dsc_trace_info *info, const dsc_request *q, FILE *out, dsc_error *err);
} dsc_export_format;

enum { DSC_CSV_FORMATS = 3 };
extern const dsc_export_format dsc_csv_formats[DSC_CSV_FORMATS];

#endif

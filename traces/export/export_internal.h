// SPDX-License-Identifier: Apache-2.0
// Export formats that write a trace as text, request by request.
#ifndef DSC_TRACES_EXPORT_INTERNAL_H
#define DSC_TRACES_EXPORT_INTERNAL_H

#include "traces/trace/trace_columns.h"

#include <stdio.h>

// The caller checks ferror(out) after each request.
typedef struct dsc_export_format {
    const char *name;
    const char *head; // names of the first columns; NULL: no CSV
    int counted_by;   // the offset column that counts the rows' other columns, or DSC_COLUMNS: none
    int (*put)(const struct dsc_export_format *f, const dsc_trace_info *info, const dsc_request *q,
               FILE *out, dsc_error *err);
} dsc_export_format;

enum { DSC_CSV_FORMATS = 3 };
extern const dsc_export_format dsc_csv_formats[DSC_CSV_FORMATS];
// Writes the line of names. DSC_EUSAGE: the trace has no steps.
int dsc_csv_begin(const dsc_export_format *f, const dsc_trace_info *info, FILE *out,
                  dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// Internal: what merging needs from a writer.
#ifndef DSC_TRACES_TRACE_WRITE_H
#define DSC_TRACES_TRACE_WRITE_H

#include "traces/trace/trace.h"

// The number of the request that has the id, or -1.
int64_t dsc_trace_writer_find(const dsc_trace_writer *w, dsc_text_view id);

#endif

// SPDX-License-Identifier: Apache-2.0
// A recorded output as a model: the target that wrote it, teacher-forced. What the target would
// have said anywhere else is unknown, and asking is refused.
#ifndef DSC_SIM_MODEL_TRACE_H
#define DSC_SIM_MODEL_TRACE_H

#include "sim/model.h"
#include "traces/trace.h"

typedef struct dsc_model_trace {
    dsc_model base;
    dsc_token_view recorded;
    int32_t *depth; // [nodes] of the scored draft: depth of a node on the recorded path, else -1
    size_t capacity;
} dsc_model_trace; // zero-initialise

// Starts on one recorded output; the view must outlive the use. An empty output has ended already.
DSC_API void dsc_model_trace_begin(dsc_model_trace *m, dsc_token_view recorded);
DSC_API void dsc_model_trace_fini(dsc_model_trace *m);

#endif

// SPDX-License-Identifier: Apache-2.0
// A recorded output as a model: the target that wrote it, teacher-forced. What the target would
// have said anywhere else is unknown, and asking is refused. Laws are known where rows were
// recorded.
#ifndef DSC_SIM_MODEL_TRACE_H
#define DSC_SIM_MODEL_TRACE_H

#include "sim/model.h"
#include "traces/trace.h"

typedef struct dsc_model_trace {
    dsc_model base;
    dsc_token_view recorded;
    int32_t *depth; // [nodes] of the scored draft: depth of a node on the recorded path, else -1
    size_t capacity;
    dsc_request request; // whose rows answer `law`; only the rows and the output are looked at
    dsc_model_side side;
    int32_t vocab_size; // 0: no rows
    double *row;        // [vocab_size] the law asked for last
    size_t row_capacity;
} dsc_model_trace; // zero-initialise

// Starts on one recorded output; the view must outlive the use. An empty output has ended already.
DSC_API void dsc_model_trace_begin(dsc_model_trace *m, dsc_token_view recorded);
// The same on a request's output, with the rows of one of its models as laws, divided by their
// sums. What a row does not list is the law's `unlisted` mass. The request's shard must stay open.
DSC_API void dsc_model_trace_begin_rows(dsc_model_trace *m, const dsc_request *request,
                                        dsc_model_side side, int32_t vocab_size);
DSC_API void dsc_model_trace_fini(dsc_model_trace *m);

#endif

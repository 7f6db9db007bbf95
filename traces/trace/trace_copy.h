// SPDX-License-Identifier: Apache-2.0
// Turns a request that was read into the input of a writer, for merge, cut and reduce.
#ifndef DSC_TRACES_TRACE_COPY_H
#define DSC_TRACES_TRACE_COPY_H

#include "traces/trace/trace.h"

// Memory of the views of the references, which a reader gives as offsets. {0} is empty; one copy
// can be used for many requests in turn.
typedef struct dsc_request_copy {
    dsc_arena arena; // reset by each use; further memory of a request may come from it
} dsc_request_copy;

// Sets *out to views of all of q. *out is valid as long as q is, until the copy is used again. The
// caller may change it before it is written, for example replace a column. A writer opened with
// dsc_trace_get_info of q's trace writes identical columns. The only error is DSC_ENOMEM.
int dsc_request_copy_view(dsc_request_copy *c, const dsc_request *q, dsc_request_input *out,
                          dsc_error *err);
void dsc_request_copy_fini(dsc_request_copy *c);

#endif

// SPDX-License-Identifier: Apache-2.0
// A request of one trace as the input of a writer: what merge, cut and reduce have in common.
#ifndef DSC_TRACES_TRACE_COPY_H
#define DSC_TRACES_TRACE_COPY_H

#include "traces/trace/trace.h"

// Room for what is an array of views on one side and offsets on the other. {0} is empty; one copy
// serves many requests, one after the other.
typedef struct dsc_request_copy {
    dsc_token_view *reference;
    dsc_text_view *reference_text;
    dsc_reference_kind *kind;
    size_t reference_capacity, text_capacity, kind_capacity;
} dsc_request_copy;

// All of q, as a writer takes it. *out is valid while q is and until the copy is used again; the
// caller may change it before it is written (point a column elsewhere). A writer opened with
// dsc_trace_get_info of q's trace writes the same columns, to the bit. Only DSC_ENOMEM.
DSC_API int dsc_request_copy_view(dsc_request_copy *c, const dsc_request *q, dsc_request_input *out,
                                  dsc_error *err);
DSC_API void dsc_request_copy_fini(dsc_request_copy *c);

#endif

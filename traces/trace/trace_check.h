// SPDX-License-Identifier: Apache-2.0
// Internal: which contents a request may have. The writer and the verifier share these checks.
#ifndef DSC_TRACES_TRACE_CHECK_H
#define DSC_TRACES_TRACE_CHECK_H

#include "traces/trace/trace_columns.h"

// A bit for each token of the vocabulary, all 0 between uses; allocated by the first use.
// Zero-initialize; the owner frees `word`.
typedef struct dsc_token_marks {
    uint64_t *word;
} dsc_token_marks;

// Checks a request, with the 0-based number `request` in messages, before it is written and when a
// trace is verified: everything that opening or verifying the trace refuses. DSC_EINPUT: bad
// content; DSC_EUSAGE: missing pointers or negative lengths. `columns` are those of `info`.
int dsc_check_request(const dsc_trace_info *info, const dsc_input_columns *columns,
                      const dsc_request_input *q, int64_t request, dsc_token_marks *marks,
                      dsc_error *err);

// Checks the distributions that a request has at `positions` output positions.
int dsc_check_rows(const dsc_trace_info *info, dsc_model_side side, const dsc_rows *rows,
                   int64_t positions, int64_t request, dsc_token_marks *marks, dsc_error *err);

#endif

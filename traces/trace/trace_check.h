// SPDX-License-Identifier: Apache-2.0
// Internal: which contents a request may have. The writer and the verifier share these checks.
#ifndef DSC_TRACES_TRACE_CHECK_H
#define DSC_TRACES_TRACE_CHECK_H

#include "traces/trace/trace.h"

// A bit for each token of the vocabulary, all 0 between uses; allocated by the first use.
// Zero-initialize; the owner frees `word`.
typedef struct dsc_token_marks {
    uint64_t *word;
} dsc_token_marks;

// Checks UTF-8. `request` is the 0-based number in messages; `what` names the text ("the prompt's
// text").
int dsc_check_text(dsc_text_view text, int64_t request, const char *what, dsc_error *err);
// Metadata must be empty or a JSON object in UTF-8.
int dsc_check_metadata(dsc_text_view metadata, int64_t request, dsc_error *err);
// Aligned steps must add up to the output's tokens as defined by dsc_steps_kind; other steps pass.
int dsc_check_steps(const dsc_trace_info *info, const dsc_steps *steps, int64_t tokens,
                    int64_t request, dsc_error *err);
// Checks request number info->requests before it is written: everything that opening or verifying
// the trace would refuse later. DSC_EINPUT: bad content; DSC_EUSAGE: missing pointers or negative
// lengths.
int dsc_check_request(const dsc_trace_info *info, const dsc_request_input *q,
                      dsc_token_marks *marks, dsc_error *err);

// Checks the distributions that a request has at `positions` output positions.
int dsc_check_rows(const dsc_trace_info *info, dsc_model_side side, const dsc_rows *rows,
                   int64_t positions, int64_t request, dsc_token_marks *marks, dsc_error *err);

#endif

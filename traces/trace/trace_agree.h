// SPDX-License-Identifier: Apache-2.0
// Internal: comparing what two traces record.
#ifndef DSC_TRACES_TRACE_AGREE_H
#define DSC_TRACES_TRACE_AGREE_H

#include "traces/trace/trace.h"

// Checks that a and b can be one trace: the same tokenizer, columns, parameters and drafters (in
// any order). DSC_EUSAGE names the difference and the two traces by the names given.
int dsc_trace_agree(const dsc_trace_info *a, const char *name_a, const dsc_trace_info *b,
                    const char *name_b, dsc_error *err);
// Checks the tokenizers alone.
int dsc_tokenizers_agree(const dsc_trace_info *a, const char *name_a, const dsc_trace_info *b,
                         const char *name_b, dsc_error *err);
// Removes from `to` the fields, columns and drafters that `with` does not record in the same form.
// Aligned steps become logged steps when those of `with` are logged.
void dsc_recorded_intersect(dsc_trace_info *to, const dsc_trace_info *with);
// The drafter of that name, or -1.
int dsc_drafter_number(const dsc_trace_info *info, const char *name);

#endif

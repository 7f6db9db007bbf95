// SPDX-License-Identifier: Apache-2.0
// The settings of the run that recorded a trace, from the provenance that `draftscope live record`
// writes.
#ifndef DSC_TRACES_RECORDED_RUN_H
#define DSC_TRACES_RECORDED_RUN_H

#include "traces/trace/trace.h"

typedef struct dsc_recorded_run {
    double temperature; // the target's; NaN: unknown
    // The limit on output tokens, below which an output ended by its last token. 0: unknown, the
    // trace was derived from others, or stop strings ended outputs at any token.
    int64_t max_tokens;
    // 1 when the draft model is a head of the target (EAGLE, Medusa), whose predictions depend on
    // where the draft began; 0 when it is not; -1: unknown.
    int head;
} dsc_recorded_run;

// For a trace derived from others (merge, cut, reduce), a setting is known when all sources agree.
// DSC_ENOMEM: the provenance was not read, and nothing is known.
int dsc_trace_recorded_run(dsc_recorded_run *out, const dsc_trace_info *info, dsc_error *err);

#endif

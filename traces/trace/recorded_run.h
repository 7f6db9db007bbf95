// SPDX-License-Identifier: Apache-2.0
// How the run was set up that wrote a trace, as the provenance of `draftscope live record` says.
#ifndef DSC_TRACES_RECORDED_RUN_H
#define DSC_TRACES_RECORDED_RUN_H

#include "traces/trace/trace.h"

typedef struct dsc_recorded_run {
    double temperature; // of the target; NaN: unknown
    int64_t max_tokens; // an output could have; 0: unknown, or the trace is made of others
    // Whether the draft model is a head of the target (EAGLE, Medusa), so that what it says depends
    // on where its draft began; 1, 0, or -1: unknown.
    int head;
} dsc_recorded_run;

// Of a trace made of others (merge, cut, reduce) what all of them say; anything else is unknown.
DSC_API dsc_recorded_run dsc_trace_recorded_run(const dsc_trace_info *info);

#endif

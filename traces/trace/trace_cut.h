// SPDX-License-Identifier: Apache-2.0
// Copies a part of a trace: some of its requests, or the beginnings of their outputs.
#ifndef DSC_TRACES_TRACE_CUT_H
#define DSC_TRACES_TRACE_CUT_H

#include "traces/trace/trace_join.h"

// The selection to keep. The members apply in this order; the order of the requests does not
// change.
typedef struct dsc_cut {
    const int64_t *request; // [requests] indices in the trace, from 0, in any order; NULL: all
    size_t requests;
    const char *range;        // `request` as the user wrote it, for the provenance record; or NULL
    const char *const *where; // [wheres] conditions "FIELD=VALUE[,VALUE...]" on the metadata, all
    size_t wheres;            // of which must hold (traces/trace/trace_groups.h)
    int64_t sample;           // number of requests sampled without replacement, uniformly; 0: all
    uint64_t seed;            // seed of the sample
    int64_t tokens;           // number of leading tokens kept of each output; 0: all
} dsc_cut;

// Writes the part as the trace `out`. When an output is cut, every column is cut to the kept
// tokens. In addition:
// - The last step is the one that wrote the last kept token. Its accepted count is reduced to the
//   kept tokens; its drafted count and times stay. The first token is attributed to the prefill
//   when the whole output has one token more than its steps wrote.
// - An accept length ends with the output: at position j it is at most (kept tokens) - j.
// - The draft ranks of removed tokens become DSC_RANK_NONE.
// - Rollouts stay.
// When an output of the trace is longer than `tokens`, the new trace has no text, and steps that
// are not aligned are refused (DSC_EUSAGE). DSC_EUSAGE also: an index or a sample beyond the trace;
// a condition on a field or value that no request has, or conditions that no request fulfills
// together. Other errors are those of reading and writing. o->common and o->rename are ignored.
int dsc_trace_cut(const char *path, const char *out, const dsc_cut *cut, const dsc_join_options *o,
                  dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// A part of a trace: some of its requests, or the beginnings of their outputs.
#ifndef DSC_TRACES_TRACE_CUT_H
#define DSC_TRACES_TRACE_CUT_H

#include "traces/trace/trace_join.h"

// What is kept. The parts apply in this order; the order of the requests never changes.
typedef struct dsc_cut {
    const int64_t *request; // [requests] indices in the trace, from 0, in any order; NULL: all
    size_t requests;
    const char *range; // the same as the user gave it, for the provenance record; or NULL
    int64_t sample;    // this many of them, without replacement, each set equally likely; 0: all
    uint64_t seed;     // of the sample
    int64_t tokens;    // the first tokens of each output; 0: all
} dsc_cut;

// Writes the part as the trace `out`. Of an output that is cut every column is cut to the tokens
// kept, and beyond that:
// - the steps end with the one that wrote the last token kept; it has as many tokens accepted as
// are
//   left for it, its drafts and times stay. The first token counts as the prefill's when the whole
//   output has one token more than its steps wrote.
// - an accept length does not run past the end: at position j it is at most the tokens kept - j;
// - draft ranks of tokens beyond the end become DSC_RANK_NONE;
// - rollouts stay.
// When an output of the trace is longer than `tokens` the new trace has no text, and steps that are
// not aligned are refused (DSC_EUSAGE). Else errors are those of reading and writing; DSC_EUSAGE
// also: an index or a sample beyond the trace. o->common and o->rename are not looked at.
DSC_API int dsc_trace_cut(const char *path, const char *out, const dsc_cut *cut,
                          const dsc_join_options *o, dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// Traces of a synthetic pair: outputs sampled from the target, with the distributions of both
// models.
#ifndef DSC_SIM_SYNTH_H
#define DSC_SIM_SYNTH_H

#include "sim/model/workload.h"

typedef struct dsc_synth {
    dsc_workload load; // without a draft model only the target is recorded; no middle, no order
    int32_t rows;      // listed tokens per distribution; 0: none; vocab_size or more: dense
    uint64_t seed;     // token j of request r is sampled with (seed, r, j)
    bool force;        // replace an existing trace
    const char *provenance; // JSON object, or NULL
    // Called between requests with the requests done and all of them; nonzero stops with
    // DSC_EINTERRUPT. May be NULL.
    int (*progress)(void *user, int64_t done, int64_t total);
    void *user;
} dsc_synth;

// Writes the trace `path`: tokens; logp, argmax and entropy of target and draft; and listed
// distributions if requested. They describe the distributions that tokens are sampled from (at
// temperature 0 of one token each). The same settings give the same trace, byte for byte.
// DSC_EUSAGE: vocabularies that differ, a number out of range, no text for prompts; as
// dsc_trace_writer_open and _add.
int dsc_synthesize(const dsc_synth *o, const char *path, dsc_error *err);

#endif

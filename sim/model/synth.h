// SPDX-License-Identifier: Apache-2.0
// Traces of a synthetic pair: outputs drawn from the target, and what both models said about them.
#ifndef DSC_SIM_SYNTH_H
#define DSC_SIM_SYNTH_H

#include "sim/model/language.h"

typedef struct dsc_synth {
    const dsc_language *target;
    const dsc_language *draft; // or NULL: only the target is recorded
    int64_t requests;
    int64_t prompt_tokens;  // of the target's texts, one after the other and from the first again:
                            // as many as this, but never the whole text
    int64_t max_tokens;     // of an output; an EOS token ends it before
    double temperature;     // of both models, see sim/model/model_synthetic.h
    int32_t rows;           // tokens listed in a row; 0: no rows; the vocabulary or more: dense
    uint64_t seed;          // token j of request r is drawn with (seed, r, j)
    bool force;             // replace an existing trace
    const char *provenance; // JSON object, or NULL
    // Between requests: requests done and in all; nonzero stops with DSC_EINTERRUPT. May be NULL.
    int (*progress)(void *user, int64_t done, int64_t total);
    void *user;
} dsc_synth;

// Writes the trace `path`: tokens, target_logp, argmax and entropy, and the draft's, and rows if
// asked for; all of the distributions that tokens are drawn from (at temperature 0: of one token
// each). The same settings give the same trace, byte for byte. DSC_EUSAGE: vocabularies that
// differ, a number out of range, no text for prompts; as dsc_trace_writer_open and _add.
DSC_API int dsc_synthesize(const dsc_synth *o, const char *path, dsc_error *err);

#endif

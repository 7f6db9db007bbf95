// SPDX-License-Identifier: Apache-2.0
// Calibrated confidences of a draft model on the requests of a trace: the probability that it gave
// to the token it drafted, mapped to a probability of acceptance by isotonic regression.
//
// The fit is crossed: requests are split into two halves by the seed, and each half is served with
// the fit of the other one, so that no request is judged by its own outcome and all can be served.
//
// A position's drafted token is the one of a draft that agrees with the output up to there. Under a
// greedy rule it is the most probable token. Under a rule that samples it is the output's token
// where the draft is accepted, and where it is rejected a sample of (draft - target)+, which is its
// distribution then (Leviathan et al. 2023). After a rejected token a draft has left the output:
// its confidences are those along the output, as a trace has no others.
#ifndef DSC_SIM_SERVE_CONFIDENCE_H
#define DSC_SIM_SERVE_CONFIDENCE_H

#include "sim/serve/serve_source.h"

typedef struct dsc_serve_confidence {
    float **confidence; // [count] of the source's items, [output]
    size_t count;
    int64_t tokens; // of the outputs that a draft may begin with; all of them are judged
    // Mean squared difference from the outcome (Brier 1950), of the recorded probability and of the
    // confidence; and the expected calibration error of the confidence: the mean difference of mean
    // confidence and share of accepted tokens in ten bins of equal width (Naeini et al. 2015).
    double recorded_brier, brier, calibration_error;
} dsc_serve_confidence;

// Reads the draft model's probabilities and sets `confidence` of every item of the source, which
// dsc_serve_source_trace made of the same trace, configuration, rule and seed. *out owns the
// confidences and outlives the items' use; dsc_serve_confidence_fini frees it whatever was
// returned. DSC_EUSAGE: the method has no draft model, the trace lacks its distributions or has
// fewer than two requests. DSC_EINPUT: a distribution does not list what is needed.
int dsc_serve_confidence_read(dsc_serve_confidence *out, const dsc_serve_source *source,
                              const dsc_trace *trace, const dsc_config *config,
                              const dsc_verifier_type *rule, uint64_t seed, dsc_error *err);
void dsc_serve_confidence_fini(dsc_serve_confidence *c);

#endif

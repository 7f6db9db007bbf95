// SPDX-License-Identifier: Apache-2.0
// The requests of a server and the drafts of a method at every position of their outputs: from a
// trace, once for all loads, or from acceptance rates.
//
// On a trace, a draft that depends on the preceding tokens is matched with the recorded output
// (dsc_drafter_type.match_lengths). One draft of a draft model is accepted as its recorded ranks or
// argmax tokens say; under a rule that samples, with the probability that follows from the recorded
// probabilities given the output's token (sim/expect/expect_rule.h), by one uniform number for each
// request and position. A position is decided at most once in a run, so the draws are independent.
#ifndef DSC_SIM_SERVE_SOURCE_H
#define DSC_SIM_SERVE_SOURCE_H

#include "sim/drafter.h"
#include "sim/serve/serve.h"
#include "sim/verifier.h"

typedef struct dsc_serve_source {
    dsc_serve_item *item; // [count] with drafts of their own
    int64_t *request;     // [count] of the trace: requests without output are left out
    char **id;            // [count] of the request
    size_t count;
    int32_t longest; // the most tokens that any draft offers
    dsc_serve_drafting drafting;
} dsc_serve_source;

// Reads every request of the trace. The configuration is prepared. An empty prompt counts as one
// token. *out is freed by dsc_serve_source_fini whatever was returned. DSC_EUSAGE: the method has
// no drafts by position under the rule, the trace lacks a column, or a draft has more than
// DSC_SERVE_LONGEST tokens. DSC_EINPUT: no request has output.
int dsc_serve_source_trace(dsc_serve_source *out, const dsc_trace *trace, const dsc_config *config,
                           const dsc_verifier_type *rule, uint64_t seed, int threads,
                           dsc_error *err);

// Requests of one length whose drafts are accepted at given rates.
typedef struct dsc_serve_rates {
    int64_t requests;       // >= 1
    int32_t prompt, output; // tokens of each, >= 1
    int32_t length;         // of every draft, in [0, DSC_SERVE_LONGEST]
    // Writes rate[length]: the conditional acceptance rate of each draft token in this request.
    void (*rates)(void *user, int64_t request, int32_t length, double *rate);
    void *user;
    uint64_t seed;
} dsc_serve_rates;
int dsc_serve_source_rates(dsc_serve_source *out, const dsc_serve_rates *rates,
                           dsc_serve_drafting drafting, dsc_error *err);
void dsc_serve_source_fini(dsc_serve_source *source);

#endif

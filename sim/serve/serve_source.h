// SPDX-License-Identifier: Apache-2.0
// The requests of a server and the drafts of a method at every position of their outputs: from a
// trace, once for all loads, or from acceptance rates.
//
// On a trace, a draft that depends on the preceding tokens is matched with the recorded output
// (dsc_drafter_type.match_lengths). One draft of a draft model is accepted as its recorded ranks or
// argmax tokens say; under a rule that samples, with the probability that follows from the recorded
// probabilities given the output's token (sim/expect/expect_rule.h), by one uniform number for each
// request and position. A position is decided at most once in a run, so the draws are independent.
// So are several drafts and trees of samples. The accepted tokens of any other tree of one shape
// come from a step of the simulator's loop at every position. Every other draft depends on the
// steps before it: the loop runs each request once, and its steps are served (scripts). Requests
// that leave state to later ones do so in the order of the trace.
#ifndef DSC_SIM_SERVE_SOURCE_H
#define DSC_SIM_SERVE_SOURCE_H

#include "sim/drafter.h"
#include "sim/run/run.h"
#include "sim/serve/lengths.h"
#include "sim/serve/serve_policy.h"
#include "sim/verifier.h"

typedef struct dsc_serve_source {
    dsc_serve_item *item; // [count] with drafts of their own
    int64_t *request;     // [count] of the trace: requests without output are left out
    char **id;            // [count] of the request
    size_t count;
    int32_t longest; // the most tokens in sequence that any draft offers
    dsc_serve_drafting drafting;
    dsc_serve_level *tree;   // [longest + 1] of drafts that are no chains, or NULL
    dsc_serve_pass **script; // [count] each of its own, or NULL: drafts by position
    int32_t widest;          // tree, script: the most tokens that a pass verifies
    bool overlap;            // the draft model runs while the target verifies
} dsc_serve_source;

// Reads every request of the trace. The configuration is prepared. An empty prompt counts as one
// token. *out is freed by dsc_serve_source_fini whatever was returned. DSC_EUSAGE: the trace does
// not contain what the method needs under the rule, or a draft has more than DSC_SERVE_LONGEST
// tokens in sequence. DSC_EINPUT: no request has output.
int dsc_serve_source_trace(dsc_serve_source *out, const dsc_trace *trace, const dsc_config *config,
                           const dsc_verifier_type *rule, uint64_t seed, int threads,
                           dsc_error *err);

// The same with models in addition to the trace, or in its place where that is NULL: the workload
// then has a target, whose requests are served. A language without texts has prompts of
// load->prompt_tokens tokens.
int dsc_serve_source_models(dsc_serve_source *out, const dsc_trace *trace, const dsc_config *config,
                            const dsc_verifier_type *rule, const dsc_workload *load, uint64_t seed,
                            int threads, dsc_error *err);

// What the engine needs of a source: items, and the tables that they need. Items, of which there
// are source->count, are those of the source or, in another order, the caller's, with their
// scripts.
dsc_serve_pool dsc_serve_source_pool(const dsc_serve_source *source);

// Whether a policy can choose the drafts of a source: those of scripts only `fixed`, the levels of
// trees all but `adaptive`. DSC_EUSAGE: the message names the method and what it admits.
int dsc_serve_source_admits(const dsc_serve_source *source, const dsc_drafter_type *drafter,
                            const dsc_serve_policy *policy, dsc_error *err);

// The steps of the script of item i.
size_t dsc_serve_source_steps(const dsc_serve_source *source, size_t i);

// Whether a record of steps (sim/serve/serve_steps.h) can have the passes of the draft model: those
// that follow the target's, each over one token of a sequence. DSC_EUSAGE.
int dsc_serve_source_records(const dsc_serve_source *source, const dsc_drafter_type *drafter,
                             dsc_error *err);

// Requests whose drafts are accepted at given rates.
typedef struct dsc_serve_rates {
    int64_t requests; // >= 1
    int32_t length;   // of every draft, in [0, DSC_SERVE_LONGEST]
    // Sets the tokens of a request, each in [1, DSC_LONGEST_SERVED].
    void (*lengths)(void *user, int64_t request, int32_t *prompt, int32_t *output);
    // Writes rate[length]: the conditional acceptance rate of each draft token in this request.
    void (*rates)(void *user, int64_t request, int32_t length, double *rate);
    void *user;
    uint64_t seed;
} dsc_serve_rates;
int dsc_serve_source_rates(dsc_serve_source *out, const dsc_serve_rates *rates,
                           dsc_serve_drafting drafting, dsc_error *err);
int dsc_serve_source_init(dsc_serve_source *out, size_t count, dsc_error *err); // empty items
void dsc_serve_source_fini(dsc_serve_source *source);

#endif

// SPDX-License-Identifier: Apache-2.0
// THE speculative loop: propose, score, verify, commit. There is one; only the models behind it and
// the clock differ between replay, synthetic pairs and live runs.
#ifndef DSC_SIM_LOOP_H
#define DSC_SIM_LOOP_H

#include "sim/counts.h"
#include "sim/drafter.h"
#include "sim/verifier.h"

// Scratch of one thread, reused from request to request. Zero-initialise.
typedef struct dsc_loop {
    dsc_draft draft;
    dsc_verdict verdict;
    dsc_verify_room room;
} dsc_loop;

DSC_API void dsc_loop_fini(dsc_loop *loop);

// What a method and a rule need of the models, and whether they fit.
typedef struct dsc_fit {
    bool draft, middle;      // there is such a model
    bool dists;              // the target's distribution is known everywhere
    bool off_path;           // the target answers off its recorded output
    bool ranks_only;         // the draft model is a recording: it orders its candidates, without
                             // distributions
    bool drew_most_probable; // and its draws were of a greedy run
} dsc_fit;

// How the method drafts for the rule (dsc_drafter_input.distribution). DSC_EUSAGE: they do not fit
// each other or the models; the message is a sentence that says what is missing.
DSC_API int dsc_draft_kind_for(dsc_draft_kind *out, const dsc_drafter_type *drafter,
                               const dsc_verifier_type *rule, const dsc_fit *fit, dsc_error *err);

// The rule that goes with a method when none is named; `greedy`: the target says its most probable
// token or what was recorded.
DSC_API const dsc_verifier_type *dsc_pair_rule(const dsc_drafter_type *drafter, bool greedy);

// What happened in a step.
typedef struct dsc_step_record {
    int64_t request, step;                  // the step's number in the request, from 0
    int64_t draft_calls, draft_call_tokens; // forward passes of the draft model
    int64_t target_call_tokens;             // tokens in the target's
    int64_t context;                        // tokens before them, the prompt's included
    int64_t draft_tokens, accepted_tokens, emitted_tokens;
    int64_t draft_length; // draft tokens in sequence (dsc_draft_length)
    bool parallel;        // the draft model worked at the same time as the target
} dsc_step_record;

// One request.
typedef struct dsc_loop_input {
    const dsc_config *config;
    const dsc_verifier_type *rule;
    dsc_draft_kind kind;        // dsc_draft_kind_for
    const dsc_models *models;   // just begun, nothing committed
    const dsc_request *request; // shown to the drafter without its output unless it sees_output
    uint64_t seed;
    dsc_arena *arena;     // the request's
    dsc_history *history; // of the run, or NULL (dsc_drafter_input.carry)
    // After each step; NULL: nobody asks.
    int (*step)(void *user, const dsc_step_record *record, dsc_error *err);
    void *user;
} dsc_loop_input;

// Runs a request to its end and adds what happened to *counts, whose histograms have room for
// dsc_config_limit() accepted tokens and dsc_config_width() tokens in a pass (or as many as the
// output can hold).
DSC_API int dsc_loop_run(dsc_loop *loop, const dsc_loop_input *in, dsc_counts *counts,
                         dsc_error *err);

#endif

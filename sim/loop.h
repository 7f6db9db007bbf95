// SPDX-License-Identifier: Apache-2.0
// The speculative loop: propose, score, verify, commit. There is only one; replay, synthetic models
// and live runs differ in the models (sim/model.h) and in the clock.
#ifndef DSC_SIM_LOOP_H
#define DSC_SIM_LOOP_H

#include "sim/verify_room.h"

// Scratch memory of one thread, reused from request to request. Zero-initialize.
typedef struct dsc_loop {
    dsc_draft draft;
    dsc_verdict verdict;
    dsc_verify_room room;
    dsc_arena arena; // of the room
} dsc_loop;

void dsc_loop_fini(dsc_loop *loop);

// The properties of a run's models on which compatibility depends.
typedef struct dsc_fit {
    bool draft, middle;   // there is such a model
    bool marginals;       // the draft model is a parallel drafter (dsc_model_type.marginal)
    bool trace;           // the run replays a trace
    bool dists;           // the target's distribution is available everywhere
    bool off_path;        // the target can be queried off its recorded output
    bool ranks_only;      // the draft model is a recording that orders its candidates, without
                          // distributions
    bool recorded_greedy; // and it was recorded at temperature 0: its samples are argmax tokens
} dsc_fit;

// Chooses how the method selects drafts for the rule (dsc_drafter_input.kind). DSC_EUSAGE: method,
// rule and models are not compatible; the message is one sentence with what is missing.
int dsc_draft_kind_for(dsc_draft_kind *out, const dsc_drafter_type *drafter,
                       const dsc_verifier_type *rule, const dsc_fit *fit, dsc_error *err);

// One request.
typedef struct dsc_loop_input {
    const dsc_config *config;
    const dsc_verifier_type *rule;
    dsc_draft_kind kind;        // of dsc_draft_kind_for
    const dsc_models *models;   // at the start of the request, nothing committed
    const dsc_request *request; // the drafter gets it without its output unless it sees_output
    uint64_t seed;
    dsc_arena *arena;     // the request's
    dsc_history *history; // of the run, or NULL: the request stands alone
    // Called after each step; NULL: not called. A nonzero status ends the run.
    int (*step)(void *user, const dsc_step_record *record, dsc_error *err);
    void *user;
    // Ends the output for a reason that the models do not contain, such as a stop string; NULL:
    // never. Called with the committed output and the `count` tokens that a step would add. *ends:
    // the output ends with the first *kept >= 1 of them. The result must depend on the tokens
    // alone.
    int (*end)(void *user, const dsc_model *target, const int32_t *token, size_t count,
               size_t *kept, bool *ends, dsc_error *err);
    void *end_user;
    dsc_loop_steps steps;
} dsc_loop_input;

// Starts a request of the method in->config->drafter in its `state`.
int dsc_loop_begin(void *state, const dsc_drafter_input *in, dsc_error *err);

// Runs a request to its end and adds to *counts, whose histograms have room for dsc_config_limit()
// accepted tokens and dsc_config_width() tokens in a pass, or for the whole output. Errors: those
// of the method, the models and the rule.
int dsc_loop_run(dsc_loop *loop, const dsc_loop_input *in, dsc_counts *counts, dsc_error *err);

#endif

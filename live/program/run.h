// SPDX-License-Identifier: Apache-2.0
// A method at work on prompts: THE loop (sim/loop.h) with live sessions behind it, and a clock.
#ifndef DSC_LIVE_RUN_H
#define DSC_LIVE_RUN_H

#include "live/program/pair.h"
#include "live/session/replay.h"
#include "sim/loop.h"

// Wall times of requests, in seconds.
typedef struct live_measure {
    double time_s;    // from the prompt to the last token
    double prefill_s; // of it in passes over the prompt
    double draft_s;   // in passes of the draft model (and the middle one)
    double verify_s;  // in passes of the target over drafts
} live_measure;

void live_measure_add(live_measure *sum, const live_measure *x);
// What a request took outside all passes: proposing, verifying, committing. NaN when draft model
// and target work at the same time.
double live_measure_select_s(const live_measure *m, const dsc_config *config);

typedef struct live_run {
    live_pair *pair;
    const dsc_config *config; // prepared
    const dsc_verifier_type *rule;
    dsc_draft_kind kind;
    uint64_t seed;
    int64_t max_tokens;
    bool plain;    // the target alone, method none
    bool replayed; // requests have outputs, which the target is made to write
                   // (live/session/replay.h)
    live_replay recorded;
    const live_draft_record *record; // forced: what the draft model answers, or NULL: for itself
    live_replay_draft recorded_draft;
    // After each step; NULL: nobody asks.
    int (*step)(void *user, const dsc_step_record *record, dsc_error *err);
    void *user;
    dsc_counts counts; // of the request that was run last
    live_measure measure;
    dsc_loop loop;
    dsc_arena arena;
    dsc_history *history; // of methods that carry something, else NULL
    bool rehearsal;       // such a request is left out of it
} live_run;               // zero-initialise; live_run_fini

// Of `pair`, whose sessions may be made later. DSC_EUSAGE: method, rule and models do not fit.
// `forced`: of outputs that are known, of up to `max_tokens`; then `record`, which must outlive the
// run, may answer for the draft model, or be NULL. With a record the loop verifies greedily: the
// rule has had its say in it.
int live_run_init(live_run *r, live_pair *pair, const dsc_config *config,
                  const dsc_verifier_type *rule, uint64_t seed, int64_t max_tokens, bool replayed,
                  const live_draft_record *record, dsc_error *err);
// Runs a request to its end. Its output is in pair->models.target until another one begins; on
// failure, and when `step` stopped it, counts and output are those of the steps that were taken.
int live_run_request(live_run *r, const dsc_request *request, dsc_error *err);
// Counts with the same room, of widths and overlaps too, zero, in fresh memory: (*out).histogram is
// to be freed, which holds all of it.
int live_run_counts(const live_run *r, dsc_counts *out, dsc_error *err);
void live_run_fini(live_run *r);

#endif

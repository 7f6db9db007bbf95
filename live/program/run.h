// SPDX-License-Identifier: Apache-2.0
// Runs a method on prompts: the loop (sim/loop.h) over live sessions, with wall times.
#ifndef DSC_LIVE_RUN_H
#define DSC_LIVE_RUN_H

#include "live/program/pair.h"
#include "live/program/stop.h"
#include "live/session/replay.h"
#include "sim/loop.h"

// Wall times of requests, in seconds.
typedef struct live_measure {
    double time_s;    // from the prompt to the last token
    double prefill_s; // of time_s, in passes over the prompt
    double draft_s;   // of time_s, in passes of the draft model (and the middle one)
    double verify_s;  // of time_s, in passes of the target over drafts
} live_measure;

void live_measure_add(live_measure *sum, const live_measure *x);
// Time of a request outside all passes: propose, verify, commit. NaN if draft model and target run
// at the same time.
double live_measure_select_s(const live_measure *m, const dsc_config *config);

typedef struct live_run {
    live_pair *pair;
    const dsc_config *config; // prepared
    const dsc_verifier_type *rule;
    dsc_draft_kind kind;
    uint64_t seed;
    int64_t max_tokens;
    bool plain;    // plain decoding: the target alone, method none
    bool replayed; // replay: the target's outputs are those of the requests
                   // (live/session/replay.h)
    live_replayed recorded;
    const live_draft_record *ends;   // replay: EOS and length limit of the recorded run, or NULL
    const live_draft_record *record; // replay: answers for the draft model; NULL: it drafts itself
    live_replay_draft recorded_draft;
    // Called after each step. May be NULL.
    int (*step)(void *user, const dsc_step_record *record, dsc_error *err);
    void *user;
    dsc_counts counts; // of the last request
    live_measure measure;
    dsc_loop loop;
    dsc_arena arena;
    dsc_history *history; // of methods with a history, else NULL
    live_stop *stop;      // stop strings, or NULL
    bool rehearsal;       // the current request does not count: the history ignores it
} live_run;               // zero-initialize; live_run_fini

// Prepares runs of `pair`, whose sessions may be created later. DSC_EUSAGE: method, rule and models
// do not fit together. `replayed`: outputs are given, of up to `max_tokens`; then `record`, which
// must outlive the run, may answer for the draft model (NULL: it drafts itself). With a record the
// loop verifies greedily, because the record already contains the rule's decisions.
int live_run_init(live_run *r, live_pair *pair, const dsc_config *config,
                  const dsc_verifier_type *rule, uint64_t seed, int64_t max_tokens, bool replayed,
                  const live_draft_record *record, dsc_error *err);
// Runs a request to its end. Its output is in pair->models.target until the next one begins. On
// failure, or when `step` stopped the run, counts and output are those of the completed steps.
int live_run_request(live_run *r, const dsc_request *request, dsc_error *err);
// Creates zero counts with the same capacity, including widths and overlaps. The caller frees
// out->histogram, which owns all of it.
int live_run_counts(const live_run *r, dsc_counts *out, dsc_error *err);
void live_run_fini(live_run *r);

#endif

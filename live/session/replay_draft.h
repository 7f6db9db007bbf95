// SPDX-License-Identifier: Apache-2.0
// A draft model that answers as a recorded one and works as a live one: every pass that it is asked
// for is run, and timed, by a session, whose own opinion is never heard. Beside a forced target
// (live/session/replay.h) a method then takes the steps that the simulator takes on the trace,
// whatever the models are: what is timed may have random weights.
//
// Greedily, the recorded ranks answer (sim/model/model_trace.h), and counts are those of the
// simulator. What draws its drafts is not known token by token; then how many of the drafts that
// are still equal to the output go on with its next token is drawn by the distribution that was
// recorded for the rule (sim/expect/expect_rule.h), so counts are draws of what the simulator
// expects. What a rule that draws does with the rows of two distributions, on the host, is neither
// done nor timed.
#ifndef DSC_LIVE_REPLAY_DRAFT_H
#define DSC_LIVE_REPLAY_DRAFT_H

#include "live/session/session.h"
#include "live/session/placeholder.h"
#include "sim/drafter.h"
#include "sim/expect/position_dist.h"
#include "sim/model/model_trace.h"

// What a trace says of the drafts of a method.
typedef struct live_draft_record {
    const dsc_trace_info *info;
    dsc_recorded_run origin;
    const dsc_verifier_type *rule; // whose acceptances are drawn; NULL: the ranks answer
    dsc_position_source dists;     // of several drafts; .rule NULL: of one at a time
    int drafts;                    // that are drawn after the last token of the output, one by one
    int most;                      // at a level
} live_draft_record;

// DSC_EUSAGE: a sentence that says what the method or the trace lacks. The trace must outlive *out.
int live_draft_record_find(live_draft_record *out, const dsc_trace *trace, const dsc_config *config,
                           const dsc_verifier_type *rule, dsc_error *err);
// The longest text that a draft may be behind or part of, in output tokens: a recorded draft model
// goes on behind the recorded end.
int64_t live_draft_record_limit(const live_draft_record *r);

typedef struct live_replay_draft {
    dsc_model base;
    dsc_model_trace recorded; // what is answered, or, if drawn, what is on the output
    live_placeholder placeholder;
    dsc_model *worker; // whose passes are run
    const live_draft_record *record;
    dsc_request request;
    uint64_t seed;
    // Drawn: level by level of a step's draft.
    int64_t level, left; // that was decided last; of its candidates, how many more are the output's
    size_t nodes;        // of the draft as scored
    double product, least;
    double *dist; // of 1, 2, ... drafts
    size_t dist_capacity;
    dsc_position_room room;
} live_replay_draft; // zero-initialise

// Starts on a request with its columns, behind the prompt that `session` has just begun with. The
// request's tokens are in the vocabulary of `vocab_size`; its shard, the record and the session
// must outlive the use.
void live_replay_draft_begin(live_replay_draft *f, live_session *session, int64_t vocab_size,
                             const live_draft_record *record, const dsc_request *request,
                             uint64_t seed);
// The model to give to a loop as its draft model; methods draft by choice (DSC_DRAFT_TOPK).
dsc_model *live_replay_draft_model(live_replay_draft *f);
void live_replay_draft_fini(live_replay_draft *f);

#endif

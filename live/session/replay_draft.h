// SPDX-License-Identifier: Apache-2.0
// A draft model that answers from a recording and costs as much as a live one: a session runs, and
// times, every requested pass, but its predictions are not used. Together with a replayed target
// (live/session/replay.h) a method takes the same steps as in a simulation on the trace, whatever
// the models are, so the timed models may have random weights.
//
// Methods that replay recorded accept lengths (sim/draft/recorded.c) draft nothing themselves: the
// draft model then runs as many passes as the method counts, each on one token more of a chain,
// just before the target's pass over the draft. Counts equal the simulator's.
//
// Greedy drafts are answered by the recorded ranks (sim/model/model_trace.h), and counts equal the
// simulator's. The tokens of sampled drafts are not recorded; instead, the number of drafts that
// are still equal to the output and continue with its next token is sampled from the recorded
// acceptance distribution of the rule (sim/expect/expect_rule.h), so counts are samples of what the
// simulator expects. The host's work of a sampling rule on two distributions is neither done nor
// timed.
#ifndef DSC_LIVE_REPLAY_DRAFT_H
#define DSC_LIVE_REPLAY_DRAFT_H

#include "live/session/session.h"
#include "live/session/placeholder.h"
#include "sim/drafter.h"
#include "sim/expect/position_dist.h"

// The recorded acceptances that a trace contains for a method.
typedef struct live_draft_record {
    const dsc_trace_info *info; // this and `origin` are set without recorded acceptances, too
    dsc_recorded_run origin;
    // Of accept lengths; else 0. The longest output, and the most nodes that a model scores in a
    // step: draft tokens, or passes of the draft model less one.
    int64_t written, nodes;
    const dsc_verifier_type *rule; // whose acceptances are sampled; NULL: the ranks answer
    dsc_position_source dists;     // for several drafts; .rule NULL: for one at a time
    int drafts;                    // sampled one by one after the last token of the output
    int most;                      // maximum at a level
} live_draft_record;

// DSC_EUSAGE: a sentence that names what the method or the trace lacks. The trace must outlive
// *out.
int live_draft_record_find(live_draft_record *out, const dsc_trace *trace, const dsc_config *config,
                           const dsc_verifier_type *rule, dsc_error *err);
// The longest text, in output tokens, that a draft may follow or be part of: a recorded draft model
// may continue after the recorded end.
int64_t live_draft_record_limit(const live_draft_record *r);
// Of a method that replays accept lengths: the option --draft-passes, passes of the draft model for
// a draft or DSC_PASS_PER_TOKEN; `otherwise`: the method has no such option.
int64_t live_draft_record_passes(const dsc_config *config, int64_t otherwise);

typedef struct live_replay_draft {
    live_replayed replayed;
    const live_draft_record *record;
    dsc_request request;
    uint64_t seed;
    // For sampling, level by level of a step's draft.
    int64_t level,
        left; // last decided level; number of its candidates still to become the output's token
    double product, least;
    double *dist; // of 1, 2, ... drafts
    size_t dist_capacity;
    dsc_position_room room;
    dsc_draft chain; // of accept lengths: what the draft model scores
} live_replay_draft; // zero-initialize

// Makes f->replayed.base a draft model for a loop, whose method drafts by DSC_DRAFT_TOPK: starts on
// a request with its columns, after the prompt that `session` has just begun. The
// request's tokens are in the vocabulary of `vocab_size`; its shard, the record and the session
// must outlive the use.
void live_replay_draft_begin(live_replay_draft *f, live_session *session, int64_t vocab_size,
                             const live_draft_record *record, const dsc_request *request,
                             uint64_t seed);
// Of accept lengths: runs the passes of the draft *d, which the method has made. DSC_EUSAGE: there
// are some, and no session was begun with.
int live_replay_draft_passes(live_replay_draft *f, const dsc_draft *d, dsc_error *err);
void live_replay_draft_fini(live_replay_draft *f);

#endif

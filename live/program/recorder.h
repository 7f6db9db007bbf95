// SPDX-License-Identifier: Apache-2.0
// A run as a trace: what every step did and took, and what both models said at every token of the
// output. The latter is asked for when the output is complete: the models are run over it again,
// whatever a method had them see (teacher-forced), the draft model too where it had not drafted.
//
// Distributions are those that tokens were drawn from, by temperature, top-k and top-p. At
// temperature 0 these would say nothing but the most probable token, so it is the models' own that
// are recorded (of temperature 1, nothing cut), as other tools log them.
#ifndef DSC_LIVE_RECORDER_H
#define DSC_LIVE_RECORDER_H

#include "live/session/session.h"
#include "sim/loop.h"
#include "traces/tokenizer/tokenizer.h"

typedef struct live_record {
    // The run's; they outlive the recorder. draft: NULL where there is none, or none of its own
    // weights (oracle). middle: only its time is of interest.
    live_session *target, *draft, *middle;
    const live_config *target_config, *draft_config;
    const dsc_tokenizer *tokenizer; // NULL: token ids only, no texts
    live_sampling sampling;
    const char *path; // of the trace
    bool force;       // replace one that is there
    int K;            // statistics for 1..K drafts, in [1, DSC_STATISTICS_K_MAX]
    int32_t rank_depth;
    dsc_rows_kind rows;     // of both models
    int64_t top;            // LISTED: tokens of a row
    int32_t rollout;        // tokens that the draft model writes on from each position; 0: none
    double shard_s;         // a request ends its shard when that is so old: models may be slow
    int64_t nodes;          // of a draft that the sessions have room for: live_record_nodes
    bool parallel;          // dsc_drafter_type.overlaps: steps do not add up to the output
    const char *provenance; // JSON object, or NULL
    // Between positions; nonzero stops with DSC_EINTERRUPT. May be NULL.
    int (*stop)(void *user);
    void *user;
} live_record;

// The nodes of a draft that sessions should have room for, at least.
int64_t live_record_nodes(const live_record *o);

typedef struct live_recorder live_recorder;

// Shards are small, so that a killed run leaves all but the last few requests in PATH.tmp
// (dsc_trace_writer_open).
int live_recorder_new(live_recorder **out, const live_record *o, dsc_error *err);

// A request begins: steps are counted and timed from here.
void live_recorder_begin(live_recorder *r);
// dsc_loop_input.step, with the recorder as its user.
int live_recorder_step(void *recorder, const dsc_step_record *step, dsc_error *err);
// A request has ended; *q has its id, prompt, output, references, texts and metadata, and gets the
// columns. Begins its prompt again in target and draft, so what a loop made there is gone (an
// output in a session's own memory too: give a copy). Writes it.
int live_recorder_add(live_recorder *r, dsc_request_input *q, dsc_error *err);

// Positions whose token the target's distribution excludes: emitted by a rule that is not lossless,
// or at the edge of a top-k or top-p that rounding moves. Their probability is then the uncut
// distribution's.
int64_t live_recorder_excluded(const live_recorder *r);
int64_t live_recorder_requests(const live_recorder *r); // written

// As dsc_trace_writer_commit and _abort; both leave the recorder to be freed.
int live_recorder_commit(live_recorder *r, dsc_error *err);
void live_recorder_free(live_recorder *r); // aborts what was not committed; NULL allowed

#endif

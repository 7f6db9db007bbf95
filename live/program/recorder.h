// SPDX-License-Identifier: Apache-2.0
// Records a run as a trace: each step with its time, and the probabilities of both models at every
// token of the output. The probabilities are computed when the output is complete, by
// teacher-forced passes over it, independent of what the method let the models see, including the
// draft model if the method did not use it.
//
// Recorded distributions are those that tokens are sampled from, after temperature, top-k and
// top-p. At temperature 0 these would contain only the most probable token, so the models' own
// distributions are recorded (temperature 1, no truncation), as other tools log them.
#ifndef DSC_LIVE_RECORDER_H
#define DSC_LIVE_RECORDER_H

#include "live/program/draft_vocabulary.h"
#include "live/program/record_trees.h"
#include "live/session/session.h"
#include "sim/loop.h"
#include "traces/tokenizer/ends.h"

typedef struct live_record {
    // The run's sessions; they outlive the recorder. draft: NULL if there is none, or if it has no
    // weights of its own (oracle). middle: used for its time only.
    live_session *target, *draft, *middle;
    const live_config *target_config, *draft_config;
    const dsc_tokenizer *tokenizer; // NULL: token ids only, no texts
    const dsc_ends *ends;           // the target's; NULL: those of target_config
    live_draft_vocabulary *drafted; // receives the outputs that are written, and unless greedy the
                                    // distributions; may be NULL
    live_sampling sampling;
    const char *path; // of the trace
    bool force;       // replace an existing trace
    int K;            // statistics for 1..K drafts, in [1, DSC_STATISTICS_K_MAX]
    int32_t rank_depth;
    dsc_rows_kind rows;      // of both models
    int64_t top;             // LISTED: tokens per position
    int32_t rollout;         // tokens that the draft model generates from each position; 0: none
    live_record_trees trees; // the settings of candidates and marginals
    int64_t limit;           // maximum tokens of an output; 0: each has ended
    double shard_s; // a request closes its shard when the shard is this old, because models may be
                    // slow
    int64_t nodes;  // draft nodes that the sessions have room for: live_record_nodes
    bool parallel;  // dsc_drafter_type.parallel: steps do not add up to the output
    const char *provenance; // JSON object, or NULL
    // Called between positions; nonzero stops with DSC_EINTERRUPT. May be NULL.
    int (*stop)(void *user);
    void *user;
} live_record;

// The least number of draft nodes that sessions must have room for.
int64_t live_record_nodes(const live_record *o);

typedef struct live_recorder live_recorder;

// Opens the trace. Shards are small, so that a killed run keeps all but the last few requests in
// PATH.tmp (dsc_trace_writer_open).
int live_recorder_new(live_recorder **out, const live_record *o, dsc_error *err);

// Begins a request: steps are counted and timed from here.
void live_recorder_begin(live_recorder *r);
// The hook dsc_loop_input.step, with the recorder as its user.
int live_recorder_step(void *recorder, const dsc_step_record *step, dsc_error *err);
// Ends a request and writes it. *q has its id, prompt, output, references, texts and metadata, and
// receives the columns. The prompt is begun again in target and draft, so the loop's state there is
// lost (pass a copy of an output that lies in a session).
int live_recorder_add(live_recorder *r, dsc_request_input *q, dsc_error *err);

// Number of positions whose token the target's distribution excludes: emitted by a rule that is not
// lossless, or at the edge of a top-k or top-p that rounding moves. Their recorded probability is
// that before truncation.
int64_t live_recorder_excluded(const live_recorder *r);
int64_t live_recorder_requests(const live_recorder *r); // written

// Call dsc_trace_writer_commit and _abort; both leave the recorder to be freed.
int live_recorder_commit(live_recorder *r, dsc_error *err);
void live_recorder_free(live_recorder *r); // aborts an uncommitted trace; NULL allowed

#endif

// SPDX-License-Identifier: Apache-2.0
// A model that answers as a recorded output and works as a live one: every pass that it is asked
// for is run, and timed, by a session, whose own opinion is heard only about text that the record
// does not hold. So a method takes the steps that the simulator takes on that record, whatever the
// model would have said, and what they cost is measured (LLMA, Yang et al. 2023, Section 3.2,
// "Target Guided Simulation"). With the model that wrote the record, methods that ask their target
// about other text (lookahead decoding) can be simulated too.
#ifndef DSC_LIVE_REPLAY_H
#define DSC_LIVE_REPLAY_H

#include "live/session/replay_draft.h"

typedef struct live_replay {
    dsc_model base;
    dsc_model_trace recorded;     // what is answered
    live_placeholder placeholder; // of drafts with tokens that nobody knows
    dsc_model *worker;            // whose passes are run
} live_replay;                    // zero-initialise

// Starts on a recorded output, behind the prompt that `session` has just begun with, limit
// recorded.count. DSC_EINPUT: a token that is not in the session's vocabulary of `vocab_size`.
// `record`: drafts are answered by it, so the record also says how long the output could have been;
// or NULL. The view and the session must outlive the use.
int live_replay_begin(live_replay *f, live_session *session, int64_t vocab_size,
                      dsc_token_view recorded, const live_draft_record *record, dsc_error *err);
// The model to give to a loop as its target.
dsc_model *live_replay_model(live_replay *f);
void live_replay_fini(live_replay *f);

#endif

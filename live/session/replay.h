// SPDX-License-Identifier: Apache-2.0
// A model that answers from a recorded output and costs as much as a live one: a session runs, and
// times, every requested pass, but its predictions are used only for text that the record does not
// contain. So a method takes the same steps as in a simulation on that record, whatever the model
// would generate, and their cost is measured (LLMA, Yang et al. 2023, Section 3.2, "Target Guided
// Simulation"). If the model wrote the record, methods that query the target about other text
// (lookahead decoding) can be simulated too.
#ifndef DSC_LIVE_REPLAY_H
#define DSC_LIVE_REPLAY_H

#include "live/session/replay_draft.h"

// Makes f->base a target for a loop: starts on a recorded output, after the prompt that `session`
// has just begun, and ends with it. DSC_EINPUT: a token is not in the session's vocabulary of
// `vocab_size`. `ends`: contains EOS and how long the output could have been, which decide where
// drafts near the recorded end stop; NULL, or acceptances are sampled or recorded as lengths: no
// draft goes beyond that end. The view and the session must outlive the use.
int live_replay_begin(live_replayed *f, live_session *session, int64_t vocab_size,
                      dsc_token_view recorded, const live_draft_record *ends, dsc_error *err);

#endif

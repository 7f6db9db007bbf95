// SPDX-License-Identifier: Apache-2.0
// Replays a recorded output as the target model of a loop: the recorded tokens are the answers, and
// a session runs the passes.
#include "live/session/replay.h"

#include <inttypes.h>

static int start(dsc_model *m, const dsc_draft *d, dsc_error *err)
{
    live_replayed *f = (live_replayed *)m;
    int rc = live_placeholder_take(&f->placeholder, d, m->length, err);
    return rc ? rc : f->worker->type->start(f->worker, &f->placeholder.draft, err);
}

// A method that replays accept lengths has drafted without a model, whose passes come first.
static int score(dsc_model *m, const dsc_draft *d, dsc_error *err)
{
    live_replayed *f = (live_replayed *)m;
    int rc = f->draft ? live_replay_draft_passes(f->draft, d, err) : DSC_OK;
    return rc ? rc : live_replayed_score(m, d, err);
}

// Answers from the record if it contains the position, else from the session, which has just run
// that pass.
static int next(dsc_model *m, int32_t node, dsc_next *out, dsc_error *err)
{
    live_replayed *f = (live_replayed *)m;
    const int64_t depth = node < 0 ? 0 : f->recorded.depth[node];
    if (depth >= 0 && m->length + depth < f->recorded.recorded.count)
        return f->recorded.base.type->next(&f->recorded.base, node, out, err);
    return f->worker->type->next(f->worker, node, out, err);
}

static const dsc_model_type type = {
    .name = "replay", .score = score, .start = start, .next = next, .commit = live_replayed_commit};

int live_replay_begin(live_replayed *f, live_session *session, int64_t vocab_size,
                      dsc_token_view recorded, const live_draft_record *ends, dsc_error *err)
{
    for (int64_t i = 0; i < recorded.count; i++)
        if (recorded.id[i] < 0 || recorded.id[i] >= vocab_size)
            return dsc_fail(err, DSC_EINPUT,
                            "token %" PRId32 " at index %" PRId64 " of the recorded output"
                            " is not in the model's vocabulary of %" PRId64,
                            recorded.id[i], i, vocab_size);
    dsc_model_trace_begin(&f->recorded, recorded);
    if (ends && !ends->rule && !ends->written)
        dsc_model_trace_set_ends(&f->recorded, ends->info, &ends->origin);
    live_replayed_begin(f, &type, live_session_model(session), recorded, vocab_size);
    return DSC_OK;
}

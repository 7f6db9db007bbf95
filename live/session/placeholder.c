// SPDX-License-Identifier: Apache-2.0
// Replaces the unknown tokens of a recorded draft, so that a model can run a pass over it (the cost
// of a pass does not depend on which tokens it has), and what replayed target and draft share.
#include "live/session/placeholder.h"

#include <stdlib.h>

int live_placeholder_take(live_placeholder *s, const dsc_draft *d, int64_t length, dsc_error *err)
{
    int rc = dsc_resize(&s->token, &s->token_capacity, d->count, err);
    if (!rc)
        rc = dsc_resize(&s->depth, &s->depth_capacity, d->count, err);
    for (size_t j = 0; j < d->count && !rc; j++) {
        const int32_t above = d->parent[j] < 0 ? 0 : s->depth[d->parent[j]];
        const int64_t at = length + above;
        const bool follows = above >= 0 && at < s->recorded.count;
        const int32_t right = follows ? s->recorded.id[at] : -1; // the record continues with it
        int64_t x = d->token[j];
        if (x < 0 || x >= s->vocab) {
            x = (length + (int64_t)j) % s->vocab; // an arbitrary token
            x = x == right ? (x + 1) % s->vocab : x;
        }
        s->token[j] = (int32_t)x;
        s->depth[j] = follows && d->token[j] == right ? above + 1 : -1;
    }
    s->draft = *d;
    s->draft.token = s->token;
    return rc;
}

void live_placeholder_fini(live_placeholder *s)
{
    free(s->token);
    free(s->depth);
    *s = (live_placeholder){0};
}

// --- a model that replays ------------------------------------------------------------------------

void live_replayed_begin(live_replayed *r, const dsc_model_type *type, dsc_model *worker,
                         dsc_token_view output, int64_t vocab)
{
    r->worker = worker;
    worker->end_token = -1;
    worker->more = 0;
    r->placeholder.recorded = output;
    r->placeholder.vocab = vocab;
    r->base = r->recorded.base;
    r->base.type = type;
}

int live_replayed_score(dsc_model *m, const dsc_draft *d, dsc_error *err)
{
    live_replayed *r = (live_replayed *)m;
    int rc = live_placeholder_take(&r->placeholder, d, m->length, err);
    if (!rc)
        rc = r->worker->type->score(r->worker, &r->placeholder.draft, err);
    return rc ? rc : r->recorded.base.type->score(&r->recorded.base, d, err);
}

int live_replayed_commit(dsc_model *m, const int32_t *token, size_t n, dsc_error *err)
{
    live_replayed *r = (live_replayed *)m;
    int rc = r->recorded.base.type->commit(&r->recorded.base, token, n, err);
    if (!rc)
        rc = r->worker->type->commit(r->worker, token, n, err);
    m->length = r->recorded.base.length;
    m->ended = r->recorded.base.ended;
    return rc;
}

void live_replayed_fini(live_replayed *r)
{
    dsc_model_trace_fini(&r->recorded);
    live_placeholder_fini(&r->placeholder);
    *r = (live_replayed){0};
}

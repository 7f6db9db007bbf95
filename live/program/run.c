// SPDX-License-Identifier: Apache-2.0
// Runs one request: begins it in all sessions, executes the loop and takes the times of passes. A
// replayed request gets a model that answers from the record (live/session/replay.h).
#include "live/program/run.h"
#include "live/device/clock.h"

#include <math.h>
#include <stdlib.h>

void live_measure_add(live_measure *sum, const live_measure *x)
{
    sum->time_s += x->time_s;
    sum->prefill_s += x->prefill_s;
    sum->draft_s += x->draft_s;
    sum->verify_s += x->verify_s;
}

double live_measure_select_s(const live_measure *m, const dsc_config *config)
{
    return config->drafter->parallel ? (double)NAN
                                     : m->time_s - m->prefill_s - m->draft_s - m->verify_s;
}

// --- life ----------------------------------------------------------------------------------------

// Passes with more tokens than this share one counter.
enum { MOST_WIDTHS = 1 << 16 };

int live_run_counts(const live_run *r, dsc_counts *out, dsc_error *err)
{
    // The last token of an output is the target's own.
    const int64_t nodes = r->record ? r->record->nodes : 0; // of recorded steps; else 0
    const int64_t limit = nodes ? nodes : dsc_config_limit(r->config), room = r->max_tokens - 1;
    const int64_t most = limit < room ? limit : room > 0 ? room : 0;
    const int64_t width = nodes ? nodes + 1 : dsc_config_width(r->config);
    const int64_t widths = width > MOST_WIDTHS ? 0 : width;
    const dsc_counts_room sizes = {.most = most,
                                   .limit = limit,
                                   .width = widths,
                                   .parallel = r->config->drafter->parallel ? width : 0};
    int64_t *storage;
    int rc = dsc_new(&storage, (size_t)dsc_counts_elements(&sizes), err);
    if (!rc)
        *out = dsc_counts_in(storage, &sizes);
    return rc;
}

int live_run_init(live_run *r, live_pair *pair, const dsc_config *config,
                  const dsc_verifier_type *rule, uint64_t seed, int64_t max_tokens, bool replayed,
                  const live_draft_record *record, dsc_error *err)
{
    const dsc_drafter_type *d = config->drafter;
    const live_want want = live_want_of(d);
    const dsc_fit fit = {.draft = want.draft || want.copy,
                         .middle = want.middle,
                         .marginals = want.draft, // live_pair_check_heads
                         .dists = !replayed,
                         .off_path = true};
    *r = (live_run){.pair = pair,
                    .config = config,
                    .rule = record ? &dsc_verifier_greedy : rule,
                    .kind = DSC_DRAFT_TOPK,
                    .seed = seed,
                    .max_tokens = max_tokens,
                    .replayed = replayed,
                    .record = record};
    int rc = record ? DSC_OK : dsc_draft_kind_for(&r->kind, d, rule, &fit, err);
    if (!rc)
        rc = live_run_counts(r, &r->counts, err);
    if (!rc && d->uses_history && d->uses_history(config))
        rc = dsc_new(&r->history, 1, err);
    return rc;
}

void live_run_fini(live_run *r)
{
    if (r->history)
        dsc_arena_fini(&r->history->arena);
    free(r->history);
    live_replayed_fini(&r->recorded);
    live_replay_draft_fini(&r->recorded_draft);
    dsc_loop_fini(&r->loop);
    dsc_arena_fini(&r->arena);
    free(r->counts.histogram);
    *r = (live_run){0};
}

// --- a request -----------------------------------------------------------------------------------

// Sums the times of all sessions so far.
static live_measure spent(const live_pair *p)
{
    live_measure m = {0};
    for (int s = 0; s < LIVE_SIDES; s++) {
        if (!p->session[s])
            continue;
        const live_times *t = live_session_times(p->session[s]);
        m.prefill_s += t->prefill_s;
        *(s == LIVE_TARGET ? &m.verify_s : &m.draft_s) += t->score_s;
    }
    return m;
}

// Makes the record answer for the sessions that have just begun.
static int start_replay(live_run *r, const dsc_request *request, dsc_error *err)
{
    live_pair *p = r->pair;
    const int64_t vocab = p->weights[LIVE_TARGET]->config.vocab;
    int rc = live_replay_begin(&r->recorded, p->session[LIVE_TARGET], vocab, request->output,
                               r->record ? r->record : r->ends, err);
    p->models.target = &r->recorded.base;
    if (rc || !r->record)
        return rc;
    r->recorded.draft = r->record->written ? &r->recorded_draft : NULL;
    if (!p->session[LIVE_DRAFT])
        return DSC_OK;
    live_replay_draft_begin(&r->recorded_draft, p->session[LIVE_DRAFT], vocab, r->record, request,
                            r->seed);
    p->models.draft = &r->recorded_draft.replayed.base;
    return DSC_OK;
}

int live_run_request(live_run *r, const dsc_request *request, dsc_error *err)
{
    live_pair *p = r->pair;
    const live_measure before = spent(p);
    const double start = live_now_s();
    dsc_counts_clear(&r->counts);
    dsc_arena_reset(&r->arena);
    if (r->stop)
        r->stop->ended = false;
    dsc_request cut = *request;
    if (r->replayed && cut.output.count > r->max_tokens) // a rehearsal
        cut.output.count = r->max_tokens;
    int rc = live_pair_begin(p, cut.prompt, r->replayed ? cut.output.count : r->max_tokens,
                             r->plain, err);
    if (!rc && r->replayed)
        rc = start_replay(r, &cut, err);
    const dsc_loop_input in = {.config = r->config,
                               .rule = r->rule,
                               .kind = r->kind,
                               .models = &p->models,
                               .request = &cut,
                               .seed = r->seed,
                               .arena = &r->arena,
                               .history = r->rehearsal ? NULL : r->history,
                               .step = r->step,
                               .user = r->user,
                               .end = r->stop ? live_stop_end : NULL,
                               .end_user = r->stop};
    if (!rc)
        rc = dsc_loop_run(&r->loop, &in, &r->counts, err);
    const live_measure after = spent(p);
    r->measure = (live_measure){.time_s = live_now_s() - start,
                                .prefill_s = after.prefill_s - before.prefill_s,
                                .draft_s = after.draft_s - before.draft_s,
                                .verify_s = after.verify_s - before.verify_s};
    return rc;
}

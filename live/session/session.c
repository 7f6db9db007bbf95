// SPDX-License-Identifier: Apache-2.0
// Creates sessions, begins texts and runs teacher-forced passes over recorded outputs. Passes are
// in session_score.c, answers in session_answer.c, draft/target overlap in session_overlap.c.
#include "live/session/session_state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// Number of rows of logits that a session keeps.
static int64_t kept_rows(const live_config *c, int64_t nodes)
{
    return c->family == LIVE_MEDUSA && c->medusa_heads > nodes ? c->medusa_heads : nodes + 1;
}

static int allocate_lists(live_session *s, dsc_error *err)
{
    const live_config *c = &s->w->config;
    const size_t rows = (size_t)kept_rows(c, s->nodes);
    const size_t most = (size_t)s->most, nodes = (size_t)s->nodes + 1, vocab = (size_t)c->vocab;
    const size_t bits = most > nodes ? most : nodes;
    s->words = (int64_t)((bits + WORD - 1) / WORD);
    struct {
        void *list;
        size_t count, size;
    } want[] = {{&s->text, (size_t)s->context, sizeof *s->text},
                {&s->node_token, nodes, sizeof *s->node_token},
                {&s->parent, nodes, sizeof *s->parent},
                {&s->slot, nodes, sizeof *s->slot},
                {&s->depth, nodes, sizeof *s->depth},
                {&s->row, nodes, sizeof *s->row},
                {&s->best, rows, sizeof *s->best},
                {&s->margin, rows, sizeof *s->margin},
                {&s->soft, rows, sizeof *s->soft},
                {&s->block, rows * dsc_softmax_blocks(vocab), sizeof *s->block},
                {&s->peak, s->b->on_host ? 0 : rows * dsc_softmax_blocks(vocab), sizeof *s->peak},
                {&s->held, (size_t)s->places, sizeof *s->held},
                {&s->there, (size_t)s->places * block_words(vocab), sizeof *s->there},
                {&s->exponential, vocab, sizeof *s->exponential},
                {&s->token, bits, sizeof *s->token},
                {&s->position, bits, sizeof *s->position},
                {&s->at, bits, sizeof *s->at},
                {&s->output, bits, sizeof *s->output},
                {&s->feature, bits, sizeof *s->feature},
                {&s->mask, bits * (size_t)s->words, sizeof *s->mask}};
    int rc = DSC_OK;
    for (size_t i = 0; i < sizeof want / sizeof *want && !rc; i++) {
        void *p = NULL;
        rc = dsc_alloc(&p, want[i].count, want[i].size, err);
        memcpy(want[i].list, &p, sizeof p); // whatever it points to
    }
    for (int64_t i = 0; i < s->places && !rc; i++)
        s->held[i] = -1;
    return rc;
}

static int check_memory(const live_session *s, dsc_error *err)
{
    const live_config *c = &s->w->config;
    const int64_t rows = kept_rows(c, s->nodes);
    double need = live_room_bytes(c, s->most, rows), spare, all;
    need += (double)rows * (double)c->vocab * sizeof(float);
    need += (double)s->slots * live_config_cache_bytes(c, s->b->type->cache_dtype(c->dtype));
    int rc = s->b->type->memory(s->b, &spare, &all, err);
    if (!rc && need > spare)
        rc = dsc_fail(err, DSC_ENOMEM,
                      "a context of %" PRId64 " tokens needs %.3g GB on %s, where %.3g GB are free",
                      s->context, need * 1e-9, s->b->device, spare * 1e-9);
    return rc;
}

static int keep_features(live_session *s, dsc_error *err)
{
    void *p = NULL;
    if (s->features)
        return DSC_OK;
    int rc = s->b->type->alloc(s->b, &p,
                               (size_t)(s->slots * s->w->config.hidden) * sizeof *s->features, err);
    s->features = p;
    return rc;
}

// A head must fit the model whose features it reads.
static int check_target(const live_session *s, dsc_error *err)
{
    const live_config *c = &s->w->config, *t;
    if (!s->target)
        return is_eagle(s) || is_medusa(s)
                   ? dsc_fail(err, DSC_EUSAGE,
                              "%s heads require the target model that they were trained for",
                              is_eagle(s) ? "EAGLE" : "Medusa")
                   : DSC_OK;
    t = &s->target->w->config;
    if (c->hidden != t->hidden || c->vocab != t->vocab)
        return dsc_fail(err, DSC_EUSAGE,
                        "the head was trained for a model of hidden size %" PRId64 " with %" PRId64
                        " tokens; the target has hidden size %" PRId64 " and %" PRId64 " tokens",
                        c->hidden, c->vocab, t->hidden, t->vocab);
    if (s->b != s->target->b)
        return dsc_fail(err, DSC_EUSAGE, "a head must run on its target's device");
    return DSC_OK;
}

int live_session_new(live_session **out, const live_weights *w, live_session *target,
                     int64_t context, int64_t nodes, dsc_error *err)
{
    void *p;
    const bool head = w->config.family == LIVE_EAGLE || w->config.family == LIVE_MEDUSA;
    int rc = dsc_alloc(&p, 1, sizeof(live_session), err);
    *out = p;
    if (rc)
        return rc;
    live_session *s = p;
    s->w = w;
    s->b = w->backend;
    s->target = head ? target : NULL;
    s->context = context;
    s->nodes = nodes;
    s->lead = w->config.family == LIVE_EAGLE;
    s->most = nodes + 2 > PREFILL ? nodes + 2 : PREFILL;
    s->slots = context + nodes + 1;
    s->places = s->b->on_host ? 0 : kept_rows(&w->config, nodes);
    s->places = s->places > PLACES ? PLACES : s->places;
    rc = check_target(s, err);
    if (!rc)
        rc = check_memory(s, err);
    if (!rc)
        rc = allocate_lists(s, err);
    if (!rc)
        rc = live_room_new(&s->room, w, s->most, kept_rows(&w->config, nodes), err);
    if (!rc && w->config.layers)
        rc = live_cache_new(&s->cache, w, 1, s->slots, err);
    if (!rc && is_eagle(s))
        rc = keep_features(s, err);
    if (!rc && s->target)
        rc = keep_features(s->target, err);
    void *logits = NULL, *logit = NULL;
    const size_t row = (size_t)w->config.vocab * sizeof *s->logits;
    if (!rc)
        rc = s->b->type->alloc(s->b, &logits, (size_t)kept_rows(&w->config, nodes) * row, err);
    s->logits = logits;
    if (!rc && !s->b->on_host)
        rc = s->b->type->alloc_host(s->b, &logit, (size_t)s->places * row, err);
    s->logit = logit;
    if (rc) {
        live_session_free(s);
        *out = NULL;
    }
    return rc;
}

void live_session_free(live_session *s)
{
    if (!s)
        return;
    dsc_error unheard;
    live_session_settle(s, &unheard);
    live_background_free(s->background);
    live_overlaps_free(s->overlaps, s->b);
    live_room_free(&s->room);
    live_cache_free(&s->cache, s->b);
    s->b->type->free(s->b, s->features);
    s->b->type->free(s->b, s->logits);
    s->b->type->free_host(s->b, s->logit);
    void *const lists[] = {
        s->text,     s->node_token, s->parent,      s->slot,   s->depth,   s->row,   s->best,
        s->margin,   s->soft,       s->block,       s->peak,   s->held,    s->there, s->token,
        s->position, s->at,         s->exponential, s->output, s->feature, s->mask,  s->margins};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        free(lists[i]);
    free(s);
}

static int check_text(const live_session *s, dsc_token_view prompt, int64_t limit, dsc_error *err)
{
    if (prompt.count < 1)
        return dsc_fail(err, DSC_EUSAGE, "the prompt is empty; at least one token is required");
    if (s->target && prompt.count < 2)
        return dsc_fail(err, DSC_EUSAGE, "the prompt has one token; a draft head requires two");
    if (limit < 0 || prompt.count > s->context - limit)
        return dsc_fail(err, DSC_EUSAGE,
                        "a prompt of %" PRId64 " tokens and an output of up to %" PRId64
                        " exceed the context of %" PRId64 " tokens",
                        prompt.count, limit, s->context);
    for (int64_t i = 0; i < prompt.count; i++)
        if (prompt.id[i] < 0 || prompt.id[i] >= s->w->config.vocab)
            return dsc_fail(err, DSC_EUSAGE,
                            "token %" PRId32 " at index %" PRId64 " of the prompt"
                            " is not in the model's vocabulary of %" PRId64,
                            prompt.id[i], i, s->w->config.vocab);
    return DSC_OK;
}

static const dsc_model_type type = {.name = "live",
                                    .score = live_session_score,
                                    .start = live_session_start,
                                    .next = live_session_next,
                                    .dist = live_session_dist,
                                    .prefetch = live_session_prefetch,
                                    .untempered = live_session_untempered,
                                    .overlap = live_session_overlap,
                                    .commit = live_session_commit};

int live_session_begin(live_session *s, dsc_token_view prompt, int64_t limit,
                       const live_sampling *sampling, dsc_error *err)
{
    const live_config *c = &s->w->config;
    int rc = live_session_settle(s, err);
    if (!rc)
        rc = check_text(s, prompt, limit, err);
    if (!rc && s->target && text_length(s->target) < prompt.count)
        rc = dsc_fail(err, DSC_EUSAGE, "the target must begin a text before its head does");
    if (rc)
        return rc;
    s->sampling = *sampling;
    if (s->asked != DIST_RAW) // a raw request is repeated by its caller
        s->asked = sampling->temperature > 0 ? DIST_DRAWN_FROM : DIST_NONE;
    memcpy(s->text, prompt.id, (size_t)prompt.count * sizeof *s->text);
    s->prompt = prompt.count;
    s->base = (dsc_model){.type = &type,
                          .output = s->text + prompt.count,
                          .limit = limit,
                          .end_token = c->ends ? c->end[0] : -1,
                          .more_ends = c->end + 1,
                          .more = c->ends > 1 ? c->ends - 1 : 0,
                          .ended = limit == 0};
    s->cached = s->lead;
    live_session_drop(s);
    const double before = s->times.prefill_s;
    if (s->target)
        rc = live_session_catch_up(s->target, prompt.count - 1, &s->target->times.prefill_s, err);
    if (!rc)
        rc = live_session_catch_up(s, prompt.count - 1, &s->times.prefill_s, err);
    if (s->times.prefill_s > before)
        s->times.prefill_tokens += prompt.count - 1;
    return rc;
}

dsc_model *live_session_model(live_session *s)
{
    return &s->base;
}

const live_times *live_session_times(const live_session *s)
{
    return &s->times;
}

const float *live_session_margins(const live_session *s)
{
    return s->margins;
}

// --- teacher-forced ------------------------------------------------------------------------------

// One pass over the text from `cached` on; keeps the logits that predict the tokens of the output.
static int replay_pass(live_session *s, int64_t count, dsc_error *err)
{
    live_batch batch = live_session_batch(s);
    live_session_list_text(s, &batch, count);
    for (int64_t i = 0; i < count; i++)
        if (s->cached + i >= s->prompt - 1)
            s->output[batch.outputs++] = (int32_t)i;
    batch.dist = NULL; // no summary: complete rows are needed
    s->rows = 0;
    int rc = live_session_run(s, &batch, true, &s->times.prefill_s, err);
    s->cached += count;
    return rc ? rc : live_session_keep_rows(s, &batch, err);
}

int live_session_replay(live_session *s, dsc_token_view prompt, dsc_token_view output,
                        int (*row)(void *user, int64_t i, const float *logits, dsc_error *err),
                        void *user, dsc_error *err)
{
    static const live_sampling greedy = {0, 0, 1};
    // A pass is as short as one over a draft, so that the numbers come about as in a run.
    const int64_t chunk = s->nodes + 1 < FORCED ? s->nodes + 1 : FORCED;
    if (is_medusa(s))
        return dsc_fail(err, DSC_EUSAGE, "Medusa heads cannot be teacher-forced");
    int rc = live_session_begin(s, prompt, output.count, &greedy, err);
    if (rc || !output.count)
        return rc;
    memcpy(s->text + prompt.count, output.id, (size_t)output.count * sizeof *s->text);
    s->base.length = output.count;
    s->base.ended = true;
    const int64_t end = text_length(s) - 1; // the last token is only predicted
    if (s->target)
        rc = live_session_catch_up(s->target, end, &s->target->times.prefill_s, err);
    for (int64_t i = 0; i < output.count && !rc;) {
        const int64_t left = end - s->cached;
        rc = replay_pass(s, left < chunk ? left : chunk, err);
        for (int64_t r = 0; r < s->rows && !rc; r++, i++) {
            const float *logits;
            rc = live_session_fetch(s, (int32_t)r, &logits, err);
            if (!rc)
                rc = row(user, i, logits, err);
        }
    }
    live_session_drop(s);
    return rc;
}

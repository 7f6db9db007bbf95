// SPDX-License-Identifier: Apache-2.0
// Creates sessions, begins texts and runs teacher-forced passes over recorded outputs. Passes are
// in session_score.c, answers in session_answer.c, draft/target overlap in session_overlap.c.
#include "live/session/session_state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

// Number of rows of logits that a session keeps.
static int64_t kept_rows(const live_config *c, int64_t nodes)
{
    return c->family == LIVE_MEDUSA && c->medusa_heads > nodes ? c->medusa_heads : nodes + 1;
}

static int allocate_lists(live_session *s, dsc_error *err)
{
    const live_config *c = &s->w->config;
    const size_t vocab = (size_t)c->vocab, blocks = dsc_softmax_blocks(vocab);
    const size_t rows = (size_t)kept_rows(c, s->nodes), nodes = (size_t)s->nodes + 1;
    const size_t context = (size_t)s->context, buffers = (size_t)s->host.capacity;
    const size_t list = larger((size_t)s->list.capacity, nodes), words = (list + WORD - 1) / WORD;
    const bool mixed = live_config_mixes_windows(c);
    const struct {
        void *out;
        size_t count, size;
    } want[] = {{&s->text.token, context, sizeof *s->text.token},
                {&s->text.margin, context, sizeof *s->text.margin},
                {&s->tree.token, nodes, sizeof *s->tree.token},
                {&s->tree.parent, nodes, sizeof *s->tree.parent},
                {&s->tree.slot, nodes, sizeof *s->tree.slot},
                {&s->tree.depth, nodes, sizeof *s->tree.depth},
                {&s->tree.row, nodes, sizeof *s->tree.row},
                {&s->rows.best, rows, sizeof *s->rows.best},
                {&s->rows.margin, rows, sizeof *s->rows.margin},
                {&s->rows.dist, rows, sizeof *s->rows.dist},
                {&s->rows.sum, rows * blocks, sizeof *s->rows.sum},
                {&s->rows.max_logit, s->b->on_host ? 0 : rows * blocks, sizeof *s->rows.max_logit},
                {&s->rows.scratch, vocab, sizeof *s->rows.scratch},
                {&s->host.row, buffers, sizeof *s->host.row},
                {&s->host.present, buffers * block_words(vocab), sizeof *s->host.present},
                {&s->list.token, list, sizeof *s->list.token},
                {&s->list.position, list, sizeof *s->list.position},
                {&s->list.slot, list, sizeof *s->list.slot},
                {&s->list.output, list, sizeof *s->list.output},
                {&s->list.feature, list, sizeof *s->list.feature},
                {&s->list.mask, list * words, sizeof *s->list.mask},
                {&s->list.window_mask, mixed ? list * words : 0, sizeof *s->list.window_mask}};
    int rc = DSC_OK;
    s->list.words = (int64_t)words;
    for (size_t i = 0; i < sizeof want / sizeof *want && !rc; i++)
        rc = dsc_arena_alloc(&s->arena, want[i].out, want[i].count, want[i].size, err);
    for (int64_t i = 0; i < s->host.capacity && !rc; i++)
        s->host.row[i] = -1;
    if (!mixed)
        s->list.window_mask = NULL;
    return rc;
}

static int check_memory(const live_session *s, dsc_error *err)
{
    const live_config *c = &s->w->config;
    const int64_t rows = kept_rows(c, s->nodes);
    double need = live_room_bytes(c, s->list.capacity, rows), spare, all;
    need += (double)rows * (double)c->vocab * sizeof(float);
    need += (double)s->slots * live_config_cache_bytes(c, s->b->type->memory.cache_dtype(c->dtype));
    int rc = s->b->type->memory.available(s->b, &spare, &all, err);
    if (!rc && need > spare)
        rc = dsc_fail(err, DSC_ENOMEM,
                      "a context of %" PRId64 " tokens needs %.3g GB on %s, where %.3g GB are free",
                      s->context, need * 1e-9, s->b->device, spare * 1e-9);
    return rc;
}

// Keeps the features that `head` (NULL: the session itself) reads.
static int keep_features(live_session *s, const live_config *head, dsc_error *err)
{
    live_features want = {.slots = s->slots}, *f = &s->features;
    const bool tapped = head && head->family == LIVE_EAGLE3;
    int rc = tapped ? live_config_taps(head, s->w->config.layers, want.tap, err) : DSC_OK;
    want.taps = tapped ? LIVE_TAPS : 0;
    if (rc)
        return rc;
    if (f->rows)
        return f->taps == want.taps && !memcmp(f->tap, want.tap, sizeof want.tap)
                   ? DSC_OK
                   : dsc_fail(err, DSC_EUSAGE, "two heads read different features of the target");
    *f = want;
    const int64_t planes = tapped ? LIVE_TAPS : 1;
    const size_t bytes = (size_t)(planes * s->slots * s->w->config.hidden) * sizeof *f->rows;
    return s->b->type->memory.alloc(s->b, &f->rows, bytes, err);
}

// Dynamic scaling depends on the length that a text had when a key was computed, so beyond the
// trained length results would depend on how passes are cut.
static int check_length(const live_session *s, dsc_error *err)
{
    const live_config *c = &s->w->config;
    if (c->rope != LIVE_ROPE_DYNAMIC || s->context <= c->positions)
        return DSC_OK;
    return dsc_fail(err, DSC_EUSAGE,
                    "a text of %" PRId64 " tokens is longer than max_position_embeddings, %" PRId64
                    ", beyond which rope type dynamic is not supported",
                    s->context, c->positions);
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

// Buffers on the device, and pinned memory for copies from it.
static int allocate_device(live_session *s, dsc_error *err)
{
    const live_backend_type *device = s->b->type;
    const live_config *c = &s->w->config;
    const int64_t rows = kept_rows(c, s->nodes);
    const size_t row = (size_t)c->vocab * sizeof *s->rows.logits;
    int rc = live_room_new(&s->room, s->w, s->list.capacity, rows, err);
    if (!rc && c->layers)
        rc = live_cache_new(&s->cache, s->w, 1, s->slots, err);
    if (!rc && is_eagle(s))
        rc = keep_features(s, NULL, err);
    if (!rc && s->target)
        rc = keep_features(s->target, c, err);
    if (!rc)
        rc = device->memory.alloc(s->b, &s->rows.logits, (size_t)rows * row, err);
    if (!rc && !s->b->on_host)
        rc = device->memory.alloc_host(s->b, &s->host.logits, (size_t)s->host.capacity * row, err);
    return rc;
}

int live_session_new(live_session **out, const live_weights *w, live_session *target,
                     int64_t context, int64_t nodes, dsc_error *err)
{
    const bool head = live_config_is_head(&w->config);
    const int64_t rows = kept_rows(&w->config, nodes);
    int rc = dsc_new(out, 1, err);
    if (rc)
        return rc;
    live_session *s = *out;
    s->w = w;
    s->b = w->backend;
    s->target = head ? target : NULL;
    s->context = context;
    s->nodes = nodes;
    s->lead = live_config_is_eagle(&w->config);
    s->slots = context + nodes + 1;
    s->list.capacity = nodes + 2 > PREFILL ? nodes + 2 : PREFILL;
    s->host.capacity = s->b->on_host ? 0 : rows < HOST_ROWS ? rows : HOST_ROWS;
    rc = check_target(s, err);
    if (!rc)
        rc = check_length(s, err);
    if (!rc)
        rc = check_memory(s, err);
    if (!rc)
        rc = allocate_lists(s, err);
    if (!rc)
        rc = allocate_device(s, err);
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
    dsc_error ignored;
    live_session_settle(s, &ignored);
    live_background_free(s->background);
    live_overlaps_free(s->overlaps, s->b);
    live_room_free(&s->room);
    live_cache_free(&s->cache, s->b);
    s->b->type->memory.free(s->b, s->features.rows);
    s->b->type->memory.free(s->b, s->rows.logits);
    s->b->type->memory.free_host(s->b, s->host.logits);
    dsc_arena_fini(&s->arena);
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
                                    .base_dist = live_session_base_dist,
                                    .overlap = live_session_overlap,
                                    .commit = live_session_commit};

// Medusa heads are a parallel drafter.
static const dsc_model_type heads = {.name = "live heads",
                                     .score = live_session_score,
                                     .start = live_session_start,
                                     .next = live_session_next,
                                     .dist = live_session_dist,
                                     .prefetch = live_session_prefetch,
                                     .base_dist = live_session_base_dist,
                                     .marginal = live_session_marginal,
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
    if (s->rows.requested != DIST_BASE) // a raw request is repeated by its caller
        s->rows.requested = sampling->temperature > 0 ? DIST_SAMPLED : DIST_NONE;
    memcpy(s->text.token, prompt.id, (size_t)prompt.count * sizeof *s->text.token);
    s->text.prompt = prompt.count;
    s->base = (dsc_model){.type = is_medusa(s) ? &heads : &type,
                          .output = s->text.token + prompt.count,
                          .limit = limit,
                          .end_token = c->ends ? c->end[0] : -1,
                          .more_ends = c->end + 1,
                          .more = c->ends > 1 ? c->ends - 1 : 0,
                          .ended = limit == 0};
    s->text.cached = s->lead;
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
    return s->text.margin;
}

// --- teacher-forced ------------------------------------------------------------------------------

// One pass over the text from `cached` on; keeps the logits that predict the tokens of the output.
static int replay_pass(live_session *s, int64_t count, dsc_error *err)
{
    live_batch batch = live_session_batch(s);
    live_session_list_text(s, &batch, count);
    for (int64_t i = 0; i < count; i++)
        if (s->text.cached + i >= s->text.prompt - 1)
            s->list.output[batch.outputs++] = (int32_t)i;
    batch.dist = NULL; // no summary: complete rows are needed
    s->rows.count = 0;
    int rc = live_session_run(s, &batch, true, &s->times.prefill_s, err);
    s->text.cached += count;
    return rc ? rc : live_session_keep_rows(s, &batch, err);
}

int live_session_replay(live_session *s, dsc_token_view prompt, dsc_token_view output,
                        int (*row)(void *user, int64_t i, const float *logits, dsc_error *err),
                        void *user, dsc_error *err)
{
    static const live_sampling greedy = {0, 0, 1};
    // A pass is as short as one over a draft, so that the numbers come about as in a run.
    const int64_t chunk = s->nodes + 1 < REPLAY ? s->nodes + 1 : REPLAY;
    if (is_medusa(s))
        return dsc_fail(err, DSC_EUSAGE, "Medusa heads cannot be teacher-forced");
    int rc = live_session_begin(s, prompt, output.count, &greedy, err);
    if (rc || !output.count)
        return rc;
    memcpy(s->text.token + prompt.count, output.id, (size_t)output.count * sizeof *s->text.token);
    s->base.length = output.count;
    s->base.ended = true;
    const int64_t end = text_length(s) - 1; // the last token is only predicted
    if (s->target)
        rc = live_session_catch_up(s->target, end, &s->target->times.prefill_s, err);
    for (int64_t i = 0; i < output.count && !rc;) {
        const int64_t left = end - s->text.cached;
        rc = replay_pass(s, left < chunk ? left : chunk, err);
        for (int64_t r = 0; r < s->rows.count && !rc; r++, i++) {
            const float *logits;
            rc = live_session_fetch(s, (int32_t)r, &logits, err);
            if (!rc)
                rc = row(user, i, logits, err);
        }
    }
    live_session_drop(s);
    return rc;
}

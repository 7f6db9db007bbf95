// SPDX-License-Identifier: Apache-2.0
// Passes of a session: lists the tokens, positions, cache slots and masks of a batch, runs it, and
// keeps its logits.
#include "live/session/session_state.h"
#include "live/device/clock.h"

#include <inttypes.h>
#include <string.h>

static void see(uint64_t *mask, int64_t bit)
{
    mask[bit / WORD] |= (uint64_t)1 << bit % WORD;
}

// Whether a token at `position` attends to one at `other`.
static bool in_window(const live_session *s, int64_t position, int64_t other)
{
    const int64_t window = s->w->config.window;
    return !window || position - other < window;
}

void live_session_list_text(live_session *s, live_batch *batch, int64_t count)
{
    const int64_t first = s->cached - s->lead;
    for (int64_t i = 0; i < count; i++) {
        s->token[i] = s->text[s->cached + i];
        s->position[i] = s->at[i] = (int32_t)(first + i);
        s->feature[i] = (int32_t)(s->cached + i - 1); // the target's, whose slot is its position
        uint64_t *mask = s->mask + i * s->words;
        memset(mask, 0, (size_t)s->words * sizeof *mask);
        for (int64_t j = 0; j <= i; j++)
            if (in_window(s, i, j))
                see(mask, j);
    }
    batch->tokens = count;
    batch->prefix = first;
    batch->used = first + count;
}

// Appends node `n` of the draft to the batch.
static void list_node(live_session *s, live_batch *batch, int32_t n)
{
    const int64_t i = batch->tokens++, text = text_length(s) - s->lead, prefix = batch->prefix;
    const int32_t parent = s->parent[n];
    uint64_t *mask = s->mask + i * s->words;
    s->depth[n] = parent < 0 ? 1 : s->depth[parent] + 1;
    s->slot[n] = (int32_t)s->used++;
    s->token[i] = s->node_token[n];
    s->at[i] = s->slot[n];
    s->position[i] = (int32_t)(text - 1 + s->depth[n]);
    s->feature[i] = (int32_t)(parent < 0 ? text - 1 : s->slot[parent]);
    memset(mask, 0, (size_t)s->words * sizeof *mask);
    for (int64_t j = prefix; j < text; j++)
        if (in_window(s, s->position[i], j))
            see(mask, j - prefix);
    for (int32_t up = n; up >= 0; up = s->parent[up])
        if (in_window(s, s->depth[n], s->depth[up]))
            see(mask, s->slot[up] - prefix);
    batch->used = s->used;
}

int live_session_run(live_session *s, const live_batch *batch, bool from_target, double *clock,
                     dsc_error *err)
{
    const double start = live_now_s();
    int rc;
    if (s->b->on_host) // the pass writes the logits where they are kept
        s->room.into = s->logits + s->rows * s->w->config.vocab;
    if (is_eagle(s))
        rc = live_eagle_pass(s->w, s->target->w, &s->cache, &s->room,
                             from_target ? s->target->features : s->features, s->features, batch,
                             err);
    else if (is_medusa(s))
        rc = live_medusa_pass(s->w, &s->room, s->target->features, batch, err);
    else
        rc = live_model_pass(s->w, &s->cache, &s->room, s->features, batch, err);
    if (!rc)
        rc = s->b->type->wait(s->b, err);
    *clock += live_now_s() - start;
    return rc;
}

// The distribution that the device summarizes the rows for; NULL: none.
static const live_sampling *summary_sampling(const live_session *s)
{
    return s->b->on_host || s->asked == DIST_NONE ? NULL : live_session_sampling(s, s->asked);
}

live_batch live_session_batch(const live_session *s)
{
    return (live_batch){.sequences = 1,
                        .token = s->token,
                        .position = s->position,
                        .slot = s->at,
                        .mask = s->mask,
                        .words = s->words,
                        .output = s->output,
                        .dist = summary_sampling(s),
                        .feature = is_eagle(s) || is_medusa(s) ? s->feature : NULL};
}

int live_session_catch_up(live_session *s, int64_t end, double *clock, dsc_error *err)
{
    int rc = DSC_OK;
    if (is_medusa(s)) // Medusa heads have no cache
        s->cached = end > s->cached ? end : s->cached;
    while (s->cached < end && !rc) {
        const int64_t left = end - s->cached, count = left < s->most ? left : s->most;
        live_batch batch = live_session_batch(s);
        live_session_list_text(s, &batch, count);
        rc = live_session_run(s, &batch, true, clock, err);
        s->cached += count;
    }
    return rc;
}

// Keeps the distributions that the device has summarized.
static void keep_dists(live_session *s, const live_batch *batch, const live_said *said)
{
    const size_t vocab = (size_t)s->w->config.vocab, blocks = dsc_softmax_blocks(vocab);
    const size_t n = (size_t)batch->outputs, first = (size_t)s->rows;
    memcpy(s->block + first * blocks, said->sum, n * blocks * sizeof *s->block);
    memcpy(s->peak + first * blocks, said->peak, n * blocks * sizeof *s->peak);
    for (size_t i = 0; i < n; i++) {
        live_dist *l = &s->soft[first + i];
        const float *peak = s->peak + (first + i) * blocks;
        const int32_t best = said->best[i];
        if (best < 0)
            continue;
        dsc_softmax_resume(&l->softmax, live_session_place(s, (int64_t)(first + i)), vocab,
                           peak[best / DSC_SOFTMAX_BLOCK], batch->dist->temperature,
                           said->kept[i].least, (size_t)said->kept[i].last,
                           s->block + (first + i) * blocks);
        l->softmax.peak = peak;
        if (l->softmax.sum >
            0) // otherwise the row was left out, and the next query of it returns the error
            l->of = batch->dist == &s->sampling ? DIST_DRAWN_FROM : DIST_RAW;
    }
}

int live_session_keep_rows(live_session *s, const live_batch *batch, dsc_error *err)
{
    const size_t vocab = (size_t)s->w->config.vocab, n = (size_t)batch->outputs;
    const live_said said =
        live_said_at(s->room.heard, batch->outputs, s->w->config.vocab, batch->dist);
    int rc = s->room.into || !n ? DSC_OK
                                : s->b->type->copy(s->b, s->logits + (size_t)s->rows * vocab,
                                                   s->room.logits, n * vocab * sizeof(float), err);
    if (rc)
        return rc;
    memcpy(s->best + s->rows, said.best, n * sizeof *s->best);
    memcpy(s->margin + s->rows, said.margin, n * sizeof *s->margin);
    for (size_t i = 0; i < n; i++)
        s->soft[(size_t)s->rows + i].of = DIST_NONE;
    if (batch->dist)
        keep_dists(s, batch, &said);
    for (int64_t i = 0; i < s->places; i++)
        if (s->held[i] >= s->rows) // the buffer holds a previous row
            s->held[i] = -1;
    s->compared = false;
    s->rows += batch->outputs;
    return DSC_OK;
}

// Medusa's heads read the target's last feature and nothing of the draft: one pass serves all
// depths.
static int score_heads(live_session *s, dsc_error *err)
{
    if (s->root_row >= 0)
        return DSC_OK;
    live_batch batch = live_session_batch(s);
    s->token[0] = s->text[text_length(s) - 1];
    s->position[0] = s->at[0] = 0;
    s->feature[0] = (int32_t)(text_length(s) - 2);
    s->mask[0] = 1;
    batch.tokens = batch.used = 1;
    batch.outputs = s->w->config.medusa_heads;
    int rc = live_session_run(s, &batch, true, &s->times.score_s, err);
    s->root_row = 0;
    s->times.passes++;
    s->times.pass_tokens++;
    return rc ? rc : live_session_keep_rows(s, &batch, err);
}

// One pass over the rest of the text and the first `end` nodes, as far as they are new.
static int score_pass(live_session *s, int64_t end, dsc_error *err)
{
    live_batch batch = live_session_batch(s);
    const int64_t fresh = text_length(s) - s->cached;
    live_session_list_text(s, &batch, fresh);
    if (fresh)
        s->output[batch.outputs++] = (int32_t)fresh - 1;
    else
        batch.prefix = batch.used = text_length(s) - s->lead;
    for (; s->scored < end; s->scored++) {
        s->row[s->scored] = (int32_t)(s->rows + batch.outputs);
        s->output[batch.outputs++] = (int32_t)batch.tokens;
        list_node(s, &batch, (int32_t)s->scored);
    }
    int rc = live_session_run(s, &batch, fresh > 0, &s->times.score_s, err);
    s->times.passes++;
    s->times.pass_tokens += batch.tokens;
    if (fresh)
        s->root_row = s->rows;
    s->cached = text_length(s);
    return rc ? rc : live_session_keep_rows(s, &batch, err);
}

int live_session_settle(live_session *s, dsc_error *err)
{
    if (!s->started)
        return DSC_OK;
    s->started = false;
    return live_background_join(s->background, err);
}

// Drops the nodes from `first` on: a drafter may withdraw nodes that it has queried and continue
// differently.
static void forget_nodes(live_session *s, int64_t first)
{
    s->taken = first;
    if (first >= s->scored)
        return;
    s->scored = first;
    if (is_medusa(s)) // one pass serves all nodes
        return;
    s->used = s->slot[first];
    s->rows = s->row[first];
}

// Copies the new nodes.
static int take_nodes(live_session *s, const dsc_draft *d, dsc_error *err)
{
    const int64_t end = (int64_t)(d->count - d->unscored);
    if (end > s->nodes)
        return dsc_fail(err, DSC_EUSAGE,
                        "a draft of %" PRId64 " nodes exceeds the limit of %" PRId64, end,
                        s->nodes);
    for (int64_t i = 0; i < end && i < s->taken; i++)
        if (s->node_token[i] != d->token[i] || s->parent[i] != d->parent[i])
            forget_nodes(s, i);
    for (; s->taken < end; s->taken++) {
        s->node_token[s->taken] = d->token[s->taken];
        s->parent[s->taken] = d->parent[s->taken];
    }
    return DSC_OK;
}

// Returns how many nodes one more pass can score: all; for an EAGLE head, those whose parent, whose
// feature they read, has been scored.
static int64_t end_of_pass(const live_session *s)
{
    int64_t end = s->scored;
    while (end < s->taken && !(is_eagle(s) && s->parent[end] >= s->scored))
        end++;
    return end;
}

static int score_nodes(live_session *s, dsc_error *err)
{
    int rc = DSC_OK;
    if (s->target)
        rc = live_session_settle(s->target, err);
    if (!rc && s->target && s->root_row < 0) // a head needs the features before the last token
        rc = live_session_catch_up(s->target, text_length(s) - 1, &s->target->times.prefill_s, err);
    if (rc || is_medusa(s))
        return rc ? rc : score_heads(s, err);
    // All but the last token of a text that does not fit the pass.
    if (text_length(s) - s->cached + s->taken - s->scored > s->most)
        rc = live_session_catch_up(s, text_length(s) - 1, &s->times.score_s, err);
    // An EAGLE head runs pairs with the target's features and pairs with its own features in
    // separate passes.
    if (!rc && is_eagle(s) && s->cached < text_length(s))
        rc = score_pass(s, 0, err);
    while (!rc && (s->cached < text_length(s) || s->scored < s->taken))
        rc = score_pass(s, end_of_pass(s), err);
    return rc;
}

static int score_job(void *user, dsc_error *err)
{
    return score_nodes(user, err);
}

int live_session_start(dsc_model *m, const dsc_draft *d, dsc_error *err)
{
    live_session *s = (live_session *)m;
    int rc = take_nodes(s, d, err);
    if (!rc && !s->background)
        rc = live_background_new(&s->background, err);
    if (!rc)
        rc = live_background_start(s->background, score_job, s, err);
    s->started = !rc;
    return rc;
}

int live_session_score(dsc_model *m, const dsc_draft *d, dsc_error *err)
{
    live_session *s = (live_session *)m;
    int rc = live_session_settle(s, err);
    if (!rc)
        rc = take_nodes(s, d, err);
    return rc ? rc : score_nodes(s, err); // after a background pass: only new nodes, if any
}

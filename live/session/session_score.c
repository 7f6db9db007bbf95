// SPDX-License-Identifier: Apache-2.0
// Passes of a session: lists the tokens, positions, cache slots and masks of a batch, runs it, and
// keeps its logits.
#include "live/session/session_state.h"
#include "live/device/clock.h"

#include <inttypes.h>
#include <string.h>

// The masks of a token of a batch: of the layers without a window, or of all; and of those with one
// if others have none.
typedef struct masks {
    uint64_t *all, *window; // window NULL: not needed
    int64_t width;          // of the window; 0: none
} masks;

static masks clear_masks(const live_session *s, int64_t token)
{
    const size_t words = (size_t)s->list.words, at = (size_t)token * words;
    masks m = {.all = s->list.mask + at,
               .window = s->list.window_mask ? s->list.window_mask + at : NULL,
               .width = s->w->config.window};
    memset(m.all, 0, words * sizeof *m.all);
    if (m.window)
        memset(m.window, 0, words * sizeof *m.window);
    return m;
}

// Lets the token attend to slot prefix + bit, `distance` positions before it.
static void see(masks m, int64_t bit, int64_t distance)
{
    const uint64_t mark = (uint64_t)1 << bit % WORD;
    const bool near = !m.width || distance < m.width;
    if (near || m.window)
        m.all[bit / WORD] |= mark;
    if (near && m.window)
        m.window[bit / WORD] |= mark;
}

void live_session_list_text(live_session *s, live_batch *batch, int64_t count)
{
    const int64_t first = s->text.cached - s->lead;
    for (int64_t i = 0; i < count; i++) {
        s->list.token[i] = s->text.token[s->text.cached + i];
        s->list.position[i] = s->list.slot[i] = (int32_t)(first + i);
        s->list.feature[i] =
            (int32_t)(s->text.cached + i - 1); // the target's, whose slot is its position
        const masks m = clear_masks(s, i);
        for (int64_t j = 0; j <= i; j++)
            see(m, j, i - j);
    }
    batch->tokens = count;
    batch->prefix = first;
    batch->used = first + count;
}

// Appends node `n` of the draft to the batch.
static void list_node(live_session *s, live_batch *batch, int32_t n)
{
    const int64_t i = batch->tokens++, text = text_length(s) - s->lead, prefix = batch->prefix;
    const int32_t parent = s->tree.parent[n];
    const masks m = clear_masks(s, i);
    s->tree.depth[n] = parent < 0 ? 1 : s->tree.depth[parent] + 1;
    s->tree.slot[n] = (int32_t)s->tree.used++;
    s->list.token[i] = s->tree.token[n];
    s->list.slot[i] = s->tree.slot[n];
    s->list.position[i] = (int32_t)(text - 1 + s->tree.depth[n]);
    s->list.feature[i] = (int32_t)(parent < 0 ? text - 1 : s->tree.slot[parent]);
    for (int64_t j = prefix; j < text; j++)
        see(m, j - prefix, s->list.position[i] - j);
    for (int32_t up = n; up >= 0; up = s->tree.parent[up])
        see(m, s->tree.slot[up] - prefix, s->tree.depth[n] - s->tree.depth[up]);
    batch->used = s->tree.used;
}

int live_session_run(live_session *s, const live_batch *batch, bool from_target, double *clock,
                     dsc_error *err)
{
    const double start = live_now_s();
    const bool own = !s->target || (is_eagle(s) && !from_target);
    if (s->b->on_host) // the pass writes the logits where they are kept
        s->room.into = s->rows.logits + s->rows.count * s->w->config.vocab;
    int rc = live_pass(s->w, s->target ? s->target->w : NULL, &s->cache, &s->room,
                       own ? &s->features : &s->target->features, &s->features, batch, err);
    if (!rc)
        rc = s->b->type->pass.wait(s->b, err);
    *clock += live_now_s() - start;
    return rc;
}

// The distribution that the device summarizes the rows for; NULL: none.
static const live_sampling *summary_sampling(const live_session *s)
{
    return s->b->on_host || s->rows.requested == DIST_NONE
               ? NULL
               : live_session_sampling(s, s->rows.requested);
}

live_batch live_session_batch(const live_session *s)
{
    return (live_batch){.sequences = 1,
                        .token = s->list.token,
                        .position = s->list.position,
                        .slot = s->list.slot,
                        .mask = s->list.mask,
                        .window_mask = s->list.window_mask,
                        .words = s->list.words,
                        .output = s->list.output,
                        .dist = summary_sampling(s),
                        .feature = is_eagle(s) || is_medusa(s) ? s->list.feature : NULL};
}

int live_session_catch_up(live_session *s, int64_t end, double *clock, dsc_error *err)
{
    int rc = DSC_OK;
    if (is_medusa(s)) // Medusa heads have no cache
        s->text.cached = end > s->text.cached ? end : s->text.cached;
    while (s->text.cached < end && !rc) {
        const int64_t left = end - s->text.cached,
                      count = left < s->list.capacity ? left : s->list.capacity;
        live_batch batch = live_session_batch(s);
        live_session_list_text(s, &batch, count);
        rc = live_session_run(s, &batch, true, clock, err);
        s->text.cached += count;
    }
    return rc;
}

// Keeps the distributions that the device has summarized.
static void keep_dists(live_session *s, const live_batch *batch, const live_summary *summary)
{
    const size_t vocab = (size_t)s->w->config.vocab, blocks = dsc_softmax_blocks(vocab);
    const size_t n = (size_t)batch->outputs, first = (size_t)s->rows.count;
    memcpy(s->rows.sum + first * blocks, summary->sum, n * blocks * sizeof *s->rows.sum);
    memcpy(s->rows.max_logit + first * blocks, summary->max_logit,
           n * blocks * sizeof *s->rows.max_logit);
    for (size_t i = 0; i < n; i++) {
        live_dist *l = &s->rows.dist[first + i];
        const float *max_logit = s->rows.max_logit + (first + i) * blocks;
        const int32_t best = summary->best[i];
        if (best < 0)
            continue;
        dsc_softmax_resume(&l->softmax, live_session_host_row(s, (int64_t)(first + i)), vocab,
                           max_logit[best / DSC_SOFTMAX_BLOCK], batch->dist->temperature,
                           summary->kept[i].least, (size_t)summary->kept[i].last,
                           s->rows.sum + (first + i) * blocks);
        l->softmax.max_logit = max_logit;
        if (l->softmax.sum >
            0) // otherwise the row was left out, and the next query of it returns the error
            l->kind = batch->dist == &s->sampling ? DIST_SAMPLED : DIST_BASE;
    }
}

int live_session_keep_rows(live_session *s, const live_batch *batch, dsc_error *err)
{
    const size_t vocab = (size_t)s->w->config.vocab, n = (size_t)batch->outputs;
    const live_summary summary =
        live_summary_at(s->room.host_summary, batch->outputs, s->w->config.vocab, batch->dist);
    int rc = s->room.into || !n
                 ? DSC_OK
                 : s->b->type->memory.copy(s->b, s->rows.logits + (size_t)s->rows.count * vocab,
                                           s->room.logits, n * vocab * sizeof(float), err);
    if (rc)
        return rc;
    memcpy(s->rows.best + s->rows.count, summary.best, n * sizeof *s->rows.best);
    memcpy(s->rows.margin + s->rows.count, summary.margin, n * sizeof *s->rows.margin);
    for (size_t i = 0; i < n; i++)
        s->rows.dist[(size_t)s->rows.count + i].kind = DIST_NONE;
    if (batch->dist)
        keep_dists(s, batch, &summary);
    for (int64_t i = 0; i < s->host.capacity; i++)
        if (s->host.row[i] >= s->rows.count) // the buffer holds a previous row
            s->host.row[i] = -1;
    s->compared = false;
    s->rows.count += batch->outputs;
    return DSC_OK;
}

// Medusa's heads read the target's last feature and nothing of the draft: one pass serves all
// depths.
static int score_heads(live_session *s, dsc_error *err)
{
    if (s->rows.root >= 0)
        return DSC_OK;
    live_batch batch = live_session_batch(s);
    s->list.token[0] = s->text.token[text_length(s) - 1];
    s->list.position[0] = s->list.slot[0] = 0;
    s->list.feature[0] = (int32_t)(text_length(s) - 2);
    s->list.mask[0] = 1;
    batch.tokens = batch.used = 1;
    batch.outputs = s->w->config.medusa_heads;
    int rc = live_session_run(s, &batch, true, &s->times.score_s, err);
    s->rows.root = 0;
    s->times.passes++;
    s->times.pass_tokens++;
    return rc ? rc : live_session_keep_rows(s, &batch, err);
}

// One pass over the rest of the text and the first `end` nodes, as far as they are new.
static int score_pass(live_session *s, int64_t end, dsc_error *err)
{
    live_batch batch = live_session_batch(s);
    const int64_t fresh = text_length(s) - s->text.cached;
    live_session_list_text(s, &batch, fresh);
    if (fresh)
        s->list.output[batch.outputs++] = (int32_t)fresh - 1;
    else
        batch.prefix = batch.used = text_length(s) - s->lead;
    for (; s->tree.scored < end; s->tree.scored++) {
        s->tree.row[s->tree.scored] = (int32_t)(s->rows.count + batch.outputs);
        s->list.output[batch.outputs++] = (int32_t)batch.tokens;
        list_node(s, &batch, (int32_t)s->tree.scored);
    }
    int rc = live_session_run(s, &batch, fresh > 0, &s->times.score_s, err);
    s->times.passes++;
    s->times.pass_tokens += batch.tokens;
    if (fresh)
        s->rows.root = s->rows.count;
    s->text.cached = text_length(s);
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
    s->tree.count = first;
    if (first >= s->tree.scored)
        return;
    s->tree.scored = first;
    if (is_medusa(s)) // one pass serves all nodes
        return;
    s->tree.used = s->tree.slot[first];
    s->rows.count = s->tree.row[first];
}

// Copies the new nodes.
static int take_nodes(live_session *s, const dsc_draft *d, dsc_error *err)
{
    const int64_t end = (int64_t)(d->count - d->unscored);
    if (end > s->nodes)
        return dsc_fail(err, DSC_EUSAGE,
                        "a draft of %" PRId64 " nodes exceeds the limit of %" PRId64, end,
                        s->nodes);
    for (int64_t i = 0; i < end && i < s->tree.count; i++)
        if (s->tree.token[i] != d->token[i] || s->tree.parent[i] != d->parent[i])
            forget_nodes(s, i);
    for (; s->tree.count < end; s->tree.count++) {
        s->tree.token[s->tree.count] = d->token[s->tree.count];
        s->tree.parent[s->tree.count] = d->parent[s->tree.count];
    }
    return DSC_OK;
}

// Returns how many nodes one more pass can score: all; for an EAGLE head, those whose parent, whose
// feature they read, has been scored.
static int64_t end_of_pass(const live_session *s)
{
    int64_t end = s->tree.scored;
    while (end < s->tree.count && !(is_eagle(s) && s->tree.parent[end] >= s->tree.scored))
        end++;
    return end;
}

static int score_nodes(live_session *s, dsc_error *err)
{
    int rc = DSC_OK;
    if (s->target)
        rc = live_session_settle(s->target, err);
    if (!rc && s->target && s->rows.root < 0) // a head needs the features before the last token
        rc = live_session_catch_up(s->target, text_length(s) - 1, &s->target->times.prefill_s, err);
    if (rc || is_medusa(s))
        return rc ? rc : score_heads(s, err);
    // All but the last token of a text that does not fit the pass.
    if (text_length(s) - s->text.cached + s->tree.count - s->tree.scored > s->list.capacity)
        rc = live_session_catch_up(s, text_length(s) - 1, &s->times.score_s, err);
    // An EAGLE head runs pairs with the target's features and pairs with its own features in
    // separate passes.
    if (!rc && is_eagle(s) && s->text.cached < text_length(s))
        rc = score_pass(s, 0, err);
    while (!rc && (s->text.cached < text_length(s) || s->tree.scored < s->tree.count))
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

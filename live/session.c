// SPDX-License-Identifier: Apache-2.0
// Slots of the cache: the text is in the first ones, token i in slot i - lead; the nodes of a draft
// follow in the order in which they were scored. `lead` is 1 for an EAGLE head, which is fed pairs
// (feature of token i - 1, token i), else 0.
#include "live/session.h"

#include "live/background.h"
#include "theory/law.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PREFILL = 256, FORCED = 32, WORD = 64 }; // tokens in a pass over a prompt, over an output

struct live_session {
    dsc_model base;
    const live_weights *w;
    live_backend *b;
    live_session *target; // of a head, whose features it reads
    live_cache cache;
    live_room room;
    float *features; // [slots][hidden] last hidden states, where somebody reads them
    int64_t context, nodes, slots, lead;
    live_sampling sampling;
    live_times times;

    int32_t *text; // [prompt + output]
    int64_t prompt;
    int64_t cached; // tokens of the text whose keys and values are there

    // The draft as scored: of node i its slot, its depth (1 below the text), its row of logits.
    // Tokens and parents are copies: a draft may grow while it is scored in the background.
    int64_t taken, scored, used; // nodes; slots
    int32_t *node_token, *parent, *slot, *depth, *row;
    int64_t rows;     // of logits that are kept, the text's own first
    int64_t root_row; // the text's own, or -1: not scored
    float *logits;    // [1 + nodes][vocab] on the device
    int32_t *best;    // [1 + nodes]
    float *margin;    // [1 + nodes]
    float *margins;   // [limit] of the output's tokens
    size_t margins_capacity;

    // A law as it was asked for last.
    double *law;
    float *logit; // [vocab]
    int32_t law_row, law_token;
    bool law_raw;

    // Lists of a pass, [most rows].
    int32_t *token, *position, *at, *output, *feature;
    uint64_t *mask;
    int64_t most, words;

    live_background *background;
    bool started;
};

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool is_head(const live_session *s)
{
    return s->w->config.family == LIVE_MEDUSA;
}

static bool is_eagle(const live_session *s)
{
    return s->w->config.family == LIVE_EAGLE;
}

static int64_t length(const live_session *s)
{
    return s->prompt + s->base.length;
}

// --- passes --------------------------------------------------------------------------------------

static void see(uint64_t *mask, int64_t bit)
{
    mask[bit / WORD] |= (uint64_t)1 << bit % WORD;
}

// Whether a token at `position` sees one at `other`.
static bool in_window(const live_session *s, int64_t position, int64_t other)
{
    const int64_t window = s->w->config.window;
    return !window || position - other < window;
}

// The tokens of the text from `cached` on, the first `count` of them, into a batch.
static void list_text(live_session *s, live_batch *batch, int64_t count)
{
    const int64_t first = s->cached - s->lead;
    for (int64_t i = 0; i < count; i++) {
        s->token[i] = s->text[s->cached + i];
        s->position[i] = s->at[i] = (int32_t)(first + i);
        s->feature[i] = (int32_t)(s->cached + i - 1); // the target's, slot = position
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

// Node `n` of the draft, behind what the batch has.
static void list_node(live_session *s, live_batch *batch, int32_t n)
{
    const int64_t i = batch->tokens++, text = length(s) - s->lead, prefix = batch->prefix;
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

// Runs a batch and waits for it.
static int run(live_session *s, const live_batch *batch, bool from_target, double *clock,
               dsc_error *err)
{
    const double start = seconds();
    int rc;
    if (is_eagle(s))
        rc = live_eagle_pass(s->w, s->target->w, &s->cache, &s->room,
                             from_target ? s->target->features : s->features, s->features, batch,
                             err);
    else if (is_head(s))
        rc = live_medusa_pass(s->w, &s->room, s->target->features, batch, err);
    else
        rc = live_model_pass(s->w, &s->cache, &s->room, s->features, batch, err);
    if (!rc)
        rc = s->b->type->wait(s->b, err);
    *clock += seconds() - start;
    return rc;
}

static live_batch batch_of(const live_session *s)
{
    return (live_batch){.sequences = 1,
                        .token = s->token,
                        .position = s->position,
                        .slot = s->at,
                        .mask = s->mask,
                        .words = s->words,
                        .output = s->output,
                        .feature = is_eagle(s) || is_head(s) ? s->feature : NULL};
}

// The text's tokens up to `end` into the cache, no logits.
static int catch_up(live_session *s, int64_t end, double *clock, dsc_error *err)
{
    int rc = DSC_OK;
    if (is_head(s)) // has no cache
        s->cached = end > s->cached ? end : s->cached;
    while (s->cached < end && !rc) {
        const int64_t left = end - s->cached, count = left < s->most ? left : s->most;
        live_batch batch = batch_of(s);
        list_text(s, &batch, count);
        rc = run(s, &batch, true, clock, err);
        s->cached += count;
    }
    return rc;
}

// Keeps the logits of the pass that has just been run.
static int keep_rows(live_session *s, int64_t count, dsc_error *err)
{
    const size_t vocab = (size_t)s->w->config.vocab, n = (size_t)count;
    const live_backend_type *op = s->b->type;
    int rc = op->copy(s->b, s->logits + (size_t)s->rows * vocab, s->room.logits,
                      n * vocab * sizeof(float), err);
    if (!rc)
        rc = op->download(s->b, s->best + s->rows, s->room.best, n * sizeof *s->best, err);
    if (!rc)
        rc = op->download(s->b, s->margin + s->rows, s->room.margin, n * sizeof *s->margin, err);
    s->rows += count;
    return rc;
}

// Medusa's heads see the target's last feature and nothing of the draft: one pass for all depths.
static int score_heads(live_session *s, dsc_error *err)
{
    if (s->root_row >= 0)
        return DSC_OK;
    live_batch batch = batch_of(s);
    s->token[0] = s->text[length(s) - 1];
    s->position[0] = s->at[0] = 0;
    s->feature[0] = (int32_t)(length(s) - 2);
    s->mask[0] = 1;
    batch.tokens = batch.used = 1;
    batch.outputs = s->w->config.medusa_heads;
    int rc = run(s, &batch, true, &s->times.score_s, err);
    s->root_row = 0;
    s->times.passes++;
    s->times.pass_tokens++;
    return rc ? rc : keep_rows(s, batch.outputs, err);
}

// One pass over what is left of the text and the first `end` nodes, as far as they are new.
static int score_pass(live_session *s, int64_t end, dsc_error *err)
{
    live_batch batch = batch_of(s);
    const int64_t fresh = length(s) - s->cached;
    list_text(s, &batch, fresh);
    if (fresh)
        s->output[batch.outputs++] = (int32_t)fresh - 1;
    else
        batch.prefix = batch.used = length(s) - s->lead;
    for (; s->scored < end; s->scored++) {
        s->row[s->scored] = (int32_t)(s->rows + batch.outputs);
        s->output[batch.outputs++] = (int32_t)batch.tokens;
        list_node(s, &batch, (int32_t)s->scored);
    }
    int rc = run(s, &batch, fresh > 0, &s->times.score_s, err);
    s->times.passes++;
    s->times.pass_tokens += batch.tokens;
    if (fresh)
        s->root_row = s->rows;
    s->cached = length(s);
    return rc ? rc : keep_rows(s, batch.outputs, err);
}

// Waits for a pass in the background.
static int settle(live_session *s, dsc_error *err)
{
    if (!s->started)
        return DSC_OK;
    s->started = false;
    return live_background_join(s->background, err);
}

// Copies the nodes that are new.
static int take_nodes(live_session *s, const dsc_draft *d, dsc_error *err)
{
    const int64_t end = (int64_t)(d->count - d->unscored);
    if (end > s->nodes)
        return dsc_fail(err, DSC_EUSAGE, "a draft of %" PRId64 " nodes: there is room for %" PRId64,
                        end, s->nodes);
    for (; s->taken < end; s->taken++) {
        s->node_token[s->taken] = d->token[s->taken];
        s->parent[s->taken] = d->parent[s->taken];
    }
    return DSC_OK;
}

static int score_taken(live_session *s, dsc_error *err)
{
    int rc = DSC_OK;
    if (s->target)
        rc = settle(s->target, err);
    if (!rc && s->target && s->root_row < 0) // a head needs the features before the last token
        rc = catch_up(s->target, length(s) - 1, &s->target->times.prefill_s, err);
    if (rc || is_head(s))
        return rc ? rc : score_heads(s, err);
    // All but the last token of a text that did not fit the pass.
    if (length(s) - s->cached + s->taken - s->scored > s->most)
        rc = catch_up(s, length(s) - 1, &s->times.score_s, err);
    // Pairs with the target's features and pairs with its own are two passes of an EAGLE head.
    if (!rc && is_eagle(s) && s->cached < length(s))
        rc = score_pass(s, 0, err);
    if (!rc && (s->cached < length(s) || s->scored < s->taken))
        rc = score_pass(s, s->taken, err);
    return rc;
}

static int score_job(void *user, dsc_error *err)
{
    return score_taken(user, err);
}

static int start(dsc_model *m, const dsc_draft *d, dsc_error *err)
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

static int score(dsc_model *m, const dsc_draft *d, dsc_error *err)
{
    live_session *s = (live_session *)m;
    int rc = settle(s, err);
    if (!rc)
        rc = take_nodes(s, d, err);
    return rc ? rc
              : score_taken(s, err); // after a pass in the background: what is new, if anything
}

// --- answers -------------------------------------------------------------------------------------

static int find_row(const live_session *s, int32_t node, int32_t *row, dsc_error *err)
{
    const live_config *c = &s->w->config;
    int64_t depth = 0;
    if (is_head(s)) {
        for (int32_t n = node; n >= 0; n = s->parent[n])
            depth++;
        if (depth >= c->medusa_heads)
            return dsc_fail(err, DSC_EUSAGE,
                            "%" PRId64 " Medusa heads: a draft can be %" PRId64 " tokens long",
                            c->medusa_heads, c->medusa_heads);
        *row = (int32_t)depth;
        return DSC_OK;
    }
    if (node >= s->scored || (node < 0 && s->root_row < 0))
        return dsc_fail(err, DSC_ECHECK, "node %" PRId32 " of a draft was not scored", node);
    *row = node < 0 ? (int32_t)s->root_row : s->row[node];
    return DSC_OK;
}

static int next(dsc_model *m, int32_t node, dsc_next *out, dsc_error *err)
{
    live_session *s = (live_session *)m;
    int32_t row;
    int rc = find_row(s, node, &row, err);
    if (rc)
        return rc;
    if (s->best[row] < 0)
        return dsc_fail(err, DSC_ECHECK, "the model's logits are not numbers, at position %" PRId64,
                        length(s));
    int64_t depth = 0;
    for (int32_t n = node; n >= 0; n = s->parent[n])
        depth++;
    *out = (dsc_next){s->best[row], dsc_model_ends(m, depth, s->best[row])};
    return DSC_OK;
}

// The law of a row, kept until another is asked for.
static int fill_law(live_session *s, int32_t row, bool raw, dsc_dist *out, dsc_error *err)
{
    static const live_sampling plain = {1, 0, 1};
    const live_sampling *how = raw ? &plain : &s->sampling;
    const size_t vocab = (size_t)s->w->config.vocab;
    *out = (dsc_dist){.vocab_size = (int32_t)vocab, .dense = s->law};
    if (s->law_row == row && s->law_raw == raw)
        return DSC_OK;
    s->law_row = -1;
    int rc = s->b->type->download(s->b, s->logit, s->logits + (size_t)row * vocab,
                                  vocab * sizeof *s->logit, err);
    if (rc)
        return rc;
    for (size_t x = 0; x < vocab; x++)
        s->law[x] = s->logit[x];
    rc = dsc_law_softmax("logits", s->law, vocab, how->temperature, how->top_k, how->top_p, err);
    if (!rc) {
        s->law_row = row;
        s->law_raw = raw;
    }
    return rc;
}

static int law(dsc_model *m, int32_t node, dsc_dist *out, dsc_error *err)
{
    static const double certain = 1;
    live_session *s = (live_session *)m;
    int32_t row;
    int rc = find_row(s, node, &row, err);
    if (rc || s->sampling.temperature > 0)
        return rc ? rc : fill_law(s, row, false, out, err);
    s->law_token = s->best[row];
    *out = (dsc_dist){.vocab_size = (int32_t)s->w->config.vocab, .levels = 1};
    out->level[0] = (dsc_dist_level){&s->law_token, &certain, NULL, 1, 0};
    return DSC_OK;
}

static int untempered(dsc_model *m, int32_t node, dsc_dist *out, dsc_error *err)
{
    live_session *s = (live_session *)m;
    int32_t row;
    int rc = find_row(s, node, &row, err);
    return rc ? rc : fill_law(s, row, true, out, err);
}

// --- commit --------------------------------------------------------------------------------------

// The scored nodes that the first tokens of token[0, n) go along, the longest way, into path (room:
// the list `token` of a pass). Of nodes with the same text any will do.
static int64_t find_path(const live_session *s, const int32_t *token, int64_t n, int32_t *path)
{
    int32_t deepest = -1;
    int64_t depth = 0;
    uint8_t *on = (uint8_t *)s->mask; // not in use between passes
    for (int32_t i = 0; i < s->scored; i++) {
        const int32_t parent = s->parent[i];
        on[i] = s->depth[i] <= n && s->node_token[i] == token[s->depth[i] - 1] &&
                (parent < 0 || on[parent]);
        if (on[i] && s->depth[i] > depth) {
            deepest = i;
            depth = s->depth[i];
        }
    }
    for (int32_t i = deepest; i >= 0; i = s->parent[i])
        path[s->depth[i] - 1] = i;
    return depth;
}

static int move_rows(live_session *s, const int32_t *from, int64_t count, int64_t to,
                     dsc_error *err)
{
    const int64_t width = s->w->config.hidden;
    int rc = s->b->type->move(s->b, &s->cache, from, count, to, err);
    for (int64_t i = 0; i < count && s->features && !rc; i++)
        if (from[i] != to + i)
            rc =
                s->b->type->copy(s->b, s->features + (to + i) * width,
                                 s->features + from[i] * width, (size_t)width * sizeof(float), err);
    return rc;
}

// By how much the tokens that come were ahead of others where this model was asked.
static int keep_margins(live_session *s, int64_t n, const int32_t *path, int64_t depth,
                        dsc_error *err)
{
    void *p = s->margins;
    int rc =
        dsc_grow(&p, &s->margins_capacity, (size_t)(s->base.length + n), sizeof *s->margins, err);
    s->margins = p;
    for (int64_t i = 0; i < n && !rc; i++) {
        const int32_t row = i > depth ? -1 : i == 0 ? (int32_t)s->root_row : s->row[path[i - 1]];
        s->margins[s->base.length + i] = row >= 0 && !is_head(s) ? s->margin[row] : NAN;
    }
    return rc;
}

// Forgets the draft.
static void drop_draft(live_session *s)
{
    s->taken = s->scored = s->rows = 0;
    s->root_row = s->law_row = -1;
    s->used = length(s) - s->lead;
}

static int commit(dsc_model *m, const int32_t *token, size_t n, dsc_error *err)
{
    live_session *s = (live_session *)m;
    bool over = m->ended;
    for (size_t i = 0; i < n; i++) {
        if (over)
            return dsc_fail(err, DSC_ECHECK, "a token was emitted after the end of the output");
        if (token[i] < 0 || token[i] >= s->w->config.vocab)
            return dsc_fail(err, DSC_EUSAGE,
                            "token %" PRId32 " is not in the vocabulary of %" PRId64, token[i],
                            s->w->config.vocab);
        over = dsc_model_ends(m, (int64_t)i, token[i]);
    }
    const int64_t count = (int64_t)n, before = length(s);
    int32_t *path = s->position;
    int64_t depth = is_head(s) ? 0 : find_path(s, token, count, path);
    int rc = keep_margins(s, count, path, depth, err);
    // The last token is fed again, so that what follows it is known. A head's tree is dropped: its
    // own features are not the target's.
    int64_t kept = is_eagle(s) ? 0 : depth < count ? depth : count - 1;
    if (s->cached < before || kept < 0)
        kept = 0;
    for (int64_t i = 0; i < kept; i++)
        s->at[i] = s->slot[path[i]];
    if (!rc && kept > 0)
        rc = move_rows(s, s->at, kept, before, err);
    if (rc)
        return rc;
    memcpy(s->text + before, token, n * sizeof *token);
    s->cached += kept;
    m->length += count;
    m->ended = over;
    drop_draft(s);
    return DSC_OK;
}

static const dsc_model_type type = {.name = "live",
                                    .score = score,
                                    .start = start,
                                    .next = next,
                                    .law = law,
                                    .untempered = untempered,
                                    .commit = commit};

// --- life ----------------------------------------------------------------------------------------

static int allocate_lists(live_session *s, dsc_error *err)
{
    const live_config *c = &s->w->config;
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
                {&s->best, nodes, sizeof *s->best},
                {&s->margin, nodes, sizeof *s->margin},
                {&s->law, vocab, sizeof *s->law},
                {&s->logit, vocab, sizeof *s->logit},
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
    return rc;
}

// Rows of logits that a session keeps.
static int64_t kept_rows(const live_config *c, int64_t nodes)
{
    return c->family == LIVE_MEDUSA && c->medusa_heads > nodes ? c->medusa_heads : nodes + 1;
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
                      "a context of %" PRId64 " tokens needs %.1f GB on %s, %.1f GB are free",
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

// What a head and the model whose features it reads must agree in.
static int check_target(const live_session *s, dsc_error *err)
{
    const live_config *c = &s->w->config, *t;
    if (!s->target)
        return is_eagle(s) || is_head(s)
                   ? dsc_fail(err, DSC_EUSAGE,
                              "%s heads draft for the model that they were made for",
                              is_eagle(s) ? "EAGLE" : "Medusa")
                   : DSC_OK;
    t = &s->target->w->config;
    if (c->hidden != t->hidden || c->vocab != t->vocab)
        return dsc_fail(err, DSC_EUSAGE,
                        "the head is of a model with %" PRId64 " numbers in a state and %" PRId64
                        " tokens; the target has %" PRId64 " and %" PRId64,
                        c->hidden, c->vocab, t->hidden, t->vocab);
    if (s->b != s->target->b)
        return dsc_fail(err, DSC_EUSAGE, "a head must be where its target is");
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
    void *logits = NULL;
    if (!rc)
        rc = s->b->type->alloc(
            s->b, &logits,
            (size_t)(kept_rows(&w->config, nodes) * w->config.vocab) * sizeof *s->logits, err);
    s->logits = logits;
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
    settle(s, &unheard);
    live_background_free(s->background);
    live_room_free(&s->room);
    live_cache_free(&s->cache, s->b);
    s->b->type->free(s->b, s->features);
    s->b->type->free(s->b, s->logits);
    void *const lists[] = {s->text,   s->slot,   s->depth,   s->row,   s->best,
                           s->margin, s->law,    s->logit,   s->token, s->position,
                           s->at,     s->output, s->feature, s->mask,  s->margins};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        free(lists[i]);
    free(s);
}

static int check_text(const live_session *s, dsc_token_view prompt, int64_t limit, dsc_error *err)
{
    if (prompt.count < 1)
        return dsc_fail(err, DSC_EUSAGE, "a prompt of no token: a model must be given one");
    if (s->target && prompt.count < 2)
        return dsc_fail(err, DSC_EUSAGE, "a prompt of one token: a head needs two to begin with");
    if (limit < 0 || prompt.count > s->context - limit)
        return dsc_fail(err, DSC_EUSAGE,
                        "a prompt of %" PRId64 " tokens and an output of up to %" PRId64
                        ": the context holds %" PRId64,
                        prompt.count, limit, s->context);
    for (int64_t i = 0; i < prompt.count; i++)
        if (prompt.id[i] < 0 || prompt.id[i] >= s->w->config.vocab)
            return dsc_fail(err, DSC_EUSAGE,
                            "token %" PRId32 " of the prompt, at %" PRId64
                            ": the model's vocabulary has %" PRId64,
                            prompt.id[i], i, s->w->config.vocab);
    return DSC_OK;
}

int live_session_begin(live_session *s, dsc_token_view prompt, int64_t limit,
                       const live_sampling *sampling, dsc_error *err)
{
    const live_config *c = &s->w->config;
    int rc = settle(s, err);
    if (!rc)
        rc = check_text(s, prompt, limit, err);
    if (!rc && s->target && length(s->target) < prompt.count)
        rc = dsc_fail(err, DSC_EUSAGE, "a head begins after the model that it drafts for");
    if (rc)
        return rc;
    s->sampling = *sampling;
    memcpy(s->text, prompt.id, (size_t)prompt.count * sizeof *s->text);
    s->prompt = prompt.count;
    s->base = (dsc_model){.type = &type,
                          .output = s->text + prompt.count,
                          .limit = limit,
                          .end_token = c->ends ? c->end[0] : -1,
                          .ended = limit == 0};
    s->cached = s->lead;
    drop_draft(s);
    const double before = s->times.prefill_s;
    if (s->target)
        rc = catch_up(s->target, prompt.count - 1, &s->target->times.prefill_s, err);
    if (!rc)
        rc = catch_up(s, prompt.count - 1, &s->times.prefill_s, err);
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

// One pass over the text from `cached` on, and the logits of what follows each of its tokens that
// the output continues.
static int force_pass(live_session *s, int64_t count, dsc_error *err)
{
    live_batch batch = batch_of(s);
    list_text(s, &batch, count);
    for (int64_t i = 0; i < count; i++)
        if (s->cached + i >= s->prompt - 1)
            s->output[batch.outputs++] = (int32_t)i;
    s->rows = 0;
    int rc = run(s, &batch, true, &s->times.prefill_s, err);
    s->cached += count;
    return rc ? rc : keep_rows(s, batch.outputs, err);
}

int live_session_force(live_session *s, dsc_token_view prompt, dsc_token_view output,
                       int (*row)(void *user, int64_t i, const float *logits, dsc_error *err),
                       void *user, dsc_error *err)
{
    static const live_sampling greedy = {0, 0, 1};
    // As few as a draft has, so that a row's numbers come about as in a run.
    const int64_t chunk = s->nodes + 1 < FORCED ? s->nodes + 1 : FORCED;
    const size_t vocab = (size_t)s->w->config.vocab;
    if (is_head(s))
        return dsc_fail(err, DSC_EUSAGE, "Medusa heads cannot be teacher-forced");
    int rc = live_session_begin(s, prompt, output.count, &greedy, err);
    if (rc || !output.count)
        return rc;
    memcpy(s->text + prompt.count, output.id, (size_t)output.count * sizeof *s->text);
    s->base.length = output.count;
    s->base.ended = true;
    const int64_t end = length(s) - 1; // the last token is only predicted
    if (s->target)
        rc = catch_up(s->target, end, &s->target->times.prefill_s, err);
    for (int64_t i = 0; i < output.count && !rc;) {
        const int64_t left = end - s->cached;
        rc = force_pass(s, left < chunk ? left : chunk, err);
        for (int64_t r = 0; r < s->rows && !rc; r++, i++) {
            rc = s->b->type->download(s->b, s->logit, s->logits + (size_t)r * vocab,
                                      vocab * sizeof *s->logit, err);
            if (!rc)
                rc = row(user, i, s->logit, err);
        }
    }
    drop_draft(s);
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
// Answers of a session about a scored draft (next tokens, distributions), and commit, which keeps
// the accepted nodes in the cache. Rows of logits that lie on a device are copied to the host on
// demand, whole or in blocks.
#include "live/session/session_state.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// --- answers -------------------------------------------------------------------------------------

static int find_row(const live_session *s, int32_t node, int32_t *row, dsc_error *err)
{
    const live_config *c = &s->w->config;
    int64_t depth = 0;
    if (is_medusa(s)) {
        for (int32_t n = node; n >= 0; n = s->tree.parent[n])
            depth++;
        if (depth >= c->medusa_heads)
            return dsc_fail(err, DSC_EUSAGE,
                            "%" PRId64 " Medusa heads draft at most %" PRId64 " tokens",
                            c->medusa_heads, c->medusa_heads);
        *row = (int32_t)depth;
        return DSC_OK;
    }
    if (node >= s->tree.scored || (node < 0 && s->rows.root < 0))
        return dsc_fail(err, DSC_ECHECK, "node %" PRId32 " of a draft was not scored", node);
    *row = node < 0 ? (int32_t)s->rows.root : s->tree.row[node];
    return DSC_OK;
}

static int not_numbers(const live_session *s, dsc_error *err)
{
    return dsc_fail(err, DSC_EINPUT, "the model's logits at position %" PRId64 " are not finite",
                    text_length(s));
}

int live_session_next(dsc_model *m, int32_t node, dsc_next *out, dsc_error *err)
{
    live_session *s = (live_session *)m;
    int32_t row;
    int rc = find_row(s, node, &row, err);
    if (rc)
        return rc;
    if (s->rows.best[row] < 0)
        return not_numbers(s, err);
    int64_t depth = 0;
    for (int32_t n = node; n >= 0; n = s->tree.parent[n])
        depth++;
    *out = (dsc_next){s->rows.best[row], dsc_model_ends(m, depth, s->rows.best[row])};
    return DSC_OK;
}

// Requests the copy of logits [first, end) of a row to its host buffer.
static int fetch_part(live_session *s, int32_t row, size_t first, size_t end, dsc_error *err)
{
    const size_t vocab = (size_t)s->w->config.vocab;
    return s->b->type->memory.fetch(s->b, live_session_host_row(s, row) + first,
                                    s->rows.logits + (size_t)row * vocab + first,
                                    (end - first) * sizeof *s->host.logits, err);
}

// Requests the blocks of a row in a list, or all blocks (NULL), that are not on the host yet.
// *absent counts them; they are available after `wait`.
static int request_blocks(live_session *s, int32_t row, const size_t *block, size_t count,
                          size_t *absent, dsc_error *err)
{
    const size_t vocab = (size_t)s->w->config.vocab, words = block_words(vocab);
    int32_t *held = &s->host.row[row % s->host.capacity];
    uint64_t *there = s->host.present + (size_t)(row % s->host.capacity) * words;
    const size_t before = *absent;
    int rc = DSC_OK;
    if (*held != row)
        memset(there, 0, words * sizeof *there);
    *held = row;
    for (size_t i = 0; i < count && !rc; i++) {
        const size_t b = block ? block[i] : i, first = b * DSC_SOFTMAX_BLOCK;
        const size_t end = vocab - first < DSC_SOFTMAX_BLOCK ? vocab : first + DSC_SOFTMAX_BLOCK;
        if (there[b / WORD] >> b % WORD & 1)
            continue;
        there[b / WORD] |= (uint64_t)1 << b % WORD;
        ++*absent;
        if (block)
            rc = fetch_part(s, row, first, end, err);
    }
    if (!rc && *absent > before && !block)
        rc = fetch_part(s, row, 0, vocab, err);
    return rc;
}

// Waits for requested blocks. If a request or the wait failed, no host row is valid.
static int wait_blocks(live_session *s, int rc, size_t absent, dsc_error *err)
{
    if (!rc && absent)
        rc = s->b->type->pass.wait(s->b, err);
    for (int64_t i = 0; i < s->host.capacity && rc; i++)
        s->host.row[i] = -1;
    return rc;
}

static int fetch_blocks(live_session *s, int32_t row, const size_t *block, size_t count,
                        dsc_error *err)
{
    size_t absent = 0;
    int rc = request_blocks(s, row, block, count, &absent, err);
    return wait_blocks(s, rc, absent, err);
}

// Hook of a distribution that needs logits and cannot return an error: the error is deferred to the
// next call.
static void fetch_blocks_of_dist(void *user, const size_t *block, size_t count)
{
    const live_dist *l = user;
    live_session *s = l->session;
    dsc_error err;
    if (!s->pending_error.status)
        live_session_defer(s, fetch_blocks(s, (int32_t)(l - s->rows.dist), block, count, &err),
                           &err);
}

int live_session_fetch(live_session *s, int32_t row, const float **logits, dsc_error *err)
{
    const size_t vocab = (size_t)s->w->config.vocab;
    *logits = s->b->on_host ? s->rows.logits + (size_t)row * vocab : live_session_host_row(s, row);
    return s->b->on_host ? DSC_OK : fetch_blocks(s, row, NULL, dsc_softmax_blocks(vocab), err);
}

int live_session_logits(live_session *s, int32_t node, const float **logits, dsc_error *err)
{
    int32_t row;
    int rc = find_row(s, node, &row, err);
    return rc ? rc : live_session_fetch(s, row, logits, err);
}

// Sums a row's exponentials; top-k and top-p determine what is left out.
static void begin_dist(live_session *s, int32_t row, const live_sampling *how, const float *logits)
{
    const size_t vocab = (size_t)s->w->config.vocab;
    const size_t top_k = how->top_k > 0 && (size_t)how->top_k < vocab ? (size_t)how->top_k : vocab;
    const float most = logits[s->rows.best[row]];
    double *block = s->rows.sum + (size_t)row * dsc_softmax_blocks(vocab);
    dsc_softmax *out = &s->rows.dist[row].softmax;
    if (top_k < vocab || how->top_p < 1)
        dsc_softmax_begin_filtered(out, logits, vocab, most, how->temperature, top_k, how->top_p,
                                   block, s->rows.scratch);
    else
        dsc_softmax_begin(out, logits, vocab, most, how->temperature, block);
}

// Sums the distribution of a row on the host, because the device has not summarized it, or has for
// another distribution. From the next pass on, the device does.
static int add_up(live_session *s, int32_t row, live_dist_kind kind, dsc_error *err)
{
    live_dist *l = &s->rows.dist[row];
    const float *logits;
    int rc = live_session_fetch(s, row, &logits, err);
    if (rc)
        return rc;
    if (!isfinite(logits[s->rows.best[row]]))
        return not_numbers(s, err);
    begin_dist(s, row, live_session_sampling(s, kind), logits);
    l->kind = s->rows.requested = kind;
    return DSC_OK;
}

// The distribution of a row. Its sums are kept as long as the row.
static int fill_dist(live_session *s, int32_t row, live_dist_kind kind, dsc_dist *out,
                     dsc_error *err)
{
    live_dist *l = &s->rows.dist[row];
    *out = (dsc_dist){.vocab_size = (int32_t)s->w->config.vocab, .logits = &l->softmax};
    int rc = live_session_pending(s, err);
    if (!rc && s->rows.best[row] < 0)
        rc = not_numbers(s, err);
    if (!rc && l->kind != kind)
        rc = add_up(s, row, kind, err);
    l->session = s;
    l->softmax.fetch = s->b->on_host ? NULL : fetch_blocks_of_dist;
    l->softmax.user = l;
    return rc;
}

int live_session_softmax(live_session *s, int32_t node, const dsc_softmax **probs,
                         const float **logits, dsc_error *err)
{
    int32_t row;
    dsc_dist dist;
    int rc = find_row(s, node, &row, err);
    if (!rc)
        rc = fill_dist(s, row, DIST_SAMPLED, &dist, err);
    if (rc)
        return rc;
    *probs = dist.logits;
    *logits = s->rows.logits + (size_t)row * (size_t)s->w->config.vocab;
    return DSC_OK;
}

int live_session_dist(dsc_model *m, int32_t node, dsc_dist *out, dsc_error *err)
{
    static const double certain = 1;
    live_session *s = (live_session *)m;
    int32_t row;
    int rc = find_row(s, node, &row, err);
    if (rc || s->sampling.temperature > 0)
        return rc ? rc : fill_dist(s, row, DIST_SAMPLED, out, err);
    s->rows.greedy = s->rows.best[row];
    *out = (dsc_dist){.vocab_size = (int32_t)s->w->config.vocab, .levels = 1};
    out->level[0] = (dsc_dist_level){&s->rows.greedy, &certain, NULL, 1, 0};
    return DSC_OK;
}

// Fetches one block of a row per draw, with one wait for all of them.
int live_session_prefetch(dsc_model *m, const int32_t *node, const double *u, size_t n,
                          dsc_error *err)
{
    live_session *s = (live_session *)m;
    size_t absent = 0;
    int rc = DSC_OK;
    if (s->b->on_host || !(s->sampling.temperature > 0))
        return DSC_OK;
    for (size_t i = 0; i < n && !rc; i++) {
        int32_t row;
        dsc_dist probs;
        rc = find_row(s, node[i], &row, err);
        if (!rc)
            rc = fill_dist(s, row, DIST_SAMPLED, &probs, err);
        if (!rc)
            rc = request_blocks(s, row, &(size_t){dsc_softmax_block_at(probs.logits, u[i])}, 1,
                                &absent, err);
    }
    return wait_blocks(s, rc, absent, err);
}

int live_session_base_dist(dsc_model *m, int32_t node, dsc_dist *out, dsc_error *err)
{
    live_session *s = (live_session *)m;
    int32_t row;
    int rc = find_row(s, node, &row, err);
    return rc ? rc : fill_dist(s, row, DIST_BASE, out, err);
}

// --- commit --------------------------------------------------------------------------------------

// Finds the longest path of scored nodes along the first tokens of token[0, n) and writes it into
// path. Any of several nodes with the same text will do.
static int64_t find_path(const live_session *s, const int32_t *token, int64_t n, int32_t *path)
{
    int32_t deepest = -1;
    int64_t depth = 0;
    uint8_t *on = (uint8_t *)s->list.mask; // free between passes
    for (int32_t i = 0; i < s->tree.scored; i++) {
        const int32_t parent = s->tree.parent[i];
        on[i] = s->tree.depth[i] <= n && s->tree.token[i] == token[s->tree.depth[i] - 1] &&
                (parent < 0 || on[parent]);
        if (on[i] && s->tree.depth[i] > depth) {
            deepest = i;
            depth = s->tree.depth[i];
        }
    }
    for (int32_t i = deepest; i >= 0; i = s->tree.parent[i])
        path[s->tree.depth[i] - 1] = i;
    return depth;
}

static int move_rows(live_session *s, const int32_t *from, int64_t count, int64_t to,
                     dsc_error *err)
{
    const int64_t width = s->w->config.hidden;
    int rc = s->b->type->pass.move(s->b, &s->cache, from, count, to, err);
    for (int t = 0; t < live_features_planes(&s->features) && !rc; t++) {
        float *plane = live_features_plane(&s->features, t, width);
        for (int64_t i = 0; i < count && !rc; i++)
            if (from[i] != to + i)
                rc =
                    s->b->type->memory.copy(s->b, plane + (to + i) * width, plane + from[i] * width,
                                            (size_t)width * sizeof(float), err);
    }
    return rc;
}

// Stores the margins of the new tokens; NaN where this model did not score the position.
static void keep_margins(live_session *s, int64_t n, const int32_t *path, int64_t depth)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = i > depth ? -1 : i == 0 ? s->rows.root : s->tree.row[path[i - 1]];
        s->text.margin[s->base.length + i] = row >= 0 && !is_medusa(s) ? s->rows.margin[row] : NAN;
    }
}

void live_session_drop(live_session *s)
{
    s->compared = false;
    s->tree.count = s->tree.scored = s->rows.count = 0;
    s->rows.root = -1;
    s->tree.used = text_length(s) - s->lead;
}

int live_session_commit(dsc_model *m, const int32_t *token, size_t n, dsc_error *err)
{
    live_session *s = (live_session *)m;
    bool over = m->ended;
    int rc = live_session_pending(s, err);
    if (rc || !n) // a step that tested nothing: the scored nodes still follow the same text
        return rc;
    for (size_t i = 0; i < n; i++) {
        if (over)
            return dsc_fail(err, DSC_ECHECK, "a token was emitted after the end of the output");
        if (token[i] < 0 || token[i] >= s->w->config.vocab)
            return dsc_fail(err, DSC_EUSAGE,
                            "token %" PRId32 " is not in the vocabulary of %" PRId64, token[i],
                            s->w->config.vocab);
        over = dsc_model_ends(m, (int64_t)i, token[i]);
    }
    const int64_t count = (int64_t)n, before = text_length(s);
    int32_t *path = s->list.position;
    int64_t depth = is_medusa(s) ? 0 : find_path(s, token, count, path);
    keep_margins(s, count, path, depth);
    // The last token is run again in the next pass, which needs its logits. A head's tree is
    // dropped: its own features are not the target's.
    int64_t kept = is_eagle(s) ? 0 : depth < count ? depth : count - 1;
    if (s->text.cached < before || kept < 0)
        kept = 0;
    for (int64_t i = 0; i < kept; i++)
        s->list.slot[i] = s->tree.slot[path[i]];
    if (kept > 0)
        rc = move_rows(s, s->list.slot, kept, before, err);
    if (rc)
        return rc;
    memcpy(s->text.token + before, token, n * sizeof *token);
    s->text.cached += kept;
    m->length += count;
    m->ended = over;
    live_session_drop(s);
    return DSC_OK;
}

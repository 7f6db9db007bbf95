// SPDX-License-Identifier: Apache-2.0
// Rotation of queries and keys, and softmax attention over the cache. The cache is read in groups
// of tokens and slots that fit the CPU caches; a token's result does not depend on the grouping.
#include "live/device/cpu.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

// --- rotation ------------------------------------------------------------------------------------

// The angle is rounded to a float before its cosine is taken, as in Hugging Face transformers: far
// into a text that rounding is most of the angle's error, and the reference has it too.
static int turn_angles(cpu_backend *c, const live_rotation *r, dsc_error *err)
{
    const int64_t pairs = r->rotated / 2, rows = live_batch_rows(c->batch);
    if (!pairs || (c->angles_of == r->inv_freq && c->angles_pairs == pairs))
        return DSC_OK;
    int rc = live_cpu_scratch(&c->angles, (size_t)(rows * pairs) * 2 * sizeof(float), err);
    if (rc)
        return rc;
    float *angle = c->angles.data;
    for (const live_batch *batch = c->batch; batch; batch = batch->next)
        for (int64_t row = 0; row < batch->tokens * batch->sequences; row++, angle += 2 * pairs)
            for (int64_t i = 0; i < pairs; i++) {
                const int64_t position = batch->position[row % batch->tokens] +
                                         live_batch_shift(batch, row / batch->tokens);
                double x = (float)position * r->inv_freq[i];
                angle[i] = (float)cos(x);
                angle[pairs + i] = (float)sin(x);
            }
    c->angles_of = r->inv_freq;
    c->angles_pairs = pairs;
    return DSC_OK;
}

static void norm_head(float *x, const float *weight, double epsilon, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i] * x[i];
    double by = 1 / sqrt(sum / (double)n + epsilon);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(x[i] * by) * weight[i];
}

// angle: cosines, then sines, of the token.
static void turn_head(float *x, const float *angle, int64_t pairs)
{
    for (int64_t i = 0; i < pairs; i++) {
        float a = x[i], b = x[pairs + i], cosine = angle[i], sine = angle[pairs + i];
        x[i] = a * cosine - b * sine;
        x[pairs + i] = b * cosine + a * sine;
    }
}

static void turn_heads(float *x, int64_t heads, int64_t head, const float *weight,
                       const live_rotation *r, const float *angle)
{
    for (int64_t h = 0; h < heads; h++, x += head) {
        if (weight)
            norm_head(x, weight, r->epsilon, head);
        turn_head(x, angle, r->rotated / 2);
    }
}

// The rows of one batch of the pass; `angles` (NULL: nothing is rotated), qkv and the cache are
// those of its first sequence.
static void rotate_batch(const live_backend *b, const live_batch *batch, float *qkv,
                         const float *angles, const live_rotation *r, const live_attention *a,
                         const live_cache *cache, float *keys, float *values)
{
    const int64_t width = (a->heads + 2 * a->kv_heads) * a->head;
    const int64_t rows = batch->tokens * batch->sequences;
#pragma omp parallel for schedule(static) num_threads(cpu_threads(b, rows *width * 2))
    for (int64_t i = 0; i < rows; i++) {
        const int64_t sequence = i / batch->tokens;
        const int64_t slot = sequence * cache->slots + batch->slot[i % batch->tokens] +
                             live_batch_shift(batch, sequence);
        const float *angle = angles ? angles + i * (r->rotated / 2) * 2 : NULL;
        float *q = qkv + i * width, *k = q + a->heads * a->head, *v = k + cache->width;
        turn_heads(q, a->heads, a->head, r->q_norm, r, angle);
        turn_heads(k, a->kv_heads, a->head, r->k_norm, r, angle);
        memcpy(keys + slot * cache->width, k, (size_t)cache->width * sizeof *k);
        memcpy(values + slot * cache->width, v, (size_t)cache->width * sizeof *v);
    }
}

int live_cpu_rotate(live_backend *b, float *qkv, const live_rotation *r, const live_attention *a,
                    const live_cache *cache, int64_t layer, dsc_error *err)
{
    cpu_backend *c = cpu_of(b);
    int rc = turn_angles(c, r, err);
    if (rc)
        return rc;
    const float *angles = c->angles.data;
    int64_t place = 0; // of the next sequence in the cache
    for (const live_batch *batch = c->batch; batch; batch = batch->next) {
        const int64_t rows = batch->tokens * batch->sequences;
        rotate_batch(b, batch, qkv, angles, r, a, cache, (float *)cache->k[layer] + place,
                     (float *)cache->v[layer] + place);
        qkv += rows * (a->heads + 2 * a->kv_heads) * a->head;
        angles = angles ? angles + rows * (r->rotated / 2) * 2 : NULL;
        place += batch->sequences * cache->slots * cache->width;
    }
    return DSC_OK;
}

// --- attention -----------------------------------------------------------------------------------

enum {
    ATTEND_TOKENS = 8, // that go through the cache together
    // Slots that a head processes before the next head: a row of the cache contains all heads and
    // is read in memory order. This many bytes of rows, within bounds.
    ATTEND_BYTES = 1 << 14,
    ATTEND_SLOTS_LEAST = 16,
    ATTEND_SLOTS_MOST = 64,
};

// A group of tokens of a sequence, and adjacent key/value heads, each with the query heads that
// share it: `queries` rows per token.
typedef struct group {
    const cpu_backend *c;
    const live_batch *batch;
    const live_attention *a;
    // The batch's shift for the sequence. Slots are counted without it, from -shift on, so that
    // the lists of the batch hold.
    int64_t shift;
    int64_t token, tokens, queries; // queries: per token and key head
    int64_t heads;                  // key heads
    int64_t first;                  // none of the tokens attends to an earlier slot
    float *rows;                    // [heads][tokens][queries][head]: queries, then sums of values
    float *packed;                  // the queries, [heads], `part` numbers each
    int64_t part;
    const float *keys, *values; // of slot 0, counted so, and the first head
    int64_t stride;             // of slots
    int64_t slots;              // slots that are processed together
    float *score;               // [heads][tokens][queries][room], of slots from `first` on
    int64_t room;
} group;

static float *scores_of(const group *g, int64_t head, int64_t t)
{
    return g->score + (head * g->tokens + t) * g->queries * g->room;
}

static float *rows_of(const group *g, int64_t head, int64_t t)
{
    return g->rows + (head * g->tokens + t) * g->queries * g->a->head;
}

// The next slots to fetch while this head processes the current ones: its share of the rows,
// because the heads take turns and memory is fastest in sequential order.
static live_ahead ahead(const group *g, const float *next, int64_t head)
{
    const int64_t row = g->slots * head / g->heads;
    return (live_ahead){next + row * g->stride, g->heads * g->a->head, g->stride};
}

static int64_t first_seen(const group *g, int64_t token)
{
    const live_batch *batch = g->batch;
    int64_t first = g->a->window ? batch->position[token] - g->a->window + 1 : -g->shift;
    return first < -g->shift ? -g->shift : first < batch->prefix ? first : batch->prefix;
}

static bool seen(const group *g, int64_t token, int64_t slot)
{
    const live_batch *batch = g->batch;
    const uint64_t *mask = g->a->window && batch->window_mask ? batch->window_mask : batch->mask;
    int64_t bit = slot - batch->prefix;
    return mask[token * batch->words + bit / 64] >> (bit % 64) & 1;
}

// Computes the scores of all slots from `first` on. Slots that a token does not attend to are
// removed afterwards, so that their contents cannot reach the result.
static void score(const group *g)
{
    const int64_t width = g->a->head, slots = g->batch->used - g->first;
    for (int64_t s = 0; s < slots; s += g->slots) {
        const float *next = slots - s > g->slots ? g->keys + (g->first + s + g->slots) * g->stride
                                                 : g->values + g->first * g->stride;
        for (int64_t head = 0; head < g->heads; head++) {
            live_products p = {.out = scores_of(g, head, 0) + s,
                               .out_stride = g->room,
                               .weights = g->keys + (g->first + s) * g->stride + head * width,
                               .weight_stride = g->stride,
                               .rows = slots - s < g->slots ? slots - s : g->slots,
                               .packed = g->packed + head * g->part,
                               .tokens = g->tokens * g->queries,
                               .cols = width,
                               .ahead = ahead(g, next, head)};
            g->c->kernel->products(&p, DSC_F32);
        }
    }
}

// Converts the scores of the slots that token t attends to into probabilities: those of the prefix
// in place, followed by the others, compacted in slot order. The sums run over these only, so other
// slots between them do not matter.
static void weigh(const group *g, int64_t head, int64_t t)
{
    const live_batch *batch = g->batch;
    const int64_t token = g->token + t, skip = first_seen(g, token) - g->first;
    for (int64_t q = 0; q < g->queries; q++) {
        float *s = scores_of(g, head, t) + q * g->room;
        int64_t end = batch->prefix - g->first;
        for (int64_t slot = batch->prefix; slot < batch->used; slot++)
            if (seen(g, token, slot))
                s[end++] = s[slot - g->first];
        s += skip;
        float sum = g->c->kernel->exponentials(s, end - skip, (float)g->a->scale);
        g->c->kernel->multiply(s, end - skip, 1 / sum);
    }
}

// Adds the values of slots [slot, slot + count), weighted by the weights from the nth one on, to
// the sums of tokens [t, t + tokens).
static void add_values(const group *g, int64_t head, int64_t t, int64_t tokens, int64_t nth,
                       int64_t slot, int64_t count)
{
    live_mixture m = {.sum = rows_of(g, head, t),
                      .sum_stride = g->a->head,
                      .weight = scores_of(g, head, t) + nth,
                      .weight_stride = g->room,
                      .queries = tokens * g->queries,
                      .value = g->values + slot * g->stride + head * g->a->head,
                      .value_stride = g->stride,
                      .count = count,
                      .width = g->a->head,
                      .ahead = ahead(g, g->values + (slot + count) * g->stride, head)};
    g->c->kernel->mix(&m);
}

// Slots [from, to) of the prefix, which all of these tokens attend to.
static void mix_prefix(const group *g, int64_t t, int64_t tokens, int64_t from, int64_t to)
{
    for (int64_t slot = from; slot < to; slot += g->slots)
        for (int64_t head = 0; head < g->heads; head++)
            add_values(g, head, t, tokens, slot - g->first, slot,
                       to - slot < g->slots ? to - slot : g->slots);
}

// The slots beyond the prefix that token t attends to, in runs.
static void mix_masked(const group *g, int64_t t)
{
    const live_batch *batch = g->batch;
    int64_t nth = batch->prefix - g->first;
    for (int64_t slot = batch->prefix, end; slot < batch->used; slot = end) {
        for (end = slot; end < batch->used && seen(g, g->token + t, end);)
            end++;
        for (int64_t head = 0; head < g->heads && end > slot; head++)
            add_values(g, head, t, 1, nth, slot, end - slot);
        nth += end - slot;
        end += end == slot;
    }
}

static void mix(const group *g)
{
    const live_batch *batch = g->batch;
    const size_t rows = (size_t)(g->heads * g->tokens * g->queries);
    int64_t all_see = g->first; // from here on
    memset(g->rows, 0, rows * (size_t)g->a->head * sizeof(float));
    for (int64_t t = 0; t < g->tokens; t++) {
        int64_t first = first_seen(g, g->token + t);
        all_see = first > all_see ? first : all_see;
    }
    for (int64_t t = 0; t < g->tokens; t++) // what a window lets it see and others not
        mix_prefix(g, t, 1, first_seen(g, g->token + t), all_see);
    mix_prefix(g, 0, g->tokens, all_see, batch->prefix);
    for (int64_t t = 0; t < g->tokens; t++)
        mix_masked(g, t);
}

// Slots in use of the longest sequence.
static int64_t most_used(const live_batch *batch)
{
    int64_t most = live_batch_shift(batch, 0);
    for (int64_t s = 1; s < batch->sequences && batch->shift; s++)
        most = batch->shift[s] > most ? batch->shift[s] : most;
    return batch->used + most;
}

// An odd number of cache lines: many rows are written and read side by side, and a power of 2
// between them would cause conflicts in the L1 cache.
static int64_t room_of(const live_batch *batch)
{
    return (most_used(batch) + 31) / 32 * 32 + 16;
}

// How a pass is cut into groups; results do not depend on it. A group has `heads` key heads: all of
// them, unless that leaves threads without work.
typedef struct division {
    int64_t heads, runs, groups; // runs of `heads` heads; groups of tokens in a sequence
    int64_t room;                // slots of a row of scores
} division;

static division cut_pass(const live_batch *batch, const live_attention *a, int threads)
{
    division cut = {.groups = (batch->tokens + ATTEND_TOKENS - 1) / ATTEND_TOKENS,
                    .room = room_of(batch)};
    const int64_t others = cut.groups * batch->sequences;
    const int64_t parts = others % threads ? threads : 1;
    cut.heads = (a->kv_heads + parts - 1) / parts;
    cut.runs = (a->kv_heads + cut.heads - 1) / cut.heads;
    return cut;
}

// Number of floats that a group needs.
static size_t group_size(const live_batch *batch, const live_attention *a, division cut)
{
    const int64_t tokens = batch->tokens < ATTEND_TOKENS ? batch->tokens : ATTEND_TOKENS;
    const int64_t rows = tokens * (a->heads / a->kv_heads);
    return (size_t)cut.heads *
           ((size_t)(rows * (cut.room + a->head)) + live_packed_size(rows, a->head));
}

static int64_t slots_together(int64_t row)
{
    int64_t slots = ATTEND_BYTES / (row * (int64_t)sizeof(float)) / 16 * 16;
    return slots < ATTEND_SLOTS_LEAST  ? ATTEND_SLOTS_LEAST
           : slots > ATTEND_SLOTS_MOST ? ATTEND_SLOTS_MOST
                                       : slots;
}

// The queries and the results of a batch, and its first sequence in the cache.
typedef struct attended {
    const live_batch *batch;
    const float *qkv;
    float *out;
    int64_t sequence;
} attended;

// Group i of a batch: heads vary fastest, then tokens, then sequences.
static void attend_group(const cpu_backend *c, const attended *x, const live_attention *a,
                         const live_cache *cache, int64_t layer, division cut, int64_t i,
                         float *scratch)
{
    const live_batch *batch = x->batch;
    const int64_t kv = i % cut.runs * cut.heads, sequence = i / cut.runs / cut.groups;
    const int64_t queries = a->heads / a->kv_heads;
    const int64_t width = (a->heads + 2 * a->kv_heads) * a->head;
    const int64_t shift = live_batch_shift(batch, sequence);
    const int64_t base =
        ((x->sequence + sequence) * cache->slots + shift) * cache->width + kv * a->head;
    group g = {.c = c,
               .batch = batch,
               .shift = shift,
               .a = a,
               .token = i / cut.runs % cut.groups * ATTEND_TOKENS,
               .queries = queries,
               .heads = a->kv_heads - kv < cut.heads ? a->kv_heads - kv : cut.heads,
               .first = batch->prefix,
               .rows = scratch,
               .keys = (const float *)cache->k[layer] + base,
               .values = (const float *)cache->v[layer] + base,
               .stride = cache->width,
               .slots = slots_together(cache->width),
               .room = cut.room};
    g.tokens = batch->tokens - g.token < ATTEND_TOKENS ? batch->tokens - g.token : ATTEND_TOKENS;
    g.part = (int64_t)live_packed_size(g.tokens * queries, a->head);
    g.packed = g.rows + g.heads * g.tokens * queries * a->head;
    g.score = g.packed + g.heads * g.part;
    const int64_t row = sequence * batch->tokens + g.token, together = queries * a->head;
    for (int64_t t = 0; t < g.tokens; t++) {
        int64_t first = first_seen(&g, g.token + t);
        g.first = first < g.first ? first : g.first;
        for (int64_t head = 0; head < g.heads; head++)
            memcpy(rows_of(&g, head, t), x->qkv + (row + t) * width + (kv + head) * together,
                   (size_t)together * sizeof(float));
    }
    for (int64_t head = 0; head < g.heads; head++)
        c->kernel->pack(g.packed + head * g.part, rows_of(&g, head, 0), a->head, g.tokens * queries,
                        a->head, DSC_F32);
    score(&g);
    for (int64_t head = 0; head < g.heads; head++)
        for (int64_t t = 0; t < g.tokens; t++)
            weigh(&g, head, t);
    mix(&g);
    for (int64_t t = 0; t < g.tokens; t++)
        for (int64_t head = 0; head < g.heads; head++)
            memcpy(x->out + (row + t) * a->heads * a->head + (kv + head) * together,
                   rows_of(&g, head, t), (size_t)together * sizeof(float));
}

static int attend_batch(live_backend *b, const attended *x, const live_attention *a,
                        const live_cache *cache, int64_t layer, dsc_error *err)
{
    cpu_backend *c = cpu_of(b);
    const live_batch *batch = x->batch;
    const int64_t work = batch->tokens * batch->sequences * a->heads * most_used(batch) * a->head;
    const int threads = cpu_threads(b, work);
    const division cut = cut_pass(batch, a, threads);
    const int64_t all = batch->sequences * cut.groups * cut.runs;
    const size_t each = group_size(batch, a, cut);
    int rc = live_cpu_scratch(&c->work, (size_t)threads * each * sizeof(float), err);
    if (rc)
        return rc;
#pragma omp parallel num_threads(threads)
    {
        float *mine = NULL;
#pragma omp for schedule(static)
        for (int t = 0; t < threads; t++)
            mine = (float *)c->work.data + (size_t)t * each;
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < all; i++)
            attend_group(c, x, a, cache, layer, cut, i, mine);
    }
    return DSC_OK;
}

int live_cpu_attend(live_backend *b, void *out, const float *qkv, const live_attention *a,
                    const live_cache *cache, int64_t layer, dsc_error *err)
{
    attended x = {.qkv = qkv, .out = out};
    int rc = DSC_OK;
    for (x.batch = cpu_of(b)->batch; x.batch && !rc; x.batch = x.batch->next) {
        const int64_t rows = x.batch->tokens * x.batch->sequences;
        rc = attend_batch(b, &x, a, cache, layer, err);
        x.qkv += rows * (a->heads + 2 * a->kv_heads) * a->head;
        x.out += rows * a->heads * a->head;
        x.sequence += x.batch->sequences;
    }
    return rc;
}

int live_cpu_move(live_backend *b, const live_cache *cache, const int32_t *from, int64_t count,
                  int64_t to, dsc_error *err)
{
    (void)b;
    (void)err;
    const size_t bytes = (size_t)cache->width * sizeof(float);
    for (int64_t layer = 0; layer < cache->layers; layer++)
        for (int64_t i = 0; i < count; i++) {
            if (from[i] == to + i)
                continue;
            float *k = cache->k[layer], *v = cache->v[layer];
            memcpy(k + (to + i) * cache->width, k + from[i] * cache->width, bytes);
            memcpy(v + (to + i) * cache->width, v + from[i] * cache->width, bytes);
        }
    return DSC_OK;
}

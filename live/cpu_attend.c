// SPDX-License-Identifier: Apache-2.0
// Rotation of queries and keys, and attention over the cache.
#include "live/cpu.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

// --- rotation ------------------------------------------------------------------------------------

// The angle is rounded to a float before its cosine is taken, as in HF transformers: far into a
// text that rounding is most of the angle's error, and the reference has it.
static int turn_angles(cpu_backend *c, const live_rotation *r, dsc_error *err)
{
    const live_batch *batch = c->batch;
    const int64_t pairs = r->rotated / 2;
    if (c->angles_of == r->inv_freq && c->angles_pairs == pairs)
        return DSC_OK;
    int rc = live_cpu_scratch(&c->angles, (size_t)(batch->tokens * pairs) * 2 * sizeof(float), err);
    if (rc)
        return rc;
    float *angle = c->angles.data;
    for (int64_t t = 0; t < batch->tokens; t++, angle += 2 * pairs)
        for (int64_t i = 0; i < pairs; i++) {
            double x = (float)batch->position[t] * r->inv_freq[i];
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

int live_cpu_rotate(live_backend *b, float *qkv, const live_rotation *r, const live_attention *a,
                    const live_cache *cache, int64_t layer, dsc_error *err)
{
    cpu_backend *c = cpu_of(b);
    const live_batch *batch = c->batch;
    const int64_t width = (a->heads + 2 * a->kv_heads) * a->head;
    const int64_t rows = batch->tokens * batch->sequences;
    int rc = turn_angles(c, r, err);
    if (rc)
        return rc;
    float *keys = cache->k[layer], *values = cache->v[layer];
#pragma omp parallel for schedule(static) num_threads(cpu_threads(b, rows *width * 2))
    for (int64_t i = 0; i < rows; i++) {
        int64_t token = i % batch->tokens;
        int64_t slot = i / batch->tokens * cache->slots + batch->slot[token];
        const float *angle = c->angles.data; // NULL: nothing is rotated
        if (angle)
            angle += token * (r->rotated / 2) * 2;
        float *q = qkv + i * width, *k = q + a->heads * a->head, *v = k + cache->width;
        turn_heads(q, a->heads, a->head, r->q_norm, r, angle);
        turn_heads(k, a->kv_heads, a->head, r->k_norm, r, angle);
        memcpy(keys + slot * cache->width, k, (size_t)cache->width * sizeof *k);
        memcpy(values + slot * cache->width, v, (size_t)cache->width * sizeof *v);
    }
    return DSC_OK;
}

// --- attention -----------------------------------------------------------------------------------

enum {
    ATTEND_TOKENS = 4, // that go through the cache together
    ATTEND_SLOTS = 64, // of which a block is read while it is in the nearest cache
};

// A group of tokens of a sequence, and the query heads that share a head of keys and values.
typedef struct group {
    const cpu_backend *c;
    const live_attention *a;
    int64_t token, tokens, queries; // queries: per token
    int64_t first;                  // slots before are seen by none of the tokens
    float *packed[ATTEND_TOKENS];   // the queries
    float *out[ATTEND_TOKENS];
    const float *keys, *values; // of slot 0
    int64_t stride;             // of slots
    float *score;               // [tokens][queries][room]
    int64_t room;
} group;

static int64_t first_seen(const live_batch *batch, const live_attention *a, int64_t token)
{
    int64_t first = a->window ? batch->position[token] - a->window + 1 : 0;
    return first < 0 ? 0 : first < batch->prefix ? first : batch->prefix;
}

static bool seen(const live_batch *batch, int64_t token, int64_t slot)
{
    int64_t bit = slot - batch->prefix;
    return batch->mask[token * batch->words + bit / 64] >> (bit % 64) & 1;
}

// Scores of all slots from `first` on; what a token does not see is left out afterwards, so that
// nothing in those slots can reach the result.
static void score(const group *g)
{
    const int64_t head = g->a->head, slots = g->c->batch->used - g->first;
    for (int64_t s = 0; s < slots; s += ATTEND_SLOTS)
        for (int64_t t = 0; t < g->tokens; t++) {
            live_products p = {.out = g->score + t * g->queries * g->room + s,
                               .out_stride = g->room,
                               .weights = g->keys + (g->first + s) * g->stride,
                               .weight_stride = g->stride,
                               .rows = slots - s < ATTEND_SLOTS ? slots - s : ATTEND_SLOTS,
                               .packed = g->packed[t],
                               .tokens = g->queries,
                               .cols = head};
            g->c->kernel->products(&p, DSC_F32);
        }
}

// Moves the scores of what token t sees together, in the order of slots, and makes them
// probabilities. Returns how many there are. Their sums run over these alone, so that it does not
// matter which other slots lie between.
static int64_t weigh(const group *g, int64_t t)
{
    const live_batch *batch = g->c->batch;
    const int64_t token = g->token + t, skip = first_seen(batch, g->a, token) - g->first;
    int64_t count = 0;
    for (int64_t q = 0; q < g->queries; q++) {
        float *s = g->score + (t * g->queries + q) * g->room;
        count = batch->prefix - g->first - skip;
        if (skip)
            memmove(s, s + skip, (size_t)count * sizeof *s);
        for (int64_t slot = batch->prefix; slot < batch->used; slot++)
            if (seen(batch, token, slot))
                s[count++] = s[slot - g->first];
        float by = 1 / g->c->kernel->exponentials(s, count, (float)g->a->scale);
        for (int64_t i = 0; i < count; i++)
            s[i] *= by;
    }
    return count;
}

static void add_values(const group *g, int64_t t, const float *weight, int64_t slot, int64_t count)
{
    live_mixture m = {.sum = g->out[t],
                      .sum_stride = g->a->head,
                      .weight = weight,
                      .weight_stride = g->room,
                      .queries = g->queries,
                      .value = g->values + slot * g->stride,
                      .value_stride = g->stride,
                      .count = count,
                      .width = g->a->head};
    g->c->kernel->mix(&m);
}

static void mix(const group *g)
{
    const live_batch *batch = g->c->batch;
    int64_t first[ATTEND_TOKENS];
    for (int64_t t = 0; t < g->tokens; t++) {
        first[t] = first_seen(batch, g->a, g->token + t);
        memset(g->out[t], 0, (size_t)(g->queries * g->a->head) * sizeof(float));
    }
    for (int64_t slot = g->first; slot < batch->prefix; slot += ATTEND_SLOTS)
        for (int64_t t = 0; t < g->tokens; t++) {
            int64_t from = slot < first[t] ? first[t] : slot, to = slot + ATTEND_SLOTS;
            to = to < batch->prefix ? to : batch->prefix;
            if (from < to)
                add_values(g, t, g->score + t * g->queries * g->room + from - first[t], from,
                           to - from);
        }
    for (int64_t t = 0; t < g->tokens; t++) {
        const float *weight = g->score + t * g->queries * g->room + batch->prefix - first[t];
        for (int64_t slot = batch->prefix; slot < batch->used; slot++)
            if (seen(batch, g->token + t, slot))
                add_values(g, t, weight++, slot, 1);
    }
}

// Group i of a pass: heads fastest, then tokens, then sequences.
static void attend_group(const cpu_backend *c, float *out, const float *qkv,
                         const live_attention *a, const live_cache *cache, int64_t layer, int64_t i,
                         float *scratch)
{
    const live_batch *batch = c->batch;
    const int64_t groups = (batch->tokens + ATTEND_TOKENS - 1) / ATTEND_TOKENS;
    const int64_t kv = i % a->kv_heads, sequence = i / a->kv_heads / groups;
    const int64_t queries = a->heads / a->kv_heads;
    const int64_t width = (a->heads + 2 * a->kv_heads) * a->head;
    const int64_t base = sequence * cache->slots * cache->width + kv * a->head;
    group g = {.c = c,
               .a = a,
               .token = i / a->kv_heads % groups * ATTEND_TOKENS,
               .queries = queries,
               .keys = (const float *)cache->k[layer] + base,
               .values = (const float *)cache->v[layer] + base,
               .stride = cache->width,
               .room = batch->used};
    g.tokens = batch->tokens - g.token < ATTEND_TOKENS ? batch->tokens - g.token : ATTEND_TOKENS;
    g.first = batch->prefix;
    for (int64_t t = 0; t < g.tokens; t++) {
        int64_t row = sequence * batch->tokens + g.token + t,
                first = first_seen(batch, a, g.token + t);
        g.packed[t] = scratch + t * (int64_t)live_packed_size(queries, a->head);
        c->kernel->pack(g.packed[t], qkv + row * width + kv * queries * a->head, a->head, queries,
                        a->head, DSC_F32);
        g.out[t] = out + (row * a->heads + kv * queries) * a->head;
        g.first = first < g.first ? first : g.first;
    }
    g.score = scratch + ATTEND_TOKENS * live_packed_size(queries, a->head);
    score(&g);
    for (int64_t t = 0; t < g.tokens; t++)
        weigh(&g, t);
    mix(&g);
}

int live_cpu_attend(live_backend *b, float *out, const float *qkv, const live_attention *a,
                    const live_cache *cache, int64_t layer, dsc_error *err)
{
    cpu_backend *c = cpu_of(b);
    const live_batch *batch = c->batch;
    const int64_t work = batch->tokens * batch->sequences * a->heads * batch->used * a->head;
    const int64_t groups = (batch->tokens + ATTEND_TOKENS - 1) / ATTEND_TOKENS;
    const int64_t all = batch->sequences * groups * a->kv_heads;
    const int64_t queries = a->heads / a->kv_heads;
    const size_t each = ATTEND_TOKENS * ((size_t)(queries * batch->used) + // scores
                                         live_packed_size(queries, a->head));
    const int threads = cpu_threads(b, work);
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
            attend_group(c, out, qkv, a, cache, layer, i, mine);
    }
    return DSC_OK;
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

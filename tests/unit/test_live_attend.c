// SPDX-License-Identifier: Apache-2.0
// Rotation, attention and the cache of the CPU backend against plain loops in double, with every
// kernel this processor has; and that a token gets the same bits alone, in a chain and in a tree.
#include "tests/unit/live_ops_fixture.h"

static live_cache cache_new(int64_t layers, int64_t sequences, int64_t slots, int64_t width)
{
    live_cache c = {calloc((size_t)layers, sizeof(void *)),
                    calloc((size_t)layers, sizeof(void *)),
                    DSC_F32,
                    layers,
                    sequences,
                    slots,
                    width};
    for (int64_t i = 0; i < layers; i++) {
        c.k[i] = poison(sequences * slots * width);
        c.v[i] = poison(sequences * slots * width);
    }
    return c;
}

static void cache_drop(live_cache *c)
{
    for (int64_t i = 0; i < c->layers; i++) {
        drop(c->k[i]);
        drop(c->v[i]);
    }
    free(c->k);
    free(c->v);
}

static void norm_and_turn(double *x, const float *from, int64_t n, const float *weight,
                          const live_rotation *r, int32_t position)
{
    double square = 0;
    for (int64_t i = 0; i < n; i++)
        square += (double)from[i] * from[i] / (double)n;
    for (int64_t i = 0; i < n; i++)
        x[i] = weight ? from[i] / sqrt(square + r->epsilon) * weight[i] : from[i];
    for (int64_t i = 0; i < r->rotated / 2; i++) {
        double angle = (float)position * r->inv_freq[i], a = x[i], b = x[i + r->rotated / 2];
        x[i] = a * cos(angle) - b * sin(angle);
        x[i + r->rotated / 2] = b * cos(angle) + a * sin(angle);
    }
}

static void check_rotate(int64_t heads, int64_t kv_heads, int64_t head, int64_t rotated, bool norms)
{
    enum { TOKENS = 3, SEQUENCES = 2, SLOTS = 11 };
    static const int32_t position[] = {0, 17, 8191}, slot[] = {3, 9, 4};
    dsc_error err;
    live_batch batch = {
        .tokens = TOKENS, .sequences = SEQUENCES, .position = position, .slot = slot};
    const int64_t all = heads + 2 * kv_heads, rows = TOKENS * SEQUENCES;
    float *in = numbers(rows * all * head, 1), *qkv = numbers(rows * all * head, 1);
    float *freq = numbers(rotated / 2 + 1, 2), *qn = numbers(head, 3), *kn = numbers(head, 4);
    double want[256];
    live_cache cache = cache_new(2, SEQUENCES, SLOTS, kv_heads * head);
    live_attention a = {heads, kv_heads, head, 1, 0, false};
    live_rotation r = {freq, rotated, norms ? qn : NULL, norms ? kn : NULL, 1e-6};
    begin(&batch);
    assert_ok(backend->type->pass.rotate(backend, qkv, &r, &a, &cache, 1, &err), err);
    end();
    for (int64_t i = 0; i < rows; i++)
        for (int64_t h = 0; h < all; h++) {
            const float *from = in + (i * all + h) * head, *got = qkv + (i * all + h) * head;
            int64_t place = (i / TOKENS * SLOTS + slot[i % TOKENS]) * cache.width;
            bool is_query = h < heads, is_key = !is_query && h < heads + kv_heads;
            if (is_key)
                got = (float *)cache.k[1] + place + (h - heads) * head;
            else if (!is_query)
                got = (float *)cache.v[1] + place + (h - heads - kv_heads) * head;
            norm_and_turn(want, from, head, norms ? is_query ? qn : kn : NULL, &r,
                          position[i % TOKENS]);
            for (int64_t j = 0; j < head; j++)
                assert_close(got[j], is_query || is_key ? want[j] : from[j], 1e-6);
        }
    assert_true(isnan(*(float *)cache.k[0]) && isnan(*(float *)cache.v[1])); // none but its slots
    cache_drop(&cache);
    drop(in), drop(qkv), drop(freq), drop(qn), drop(kn);
}

static void test_rotate(void **state)
{
    (void)state;
    check_rotate(4, 2, 12, 12, false);
    check_rotate(4, 4, 16, 4, true);
    check_rotate(3, 1, 64, 64, true);
    check_rotate(2, 1, 12, 0, false);
}

static bool is_seen(const live_batch *batch, const live_attention *a, int64_t token, int64_t slot)
{
    if (slot < batch->prefix)
        return !a->window || slot > batch->position[token] - a->window;
    int64_t bit = slot - batch->prefix;
    const uint64_t *mask = a->window ? batch->window_mask : batch->mask;
    return mask[token * batch->words + bit / 64] >> (bit % 64) & 1;
}

// One (row, head) in double.
static void attend_plainly(double *out, const float *query, const live_batch *batch,
                           const live_attention *a, const float *keys, const float *values,
                           int64_t stride, int64_t token)
{
    double most = -INFINITY, sum = 0, *s = calloc((size_t)batch->used, sizeof *s);
    for (int64_t slot = 0; slot < batch->used; slot++) {
        for (int64_t j = 0; j < a->head; j++)
            s[slot] += query[j] * (double)keys[slot * stride + j] * a->scale;
        if (is_seen(batch, a, token, slot))
            most = fmax(most, s[slot]);
    }
    memset(out, 0, (size_t)a->head * sizeof *out);
    for (int64_t slot = 0; slot < batch->used; slot++)
        if (is_seen(batch, a, token, slot)) {
            sum += exp(s[slot] - most);
            for (int64_t j = 0; j < a->head; j++)
                out[j] += exp(s[slot] - most) * values[slot * stride + j];
        }
    for (int64_t j = 0; j < a->head; j++)
        out[j] /= sum;
    free(s);
}

static void check_attend(int64_t tokens, int64_t prefix, int64_t window, int64_t heads,
                         int64_t kv_heads, int64_t head)
{
    enum { SEQUENCES = 2 };
    dsc_error err;
    int64_t slots = prefix + 2 * tokens + 5, words = (2 * tokens + 63) / 64,
            all = heads + 2 * kv_heads;
    int32_t *position = calloc((size_t)tokens, sizeof *position);
    uint64_t *mask = calloc((size_t)(tokens * words), sizeof *mask);
    uint64_t *near = calloc((size_t)(tokens * words), sizeof *near); // fewer of them
    for (int64_t t = 0; t < tokens; t++) { // a tree: sees some of those before, alone and in runs
        position[t] = (int32_t)(prefix + t / 2);
        for (int64_t bit = 0; bit <= 2 * t; bit++)
            if (bit == 2 * t || (t % 3 == 2 ? bit % 4 != 3 : bit % (2 + t % 2) == 0))
                mask[t * words + bit / 64] |= 1ull << (bit % 64);
        for (int64_t bit = t; bit <= 2 * t; bit++)
            near[t * words + bit / 64] |= mask[t * words + bit / 64] & 1ull << (bit % 64);
    }
    live_batch batch = {.tokens = tokens,
                        .sequences = SEQUENCES,
                        .position = position,
                        .prefix = prefix,
                        .mask = mask,
                        .window_mask = near,
                        .words = words,
                        .used = prefix + 2 * tokens - 1};
    live_cache cache = cache_new(1, SEQUENCES, slots, kv_heads * head);
    for (int64_t s = 0; s < SEQUENCES; s++)
        for (int64_t i = 0; i < batch.used * cache.width; i++) {
            ((float *)cache.k[0])[s * slots * cache.width + i] =
                (float)uniform(20 + (uint64_t)s, i);
            ((float *)cache.v[0])[s * slots * cache.width + i] =
                (float)uniform(30 + (uint64_t)s, i);
        }
    live_attention a = {heads, kv_heads, head, 3 / sqrt((double)head), window, false};
    int64_t rows = tokens * SEQUENCES;
    float *qkv = numbers(rows * all * head, 1), *out = poison(rows * heads * head);
    double want[256];
    begin(&batch);
    assert_ok(backend->type->pass.attend(backend, out, qkv, &a, &cache, 0, &err), err);
    end();
    for (int64_t i = 0; i < rows; i++)
        for (int64_t h = 0; h < heads; h++) {
            int64_t place = i / tokens * slots * cache.width + h / (heads / kv_heads) * head;
            attend_plainly(want, qkv + (i * all + h) * head, &batch, &a,
                           (float *)cache.k[0] + place, (float *)cache.v[0] + place, cache.width,
                           i % tokens);
            for (int64_t j = 0; j < head; j++)
                assert_close(out[(i * heads + h) * head + j], want[j], 2e-6);
        }
    cache_drop(&cache);
    drop(qkv), drop(out);
    free(position), free(mask), free(near);
}

static void test_attend(void **state)
{
    (void)state;
    check_attend(1, 0, 0, 1, 1, 12);
    check_attend(1, 200, 0, 8, 2, 12);
    check_attend(5, 64, 0, 4, 4, 64);
    check_attend(6, 131, 50, 6, 1, 16);
    check_attend(7, 63, 3, 2, 1, 7);
    check_attend(70, 65, 0, 5, 5, 20);
    check_attend(2, 3000, 0, 2, 1, 128);
    check_attend(9, 100, 0, 6, 3, 32); // more tokens than go together
    check_attend(11, 90, 37, 14, 2, 64);
}

static void test_move(void **state)
{
    (void)state;
    enum { SLOTS = 9, WIDTH = 5 };
    static const int32_t from[] = {3, 5, 8};
    dsc_error err;
    live_cache cache = cache_new(2, 2, SLOTS, WIDTH);
    for (int64_t i = 0; i < 2 * SLOTS * WIDTH; i++)
        for (int layer = 0; layer < 2; layer++) {
            ((float *)cache.k[layer])[i] = (float)(i + 1000 * layer);
            ((float *)cache.v[layer])[i] = (float)(i + 5000 * layer);
        }
    assert_ok(backend->type->pass.move(backend, &cache, from, 3, 3, &err), err);
    for (int layer = 0; layer < 2; layer++)
        for (int64_t i = 0; i < 2 * SLOTS * WIDTH; i++) {
            int64_t slot = i / WIDTH, source = slot >= 3 && slot < 6 ? from[slot - 3] : slot;
            float want = (float)(source * WIDTH + i % WIDTH);
            assert_true(((float *)cache.k[layer])[i] == want + 1000.f * (float)layer);
            assert_true(((float *)cache.v[layer])[i] == want + 5000.f * (float)layer);
        }
    cache_drop(&cache);
}

// --- a token alone, in a chain, in a tree --------------------------------------------------------

enum { LAYERS = 2, HIDDEN = 36, HEADS = 3, HEAD = 12, FEED = 50, WORDS = 61, ROOM = 96 };

// A small model of every operation, one head of keys and values for three of queries.
typedef struct model {
    live_matrix embed, qkv, out, up, down;
    float *norm, *inv_freq;
    live_cache cache;
} model;

static model model_new(int64_t sequences)
{
    model m = {.embed = matrix(WORDS, HIDDEN, DSC_F32, 1),
               .qkv = matrix((HEADS + 2) * HEAD, HIDDEN, DSC_BF16, 2),
               .out = matrix(HIDDEN, HEADS * HEAD, DSC_F32, 3),
               .up = matrix(2 * FEED, HIDDEN, DSC_F16, 4),
               .down = matrix(HIDDEN, FEED, DSC_F32, 5),
               .norm = numbers(HIDDEN, 6),
               .inv_freq = numbers(HEAD / 2, 7),
               .cache = cache_new(LAYERS, sequences, ROOM, HEAD)};
    return m;
}

static void model_drop(model *m)
{
    drop(m->embed.data), drop(m->qkv.data), drop(m->out.data), drop(m->up.data);
    drop(m->down.data), drop(m->norm), drop(m->inv_freq);
    cache_drop(&m->cache);
}

// logits[tokens][WORDS]
static void pass(model *m, const live_batch *batch, float *logits)
{
    const live_backend_type *t = backend->type;
    const int64_t n = live_batch_rows(batch);
    const live_attention a = {HEADS, 1, HEAD, 1 / sqrt(HEAD), 0, false};
    const live_rotation r = {m->inv_freq, HEAD, m->norm, m->norm, 1e-6};
    const live_norming rms = {m->norm, NULL, LIVE_RMS_NORM, 1e-6};
    const live_norming layer_norm = {m->norm, m->norm, LIVE_LAYER_NORM, 1e-6};
    dsc_error err;
    float *state = poison(n * HIDDEN), *normed = poison(n * HIDDEN),
          *qkv = poison(n * (HEADS + 2) * HEAD), *mixed = poison(n * HEADS * HEAD),
          *up = poison(n * 2 * FEED), *acted = poison(n * FEED);
    begin(batch);
    assert_ok(t->pass.embed(backend, state, HIDDEN, &m->embed, NULL, 1, &err), err);
    for (int64_t layer = 0; layer < LAYERS; layer++) {
        assert_ok(t->pass.norm(backend, normed, state, &rms, n, HIDDEN, &err), err);
        assert_ok(live_matmul(backend, qkv, &m->qkv, NULL, normed, n, false, &err), err);
        assert_ok(t->pass.rotate(backend, qkv, &r, &a, &m->cache, layer, &err), err);
        assert_ok(t->pass.attend(backend, mixed, qkv, &a, &m->cache, layer, &err), err);
        assert_ok(live_matmul(backend, state, &m->out, NULL, mixed, n, true, &err), err);
        assert_ok(t->pass.norm(backend, normed, state, &layer_norm, n, HIDDEN, &err), err);
        assert_ok(live_matmul(backend, up, &m->up, NULL, normed, n, false, &err), err);
        assert_ok(live_cpu_activate(backend, acted, up, LIVE_SILU_GATE, n, FEED, &err), err);
        assert_ok(live_matmul(backend, state, &m->down, NULL, acted, n, true, &err), err);
    }
    assert_ok(live_matmul(backend, logits, &m->embed, NULL, state, n, false, &err), err);
    end();
    drop(state), drop(normed), drop(qkv), drop(mixed), drop(up), drop(acted);
}

enum { MOST_NODES = 40 };

// Nodes behind `prefix` tokens: a node's parent is before it, or -1; its slot is prefix + gap * i.
static void score(model *m, int64_t prefix, int64_t n, const int32_t *token, const int *parent,
                  int gap, float *logits)
{
    int32_t position[MOST_NODES], slot[MOST_NODES];
    uint64_t mask[MOST_NODES][2] = {{0}};
    for (int64_t i = 0; i < n; i++) {
        slot[i] = (int32_t)(prefix + gap * i);
        position[i] = (int32_t)prefix;
        for (int64_t j = i; j >= 0; j = parent[j]) {
            mask[i][gap * j / 64] |= 1ull << (gap * j % 64);
            position[i] += j != i;
        }
    }
    pass(m,
         &(live_batch){.tokens = n,
                       .sequences = 1,
                       .token = token,
                       .position = position,
                       .slot = slot,
                       .prefix = prefix,
                       .mask = &mask[0][0],
                       .words = 2,
                       .used = prefix + gap * (n - 1) + 1},
         logits);
}

static void test_same_bits(void **state)
{
    (void)state;
    enum { TEXT = 20, NODES = 12 };
    static const int parents[2][NODES] = {{-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
                                          {-1, -1, 0, 0, 1, 2, 3, 5, 5, 5, -1, 10}};
    int chain[TEXT];
    int32_t text[TEXT + NODES];
    for (int i = 0; i < TEXT + NODES; i++)
        text[i] = (int32_t)(i * 17 % WORDS);
    for (int i = 0; i < TEXT; i++)
        chain[i] = i - 1;
    model one = model_new(1), many = model_new(1);
    float *alone = poison(TEXT * WORDS), *together = poison(TEXT * WORDS);
    for (int i = 0; i < TEXT; i++)
        score(&one, i, 1, text + i, chain, 1, alone + i * WORDS);
    backend->threads = 3;
    for (int i = 0, n = 1; i < TEXT; i += n, n = i + n + 1 < TEXT ? n + 1 : TEXT - i)
        score(&many, i, n, text + i, chain, 1, together + i * WORDS);
    same_bits(together, alone, TEXT * WORDS);
    for (int layer = 0; layer < LAYERS; layer++) {
        same_bits(one.cache.k[layer], many.cache.k[layer], TEXT * HEAD);
        same_bits(one.cache.v[layer], many.cache.v[layer], TEXT * HEAD);
    }
    for (int shape = 0; shape < 2; shape++)
        for (int gap = 1; gap <= 5; gap += 4) { // the slots between hold NaN at first
            backend->threads = gap > 1 ? 3 : 1;
            score(&many, TEXT, NODES, text + TEXT, parents[shape], gap, together);
            backend->threads = 1;
            for (int i = 0; i < NODES; i++) { // the path to node i, one by one
                int path[NODES], length = 0;
                for (int j = i; j >= 0; j = parents[shape][j])
                    path[length++] = j;
                for (int k = 0; k < length; k++)
                    score(&one, TEXT + k, 1, &text[TEXT + path[length - 1 - k]], chain, 1, alone);
                same_bits(together + i * WORDS, alone, WORDS);
            }
        }
    backend->threads = 2;
    model_drop(&one), model_drop(&many);
    drop(alone), drop(together);
}

// --- sequences of different lengths in one pass --------------------------------------------------

enum { LONGEST = 20, CHUNK = 5 };

// The lists of a chain of tokens after 0 tokens, which `shift` moves.
typedef struct chain {
    int32_t position[LONGEST], token[3 * LONGEST];
    uint64_t mask[LONGEST];
} chain;

static live_batch chain_batch(chain *x, int64_t tokens, int64_t sequences, const int32_t *shift,
                              const live_batch *next)
{
    for (int i = 0; i < LONGEST; i++) {
        x->position[i] = i;
        x->mask[i] = ((uint64_t)2 << i) - 1;
    }
    return (live_batch){.tokens = tokens,
                        .sequences = sequences,
                        .token = x->token,
                        .shift = shift,
                        .position = x->position,
                        .slot = x->position,
                        .mask = x->mask,
                        .words = 1,
                        .used = tokens,
                        .next = next};
}

static int32_t word(int sequence, int64_t i)
{
    return (int32_t)((31 * sequence + 17 * i) % WORDS);
}

// Sequences 0 and 1 decode a token after 10 and 17 others, sequence 2 computes five of its prompt
// after three: each row has the bits that it has alone.
static void test_mixed(void **state)
{
    (void)state;
    static const int32_t shift[3] = {10, 17, 3};
    static const int64_t tokens[3] = {1, 1, CHUNK};
    model many = model_new(3);
    chain x[3];
    float *alone = poison(LONGEST * WORDS), *together = poison(2 * LONGEST * WORDS);
    for (int s = 0; s < 3; s++)
        for (int i = 0; i < shift[s]; i++)
            x[s].token[i] = word(s, i);
    const live_batch third = chain_batch(&x[2], shift[2], 1, NULL, NULL),
                     second = chain_batch(&x[1], shift[1], 1, NULL, &third),
                     first = chain_batch(&x[0], shift[0], 1, NULL, &second);
    pass(&many, &first, together);
    x[0].token[0] = word(0, shift[0]);
    x[0].token[1] = word(1, shift[1]);
    for (int i = 0; i < CHUNK; i++)
        x[2].token[i] = word(2, shift[2] + i);
    const live_batch prefill = chain_batch(&x[2], CHUNK, 1, &shift[2], NULL),
                     decode = chain_batch(&x[0], 1, 2, shift, &prefill);
    backend->threads = 3;
    pass(&many, &decode, together);
    backend->threads = 2;
    int64_t row = 0;
    for (int s = 0; s < 3; s++) {
        model one = model_new(1);
        for (int i = 0; i < shift[s]; i++)
            x[0].token[i] = word(s, i);
        const live_batch before = chain_batch(&x[0], shift[s], 1, NULL, NULL);
        pass(&one, &before, alone);
        for (int i = 0; i < tokens[s]; i++)
            x[1].token[i] = word(s, shift[s] + i);
        const live_batch last = chain_batch(&x[1], tokens[s], 1, &shift[s], NULL);
        pass(&one, &last, alone);
        same_bits(together + row * WORDS, alone, tokens[s] * WORDS);
        const int64_t texts = (int64_t)s * ROOM * HEAD, length = (shift[s] + tokens[s]) * HEAD;
        same_bits((float *)many.cache.k[1] + texts, one.cache.k[1], length);
        same_bits((float *)many.cache.v[1] + texts, one.cache.v[1], length);
        row += tokens[s];
        model_drop(&one);
    }
    model_drop(&many);
    drop(alone), drop(together);
}

SUITE(live_attend)
{
    static const struct CMUnitTest each[] = {
        cmocka_unit_test(test_rotate), cmocka_unit_test(test_attend),
        cmocka_unit_test(test_move),   cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_mixed),
    };
    return run_each(each, sizeof each / sizeof *each);
}

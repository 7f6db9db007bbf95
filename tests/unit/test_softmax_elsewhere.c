// SPDX-License-Identifier: Apache-2.0
// Distributions whose sums are given and whose logits are fetched on demand: they return what the
// same distribution in memory returns, and fetch no more than they need.
#include "tests/close.h"

#include "base/rng.h"
#include "sim/dist.h"
#include "theory/rows/softmax.h"

#include <math.h>
#include <string.h>

enum { MOST = 5000, BLOCK = DSC_SOFTMAX_BLOCK, BLOCKS = (MOST + BLOCK - 1) / BLOCK };

// A row that is stored elsewhere and the part fetched so far.
typedef struct elsewhere {
    size_t vocab;
    float row[MOST], here[MOST], max_logit[BLOCKS], most;
    double block[BLOCKS], room[MOST];
    bool came[BLOCKS];
    int calls;
    dsc_softmax own, dist; // in memory; fetched
} elsewhere;

static size_t end_of(const elsewhere *e, size_t b)
{
    return (b + 1) * BLOCK < e->vocab ? (b + 1) * BLOCK : e->vocab;
}

static void fetch(void *user, const size_t *block, size_t count)
{
    elsewhere *e = user;
    e->calls++;
    for (size_t i = 0; i < count; i++) {
        const size_t b = block ? block[i] : i, first = b * BLOCK;
        memcpy(e->here + first, e->row + first, (end_of(e, b) - first) * sizeof *e->here);
        e->came[b] = true;
    }
}

static void nothing_here(elsewhere *e)
{
    memset(e->here, -1, sizeof e->here); // not numbers
    memset(e->came, 0, sizeof e->came);
    e->calls = 0;
}

static size_t many_came(const elsewhere *e)
{
    size_t n = 0;
    for (size_t b = 0; b < BLOCKS; b++)
        n += e->came[b];
    return n;
}

// Logits with ties and -inf by the seed, and the distribution that top-k and top-p leave of them.
static void make(elsewhere *e, size_t vocab, uint64_t seed, size_t top_k, double top_p)
{
    e->vocab = vocab;
    e->most = -INFINITY;
    for (size_t x = 0; x < vocab; x++) {
        const double u = dsc_rng_uniform(seed, x, 0, DSC_RNG_FAMILY);
        e->row[x] = (float)(seed % 3 == 1 ? round(20 * u) : 30 * u);
        if (seed % 4 == 2 && x % 5 == 1)
            e->row[x] = -INFINITY;
        e->most = e->row[x] > e->most ? e->row[x] : e->most;
    }
    for (size_t b = 0; b < dsc_softmax_blocks(vocab); b++) {
        e->max_logit[b] = -INFINITY;
        for (size_t x = b * BLOCK; x < end_of(e, b); x++)
            e->max_logit[b] = e->row[x] > e->max_logit[b] ? e->row[x] : e->max_logit[b];
    }
    dsc_softmax_begin_filtered(&e->own, e->row, vocab, e->most, 2, top_k, top_p, e->block, e->room);
    dsc_softmax_resume(&e->dist, e->here, vocab, e->most, 2, e->own.least, e->own.last, e->block);
    e->dist.fetch = fetch;
    e->dist.user = e;
    e->dist.max_logit = e->max_logit;
    nothing_here(e);
}

static const size_t sizes[] = {1, 2, 127, 128, 129, 1000, MOST};
static const struct {
    size_t top_k;
    double top_p;
} filters[] = {{MOST, 1}, {50, 1}, {MOST, 0.9}, {300, 0.5}};

#define FOR_DISTS(e)                                                                               \
    for (size_t i_ = 0; i_ < sizeof sizes / sizeof *sizes; i_++)                                   \
        for (size_t f_ = 0; f_ < sizeof filters / sizeof *filters; f_++)                           \
            for (uint64_t seed_ = 0; seed_ < 12; seed_++)                                          \
                if (make(e, sizes[i_], seed_, filters[f_].top_k, filters[f_].top_p), true)

static void probabilities_ask_for_one_block(void **state)
{
    static elsewhere e;
    (void)state;
    FOR_DISTS(&e)
    {
        assert_close(e.dist.sum, e.own.sum, 1e-13 * e.own.sum);
        for (size_t x = 0; x < e.vocab; x += e.vocab / 9 + 1) {
            const double right = dsc_softmax_probability(&e.own, x);
            nothing_here(&e);
            assert_close(dsc_softmax_probability(&e.dist, x), right, 1e-13 * right);
            assert_true(many_came(&e) == 1 && e.came[x / BLOCK]);
        }
    }
}

static void draws_ask_for_one_block(void **state)
{
    static elsewhere e;
    (void)state;
    FOR_DISTS(&e)
    {
        for (uint64_t i = 0; i < 20; i++) {
            const double u = dsc_rng_uniform(99, i, 0, DSC_RNG_FAMILY);
            const size_t right = dsc_softmax_draw(&e.own, u);
            nothing_here(&e);
            assert_int_equal(dsc_softmax_draw(&e.dist, u), right);
            assert_true(many_came(&e) == 1 && e.came[right / BLOCK]);
        }
    }
}

static void whole_dists_ask_once(void **state)
{
    static elsewhere e;
    static double right[MOST], dist[MOST];
    (void)state;
    FOR_DISTS(&e)
    {
        dsc_softmax_fill(&e.own, right);
        dsc_softmax_fill(&e.dist, dist);
        assert_int_equal(e.calls, 1);
        for (size_t x = 0; x < e.vocab; x++)
            assert_close(dist[x], right[x], 1e-13 * right[x]);
    }
}

// Only blocks whose largest logit is among the k largest are fetched; with these unknown, all
// blocks.
static void the_most_probable_fetch_blocks_with_high_logits(void **state)
{
    static elsewhere e;
    static double row[MOST];
    static int32_t right[MOST], token[MOST];
    (void)state;
    FOR_DISTS(&e)
    {
        const dsc_dist own = {.vocab_size = (int32_t)e.vocab, .logits = &e.own};
        const dsc_dist dist = {.vocab_size = (int32_t)e.vocab, .logits = &e.dist};
        for (size_t k = 0; k <= e.vocab && k < 200; k = 2 * k + 1) {
            const size_t n = dsc_dist_top(&own, k, row, right);
            for (int known = 0; known < 2; known++) {
                nothing_here(&e);
                e.dist.max_logit = known ? e.max_logit : NULL;
                assert_int_equal(dsc_dist_top(&dist, k, row, token), n);
                assert_memory_equal(token, right, n * sizeof *token);
            }
            // With distinct maxima at most k blocks are fetched, in one call.
            if (seed_ % 3 != 1 && k && k < dsc_softmax_blocks(e.vocab))
                assert_true(many_came(&e) <= k && e.calls <= 1 + (int)(e.vocab / (64 * BLOCK)));
        }
    }
}

SUITE(softmax_elsewhere)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probabilities_ask_for_one_block),
        cmocka_unit_test(draws_ask_for_one_block),
        cmocka_unit_test(whole_dists_ask_once),
        cmocka_unit_test(the_most_probable_fetch_blocks_with_high_logits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

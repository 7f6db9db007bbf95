// SPDX-License-Identifier: Apache-2.0
// What tests/golden cannot show of the methods that copy from the text: prompt lookup by hand, long
// runs, and the cache of suffix, on texts of few different tokens, so that there is always
// something to find.
#include "tests/close.h"

#include "sim/draft/suffix_cache.h"
#include "sim/loop.h"

#include <string.h>

enum { MOST = 1200 };

static uint32_t lcg(uint32_t *s)
{
    return (*s = *s * 1664525u + 1013904223u) >> 8;
}

// A random text; with `copies` it repeats stretches of itself.
static void make_text(int32_t *text, int n, uint32_t vocabulary, bool copies, uint32_t *s)
{
    for (int i = 0; i < n; i++) {
        int from = i ? (int)(lcg(s) % (uint32_t)i) : 0;
        for (int j = (int)(lcg(s) % 20); copies && i && j > 0 && i < n; j--)
            text[i++] = text[from++];
        if (i < n)
            text[i] = (int32_t)(lcg(s) % vocabulary);
    }
}

typedef struct bench {
    dsc_arena arena;
    dsc_draft draft;
    dsc_model target;
    dsc_request request;
    void *state;
} bench;

static void bench_begin(bench *b, const dsc_config *config, const int32_t *text, int prompt,
                        int32_t end_token)
{
    dsc_error e;
    dsc_arena_reset(&b->arena);
    b->target = (dsc_model){.limit = MOST, .end_token = end_token};
    b->request = (dsc_request){.prompt = {text, prompt}};
    dsc_models models = {.target = &b->target};
    dsc_drafter_input in = {.request = &b->request,
                            .config = config,
                            .parameter = config->parameter,
                            .arena = &b->arena,
                            .models = &models};
    assert_ok(dsc_arena_alloc(&b->arena, &b->state, config->drafter->state_size, 1, &e), e);
    assert_ok(dsc_loop_begin(b->state, &in, &e), e);
}

static void bench_propose(bench *b, const dsc_config *config, const int32_t *output, int length)
{
    dsc_error e;
    dsc_draft_clear(&b->draft);
    assert_ok(config->drafter->propose(b->state, output, length, &b->draft, &e), e);
    assert_int_equal(b->draft.started, b->draft.count > 0);
    assert_true((int64_t)b->draft.count < dsc_config_width(config));
}

static void bench_fini(bench *b)
{
    dsc_arena_fini(&b->arena);
    dsc_draft_fini(&b->draft);
}

// --- ngram ---------------------------------------------------------------------------------------

enum { N_MOST, N_LEAST, NGRAM_LENGTH, SEMANTICS };
enum { VLLM, TRANSFORMERS, ORIGINAL };

static bool same(const int32_t *a, const int32_t *b, size_t n)
{
    return !memcmp(a, b, n * sizeof *a);
}

// n-grams are looked for in prompt and output, the first step included; the default is 10 tokens
// after a trigram.
static void ngram_by_hand(void **state)
{
    (void)state;
    static const int32_t text[] = {7, 1, 2, 3, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 1, 2, 3};
    enum { N = sizeof text / sizeof *text };
    bench b = {0};
    dsc_config c = {.drafter = &dsc_drafter_ngram, .parameter = {3, 1, 10, ORIGINAL}};
    bench_begin(&b, &c, text, N, -1);
    bench_propose(&b, &c, NULL, 0);
    assert_int_equal(b.draft.count, 10);
    assert_true(same(b.draft.token, text + 4, 10));
    c.parameter[NGRAM_LENGTH] = 14; // only 13 are there: nothing, or fewer
    bench_begin(&b, &c, text, N, -1);
    bench_propose(&b, &c, NULL, 0);
    assert_int_equal(b.draft.count, 0);
    c.parameter[SEMANTICS] = TRANSFORMERS;
    bench_begin(&b, &c, text, N, -1);
    bench_propose(&b, &c, NULL, 0);
    assert_int_equal(b.draft.count, 13);
    bench_begin(&b, &c, text, N, 22); // up to the EOS token
    bench_propose(&b, &c, NULL, 0);
    assert_int_equal(b.draft.count, 2);
    c.parameter[SEMANTICS] = VLLM; // EOS tokens are copied, too
    bench_begin(&b, &c, text, N, 22);
    bench_propose(&b, &c, NULL, 0);
    assert_int_equal(b.draft.count, 13);
    c.parameter[SEMANTICS] = TRANSFORMERS;
    const int32_t more[] = {30, 21}; // of several EOS tokens the first that comes
    bench_begin(&b, &c, text, N, 22);
    b.target.more_ends = more;
    b.target.more = 2;
    bench_propose(&b, &c, NULL, 0);
    assert_int_equal(b.draft.count, 1);
    assert_true(dsc_model_ends(&b.target, 0, 22) && dsc_model_ends(&b.target, 0, 21));
    assert_false(dsc_model_ends(&b.target, 0, 23));
    b.target.end_token = -1;
    assert_false(dsc_model_is_end(&b.target, -1) || dsc_model_is_end(&b.target, 22));
    dsc_error e;
    void *prepared;
    c.parameter[N_LEAST] = 4;
    assert_int_equal(c.drafter->prepare(&c, &prepared, &e), DSC_EUSAGE);
    bench_fini(&b);
}

// --- suffix --------------------------------------------------------------------------------------

enum { FACTOR = 3, PROBABILITY };

// A text that is longer than what the index starts with, of one token: every suffix is repeated,
// and of the text (n tokens) the last m occur n - m + 1 times.
static void suffix_of_a_long_run(void **state)
{
    (void)state;
    static int32_t text[MOST];
    bench b = {0};
    dsc_config c = {.drafter = &dsc_drafter_suffix,
                    .parameter = {24, 24, 1},
                    .real = {[FACTOR] = 1, [PROBABILITY] = 0.1}};
    bench_begin(&b, &c, text, 5, -1);
    bench_propose(&b, &c, text, MOST - 5);
    assert_int_equal(b.draft.count, 12); // m = 12: 12 tokens, no more in a depth of 24
    for (int j = 0; j < 12; j++)
        assert_int_equal(b.draft.token[j], 0);
    bench_fini(&b);
}

// --- the cache of suffix -------------------------------------------------------------------------

enum { DEPTH_OF_CACHE = 6, LONGEST_OUTPUT = 300 };

// The continuations of a string are the same, with the same counts in the same order.
static void assert_same_edges(const dsc_suffix_index *a, int32_t at, const dsc_suffix_index *b,
                              int32_t from)
{
    int32_t e = a->state[at].edge, f = b->state[from].edge;
    for (; e >= 0 && a->state[a->edge[e].to].count; e = a->edge[e].next, f = b->edge[f].next) {
        assert_true(f >= 0);
        assert_int_equal(a->edge[e].token, b->edge[f].token);
        assert_int_equal(a->state[a->edge[e].to].count, b->state[b->edge[f].to].count);
    }
    assert_true(f < 0 || !b->state[b->edge[f].to].count);
}

// The same for all suffixes of the last tokens, as far as they and a token more are counted.
static void assert_same_places(const dsc_suffix_index *a, const dsc_suffix_index *b)
{
    assert_int_equal(a->length, b->length);
    for (int32_t m = a->length < a->depth ? a->length : a->depth - 1; m > 0; m--) {
        int32_t length;
        const int32_t at = dsc_suffix_last(a, m, &length), from = dsc_suffix_last(b, m, &length);
        assert_int_equal(a->state[at].count, b->state[from].count);
        assert_same_edges(a, at, b, from);
    }
}

// Requests of few different tokens, whose ties depend on outputs that were evicted: a cache equals
// an index that never forgets the strings of evicted requests.
static void cache_equals_an_index_that_forgets_nothing(void **state)
{
    (void)state;
    enum { REQUESTS = 120, KEPT = 4 };
    static int32_t text[REQUESTS][LONGEST_OUTPUT];
    int n[REQUESTS];
    dsc_history history = {0};
    dsc_arena arena = {0};
    dsc_suffix_index all;
    dsc_suffix_cache *cache;
    dsc_error e;
    uint32_t s = 7;
    assert_int_equal(dsc_suffix_begin(&all, DEPTH_OF_CACHE, &arena, &e), DSC_OK);
    for (int r = 0; r < REQUESTS; r++) {
        n[r] = 1 + (int)(lcg(&s) % LONGEST_OUTPUT);
        make_text(text[r], n[r], 2 + lcg(&s) % 30, lcg(&s) % 2, &s);
        assert_int_equal(dsc_suffix_cache_begin(&cache, &history, KEPT, DEPTH_OF_CACHE, &e),
                         DSC_OK);
        if (r >= KEPT)
            assert_int_equal(dsc_suffix_remove(&all, text[r - KEPT], n[r - KEPT], &e), DSC_OK);
        dsc_suffix_next_text(&all);
        for (int j = 0; j < n[r]; j++) {
            assert_int_equal(dsc_suffix_append(&all, &text[r][j], 1, &e), DSC_OK);
            assert_int_equal(dsc_suffix_cache_append(cache, &text[r][j], 1, &e), DSC_OK);
            assert_same_places(&cache->index, &all);
        }
    }
    assert_true(cache->index.states < all.states / 2);
    dsc_arena_fini(&history.arena);
    dsc_arena_fini(&arena);
}

// Elements that have memory.
static size_t room_of(const dsc_suffix_cache *c)
{
    const dsc_suffix_index *x = &c->index;
    return c->token_capacity + c->start_capacity + x->state_capacity + x->edge_capacity +
           x->room_capacity + x->group_capacity + x->place_capacity + x->slots;
}

// The memory of a cache of ten requests does not depend on the number of requests.
static void memory_of_a_cache_is_bounded(void **state)
{
    (void)state;
    enum { REQUESTS = 2000, EARLY = 200 };
    static int32_t text[LONGEST_OUTPUT];
    dsc_history history = {0};
    dsc_suffix_cache *cache;
    dsc_error e;
    uint32_t s = 3;
    size_t early = 0;
    for (int r = 0; r < REQUESTS; r++) {
        make_text(text, LONGEST_OUTPUT, 1000, true, &s);
        assert_int_equal(dsc_suffix_cache_begin(&cache, &history, 10, 24, &e), DSC_OK);
        assert_int_equal(dsc_suffix_cache_append(cache, text, LONGEST_OUTPUT, &e), DSC_OK);
        if (r == EARLY)
            early = room_of(cache);
    }
    assert_int_equal(room_of(cache), early);
    dsc_arena_fini(&history.arena);
}

SUITE(lookup)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ngram_by_hand),
        cmocka_unit_test(suffix_of_a_long_run),
        cmocka_unit_test(cache_equals_an_index_that_forgets_nothing),
        cmocka_unit_test(memory_of_a_cache_is_bounded),
    };
    return cmocka_run_group_tests_name("lookup", tests, NULL, NULL);
}

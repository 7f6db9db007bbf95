// SPDX-License-Identifier: Apache-2.0
// Lookahead decoding: the pool of phrases, outputs and distributions of outputs. tests/golden has
// the method step by step.
#include "pair_fixture.h"

#include "sim/draft/phrase_pool.h"
#include "sim/draft/window.h"

// --- the pool ------------------------------------------------------------------------------------

static void expect_list(const dsc_phrase_pool *p, int32_t key, const char *second)
{
    const dsc_phrase_list *l = dsc_phrase_pool_find(p, key);
    size_t n = strlen(second), i = 0;
    assert_non_null(l);
    assert_int_equal(l->count, n);
    for (const dsc_phrase *x = l->oldest; x; x = x->newer, i++)
        assert_int_equal(x->token[1], second[i]);
    assert_int_equal(i, n);
    for (const dsc_phrase *x = l->newest; x; x = x->older)
        assert_int_equal(x->token[1], second[--i]);
}

static void the_pool_forgets_the_oldest(void **state)
{
    (void)state;
    dsc_arena arena = {0};
    dsc_phrase_pool p;
    dsc_error err;
    assert_ok(dsc_phrase_pool_init(&p, &arena, 2, 3, &err), err);
    assert_null(dsc_phrase_pool_find(&p, 7));
    static const struct {
        char add;
        const char *list;
    } step[] = {{'a', "a"},   {'b', "ab"},  {'a', "ba"},  {'a', "ba"},  {'c', "bac"},
                {'b', "acb"}, {'d', "cbd"}, {'d', "cbd"}, {'c', "bdc"}, {'e', "dce"}};
    for (size_t i = 0; i < sizeof step / sizeof *step; i++) {
        const int32_t phrase[] = {1, step[i].add};
        assert_ok(dsc_phrase_pool_add(&p, 7, phrase, &err), err);
        expect_list(&p, 7, step[i].list);
    }
    dsc_arena_fini(&arena);
}

static void the_pool_keeps_keys_apart(void **state)
{
    (void)state;
    dsc_arena arena = {0};
    dsc_phrase_pool p;
    dsc_error err;
    assert_ok(dsc_phrase_pool_init(&p, &arena, 2, 1, &err), err);
    for (int32_t key = -1; key < 3000; key++) {
        const int32_t phrase[] = {key, key % 100};
        assert_ok(dsc_phrase_pool_add(&p, key * 64, phrase, &err), err);
    }
    for (int32_t key = -1; key < 3000; key++) {
        const dsc_phrase_list *l = dsc_phrase_pool_find(&p, key * 64);
        assert_true(l && l->count == 1 && l->newest->token[0] == key);
        assert_null(dsc_phrase_pool_find(&p, key * 64 + 1));
    }
    assert_ok(dsc_phrase_pool_init(&p, &arena, 2, 0, &err), err); // keeps nothing
    assert_ok(dsc_phrase_pool_add(&p, 1, (int32_t[]){1, 2}, &err), err);
    assert_null(dsc_phrase_pool_find(&p, 1));
    dsc_arena_fini(&arena);
}

// --- the method ----------------------------------------------------------------------------------

typedef struct setting {
    const char *window, *level, *guesses, *prompt, *semantics;
} setting;

static const setting settings[] = {
    {"7", "5", "7", "off", "paper"}, {"7", "5", "7", "off", "code"},
    {"1", "2", "3", "off", "paper"}, {"4", "2", "4", "off", "code"},
    {"1", "7", "2", "on", "paper"},  {"5", "3", "5", "on", "code"},
    {"5", "3", "5", "on", "paper"},  {"6", "4", "0", "off", "paper"},
    {"3", "6", "20", "on", "code"},  {"15", "5", "1", "off", "code"},
};

static const char *name_of(const setting *s)
{
    static char name[200];
    snprintf(name, sizeof name, "W=%s N=%s G=%s prompt %s %s", s->window, s->level, s->guesses,
             s->prompt, s->semantics);
    return name;
}

static dsc_config config(const setting *s)
{
    const char *const set[] = {"window",   s->window,          "level",   s->level,    "guesses",
                               s->guesses, "pool-from-prompt", s->prompt, "semantics", s->semantics,
                               NULL};
    return config_of(&dsc_drafter_lookahead, set);
}

// A full window and all guesses: (N - 1)(W + G) tokens in a pass.
static void passes_are_as_wide_as_the_paper_says(void **state)
{
    (void)state;
    static const setting s = {"7", "5", "7", "off", "paper"};
    dsc_config c = config(&s);
    assert_int_equal(dsc_config_width(&c), (5 - 1) * (7 + 7));
    assert_int_equal(dsc_config_limit(&c), 4);
    assert_int_equal(dsc_window_nodes(7, 5), 4 * 7 - 1);
    assert_int_equal(dsc_window_nodes(1, 7), 3 * 4 - 1); // while it fills, levels 0 to 2 or 3
}

// --- outputs -------------------------------------------------------------------------------------

static void outputs_are_the_targets_own(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const dsc_config c = config(&settings[i]);
        check_outputs(&c);
    }
}

// Drawn outputs of three tokens follow the target's distribution (Pearson's statistic). Guesses
// need the window to be full: n-grams of 2 and 3 tokens.
static void drawn_outputs_follow_the_dist(void **state)
{
    (void)state;
    enum { VOCAB = 3, TOKENS = 5, TEXTS = 243, REQUESTS = 30000 };
    static const setting drawn[] = {{"3", "2", "3", "off", "paper"},
                                    {"3", "3", "5", "on", "code"},
                                    {"2", "3", "4", "on", "paper"}};
    static const int32_t words[] = {0, 1, 2, 0, 1, 0, 2, 2, 1};
    dsc_error err = {0};
    dsc_markov_options o = {.vocab_size = VOCAB, .seed = 3, .noise = 1.5};
    dsc_language *target, *draft;
    assert_ok(dsc_markov_new(&target, &o, DSC_SIDE_TARGET, &err), err);
    assert_ok(dsc_markov_new(&draft, &o, DSC_SIDE_DRAFT, &err), err);
    bench *b = bench_new(target, draft);
    for (size_t i = 0; i < sizeof drawn / sizeof *drawn; i++) {
        dsc_config c = config(&drawn[i]);
        int64_t count[TEXTS] = {0};
        double x = 0;
        bench_clear(b);
        for (int64_t r = 0; r < REQUESTS; r++) {
            int text = 0;
            run_one(b, &c, &dsc_verifier_specinfer, (dsc_token_view){words, 9}, r, TOKENS, 1, NULL);
            for (int j = 0; j < TOKENS; j++)
                text = text * VOCAB + b->t.base.output[j];
            count[text]++;
        }
        for (int text = 0; text < TEXTS; text++) {
            int32_t before = words[8];
            double p = REQUESTS;
            for (int j = 0, scale = TEXTS / VOCAB; j < TOKENS; j++, scale /= VOCAB) {
                dsc_dist d = dist_at(target, &before, 1);
                before = text / scale % VOCAB;
                p *= dsc_dist_probability(&d, before);
            }
            x += ((double)count[text] - p) * ((double)count[text] - p) / p;
        }
        if (x > TEXTS - 1 + 5 * sqrt(2 * (TEXTS - 1)))
            fail_msg("%s: chi-square %.1f of %d degrees", name_of(&drawn[i]), x, TEXTS - 1);
        assert_true(b->counts.num_accepted_tokens > REQUESTS / 10);
    }
    bench_free(b);
}

SUITE(lookahead)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pool_forgets_the_oldest),
        cmocka_unit_test(the_pool_keeps_keys_apart),
        cmocka_unit_test(passes_are_as_wide_as_the_paper_says),
        cmocka_unit_test(outputs_are_the_targets_own),
        cmocka_unit_test(drawn_outputs_follow_the_dist),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// Ouroboros: its outputs, the order of its ablation, requests that leave phrases to the next ones,
// and the orders they come in. tests/golden has the method step by step.
#include "pair_fixture.h"

#include "base/rng.h"
#include "sim/model/workload.h"
#include "sim/run/run.h"

typedef struct setting {
    const char *length, *window, *level, *phrases, *lookahead, *verification, *reuse, *semantics;
} setting;

static const setting settings[] = {
    {"4", "20", "7", "3", "on", "on", "on", "paper"},
    {"4", "20", "7", "3", "on", "on", "on", "code"},
    {"6", "5", "4", "2", "on", "on", "off", "paper"},
    {"6", "5", "4", "2", "on", "on", "off", "code"},
    {"8", "4", "3", "3", "off", "on", "on", "paper"},
    {"8", "4", "3", "3", "off", "on", "off", "code"},
    {"9", "6", "2", "3", "on", "on", "on", "code"},
    {"1", "3", "3", "4", "on", "off", "on", "paper"},
    {"12", "8", "5", "0", "on", "on", "off", "paper"},
    {"7", "1", "3", "1", "on", "on", "on", "paper"},
    {"5", "7", "4", "3", "off", "off", "off", "paper"},
};

static dsc_config config(const setting *s)
{
    const char *const set[] = {"num-speculative-tokens",
                               s->length,
                               "window",
                               s->window,
                               "level",
                               s->level,
                               "phrases",
                               s->phrases,
                               "draft-lookahead",
                               s->lookahead,
                               "from-verification",
                               s->verification,
                               "reuse",
                               s->reuse,
                               "semantics",
                               s->semantics,
                               NULL};
    return config_of(&dsc_drafter_ouroboros, set);
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

// --- a pair of n-gram models ---------------------------------------------------------------------

// Sentences of few words, so that n-grams come again; a byte is a token.
static const char *write_corpus(uint64_t seed)
{
    static const char *const word[] = {"the ", "cat ", "sat ", "on ",  "a ",   "mat ", "and ",
                                       "ran ", "to ",  "one ", "two ", "dog ", "had ", "it. "};
    static char text[200000];
    size_t at = 0;
    uint32_t w = 0;
    for (uint32_t line = 0; line < 200; line++) {
        for (uint32_t i = 0; i < 30; i++) {
            double u = dsc_rng_uniform(seed, line, i, 77);
            w = (w * 5 + (uint32_t)(u * u * 5)) % (sizeof word / sizeof *word);
            at += (size_t)snprintf(text + at, sizeof text - at, "%s", word[w]);
        }
        text[at++] = '\n';
    }
    text[at] = 0;
    const char *path = in_scratch("corpus.txt");
    put_text(path, text);
    return path;
}

static bench *ngram_bench(uint64_t seed, int target_order, int draft_order)
{
    char spec[500];
    const char *path = write_corpus(seed);
    snprintf(spec, sizeof spec, "ngram:%s,order=%d", path, target_order);
    dsc_language *target = make(spec, DSC_SIDE_TARGET);
    snprintf(spec, sizeof spec, "ngram:%s,order=%d", path, draft_order);
    return bench_new(target, make(spec, DSC_SIDE_DRAFT));
}

static dsc_token_view bench_prompt(const bench *b, int64_t r, int64_t tokens)
{
    dsc_token_view prompt = b->target->type->text(b->target, r);
    assert_true(prompt.count > tokens);
    prompt.count = tokens;
    return prompt;
}

// --- the ablation --------------------------------------------------------------------------------

typedef struct outcome {
    int64_t target_calls, draft_calls, histogram[40];
} outcome;

static outcome run_all(bench *b, const char *lookahead, const char *phrases,
                       const char *verification, const char *reuse)
{
    const setting s = {"6", "8", "5", phrases, lookahead, verification, reuse, "paper"};
    dsc_config c = config(&s);
    dsc_history history = {0};
    outcome o;
    bench_clear(b);
    for (int64_t q = 0; q < 20; q++)
        run_one(b, &c, &dsc_verifier_greedy, bench_prompt(b, q, 16), q, 60, 0, &history);
    dsc_arena_fini(&history.arena);
    o = (outcome){b->counts.target_calls, b->counts.draft_calls, {0}};
    memcpy(o.histogram, b->histogram, sizeof o.histogram);
    return o;
}

// Time of a run in target calls, a draft model that is five times as fast.
static double time_of(const outcome *o)
{
    return (double)o->target_calls + (double)o->draft_calls / 5;
}

// The parts in the order of Table 4. On texts as simple as these the phrases from verification are
// in the noise (1 or 2 % either way); the other parts each save.
static void each_part_helps(void **state)
{
    (void)state;
    bench *b = ngram_bench(3, 7, 4);
    dsc_config chain = config_of(&dsc_drafter_draft_model,
                                 (const char *const[]){"num-speculative-tokens", "6", NULL});
    bench_clear(b);
    for (int64_t q = 0; q < 20; q++)
        run_one(b, &chain, &dsc_verifier_greedy, bench_prompt(b, q, 16), q, 60, 0, NULL);
    int64_t plain[40];
    memcpy(plain, b->histogram, sizeof plain);
    int64_t calls = b->counts.draft_calls;
    outcome off = run_all(b, "off", "0", "off", "off"), ahead = run_all(b, "on", "0", "off", "off"),
            longer = run_all(b, "on", "3", "off", "off"), more = run_all(b, "on", "3", "on", "off"),
            all = run_all(b, "on", "3", "on", "on");
    assert_memory_equal(off.histogram, plain, sizeof plain); // nothing of it: speculative decoding
    assert_int_equal(off.draft_calls, calls);
    assert_memory_equal(ahead.histogram, plain, sizeof plain); // the same drafts, in fewer calls
    assert_true(ahead.draft_calls < calls);
    assert_true(time_of(&ahead) < 0.8 * time_of(&off));
    assert_true(longer.target_calls < ahead.target_calls);
    assert_true(time_of(&longer) < 0.95 * time_of(&ahead));
    assert_true(time_of(&more) < 1.03 * time_of(&longer));
    assert_true(time_of(&all) < 0.95 * time_of(&more));
    bench_free(b);
}

// --- runs ----------------------------------------------------------------------------------------

static void run_with(const bench *b, const char *reuse, const char *order, int threads,
                     int64_t requests, dsc_results *out)
{
    dsc_error err = {0};
    int64_t *places;
    const setting s = {"4", "8", "5", "3", "on", "on", reuse, "paper"};
    dsc_config c[2] = {config(&s), config(&settings[0])};
    dsc_workload load = {.target = b->target,
                         .draft = b->draft,
                         .requests = requests,
                         .prompt_tokens = 16,
                         .max_tokens = 60};
    dsc_run_options o = {.workload = &load, .threads = threads, .seed = 5};
    assert_ok(dsc_workload_order(&places, order ? order : "file", requests, &err), err);
    load.order = places;
    assert_ok(dsc_run(NULL, c, 2, &o, out, &err), err);
    free(places);
}

// Requests in their order, whatever the threads: the same figures, and those of the loop.
static void runs_do_not_depend_on_threads(void **state)
{
    (void)state;
    bench *b = ngram_bench(4, 7, 4);
    dsc_results one, three, off;
    run_with(b, "on", NULL, 1, 40, &one);
    run_with(b, "on", NULL, 3, 40, &three);
    run_with(b, "off", NULL, 3, 40, &off);
    for (size_t c = 0; c < 2; c++) {
        assert_int_equal(one.counts[c].target_calls, three.counts[c].target_calls);
        assert_int_equal(one.counts[c].draft_calls, three.counts[c].draft_calls);
        assert_int_equal(one.counts[c].draft_call_tokens, three.counts[c].draft_call_tokens);
        assert_int_equal(one.counts[c].extra[0], three.counts[c].extra[0]);
        assert_true(one.counts[c].extra[0] > 0);
    }
    assert_true(one.counts[0].draft_calls < off.counts[0].draft_calls);
    assert_int_equal(one.counts[1].draft_calls, off.counts[1].draft_calls); // its own phrases
    dsc_results_fini(&one);
    dsc_results_fini(&three);
    dsc_results_fini(&off);
    bench_free(b);
}

static void expect_order(const char *text, int64_t requests, const int64_t *expected)
{
    dsc_error err = {0};
    int64_t *order;
    assert_ok(dsc_workload_order(&order, text, requests, &err), err);
    for (int64_t i = 0; i < requests; i++)
        if (order[i] != expected[i])
            fail_msg("%s: request %d at place %d", text, (int)order[i], (int)i);
    free(order);
}

// Whatever the order, the requests are the same and their outputs too.
static void orders_are_permutations(void **state)
{
    (void)state;
    dsc_error err = {0};
    int64_t *order, *again, sum = 0, moved = 0;
    expect_order("consecutive:1", 8, (const int64_t[]){0, 2, 4, 6, 1, 3, 5, 7});
    expect_order("consecutive:2/3", 10, (const int64_t[]){0, 1, 3, 4, 6, 7, 2, 5, 8, 9});
    expect_order("consecutive:10/2", 10, (const int64_t[]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    assert_ok(dsc_workload_order(&order, "file", 5, &err), err);
    assert_null(order);
    assert_ok(dsc_workload_order(&order, "shuffle", 1000, &err), err);
    assert_ok(dsc_workload_order(&again, "shuffle:0", 1000, &err), err);
    for (int64_t i = 0; i < 1000; i++) {
        bool found = false;
        for (int64_t j = 0; j < 1000 && !found; j++)
            found = order[j] == i;
        assert_true(found);
        sum += i * order[i];
        moved += order[i] != i;
        assert_int_equal(order[i], again[i]);
    }
    // The mean of sum i order[i] is n (n - 1)^2 / 4, its deviation n^2.5 / 12.
    assert_close((double)sum, 1000 * 999 * 999 / 4.0, 4 * 1e6 * sqrt(1000) / 12);
    assert_true(moved > 980);
    free(order);
    free(again);
    static const char *const bad[] = {"",
                                      "files",
                                      "shuffle:",
                                      "shuffle:x",
                                      "shuffle5",
                                      "consecutive",
                                      "consecutive:0",
                                      "consecutive:9",
                                      "shuffle:1x",
                                      "consecutive:2/",
                                      "consecutive:2/0",
                                      "shuffle:-1",
                                      "consecutive:99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(dsc_workload_order(&order, bad[i], 8, &err), DSC_EUSAGE);
}

static void orders_change_no_output(void **state)
{
    (void)state;
    bench *b = ngram_bench(5, 7, 4);
    dsc_results file, turns;
    run_with(b, "off", NULL, 1, 40, &file);
    run_with(b, "off", "consecutive:3", 2, 40, &turns);
    assert_int_equal(file.counts[0].target_calls, turns.counts[0].target_calls);
    assert_int_equal(file.counts[0].draft_calls, turns.counts[0].draft_calls);
    assert_int_equal(file.counts[1].output_tokens, turns.counts[1].output_tokens);
    assert_int_not_equal(file.counts[1].draft_calls, turns.counts[1].draft_calls); // it reuses
    dsc_results_fini(&file);
    dsc_results_fini(&turns);
    bench_free(b);
}

SUITE(ouroboros)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_are_the_targets_own),
        cmocka_unit_test_setup_teardown(each_part_helps, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(runs_do_not_depend_on_threads, make_scratch,
                                        remove_scratch),
        cmocka_unit_test(orders_are_permutations),
        cmocka_unit_test_setup_teardown(orders_change_no_output, make_scratch, remove_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

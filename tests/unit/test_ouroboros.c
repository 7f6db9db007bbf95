// SPDX-License-Identifier: Apache-2.0
// Ouroboros: step by step against a second, plain implementation with each part on and off; the
// order of its ablation; requests that leave phrases to the next ones, and the orders they come in.
#include "lookahead_reference.h"

#include "sim/model/workload.h"
#include "sim/run/run.h"

// --- step by step --------------------------------------------------------------------------------

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

static const char *name_of(const setting *s)
{
    static char name[300];
    snprintf(name, sizeof name, "gamma=%s W=%s N=%s K=%s lookahead %s verification %s reuse %s %s",
             s->length, s->window, s->level, s->phrases, s->lookahead, s->verification, s->reuse,
             s->semantics);
    return name;
}

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

typedef struct reference {
    const setting *s;
    ref_text text;
    ref_pool pool;
    ref_window window;
    int end; // tokens of the text at most
    int64_t histogram[RUN_HISTOGRAM], width[RUN_WIDTH];
    int64_t draft_calls, draft_call_tokens, matched;
} reference;

static int usable(const setting *s)
{
    return atoi(s->level) - (!strcmp(s->semantics, "code") ? 2 : 1);
}

static bool on(const char *s)
{
    return !strcmp(s, "on");
}

static bool put_and_end(reference *r, const bench *b, ref_text *t, int32_t token)
{
    put(t, token);
    return token == b->target->end_token || t->n == r->end;
}

// One pass of the draft model: what it adds to the draft.
static bool draft_on(reference *r, const bench *b, ref_text *draft)
{
    int at[REF_LIST], most = r->text.n + atoi(r->s->length), best = 0;
    ref_text before = *draft;
    int32_t out[REF_DEEP] = {say(b->draft, draft)}, said[REF_DEEP];
    bool ended = false;
    r->draft_calls++;
    r->draft_call_tokens++;
    if (!on(r->s->lookahead))
        return put_and_end(r, b, draft, out[0]);
    int guesses = ref_full(&r->window) ? ref_find(&r->pool, draft->token[draft->n - 1], at) : 0;
    for (int g = 0; g < guesses; g++) {
        const int32_t *phrase = r->pool.phrase[at[g]].token;
        int hit = ref_follow(b->draft, draft, phrase, usable(r->s), said);
        if (hit > best) {
            best = hit;
            memcpy(out, said, sizeof said);
        }
    }
    r->draft_call_tokens += ref_nodes(&r->window) + guesses * r->pool.length;
    for (int i = 0; i <= best && draft->n < most && !ended; i++)
        ended = put_and_end(r, b, draft, out[i]);
    ref_step(&r->window, b->draft, &before, &r->pool);
    return ended;
}

// Source (b): a[j] and the target's argmax after it, then the one after a[j + 1] if they agree, ...
static void from_rejected(reference *r, const int32_t *a, const int32_t *after, int n)
{
    for (int j = 0; j < n; j++) {
        int32_t phrase[REF_DEEP];
        int m = 0;
        phrase[m] = after[j];
        while (m + 1 < r->pool.length && j + m + 1 < n && a[j + m + 1] == after[j + m]) {
            m++;
            phrase[m] = after[j + m];
        }
        if (m + 1 == r->pool.length)
            ref_add(&r->pool, a[j], phrase);
    }
}

// Verifies K phrases behind an accepted draft: the tokens that follow it in out[], how many; and
// corrects them.
static int verify_phrases(reference *r, const bench *b, const ref_text *draft, const int *at, int n,
                          int32_t *out)
{
    int best = 0, winner = -1;
    int32_t said[REF_DEEP];
    out[0] = say(b->target, draft);
    for (int k = 0; k < n; k++) {
        int hit = ref_follow(b->target, draft, r->pool.phrase[at[k]].token, usable(r->s), said);
        if (hit > best) {
            best = hit;
            winner = k;
            memcpy(out, said, sizeof said);
        }
    }
    for (int k = 0; k < n && on(r->s->verification); k++) {
        ref_text t = *draft;
        int32_t *phrase = r->pool.phrase[at[k]].token;
        if (k == winner && !strcmp(r->s->semantics, "paper"))
            continue;
        for (int i = 0; i < r->pool.length; i++) {
            int32_t token = say(b->target, &t);
            put(&t, phrase[i]);
            phrase[i] = token;
        }
    }
    return best + 1;
}

static bool emit(reference *r, const bench *b, const int32_t *out, int n, int *done)
{
    bool ended = false;
    for (*done = 0; *done < n && !ended; ++*done)
        ended = put_and_end(r, b, &r->text, out[*done]);
    r->histogram[*done - 1]++;
    return ended;
}

static bool round_of(reference *r, const bench *b)
{
    int all[REF_LIST], *tried = all, suffixes = 0, done, start = r->text.n;
    int32_t after[REF_WIDE], out[REF_WIDE];
    ref_text draft = r->text;
    bool draft_ends = false;
    while (draft.n < start + atoi(r->s->length) && !draft_ends)
        draft_ends = draft_on(r, b, &draft);
    int n = draft.n - start, accepted = 0;
    if (!draft_ends) {
        int have = ref_find(&r->pool, draft.token[draft.n - 1], all), most = atoi(r->s->phrases);
        suffixes = have < most ? have : most;
        tried = all + (have - suffixes);
    }
    r->width[n + suffixes * r->pool.length]++;
    for (int i = 0; i <= n; i++) {
        ref_text t = draft;
        t.n = start + i;
        after[i] = say(b->target, &t);
        r->matched += i < n && draft.token[start + i] == after[i];
    }
    while (accepted < n && draft.token[start + accepted] == after[accepted])
        accepted++;
    memcpy(out, draft.token + start, (size_t)n * sizeof *out);
    if (accepted < n) {
        out[accepted] = after[accepted];
        bool ended = emit(r, b, out, accepted + 1, &done);
        if (done == accepted + 1 && on(r->s->verification))
            from_rejected(r, draft.token + start + accepted, after + accepted + 1, n - accepted);
        return ended;
    }
    if (draft_ends)
        return emit(r, b, out, n, &done);
    n += verify_phrases(r, b, &draft, tried, suffixes, out + n);
    return emit(r, b, out, n, &done);
}

static void refer(reference *r, const bench *b, const dsc_drafter_input *in, int64_t tokens)
{
    dsc_token_view p = in->request->prompt;
    r->text.n = 0;
    r->end = (int)(p.count + tokens);
    if (!on(r->s->reuse) || in->request->index == 0)
        r->pool = (ref_pool){.length = atoi(r->s->level) - 1, .most = atoi(r->s->window)};
    ref_begin(&r->window, atoi(r->s->window), atoi(r->s->level), in);
    for (int64_t i = 0; i < p.count; i++)
        put(&r->text, p.id[i]);
    while (!round_of(r, b)) {
    }
}

static void it_is_what_was_described(void **state)
{
    (void)state;
    bench *b = ngram_bench(2, 7, 4);
    reference *r = calloc(1, sizeof *r);
    assert_non_null(r);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        dsc_config c = config(&settings[i]);
        dsc_history history = {0};
        memset(r, 0, sizeof *r);
        r->s = &settings[i];
        bench_clear(b);
        for (int64_t q = 0; q < 8; q++) {
            dsc_request request = {.index = q, .prompt = bench_prompt(b, q, 20)};
            dsc_drafter_input in = {.request = &request, .config = &c, .seed = 5};
            run_one(b, &c, &dsc_verifier_greedy, request.prompt, q, 100, 0, &history);
            refer(r, b, &in, 100);
            assert_int_equal(b->t.base.length, r->text.n - 20);
            assert_memory_equal(b->t.base.output, r->text.token + 20,
                                (size_t)b->t.base.length * sizeof(int32_t));
        }
        same_counts(b->histogram, r->histogram, RUN_HISTOGRAM, "histogram", name_of(&settings[i]));
        same_counts(b->width, r->width, RUN_WIDTH, "width", name_of(&settings[i]));
        const int64_t ours[] = {b->counts.draft_calls, b->counts.draft_call_tokens,
                                b->counts.extra[0]},
                      theirs[] = {r->draft_calls, r->draft_call_tokens, r->matched};
        same_counts(ours, theirs, 3, "draft calls, tokens in them, matches", name_of(&settings[i]));
        for (int64_t m = dsc_config_limit(&c) + 1; m < RUN_HISTOGRAM; m++)
            assert_int_equal(b->histogram[m], 0);
        for (int64_t m = dsc_config_width(&c); m < RUN_WIDTH; m++)
            assert_int_equal(b->width[m], 0);
        dsc_arena_fini(&history.arena);
    }
    free(r);
    bench_free(b);
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
        cmocka_unit_test_setup_teardown(it_is_what_was_described, make_scratch, remove_scratch),
        cmocka_unit_test(outputs_are_the_targets_own),
        cmocka_unit_test_setup_teardown(each_part_helps, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(runs_do_not_depend_on_threads, make_scratch,
                                        remove_scratch),
        cmocka_unit_test(orders_are_permutations),
        cmocka_unit_test_setup_teardown(orders_change_no_output, make_scratch, remove_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// Tests searches on planted functions, configurations by name, and the report on the best one: its
// objective, its interval, and the significance of its differences.
#include "tests/unit/tune_fixture.h"

#include "base/rng.h"
#include "base/statistics.h"
#include "sim/tune/bootstrap.h"

// --- searches ----------------------------------------------------------------------------------

enum { MOST_POINTS = 512 };

typedef struct planted {
    const double *value; // of every point, NaN: refused
    bool asked[MOST_POINTS];
    size_t different; // points that were asked for
} planted;

static int read_planted(void *user, const size_t *point, size_t n, double *value, dsc_error *err)
{
    planted *f = user;
    (void)err;
    for (size_t i = 0; i < n; i++) {
        assert_true(point[i] < MOST_POINTS);
        f->different += !f->asked[point[i]];
        f->asked[point[i]] = true;
        value[i] = f->value[point[i]];
    }
    return DSC_OK;
}

static dsc_search_result search(dsc_search_kind kind, size_t axes, const size_t *count,
                                const size_t *start, planted *f)
{
    dsc_error err;
    dsc_search_result out;
    const dsc_search s = {kind, axes, count, start, read_planted, f};
    *f = (planted){.value = f->value};
    assert_ok(dsc_search_run(&s, &out, &err), err);
    assert_true(out.value == f->value[out.best] || isnan(out.value));
    return out;
}

// A function that rises and falls: golden section finds its peak, wherever it is, with no more
// questions than the number of the first Fibonacci number beyond.
static void golden_finds_every_peak(void **state)
{
    (void)state;
    for (size_t n = 1; n <= 90; n++)
        for (size_t peak = 0; peak < n; peak++) {
            double value[MOST_POINTS];
            size_t most = 1, a = 1, b = 2, start = 0;
            for (size_t i = 0; i < n; i++)
                value[i] = i <= peak ? (double)(i * i) : (double)(peak * peak) - (double)(i - peak);
            for (; b < n + 1; most++) {
                size_t c = a + b;
                a = b;
                b = c;
            }
            planted f = {.value = value};
            dsc_search_result g = search(DSC_SEARCH_GOLDEN, 1, &n, &start, &f);
            assert_int_equal(g.best, peak);
            assert_int_equal(g.shape, DSC_SHAPE_PEAK);
            assert_true(f.different <= most);
            assert_int_equal(search(DSC_SEARCH_GRID, 1, &n, &start, &f).best, peak);
            assert_int_equal(f.different, n);
            assert_int_equal(search(DSC_SEARCH_COORDINATE, 1, &n, &start, &f).best, peak);
        }
}

static void golden_says_what_it_saw(void **state)
{
    (void)state;
    // The first points are the fifth and the last of eight values, and the fifth and the eighth of
    // nine.
    const double hidden[] = {1, 2, 9, 3, 1, 2, 3, 0}, dip[] = {0, 0, 0, 0, 3, 9, 2, 5, 4},
                 level[] = {1, 2, 3, 4, 4, 4, 4, 4};
    const size_t n = 8, nine = 9, start = 0;
    planted f = {.value = hidden};
    dsc_search_result g = search(DSC_SEARCH_GOLDEN, 1, &n, &start, &f);
    assert_int_equal(g.best, 2);
    assert_int_equal(g.shape, DSC_SHAPE_PEAK); // of what it asked for
    f.value = dip;
    g = search(DSC_SEARCH_GOLDEN, 1, &nine, &start, &f);
    assert_int_equal(g.best, 7); // and not 5
    assert_int_equal(g.shape, DSC_SHAPE_DIP);
    assert_int_equal(g.at, 6);
    f.value = level;
    g = search(DSC_SEARCH_GOLDEN, 1, &n, &start, &f);
    assert_int_equal(g.shape, DSC_SHAPE_FLAT);
    assert_true(g.value == 4);
}

// With axes that do not interact, coordinate search finds the grid's result from every start, with
// fewer points.
static void coordinate_on_separable(void **state)
{
    (void)state;
    const size_t count[] = {7, 5, 6};
    double value[210];
    for (uint64_t seed = 0; seed < 20; seed++) {
        for (size_t i = 0; i < 210; i++)
            value[i] = dsc_rng_uniform(seed, i / 30, 0, 1) +
                       dsc_rng_uniform(seed, i / 6 % 5, 1, 1) + dsc_rng_uniform(seed, i % 6, 2, 1);
        planted f = {.value = value};
        size_t best = search(DSC_SEARCH_GRID, 3, count, count, &f).best;
        for (size_t from = 0; from < 210; from += 11) {
            const size_t start[] = {from / 30, from / 6 % 5, from % 6};
            dsc_search_result r = search(DSC_SEARCH_COORDINATE, 3, count, start, &f);
            assert_int_equal(r.best, best);
            assert_true(r.rounds <= 2 && f.different <= 1 + 2 * (7 + 5 + 6));
        }
    }
}

// A ridge across the axes: it stops where no axis leads on, which is not the best of all.
static void coordinate_may_stop_early(void **state)
{
    (void)state;
    double value[25];
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++)
            value[5 * i + j] = i == j ? i : -10;
    const size_t count[] = {5, 5}, start[] = {1, 1};
    planted f = {.value = value};
    assert_int_equal(search(DSC_SEARCH_GRID, 2, count, start, &f).best, 24);
    dsc_search_result r = search(DSC_SEARCH_COORDINATE, 2, count, start, &f);
    assert_int_equal(r.best, 6);
    assert_int_equal(r.rounds, 1);
    assert_int_equal(f.different, 9);
    // Axes that do interact may need another round: the second axis opens the way for the first.
    const double two[] = {1, 2, 0, 3};
    const size_t pair[] = {2, 2}, zero[] = {0, 0};
    f.value = two;
    r = search(DSC_SEARCH_COORDINATE, 2, pair, zero, &f);
    assert_int_equal(r.best, 3);
    assert_int_equal(r.rounds, 3);
}

// Points without a value lose to all others; among equal ones the first stays.
static void refused_points(void **state)
{
    (void)state;
    const double value[] = {NAN, NAN, 1, 3, NAN, 3}, none[] = {NAN, NAN, NAN, NAN, NAN, NAN};
    const size_t count[] = {2, 3}, six = 6, start[] = {0, 0};
    planted f = {.value = value};
    assert_int_equal(search(DSC_SEARCH_GRID, 2, count, start, &f).best, 3);
    assert_int_equal(search(DSC_SEARCH_COORDINATE, 2, count, start, &f).best, 3);
    assert_true(search(DSC_SEARCH_GOLDEN, 1, &six, start, &f).value == 3);
    f.value = none;
    assert_true(isnan(search(DSC_SEARCH_GRID, 2, count, start, &f).value));
    assert_true(isnan(search(DSC_SEARCH_COORDINATE, 2, count, start, &f).value));
    assert_true(isnan(search(DSC_SEARCH_GOLDEN, 1, &six, start, &f).value));
}

// --- configurations ----------------------------------------------------------------------------

static void spaces(void **state)
{
    (void)state;
    dsc_error err;
    dsc_space s;
    dsc_buffer words = {0};
    const char *const over[] = {"length=4,8", "prompt-lookup-max=2..4", "ngram.length=5-6",
                                "semantics=transformers"};
    const char *const start[] = {"pld.prompt-lookup-max=4"};
    assert_ok(space_of(&s, &dsc_drafter_ngram, over, 4, start, 1, &err), err);
    assert_int_equal(s.total, 6); // its own lengths and not those for all
    assert_int_equal(s.axes, 2);
    assert_int_equal(s.axis_count[0], 2); // length was named first
    assert_int_equal(s.axis_start[0], 0); // the default, 10, is not in the list: its middle
    assert_int_equal(s.axis_start[1], 2);
    dsc_config c = dsc_space_at(&s, 4);
    assert_ok(dsc_space_words(&words, &s, &c, &err), err);
    assert_string_equal(words.data,
                        "num-speculative-tokens=6 prompt-lookup-max=3 semantics=transformers");
    dsc_buffer_fini(&words);
    dsc_space_fini(&s);

    const char *const texts[] = {"tree=eagle", "tree=medusa"};
    assert_ok(space_of(&s, &dsc_drafter_tree, texts, 2, NULL, 0, &err), err);
    assert_int_equal(s.total, 2);
    assert_string_equal(dsc_space_at(&s, 1).text[s.axis[0]], "medusa");
    dsc_space_fini(&s);
    assert_ok(space_of(&s, &dsc_drafter_none, NULL, 0, NULL, 0, &err), err);
    assert_int_equal(s.total, 1);
    c = dsc_space_at(&s, 0);
    assert_ok(dsc_space_words(&words, &s, &c, &err), err);
    assert_string_equal(words.data, "defaults");
    dsc_buffer_fini(&words);
    dsc_space_fini(&s);

    static const struct bad {
        const char *over[2], *start, *said;
    } bad[] = {{{"length=0"}, NULL, "is not an integer from 1"},
               {{"length=4:2"}, NULL, "is empty"},
               {{"length=4", "length=5"}, NULL, "given twice"},
               {{"length=1:1000000", "prompt-lookup-max=1:2"}, NULL, "more than 1000000"},
               {{"length=4,8"}, "length=5", "--start: 'length=5' is not a value"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(space_of(&s, &dsc_drafter_ngram, bad[i].over, bad[i].over[1] ? 2 : 1,
                                  &bad[i].start, bad[i].start != NULL, &err),
                         DSC_EUSAGE);
        if (!strstr(err.message, bad[i].said))
            fail_msg("%s", err.message);
    }
    const dsc_drafter_type *const both[] = {&dsc_drafter_ngram, &dsc_drafter_llma};
    assert_ok(dsc_space_check_start("llma.k=3", both, 2, &err), err);
    static const char *const wrong[] = {"k",         "k=",      "=3",        "chain.length=3",
                                        "ngram.n=3", "lenth=3", ".length=3", "length.ngram=3"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(dsc_space_check_start(wrong[i], both, 2, &err), DSC_EUSAGE);
    dsc_space_check_start("prompt-lookup-mx=3", both, 2, &err);
    assert_non_null(strstr(err.message, "did you mean prompt-lookup-max?"));
}

// --- what is reported --------------------------------------------------------------------------

static void splits(void **state)
{
    (void)state;
    dsc_error err;
    dsc_tune t, again;
    dsc_tune_options o = options(101, 0.3, 5);
    size_t same = 0;
    bool seen[101] = {false};
    assert_ok(dsc_tune_init(&t, &o, &err), err);
    assert_int_equal(t.selection, 30);
    assert_int_equal(t.test, 71);
    for (size_t i = 0; i < 101; i++) {
        assert_false(seen[t.request[i]]);
        seen[t.request[i]] = true;
        assert_true(i == 0 || i == 30 || t.request[i] > t.request[i - 1]);
    }
    assert_ok(dsc_tune_init(&again, &o, &err), err);
    assert_memory_equal(t.request, again.request, sizeof(int64_t[101]));
    dsc_tune_fini(&again);
    o.seed = 6;
    assert_ok(dsc_tune_init(&again, &o, &err), err);
    for (size_t i = 0; i < 30; i++)
        for (size_t j = 0; j < 30; j++)
            same += t.request[i] == again.request[j];
    assert_true(same < 30);
    dsc_tune_fini(&again);
    dsc_tune_fini(&t);
    o = options(2, 0.99, 0);
    assert_ok(dsc_tune_init(&t, &o, &err), err);
    assert_true(t.selection == 1 && t.test == 1);
    dsc_tune_fini(&t);
    o = options(20, 0.01, 0);
    assert_ok(dsc_tune_init(&t, &o, &err), err);
    assert_true(t.selection == 1 && t.test == 19);
    dsc_tune_fini(&t);
    o = options(1, 0.5, 0);
    assert_int_equal(dsc_tune_init(&t, &o, &err), DSC_EUSAGE);
    o = options(1, 0, 0);
    assert_ok(dsc_tune_init(&t, &o, &err), err);
    assert_true(t.selection == 1 && t.test == 1 && t.test_request[0] == 0);
    dsc_tune_fini(&t);
}

// Approximately Gaussian: 12 uniform numbers.
static double noise(uint64_t seed, size_t request, size_t configuration)
{
    double sum = -6;
    for (uint32_t i = 0; i < 12; i++)
        sum += dsc_rng_uniform(seed, request * 1000 + configuration, i, 1000);
    return sum;
}

// Where configurations differ by chance only, the one that is chosen looks better than it is on the
// requests that it was chosen on, and as good as it is on the others.
static void test_figure_is_unbiased(void **state)
{
    (void)state;
    enum { TIMES = 300, CONFIGURATIONS = 40, REQUESTS = 40 };
    const dsc_space space = {.drafter = &dsc_drafter_none, .total = 1};
    dsc_error err;
    double selection = 0, test = 0, squares = 0;
    for (uint64_t seed = 0; seed < TIMES; seed++) {
        dsc_tune t;
        dsc_trial *x;
        dsc_standing *s;
        dsc_tune_options o = options(REQUESTS, 0.5, seed);
        o.resamples = 4;
        assert_ok(dsc_tune_init(&t, &o, &err), err);
        for (size_t c = 0; c < CONFIGURATIONS; c++) {
            assert_ok(dsc_tune_add(&t, &space, c, &x, &err), err);
            for (size_t i = 0; i < REQUESTS; i++) {
                x->top[i] = 10 + noise(seed, i, c);
                x->bottom[i] = 1;
            }
        }
        assert_ok(dsc_tune_rank(&t, 0, 1, &s, &err), err);
        for (size_t c = 1; c < CONFIGURATIONS; c++)
            assert_true(s[c].selection <= s[c - 1].selection);
        selection += (s[0].selection - 10) / TIMES;
        test += (s[0].test - 10) / TIMES;
        squares += (s[0].test - 10) * (s[0].test - 10) / TIMES;
        free(s);
        dsc_tune_fini(&t);
    }
    double se = sqrt(squares / TIMES);
    assert_close(test, 0, 4 * se);
    assert_true(selection > 20 * se); // the greatest of 40 means: about 2.16 / sqrt(20)
    assert_close(selection, 2.16 / sqrt(20), 0.1);
}

// Requests of unequal length, of which one method saves a share: 95 % of the intervals hold the
// truth, of the ratio and of the ratio of ratios.
static void intervals_cover(void **state)
{
    (void)state;
    enum { TIMES = 800, REQUESTS = 100 };
    dsc_error err;
    int64_t all[REQUESTS];
    double top[REQUESTS], bottom[2][REQUESTS], held = 0, relative_held = 0, wide = 0, narrow = 0;
    for (size_t i = 0; i < REQUESTS; i++)
        all[i] = (int64_t)i;
    for (uint64_t seed = 0; seed < TIMES; seed++) {
        for (size_t i = 0; i < REQUESTS; i++) {
            top[i] = 100 * (1 + dsc_rng_uniform(seed, i, 0, 2000));
            // A share that requests differ in and both have, then one of each.
            double common = 0.5 + 0.3 * dsc_rng_uniform(seed, i, 1, 2000);
            bottom[0][i] = top[i] * (common + 0.04 * dsc_rng_uniform(seed, i, 2, 2000));
            bottom[1][i] = top[i] * (common + 0.04 * dsc_rng_uniform(seed, i, 3, 2000));
        }
        const dsc_ratio row[2] = {{top, bottom[0]}, {top, bottom[1]}};
        const dsc_resampling how = {all, REQUESTS, 400, seed, 1};
        dsc_ratio_interval out[2];
        assert_ok(dsc_bootstrap_ratios(&how, row, 2, &row[0], out, &err), err);
        double truth = 1 / (0.5 + 0.15 + 0.02);
        held += out[1].low <= truth && truth <= out[1].high;
        relative_held += out[1].relative_low <= 1 && 1 <= out[1].relative_high;
        wide += out[1].high - out[1].low;
        narrow += out[1].relative_high - out[1].relative_low;
        assert_true(out[0].relative_low == 1 && out[0].relative_high == 1);
    }
    double se = sqrt(0.95 * 0.05 / TIMES);
    assert_close(held / TIMES, 0.95, 4 * se);
    assert_close(relative_held / TIMES, 0.95, 4 * se);
    assert_true(narrow < wide / 3); // what both have in common cancels
}

// Equal rows never differ significantly, also when they were added up in another order; a small
// difference that every request has does.
static void test_significant(void **state)
{
    (void)state;
    enum { REQUESTS = 60 };
    const dsc_space space = {.drafter = &dsc_drafter_none, .total = 1};
    dsc_error err;
    dsc_tune t;
    dsc_trial *x;
    dsc_standing *s;
    dsc_tune_options o = options(REQUESTS, 0.5, 3);
    assert_ok(dsc_tune_init(&t, &o, &err), err);
    const double factor[] = {1, 1, 1 + 1e-14, 0.99};
    for (size_t c = 0; c < 4; c++) {
        assert_ok(dsc_tune_add(&t, &space, c, &x, &err), err);
        x->totals.output_tokens = 10;
        x->totals.num_draft_tokens = c == 1 ? 1 : 2;
        for (size_t i = 0; i < REQUESTS; i++) {
            x->top[i] = factor[c] * (1 + noise(1, i, 0) / 3);
            x->bottom[i] = 1;
        }
    }
    assert_ok(dsc_tune_rank(&t, 0, 1, &s, &err), err);
    for (size_t c = 0; c < 4; c++)
        assert_int_equal(s[c].significant, s[c].trial == 3);
    assert_int_equal(s[3].trial, 3);
    assert_close(s[3].ratio, 0.99, 1e-12);
    assert_true(s[0].trial == 2 && s[1].trial == 1 && s[2].trial == 0); // of equal: drafts less
    assert_true(s[1].low < s[1].test && s[1].test < s[1].high);
    free(s);
    dsc_tune_fini(&t);
}

// --- runs --------------------------------------------------------------------------------------

static void figures_are_those_of_a_run(void **state)
{
    (void)state;
    enum { REQUESTS = 12 };
    dsc_error err;
    dsc_space space;
    dsc_tune t;
    dsc_standing *s;
    const dsc_cost cost = {
        .type = &dsc_cost_linear, .fixed_s = 0.02, .per_token_s = 0.001, .draft_s = 0.003};
    const dsc_tune_price two[] = {{1, &cost}, {4, &unit}};
    const char *const over[] = {"length=0:6"};
    assert_ok(space_of(&space, &dsc_drafter_draft_model, over, 1, NULL, 0, &err), err);
    for (int objective = 0; objective < 3; objective++) {
        setting m = markov(REQUESTS, 2);
        m.run.workload = &m.load;
        dsc_tune_options o = options(REQUESTS, 0, 9);
        o.objective = (dsc_objective)objective;
        o.price = two;
        o.prices = 2;
        assert_ok(dsc_tune_init(&t, &o, &err), err);
        assert_ok(dsc_tune_run(&t, NULL, &space, &m.run, &err), err);
        assert_int_equal(t.trials, 7);
        for (size_t p = 0; p < 2; p++) {
            assert_ok(dsc_tune_rank(&t, p, 2, &s, &err), err);
            dsc_config best = dsc_space_at(&space, t.trial[s[0].trial].point);
            dsc_results r;
            assert_ok(dsc_run(NULL, &best, 1, &m.run, &r, &err), err);
            const dsc_counts *c = &r.counts[0];
            dsc_price run;
            assert_ok(dsc_price_run(&run, two[p].cost, c, two[p].batch, &err), err);
            double wanted = objective == DSC_OBJECTIVE_SPEEDUP      ? run.speedup
                            : objective == DSC_OBJECTIVE_THROUGHPUT ? run.tokens_per_s
                                                                    : dsc_block_efficiency(c);
            assert_close(s[0].test, wanted, 1e-12 * wanted);
            assert_true(s[0].selection == s[0].test);
            assert_close(dsc_trial_drafted(&t.trial[s[0].trial]),
                         (double)c->num_draft_tokens / (double)c->output_tokens, 1e-12);
            dsc_results_fini(&r);
            free(s);
        }
        dsc_tune_fini(&t);
        setting_fini(&m);
    }
    dsc_space_fini(&space);
}

typedef struct two_bootstraps {
    dsc_bootstrap b;
} two_bootstraps;

static int add_request(void *user, const dsc_request *q, const dsc_counts *counts, dsc_error *err)
{
    (void)err;
    dsc_bootstrap_add(&((two_bootstraps *)user)->b, q->index, counts->output_tokens,
                      counts->target_calls);
    return DSC_OK;
}

static void interval_is_that_of_sim(void **state)
{
    (void)state;
    enum { REQUESTS = 12 };
    dsc_error err;
    dsc_space space;
    dsc_tune t;
    dsc_standing *s;
    two_bootstraps b;
    double low, high;
    const char *const over[] = {"length=3"};
    setting m = markov(REQUESTS, 2);
    m.run.workload = &m.load;
    dsc_tune_options o = options(REQUESTS, 0, 9);
    o.objective = DSC_OBJECTIVE_BLOCK_EFFICIENCY;
    assert_ok(space_of(&space, &dsc_drafter_draft_model, over, 1, NULL, 0, &err), err);
    assert_ok(dsc_tune_init(&t, &o, &err), err);
    assert_ok(dsc_tune_run(&t, NULL, &space, &m.run, &err), err);
    assert_ok(dsc_tune_rank(&t, 0, 1, &s, &err), err);
    assert_ok(dsc_bootstrap_init(&b.b, o.resamples, o.seed, &err), err);
    dsc_config c = dsc_space_at(&space, 0);
    dsc_results r;
    m.run.request = add_request;
    m.run.user = &b;
    assert_ok(dsc_run(NULL, &c, 1, &m.run, &r, &err), err);
    assert_ok(dsc_bootstrap_interval(&b.b, &low, &high, &err), err);
    assert_true(low == s[0].low && high == s[0].high && low < high);
    dsc_results_fini(&r);
    dsc_bootstrap_fini(&b.b);
    free(s);
    dsc_tune_fini(&t);
    dsc_space_fini(&space);
    setting_fini(&m);
}

// Searches with fewer points find the grid's result here, and no result depends on threads.
static void searches_and_threads(void **state)
{
    (void)state;
    enum { REQUESTS = 40 };
    dsc_error err;
    dsc_space space;
    const dsc_cost cost = {
        .type = &dsc_cost_linear, .fixed_s = 0.02, .per_token_s = 0.0005, .draft_s = 0.004};
    const dsc_tune_price one = {1, &cost};
    const char *const over[] = {"length=0:12"}, *const start[] = {"length=12"};
    double best = 0, low = 0;
    assert_ok(space_of(&space, &dsc_drafter_draft_model, over, 1, start, 1, &err), err);
    for (int kind = 0; kind < 3; kind++)
        for (int threads = 1; threads <= 3; threads += 2) {
            dsc_tune t;
            dsc_standing *s;
            setting m = markov(REQUESTS, threads);
            m.run.workload = &m.load;
            dsc_tune_options o = options(REQUESTS, 0.5, 1);
            o.price = &one;
            o.search = (dsc_search_kind)kind;
            assert_ok(dsc_tune_init(&t, &o, &err), err);
            assert_ok(dsc_tune_run(&t, NULL, &space, &m.run, &err), err);
            assert_int_equal(t.reports, 1);
            assert_int_equal(t.report[0].tried, t.trials);
            assert_true(kind == DSC_SEARCH_GOLDEN ? t.trials <= 6 : t.trials == 13);
            assert_ok(dsc_tune_rank(&t, 0, threads, &s, &err), err);
            assert_int_equal(t.trial[s[0].trial].point, t.report[0].search.best);
            assert_true(t.report[0].search.value == s[0].selection);
            if (kind == 0 && threads == 1) {
                best = s[0].test;
                low = s[0].low;
            }
            assert_true(s[0].test == best && s[0].low == low && low < best);
            free(s);
            dsc_tune_fini(&t);
            setting_fini(&m);
        }
    dsc_space_fini(&space);
}

static void refusals(void **state)
{
    (void)state;
    dsc_error err;
    dsc_space space;
    dsc_tune t;
    setting m = markov(4, 1);
    m.load.draft = NULL;
    m.run.rule = NULL;
    m.run.workload = &m.load;
    m.load.temperature = 0;
    // The method refuses half of these, which is reported and is no failure.
    const char *const over[] = {"prompt-lookup-max=1,2", "prompt-lookup-min=1,2", "length=4"};
    assert_ok(space_of(&space, &dsc_drafter_ngram, over, 3, NULL, 0, &err), err);
    dsc_tune_options o = options(4, 0.5, 1);
    assert_ok(dsc_tune_init(&t, &o, &err), err);
    assert_ok(dsc_tune_run(&t, NULL, &space, &m.run, &err), err);
    assert_int_equal(t.trials, 3);
    assert_int_equal(t.refused, 1);
    assert_non_null(strstr(t.why_refused, "--prompt-lookup-min 2 exceeds --prompt-lookup-max 1"));
    dsc_tune_fini(&t);
    dsc_space_fini(&space);
    // A run that fails, fails.
    const char *const long_ones[] = {"length=1:2000"};
    assert_ok(space_of(&space, &dsc_drafter_draft_model, long_ones, 1, NULL, 0, &err), err);
    assert_ok(dsc_tune_init(&t, &o, &err), err);
    assert_int_equal(dsc_tune_run(&t, NULL, &space, &m.run, &err), DSC_EUSAGE);
    dsc_tune_fini(&t);
    // Nor is more memory taken than allowed.
    o = options(100000, 0.5, 1);
    assert_ok(dsc_tune_init(&t, &o, &err), err);
    assert_int_equal(dsc_tune_run(&t, NULL, &space, &m.run, &err), DSC_EUSAGE);
    assert_non_null(strstr(err.message, "1024 MiB"));
    dsc_tune_fini(&t);
    dsc_space_fini(&space);
    setting_fini(&m);
}

SUITE(tune)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_finds_every_peak),
        cmocka_unit_test(golden_says_what_it_saw),
        cmocka_unit_test(coordinate_on_separable),
        cmocka_unit_test(coordinate_may_stop_early),
        cmocka_unit_test(refused_points),
        cmocka_unit_test(spaces),
        cmocka_unit_test(splits),
        cmocka_unit_test(test_figure_is_unbiased),
        cmocka_unit_test(intervals_cover),
        cmocka_unit_test(test_significant),
        cmocka_unit_test(figures_are_those_of_a_run),
        cmocka_unit_test(interval_is_that_of_sim),
        cmocka_unit_test(searches_and_threads),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

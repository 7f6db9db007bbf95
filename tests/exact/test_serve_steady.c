// SPDX-License-Identifier: Apache-2.0
// Tests the measured window of the serving engine and the capacity that decides whether there is a
// steady state: rates are those of the arrivals, Little's formula holds between the window's means,
// the capacity is that of a queueing formula, and below it the number of requests in the system
// does not grow, above it it grows by the difference.
#include "sim/serve/serve_policy.h"
#include "sim/serve/serve_steady.h"
#include "tests/close.h"

#include <string.h>

enum { ITEMS = 50 };

typedef struct bench {
    dsc_serve_item item[ITEMS];
    dsc_cost cost;
    dsc_serve_price price;
    dsc_serve_policy policy;
    dsc_serve_pool pool;
    dsc_serve_options options;
    dsc_serve_totals totals;
} bench;

// Requests of 40 + 4 i prompt tokens and 30 + i output tokens; with drafts of 3 tokens.
static void prepare(bench *b, const char *cost, int32_t sequences, int32_t k)
{
    static const double survival[] = {.7, .5, .3};
    dsc_error err;
    *b = (bench){.price = {.prefill_s = NAN},
                 .options = {.requests = 1,
                             .max_num_seqs = sequences,
                             .max_num_batched_tokens = 2048,
                             .block_size = 16,
                             .slo_ttft_s = INFINITY,
                             .slo_tpot_s = INFINITY}};
    for (int i = 0; i < ITEMS; i++) {
        const int at = i * 19 % ITEMS; // long ones do not follow each other
        b->item[i] = (dsc_serve_item){.prompt = 40 + 4 * at, .output = 30 + at};
    }
    b->pool = (dsc_serve_pool){
        .item = b->item, .count = ITEMS, .survival = survival, .levels = 3, .seed = 5};
    assert_ok(dsc_cost_parse(&b->cost, cost, &err), err);
    assert_ok(dsc_serve_policy_parse(&b->policy, "fixed", k, &err), err);
    b->price.cost = &b->cost;
}

static void finish(bench *b)
{
    dsc_serve_totals_fini(&b->totals);
    dsc_serve_policy_fini(&b->policy);
    dsc_cost_fini(&b->cost);
}

static dsc_serve_capacity capacity_of(bench *b)
{
    dsc_error err;
    dsc_serve_capacity c;
    assert_ok(dsc_serve_capacity_find(&c, &b->pool, &b->price, &b->policy, &b->options, &err), err);
    return c;
}

// Serves; `arrivals` with this rate where that is not 0.
static void serve(bench *b, const char *text, double rate, int64_t ramp, int64_t requests)
{
    dsc_error err;
    dsc_arrivals a;
    assert_ok(dsc_arrivals_parse(&a, text, &err), err);
    a.rate = rate > 0 ? rate : a.rate;
    a.seed = 3;
    dsc_arrivals_settle(&a, ramp, requests);
    b->options.ramp = ramp;
    b->options.requests = requests;
    dsc_serve_totals_fini(&b->totals);
    assert_ok(dsc_serve_run(&b->totals, &b->pool, &a, &b->price, &b->policy, &b->options, &err),
              err);
}

static double seconds(const bench *b)
{
    return b->totals.end_s - b->totals.begin_s;
}

// One at a time: the reciprocal of the mean time of a request, which is a pass for each token.
static void one_at_a_time(void **state)
{
    (void)state;
    bench b;
    prepare(&b, "linear:.01,0", 1, 0);
    const dsc_serve_capacity c = capacity_of(&b);
    assert_close(c.qps, 1 / (.01 * 54.5), .002 * c.qps);
    assert_close(c.running, 1, .001);
    assert_close(c.alone_s, .01 * 54.5, .05 * c.alone_s);
    assert_false(c.bounded);
    finish(&b);
}

// S sequences and prefill that takes no step of its own: each is in every step from its prefill to
// its last token, so S / (steps of a request x seconds of a step).
static void many_at_a_time(void **state)
{
    (void)state;
    bench b;
    prepare(&b, "linear:.01,.001", 16, 0);
    b.price.prefill_s = 0;
    const dsc_serve_capacity c = capacity_of(&b);
    // A pass of n decoding sequences takes 10 + n ms; the others of the 16 prefill.
    const double decoding = 16 * (1 - 1 / 54.5), step_s = .01 + .001 * decoding;
    assert_close(c.running, 16, .01);
    assert_close(c.qps, 16 / (54.5 * step_s), .005 * c.qps);
    finish(&b);
}

// The change of the number in the system over the window, by the rates of arrivals.
static void drift(void **state)
{
    (void)state;
    static const struct {
        int32_t k, sequences;
        int64_t blocks;
    } engines[] = {{0, 8, 0}, {3, 8, 0}, {3, 32, 100}};
    for (size_t i = 0; i < sizeof engines / sizeof *engines; i++) {
        enum { REQUESTS = 8000 };
        bench b;
        prepare(&b, "linear:.01,.0005,.001", engines[i].sequences, engines[i].k);
        b.options.kv_blocks = engines[i].blocks;
        const dsc_serve_capacity c = capacity_of(&b);
        serve(&b, "poisson:1", .96 * c.qps, 1000, REQUESTS);
        assert_close((double)b.totals.completed, REQUESTS, .01 * REQUESTS);
        serve(&b, "poisson:1", 1.04 * c.qps, 1000, REQUESTS);
        assert_close(REQUESTS - (double)b.totals.completed, .04 / 1.04 * REQUESTS, .008 * REQUESTS);
        assert_close((double)b.totals.completed / seconds(&b), c.qps, .006 * c.qps);
        finish(&b);
    }
}

// In a steady state the window completes what arrives, and its means keep Little's formula with the
// times of the requests that arrived in it, but for the requests at its ends.
static void window(void **state)
{
    (void)state;
    static const char *const arrivals[] = {"poisson:4", "constant:4", "gamma:4,2"};
    for (size_t i = 0; i < sizeof arrivals / sizeof *arrivals; i++) {
        bench b;
        prepare(&b, "linear:.01,.0005,.001", 64, 3);
        serve(&b, arrivals[i], 0, 200, 3000);
        const dsc_serve_totals *t = &b.totals;
        assert_int_equal(t->measured, 3000);
        assert_int_equal(t->e2e.count, 3000);
        assert_int_equal(t->measured_tokens, 60 * (int64_t)(54.5 * ITEMS));
        assert_close(3000 / seconds(&b), 4, .002);
        assert_close((double)t->completed, 3000, 20);
        assert_close((t->running_area + t->waiting_area) / seconds(&b),
                     4 * dsc_latency_mean(&t->e2e), .01 * 4 * dsc_latency_mean(&t->e2e));
        assert_close(seconds(&b), t->idle_s + t->target_s + t->draft_s + t->overhead_s,
                     1e-9 * t->end_s);
        finish(&b);
    }
}

// A run that drains has all requests, all of the time, and nothing after them.
static void drain(void **state)
{
    (void)state;
    bench b;
    prepare(&b, "linear:.01,0", 1, 0);
    b.options.drain = true;
    serve(&b, "closed:3", 0, 0, ITEMS);
    assert_int_equal(b.totals.completed, ITEMS);
    assert_close(seconds(&b), .01 * 54.5 * ITEMS, 1e-9);
    b.options.drain = false; // a closed loop goes on: the last client is never alone
    b.options.max_num_seqs = 3;
    serve(&b, "closed:3", 0, 6, ITEMS);
    assert_close(b.totals.running_area / seconds(&b), 3, 1e-9);
    finish(&b);
}

// Gaps keep their mean in the measured part, and only there have they to.
static void settled(void **state)
{
    (void)state;
    static const char *const text[] = {"poisson:4", "gamma:4,0.5", "gamma:4,3"};
    dsc_error err;
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        dsc_arrivals a;
        double at = 0, begin = 0;
        assert_ok(dsc_arrivals_parse(&a, text[i], &err), err);
        a.seed = 8;
        dsc_arrivals_settle(&a, 100, 500);
        for (int64_t n = 0; n <= 600; n++) {
            at = dsc_arrivals_next(&a, n, at);
            begin = n == 100 ? at : begin;
        }
        assert_close(at - begin, 125, 1e-9);
        assert_true(fabs(a.rate - 4) > 1e-6);
    }
}

// A list begins again after its last time, at the mean distance.
static void repeated_list(void **state)
{
    (void)state;
    static const double time[] = {1, 2, 4, 7};
    const dsc_arrivals a = {.kind = DSC_ARRIVALS_LISTED, .rate = 2, .time = time, .times = 4};
    static const double expected[] = {.5, 1, 2, 3.5, 4.5, 5, 6, 7.5, 8.5};
    for (int64_t i = 0; i < 9; i++)
        assert_close(dsc_arrivals_next(&a, i, 0), expected[i], 1e-12);
    assert_close(dsc_arrivals_rate(&a), 1, 1e-12);
    const dsc_arrivals one = {.kind = DSC_ARRIVALS_LISTED, .rate = 2, .time = time, .times = 1};
    assert_true(isinf(dsc_arrivals_rate(&one)));
}

// A cost model whose times end at four sequences gives a lower bound.
static void bounded(void **state)
{
    (void)state;
    bench b;
    prepare(&b, "roofline:llama-3.1-8b,a100-80,gpu-memory-utilization=.21", 64, 0);
    for (int i = 0; i < ITEMS; i++)
        b.item[i].prompt += 400;
    const dsc_serve_capacity c = capacity_of(&b);
    const dsc_arrivals above = {.kind = DSC_ARRIVALS_POISSON, .rate = 1e6};
    assert_true(c.bounded && c.qps > 0 && c.running < 64);
    assert_false(dsc_serve_is_saturated(&c, &above));
    finish(&b);
}

// `off-above` is measured at the rate that is its capacity: with a limit above it, drafts stay on.
static void rate_of_arrivals(void **state)
{
    (void)state;
    dsc_error err;
    bench b;
    prepare(&b, "linear:.01,.0005,.001", 8, 3);
    const double on = capacity_of(&b).qps;
    dsc_serve_policy_fini(&b.policy);
    assert_ok(dsc_serve_policy_parse(&b.policy, "off-above:1e6", 3, &err), err);
    assert_close(capacity_of(&b).qps, on, .02 * on);
    finish(&b);
}

static void plans(void **state)
{
    (void)state;
    bench b;
    prepare(&b, "linear:.01,0", 1, 0);
    // Alone 1 s, at full load 4 s: at half of it 1 / (1 - .75 / 2) = 1.6 s.
    const dsc_serve_capacity c = {.qps = 10, .running = 40, .alone_s = 1};
    dsc_arrivals a = {.kind = DSC_ARRIVALS_POISSON, .rate = 5};
    dsc_serve_plan p = dsc_serve_plan_make(&c, &a, &b.pool, .02, 5000), q;
    assert_int_equal(p.ramp, 4 * (8 + 2));
    assert_int_equal(p.steady, 32);
    assert_int_equal(p.precise, (int64_t)ceil(pow(.465 / .02 / .5, 2)));
    assert_int_equal(dsc_serve_plan_requests(&p, &b.pool, 100000), 2150); // rounds of 50 items
    assert_int_equal(dsc_serve_plan_requests(&p, &b.pool, 1999), 1950);
    assert_int_equal(dsc_serve_plan_requests(&p, &b.pool, 30), 30);
    a.rate = 9.9; // as long as the engine needs to forget its begin
    q = dsc_serve_plan_make(&c, &a, &b.pool, .02, 5000);
    assert_close((double)q.steady, 2 / 1e-4, 2);
    a.rate = 9;
    q = dsc_serve_plan_make(&c, &a, &b.pool, .02, 5000);
    assert_close((double)q.steady, 2 / 1e-2, 2);
    a.rate = 9.99;
    q = dsc_serve_plan_make(&c, &a, &b.pool, .02, 5000);
    assert_int_equal(q.precise, 5000);
    dsc_serve_plan_join(&p, &q, 20000); // more than are worth it
    assert_int_equal(dsc_serve_plan_requests(&p, &b.pool, 1 << 30), 5000);
    a.rate = 9.88;
    q = dsc_serve_plan_make(&c, &a, &b.pool, .02, 5000);
    dsc_serve_plan_join(&p, &q, 20000);
    assert_close((double)p.steady, 2 / .012 / .012, 2);
    assert_int_equal(dsc_serve_plan_requests(&p, &b.pool, 1 << 30), 13900);
    a.rate = 11;
    assert_true(dsc_serve_is_saturated(&c, &a));
    a = (dsc_arrivals){.kind = DSC_ARRIVALS_CLOSED, .clients = 300};
    q = dsc_serve_plan_make(&c, &a, &b.pool, .02, 5000);
    assert_true(!dsc_serve_is_saturated(&c, &a) && q.ramp == 1200 && q.steady == 1200);
    finish(&b);
}

SUITE(serve_steady)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_at_a_time),
                                       cmocka_unit_test(many_at_a_time),
                                       cmocka_unit_test(drift),
                                       cmocka_unit_test(window),
                                       cmocka_unit_test(drain),
                                       cmocka_unit_test(settled),
                                       cmocka_unit_test(repeated_list),
                                       cmocka_unit_test(bounded),
                                       cmocka_unit_test(rate_of_arrivals),
                                       cmocka_unit_test(plans)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

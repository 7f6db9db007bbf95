// SPDX-License-Identifier: Apache-2.0
// Tests the serving engine against queueing formulas (Pollaczek-Khinchine, M/M/1), identities of
// every run (Little's law, conservation of tokens and KV blocks) and runs computed by hand.
#include "sim/serve/serve_policy.h"
#include "tests/close.h"

#include <string.h>

typedef struct bench {
    dsc_cost cost;
    dsc_serve_price price;
    dsc_arrivals arrivals;
    dsc_serve_policy policy;
    dsc_serve_pool pool;
    dsc_serve_options options;
    dsc_serve_totals totals;
} bench;

static void prepare(bench *b, const char *cost, const char *arrivals, const char *policy, int32_t k,
                    const dsc_serve_item *item, size_t items)
{
    dsc_error err;
    *b = (bench){.price = {.prefill_s = NAN},
                 .pool = {.item = item, .count = items, .seed = 5},
                 .options = {.requests = 1,
                             .drain = true,
                             .max_num_seqs = 256,
                             .max_num_batched_tokens = 2048,
                             .block_size = 16,
                             .slo_ttft_s = INFINITY,
                             .slo_tpot_s = INFINITY}};
    assert_ok(dsc_cost_parse(&b->cost, cost, &err), err);
    assert_ok(dsc_arrivals_parse(&b->arrivals, arrivals, &err), err);
    assert_ok(dsc_serve_policy_parse(&b->policy, policy, k, &err), err);
    b->arrivals.seed = 11;
    b->price.cost = &b->cost;
}

static void serve(bench *b)
{
    dsc_error err;
    assert_ok(
        dsc_serve_run(&b->totals, &b->pool, &b->arrivals, &b->price, &b->policy, &b->options, &err),
        err);
}

static void finish(bench *b)
{
    dsc_serve_totals_fini(&b->totals);
    dsc_serve_policy_fini(&b->policy);
    dsc_cost_fini(&b->cost);
}

// Means over batches of consecutive requests, whose spread gives the standard error of the whole.
enum { BATCHES = 40 };
typedef struct batches {
    int64_t first, each; // request; requests in a batch
    double limit;        // seconds, or 0
    double time[BATCHES], above[BATCHES];
} batches;

static int add_to_batch(void *user, const dsc_serve_sequence *s, dsc_error *err)
{
    batches *b = user;
    (void)err;
    const int64_t i = (s->number - b->first) / b->each;
    if (s->number < b->first || i >= BATCHES)
        return DSC_OK;
    b->time[i] += (s->last_s - s->arrival_s) / (double)b->each;
    b->above[i] += (s->last_s - s->arrival_s > b->limit) / (double)b->each;
    return DSC_OK;
}

// The mean of the batches is the expected one: within 4 standard errors, which are small.
static void assert_mean(const double *x, double expected, double share)
{
    double mean = 0, square = 0;
    for (int i = 0; i < BATCHES; i++) {
        mean += x[i] / BATCHES;
        square += x[i] * x[i] / BATCHES;
    }
    const double error = sqrt((square - mean * mean) / (BATCHES - 1));
    assert_true(error < share * expected);
    assert_close(mean, expected, 4 * error);
}

// The mean time in the system of M/G/1, first come first served: E[S] + l E[S^2] / (2 (1 - l
// E[S])).
static void pollaczek_khinchine(void **state)
{
    (void)state;
    static const dsc_serve_item item[] = {{.prompt = 10, .output = 1},
                                          {.prompt = 10, .output = 50},
                                          {.prompt = 10, .output = 9},
                                          {.prompt = 10, .output = 140}};
    static const char *const rate[] = {"poisson:1", "poisson:10", "poisson:15"};
    for (size_t r = 0; r < 3; r++) {
        bench b;
        batches of = {.first = 10000, .each = few_or_many(1000, 8000)};
        double mean = 0, square = 0;
        prepare(&b, "linear:.001,0", rate[r], "fixed", 0, item, 4);
        b.pool.shuffled = true;
        b.options.max_num_seqs = 1;
        b.options.requests = of.first + BATCHES * of.each;
        b.options.complete = add_to_batch;
        b.options.user = &of;
        for (size_t i = 0; i < 4; i++) { // a step emits one token, the prefill's among them
            const double s = .001 * item[i].output;
            mean += s / 4;
            square += s * s / 4;
        }
        serve(&b);
        const double load = b.arrivals.rate * mean;
        assert_mean(of.time, mean + b.arrivals.rate * square / (2 * (1 - load)),
                    few_or_many(5, 1) * (r < 2 ? .006 : .02));
        finish(&b);
    }
}

// M/M/1: the time in the system is exponential with rate mu - lambda.
static void exponential_service(void **state)
{
    (void)state;
    enum { ITEMS = 4000, STEPS = 200 };
    static dsc_serve_item item[ITEMS];
    static const double q[] = {.5, .9, .99};
    for (int i = 0; i < ITEMS; i++) // quantiles of an exponential distribution
        item[i] = (dsc_serve_item){.prompt = 1,
                                   .output = (int32_t)(1.5 - STEPS * log(1 - (i + .5) / ITEMS))};
    for (int i = 0; i < 3; i++) {
        bench b;
        batches of = {.first = 2000,
                      .each = few_or_many(500, 4000),
                      .limit = -log(1 - q[i]) / (1 / (STEPS * .001) - 2)};
        prepare(&b, "linear:.001,0", "poisson:2", "fixed", 0, item, ITEMS);
        b.pool.shuffled = true;
        b.options.max_num_seqs = 1;
        b.options.requests = of.first + BATCHES * of.each;
        b.options.complete = add_to_batch;
        b.options.user = &of;
        serve(&b);
        assert_mean(of.above, 1 - q[i], few_or_many(3, 1) * .1);
        finish(&b);
    }
}

typedef struct audit {
    int64_t steps, emitted, tokens;
    double e2e_s;
} audit;

static int on_step(void *user, const dsc_serve_engine *e, dsc_error *err)
{
    audit *a = user;
    int64_t blocks = 0, tokens = 0;
    (void)err;
    for (int64_t i = 0; i < e->running_count; i++) {
        const dsc_serve_sequence *s = &e->running[i];
        blocks += s->blocks;
        // Before the commit, `scheduled` is the number of emitted tokens.
        a->emitted += s->scheduled;
        assert_true(s->computed <= s->blocks * e->options->block_size || !e->options->kv_blocks);
        assert_true(s->emitted <= s->output);
    }
    tokens = e->step.decode_tokens + e->step.prefill_tokens;
    assert_true(tokens > 0 && tokens <= e->options->max_num_batched_tokens);
    assert_true(e->running_count <= e->options->max_num_seqs);
    assert_true(e->free_blocks >= 0);
    assert_int_equal(blocks + e->free_blocks, e->options->kv_blocks);
    a->tokens += tokens;
    a->steps++;
    return DSC_OK;
}

static int on_complete(void *user, const dsc_serve_sequence *s, dsc_error *err)
{
    audit *a = user;
    (void)err;
    assert_int_equal(s->emitted, s->output);
    assert_true(s->arrival_s <= s->first_s && s->first_s <= s->last_s);
    a->e2e_s += s->last_s - s->arrival_s;
    return DSC_OK;
}

// What the engine computed is in the KV caches of complete requests, was lost in a preemption, or
// was a rejected draft. A complete request has all of its tokens but the last in its cache.
static void assert_conserved(const dsc_serve_totals *t, const audit *a, int64_t prompts,
                             int64_t output)
{
    const int64_t rejected = t->num_draft_tokens - t->num_accepted_tokens;
    assert_int_equal(t->completed, 500);
    assert_int_equal(t->output_tokens, output);
    assert_int_equal(a->emitted, output);
    assert_int_equal(a->steps, t->steps);
    assert_int_equal(t->itl_token.count + t->ttft.count, output);
    assert_int_equal(a->tokens, prompts + output - t->completed + t->recomputed_tokens + rejected);
    assert_true(t->prefill_tokens >= prompts && (t->preemptions || t->prefill_tokens == prompts));
}

// Every combination of loads, limits and policies, with preemptions where the KV cache is limited:
// Little's law is an identity of the path, tokens and blocks are neither lost nor made.
static void identities(void **state)
{
    (void)state;
    static const double survival[] = {.8, .55, .4, .3, .2};
    static const char *const load[] = {"closed:1",  "closed:40",  "poisson:5",
                                       "gamma:5,3", "gamma:5,.5", "constant:20"};
    static const char *const policy[] = {"fixed",    "oracle", "schedule:1-4=5,5-12=2,13-=0",
                                         "adaptive", "ema",    "off-above:4,2"};
    enum { LOADS = 6, POLICIES = 6, LIMITS = 3 };
    static dsc_serve_item item[50];
    int64_t preemptions = 0;
    for (int i = 0; i < 50; i++)
        item[i] = (dsc_serve_item){.prompt = 1 + i * i % 331, .output = 1 + i * 37 % 160};
    for (int i = 0; i < LOADS * POLICIES * LIMITS * 2; i++) {
        const int limit = i / (LOADS * POLICIES) % LIMITS;
        const bool tight = i >= LOADS * POLICIES * LIMITS;
        bench b;
        audit a = {0};
        prepare(&b, "linear:.01,.0005,.001", load[i % LOADS], policy[i / LOADS % POLICIES], 5, item,
                50);
        b.pool.survival = survival;
        b.pool.levels = 5;
        b.price.drafting = DSC_SERVE_DRAFT_EACH;
        b.options.requests = 500;
        b.options.max_num_seqs = limit == 0 ? 256 : 9;
        b.options.max_num_batched_tokens = limit == 1 ? 64 : 2048;
        b.options.long_prefill_token_threshold = limit == 2 ? 50 : 0;
        b.options.kv_blocks = tight ? 40 : 0;
        b.options.lookahead = tight ? 5 : 0;
        b.options.step = on_step;
        b.options.complete = on_complete;
        b.options.user = &a;
        serve(&b);
        const dsc_serve_totals *t = &b.totals;
        int64_t output = 0, prompts = 0;
        for (int64_t r = 0; r < b.options.requests; r++) {
            output += item[r % 50].output;
            prompts += item[r % 50].prompt;
        }
        assert_conserved(t, &a, prompts, output);
        assert_close(t->running_area + t->waiting_area, a.e2e_s, 1e-9 * a.e2e_s);
        assert_close(t->e2e.sum, a.e2e_s, 1e-9 * a.e2e_s);
        assert_close(t->end_s - t->begin_s, t->idle_s + t->target_s + t->draft_s + t->overhead_s,
                     1e-9 * t->end_s);
        assert_true(tight || !t->preemptions);
        preemptions += t->preemptions;
        finish(&b);
    }
    assert_true(preemptions > 1000);
}

// The passes of a request that has the engine to itself, priced one after the other.
static double alone_s(const bench *b, const dsc_serve_item *item, int32_t k)
{
    double sum = 0;
    for (int32_t emitted = 0, drafted = 0, run = 0; emitted < item->output;) {
        double target, draft = 0;
        dsc_error err;
        const dsc_pass pass = {1 + drafted, item->prompt, 1, false};
        assert_ok(dsc_cost_target(&b->cost, pass, &target, &err), err);
        emitted += run + 1;
        const int32_t left = item->output - emitted - 1;
        if (left >= 0) {
            const dsc_serve_draft d = item->draft[emitted];
            drafted = d.available < k ? d.available : k;
            drafted = drafted < left ? drafted : left;
            run = d.run < drafted ? d.run : drafted;
            assert_ok(dsc_cost_drafts(&b->cost, pass, 1, drafted, drafted > 0, &draft, &err), err);
        }
        sum += target + draft;
    }
    return sum;
}

// With infinite resources a request takes the time that its passes take, to the last bit: all times
// are sums of powers of two. Its prefill is priced as the pass of one token.
static void alone(void **state)
{
    (void)state;
    enum { ITEMS = 64, MOST_OUTPUT = 90, APART = 4096 };
    static dsc_serve_draft draft[ITEMS][MOST_OUTPUT];
    static dsc_serve_item item[ITEMS];
    static double at[ITEMS];
    for (int i = 0; i < ITEMS; i++) {
        item[i] = (dsc_serve_item){
            .prompt = 1 + i * 53 % 400, .output = 1 + i * 29 % MOST_OUTPUT, .draft = draft[i]};
        at[i] = i * (double)APART;
        for (int t = 0; t < MOST_OUTPUT; t++) {
            const int available = (i + 3 * t) % 7;
            draft[i][t] =
                (dsc_serve_draft){(uint16_t)available, (uint16_t)((i * t) % (available + 1))};
        }
    }
    for (int32_t k = 0; k <= 5; k += 5)
        for (int i = 0; i < ITEMS; i++) { // one at a time, so that the mean is its time
            bench b;
            prepare(&b, "linear:.25,.0078125,.03125", "recorded", "fixed", k, item, ITEMS);
            b.arrivals.time = at;
            b.arrivals.times = ITEMS;
            b.price.drafting = DSC_SERVE_DRAFT_EACH;
            b.price.prefill_s = 0;
            b.options.requests = 1;
            b.options.ramp = i;
            serve(&b);
            assert_int_equal(b.totals.e2e.count, 1);
            assert_true(b.totals.e2e.sum == alone_s(&b, &item[i], k));
            finish(&b);
        }
}

// One client: prefill, then steps of 1 + 5 tokens; times are computed by hand.
static void one_client(void **state)
{
    (void)state;
    dsc_serve_draft draft[12] = {{0, 0}};
    const dsc_serve_item item = {.prompt = 100, .output = 12, .draft = draft};
    bench b;
    for (int i = 0; i < 12; i++)
        draft[i] = (dsc_serve_draft){5, 3};
    prepare(&b, "linear:.25,.0078125,.03125", "closed:1", "fixed", 5, &item, 1);
    b.price.drafting = DSC_SERVE_DRAFT_EACH;
    b.options.requests = 2;
    serve(&b);
    // Tokens 0; 1 to 4; 5 to 8; 9, 10 and, as the last one is the target's own, 11. Drafts are cut
    // to 5, 5 and 2 tokens; each is drafted in the step before.
    const double first = .25 + 100 * .0078125 + 5 * .03125,
                 second = .25 + 6 * .0078125 + 5 * .03125;
    const double third = .25 + 6 * .0078125 + 2 * .03125, last = .25 + 3 * .0078125;
    assert_int_equal(b.totals.steps, 8);
    assert_true(dsc_latency_mean(&b.totals.ttft) == first);
    assert_true(b.totals.end_s == 2 * (first + second + third + last));
    assert_int_equal(b.totals.num_draft_tokens, 2 * 12);
    assert_int_equal(b.totals.num_accepted_tokens, 2 * 8);
    finish(&b);
}

// Two requests share the engine; the second arrives during the prefill of the first, whose chunks
// leave it 4 tokens of a budget of 16.
static void chunks(void **state)
{
    (void)state;
    static const double at[] = {0, .5};
    const dsc_serve_item item[] = {{.prompt = 28, .output = 2}, {.prompt = 8, .output = 2}};
    bench b;
    prepare(&b, "linear:1,0", "recorded", "fixed", 0, item, 2);
    b.arrivals.time = at;
    b.arrivals.times = sizeof at / sizeof *at;
    b.options.requests = 2;
    b.options.max_num_seqs = 4;
    b.options.max_num_batched_tokens = 16;
    serve(&b);
    // [0, 1) 16 of the first; [1, 2) its other 12 and 4 of the second; [2, 3) one and 4; [3, 4)
    // one.
    assert_int_equal(b.totals.steps, 4);
    assert_true(b.totals.ttft.least == 2 && b.totals.ttft.most == 2.5);
    assert_true(b.totals.e2e.least == 3 && b.totals.e2e.most == 3.5);
    assert_int_equal(b.totals.prefill_tokens, 36);
    finish(&b);
}

// Two requests of 2 blocks in a cache of 3: the newer one is preempted when the older one needs its
// second block, and computes its prompt and its first token again.
static void preemption(void **state)
{
    (void)state;
    const dsc_serve_item item = {.prompt = 3, .output = 4};
    bench b;
    prepare(&b, "linear:1,0", "closed:2", "fixed", 0, &item, 1);
    b.options.requests = 2;
    b.options.block_size = 4;
    b.options.kv_blocks = 3;
    serve(&b);
    // Both compute 3 tokens, then a fourth; the fifth needs a block of which there is one.
    assert_int_equal(b.totals.preemptions, 1);
    assert_int_equal(b.totals.recomputed_tokens, 4);
    assert_int_equal(b.totals.prefill_tokens, 3 + 3 + 5);
    assert_int_equal(b.totals.steps, 5 + 1);
    finish(&b);
}

// A request waits until its whole prompt finds room, although a chunk of it would: without that
// rule the second one is admitted in the first step and preempted in the third.
static void admission(void **state)
{
    (void)state;
    const dsc_serve_item whole = {.prompt = 13, .output = 2}, one = {.prompt = 4, .output = 1};
    bench b;
    prepare(&b, "linear:1,0", "closed:2", "fixed", 0, &whole, 1);
    b.options.requests = 2;
    b.options.max_num_batched_tokens = 256;
    b.options.long_prefill_token_threshold = 4;
    b.options.block_size = b.options.kv_blocks = 4;
    serve(&b);
    assert_int_equal(b.totals.preemptions, 0);
    assert_int_equal(b.totals.steps, 2 * 5);
    finish(&b);
    // Room for drafts is reserved from the second step on: both requests are complete in the first.
    prepare(&b, "linear:1,0", "closed:2", "fixed", 0, &one, 1);
    b.options.requests = 2;
    b.options.block_size = b.options.lookahead = 4;
    b.options.kv_blocks = 3;
    serve(&b);
    assert_int_equal(b.totals.steps, 1);
    finish(&b);
}

static void refused(void **state)
{
    (void)state;
    dsc_error err;
    const dsc_serve_item item = {.prompt = 100, .output = 100};
    bench b;
    prepare(&b, "linear:1,0", "closed:2", "fixed", 0, &item, 1);
    b.options.kv_blocks = 12;
    assert_int_equal(
        dsc_serve_run(&b.totals, &b.pool, &b.arrivals, &b.price, &b.policy, &b.options, &err),
        DSC_EINPUT);
    assert_non_null(
        strstr(err.message, "request 0 has a prompt of 100 and an output of 100 tokens"));
    dsc_serve_totals_fini(&b.totals);
    b.options.max_num_batched_tokens = 255;
    assert_int_equal(
        dsc_serve_run(&b.totals, &b.pool, &b.arrivals, &b.price, &b.policy, &b.options, &err),
        DSC_EUSAGE);
    finish(&b);
    static const char *const bad[] = {
        "poisson", "poisson:0",      "poisson:1,2", "closed:1.5",       "closed:",
        "gamma:1", "gamma:1,0",      "recorded:2",  "recorded:x0",      "",
        "x:1",     "gamma:1,1e-320", "gamma:1,1e4", "recorded:x5e-321", "poisson:1e10"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(dsc_arrivals_parse(&b.arrivals, bad[i], &err), DSC_EUSAGE);
    static const char *const tiers[] = {
        "schedule",     "schedule:",           "schedule:2-=1",
        "schedule:1-4", "schedule:1-4=5,4-=0", "schedule:1-4=5,5-3=0",
        "fixed:1",      "schedule:1-4=5x",     "schedule:1-4=5,5-=1,",
        "nothing"};
    for (size_t i = 0; i < sizeof tiers / sizeof *tiers; i++)
        assert_int_equal(dsc_serve_policy_parse(&b.policy, tiers[i], 5, &err), DSC_EUSAGE);
}

// The gaps of each process have its mean and its coefficient of variation.
static void gaps(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double cv;
    } of[] = {{"poisson:4", 1}, {"gamma:4,.3", .3}, {"gamma:4,1", 1}, {"gamma:4,2.5", 2.5}};
    enum { N = 200000 };
    for (size_t p = 0; p < sizeof of / sizeof *of; p++) {
        dsc_arrivals a;
        dsc_error err;
        double last = 0, sum = 0, square = 0;
        assert_ok(dsc_arrivals_parse(&a, of[p].text, &err), err);
        a.seed = p;
        for (int64_t i = 0; i < N; i++) {
            const double next = dsc_arrivals_next(&a, i, last);
            sum += next - last;
            square += (next - last) * (next - last);
            last = next;
        }
        const double mean = sum / N, deviation = sqrt(square / N - mean * mean);
        assert_close(mean, .25, .25 * 4 * of[p].cv / sqrt(N));
        assert_close(deviation / mean, of[p].cv, .02 * of[p].cv);
    }
}

static void quantiles(void **state)
{
    (void)state;
    dsc_latency x;
    dsc_error err;
    assert_ok(dsc_latency_init(&x, &err), err);
    assert_true(isnan(dsc_latency_mean(&x)) && isnan(dsc_latency_quantile(&x, .5)));
    for (int i = 1; i <= 1000; i++)
        dsc_latency_add(&x, i * 1e-3, i == 1000 ? 1000 : 1);
    assert_close(dsc_latency_quantile(&x, .25), .5, .0005);
    assert_true(dsc_latency_quantile(&x, .75) == 1 && dsc_latency_quantile(&x, 1) == 1);
    assert_int_equal(dsc_latency_within(&x, .9), 900);
    assert_close(dsc_latency_mean(&x), (.001 * 999 * 1000 / 2 + 1000) / 1999, 1e-12);
    dsc_latency_add(&x, 0, 1);
    dsc_latency_add(&x, 1e12, 1);
    assert_true(dsc_latency_quantile(&x, 1) > 1e9 && x.least == 0);
    dsc_latency_fini(&x);
}

SUITE(serve)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pollaczek_khinchine),
        cmocka_unit_test(exponential_service),
        cmocka_unit_test(identities),
        cmocka_unit_test(alone),
        cmocka_unit_test(one_client),
        cmocka_unit_test(chunks),
        cmocka_unit_test(preemption),
        cmocka_unit_test(admission),
        cmocka_unit_test(refused),
        cmocka_unit_test(gaps),
        cmocka_unit_test(quantiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// Tests the policies of speculation: the adaptive one against all allocations, its forecast against
// the step that follows, SGLang's against a trace by hand; and what holds for each of them.
#include "sim/serve/serve_policy.h"

#include "sim/serve/serve_forecast.h"
#include "sim/serve/serve_regret.h"
#include "tests/close.h"

#include <string.h>

enum { MOST_SLOTS = 4, K = 4, OUTPUT = 24, ITEMS = 7 };

// A step function, as CUDA graphs are padded: the rate of tokens has several local maxima.
static int stairs(const dsc_cost *cost, dsc_pass pass, double *seconds, dsc_error *err)
{
    (void)err;
    *seconds = cost->fixed_s + cost->per_token_s * 5 * ceil(pass.tokens * pass.batch / 5 - 1e-9);
    return DSC_OK;
}

static int draft_pass(const dsc_cost *cost, dsc_pass pass, double *seconds, dsc_error *err)
{
    (void)err;
    *seconds = cost->draft_s * (1 + .1 * pass.batch) + 1e-6 * pass.context;
    return DSC_OK;
}

static const dsc_cost_type stairs_type = {.name = "stairs", .target = stairs, .draft = draft_pass};

typedef struct bench {
    dsc_cost cost;
    dsc_serve_price price;
    dsc_arrivals arrivals;
    dsc_serve_policy policy;
    dsc_serve_policy_type type; // of the policy, with functions that check it
    dsc_serve_pool pool;
    dsc_serve_options options;
    dsc_serve_totals totals;
} bench;

static const double survival[] = {.9, .7, .35, .2};
static dsc_serve_draft drafts[ITEMS][OUTPUT];
static float confidence[ITEMS][OUTPUT];
static dsc_serve_item item[ITEMS];

// Some items have recorded drafts, of several lengths, and some do not.
static void make_items(bool recorded)
{
    for (int i = 0; i < ITEMS; i++) {
        for (int t = 0; t < OUTPUT; t++) {
            const uint16_t available = (uint16_t)((i * 5 + t * 3) % (K + 1));
            drafts[i][t] = (dsc_serve_draft){available, (uint16_t)((i + t * t) % (available + 1))};
            confidence[i][t] = (float)((i * 7 + t * 11) % 17) / 16;
        }
        item[i] = (dsc_serve_item){.prompt = 9 + 13 * i % 30,
                                   .output = OUTPUT - i % 5,
                                   .draft = recorded && i % 3 ? drafts[i] : NULL,
                                   .confidence = confidence[i]};
    }
}

static void prepare(bench *b, const char *policy, const char *arrivals)
{
    dsc_error err;
    *b = (bench){.cost = {.type = &stairs_type, .fixed_s = .01, .per_token_s = .001},
                 .price = {.prefill_s = NAN, .drafting = DSC_SERVE_DRAFT_FREE, .overhead_s = .001},
                 .pool = {.item = item,
                          .count = ITEMS,
                          .survival = survival,
                          .levels = K,
                          .seed = 3,
                          .shuffled = true},
                 .options = {.requests = 60,
                             .drain = true,
                             .max_num_seqs = MOST_SLOTS,
                             .max_num_batched_tokens = 40,
                             .block_size = 16,
                             .slo_ttft_s = INFINITY,
                             .slo_tpot_s = INFINITY}};
    assert_ok(dsc_serve_policy_parse(&b->policy, policy, K, &err), err);
    assert_ok(dsc_arrivals_parse(&b->arrivals, arrivals, &err), err);
    b->arrivals.seed = 8;
    b->type = *b->policy.type;
    b->policy.type = &b->type;
}

static void serve(bench *b)
{
    dsc_error err;
    b->price.cost = &b->cost;
    assert_ok(
        dsc_serve_run(&b->totals, &b->pool, &b->arrivals, &b->price, &b->policy, &b->options, &err),
        err);
}

static void finish(bench *b)
{
    dsc_serve_totals_fini(&b->totals);
    dsc_serve_policy_fini(&b->policy);
}

// --- adaptive ------------------------------------------------------------------------------------

// A choice that the adaptive policy had: what may be drafted, and how it is valued.
typedef struct problem {
    const dsc_serve_engine *engine;
    dsc_serve_step step;
    int64_t sampled, count;
    int32_t usable[MOST_SLOTS], longest;
    double survival[MOST_SLOTS][K + 1]; // of the first k tokens
    int64_t drafted_context;
} problem;

static double rate_of(problem *p, const int32_t *k)
{
    dsc_error err;
    double expected = (double)p->sampled, target, draft;
    int64_t drafted = 0;
    dsc_serve_step *s = &p->step;
    s->longest = 0;
    for (int64_t i = 0; i < p->count; i++) {
        drafted += k[i];
        for (int32_t j = 1; j <= k[i]; j++)
            expected += p->survival[i][j];
        s->longest = k[i] > s->longest ? k[i] : s->longest;
    }
    // Every request that may use a draft of this depth has a part in the pass.
    memset(s->drafts, 0, sizeof s->drafts);
    for (int64_t i = 0; i < p->count; i++)
        for (int32_t j = 1; j <= p->usable[i]; j++)
            s->drafts[j]++;
    s->draft_context = p->drafted_context;
    s->decode_tokens += drafted;
    assert_ok(dsc_serve_target_time(p->engine->price, s, &target, &err), err);
    s->decode_tokens -= drafted;
    assert_ok(dsc_serve_draft_time(p->engine->price, s, &draft, &err), err);
    return expected / dsc_serve_step_time(p->engine->price, target, draft);
}

// The share of the recorded drafts that are accepted, counted for each depth on its own.
static double recorded_survival(int32_t depth)
{
    double all = 1;
    for (int32_t d = 1; d <= depth; d++) {
        int64_t tried = 0, accepted = 0;
        for (int i = 0; i < ITEMS; i++)
            for (int32_t t = 1; item[i].draft && t < item[i].output; t++) {
                const dsc_serve_draft *draft = &item[i].draft[t];
                const int32_t left = item[i].output - t - 1,
                              most = draft->available < left ? draft->available : left;
                tried += most >= d && draft->run >= d - 1;
                accepted += most >= d && draft->run >= d;
                t += draft->run < most ? draft->run : most; // on to the next step
            }
        all *= tried ? (double)accepted / (double)tried : 0;
    }
    return all;
}

enum { OF_ORACLE, OF_POSITION, OF_CONSTANT, OF_CALIBRATED }; // the confidences that are checked
static int confidences;
static int64_t choices, drafted_choices, short_choices;

static double survival_of(const dsc_serve_sequence *s, int32_t depth)
{
    if (confidences == OF_ORACLE)
        return depth <= s->run;
    if (confidences == OF_CONSTANT)
        return pow(.6, depth);
    if (confidences == OF_CALIBRATED) {
        double product = 1;
        for (int32_t d = 0; d < depth; d++)
            product *= (double)s->item->confidence[s->emitted + d];
        return product;
    }
    return s->draft ? recorded_survival(depth) : survival[depth - 1];
}

static void pose(problem *p, const dsc_serve_engine *e, dsc_serve_sequence *const *slot,
                 int64_t count)
{
    *p = (problem){.engine = e, .count = count};
    p->sampled = dsc_serve_forecast(e, &p->step);
    for (int64_t i = 0; i < count; i++) {
        for (int32_t k = 1; k <= slot[i]->most; k++) {
            p->survival[i][k] = survival_of(slot[i], k);
            p->usable[i] += p->survival[i][k] > 0;
        }
        p->drafted_context += p->usable[i] ? slot[i]->computed + 1 : 0;
    }
}

// All allocations, as numbers whose digits are the draft lengths.
static double best_rate(problem *p, int64_t room)
{
    double best = 0;
    for (int number = 0; number < (K + 1) * (K + 1) * (K + 1) * (K + 1); number++) {
        int32_t k[MOST_SLOTS];
        int64_t sum = 0;
        bool allowed = true;
        for (int i = 0, rest = number; i < MOST_SLOTS; i++, rest /= K + 1) {
            k[i] = rest % (K + 1);
            sum += k[i];
            allowed = allowed && k[i] <= (i < p->count ? p->usable[i] : 0);
        }
        if (allowed && sum <= room)
            best = fmax(best, rate_of(p, k));
    }
    return best;
}

static int choose_checked(dsc_serve_policy *policy, const dsc_serve_engine *e,
                          dsc_serve_sequence *const *slot, int64_t count, dsc_error *err)
{
    problem p;
    int32_t chosen[MOST_SLOTS], fixed[MOST_SLOTS];
    int64_t sum = 0, whole = 0;
    pose(&p, e, slot, count);
    const int64_t room = e->options->max_num_batched_tokens - p.step.decode_tokens;
    const int rc = dsc_serve_policy_adaptive.choose(policy, e, slot, count, err);
    for (int64_t i = 0; i < count; i++) {
        chosen[i] = slot[i]->k;
        sum += chosen[i];
        whole += p.usable[i];
        assert_in_range(chosen[i], 0, p.usable[i]);
    }
    if (!count)
        return rc;
    const double rate = rate_of(&p, chosen), best = best_rate(&p, room);
    assert_true(sum <= room);
    assert_close(rate, best, 1e-12 * best);
    for (int32_t k = 0; k <= K; k++) { // no fixed length is better
        int64_t tokens = 0;
        for (int64_t i = 0; i < count; i++)
            tokens += fixed[i] = p.usable[i] < k ? p.usable[i] : k;
        assert_true(tokens > room || rate_of(&p, fixed) <= rate * (1 + 1e-12));
    }
    choices++;
    drafted_choices += sum > 0;
    short_choices += sum < whole;
    return rc;
}

static void adaptive_is_best(void **state)
{
    (void)state;
    static const char *const text[] = {"adaptive:oracle", "adaptive", "adaptive:constant:.6",
                                       "adaptive:calibrated"};
    static const dsc_serve_drafting drafting[] = {DSC_SERVE_DRAFT_FREE, DSC_SERVE_DRAFT_ONCE,
                                                  DSC_SERVE_DRAFT_EACH};
    for (int n = 0; n < 4 * 3 * 2 * 2 * 2; n++) {
        bench b;
        confidences = n % 4;
        make_items(n / 12 % 2);
        prepare(&b, text[confidences], n / 24 % 2 ? "closed:6" : "poisson:4");
        b.type.choose = choose_checked;
        b.price.drafting = drafting[n / 4 % 3];
        b.price.overlap = n / 48 && n % 2;
        b.cost.draft_s = .002;
        b.cost.per_token_s = n % 4 < 2 ? .001 : .003;
        b.options.max_num_batched_tokens = n / 48 ? 9 : 40;
        b.price.prefill_s = n % 5 ? NAN : .0005;
        choices = drafted_choices = short_choices = 0;
        serve(&b);
        assert_true(choices > 100 && drafted_choices > 10);
        assert_true(short_choices > 10 || confidences == OF_ORACLE);
        finish(&b);
    }
}

// --- forecast ------------------------------------------------------------------------------------

static dsc_serve_step forecast;
static bool forecasted;
static int64_t calls;

static int choose_none(dsc_serve_policy *policy, const dsc_serve_engine *e,
                       dsc_serve_sequence *const *slot, int64_t count, dsc_error *err)
{
    (void)policy, (void)err;
    for (int64_t i = 0; i < count; i++)
        slot[i]->k = 0;
    dsc_serve_forecast(e, &forecast);
    forecasted = true;
    calls++;
    return DSC_OK;
}

static dsc_serve_step expected_step;
static bool expecting;
static int64_t compared;

static int compare_step(void *user, const dsc_serve_engine *e, dsc_error *err)
{
    (void)user, (void)err;
    if (expecting) {
        assert_int_equal(e->step.decoding, expected_step.decoding);
        assert_int_equal(e->step.decode_tokens, expected_step.decode_tokens);
        assert_int_equal(e->step.decode_context, expected_step.decode_context);
        assert_int_equal(e->step.prefilling, expected_step.prefilling);
        assert_int_equal(e->step.prefill_tokens, expected_step.prefill_tokens);
        assert_int_equal(e->step.prefill_context, expected_step.prefill_context);
        compared++;
    }
    expecting = forecasted;
    expected_step = forecast;
    return DSC_OK;
}

// Where all requests have arrived, the forecast is the next step. A policy is called in every step.
static void forecast_is_next_step(void **state)
{
    (void)state;
    static const double at_once[60] = {0};
    make_items(true);
    for (int n = 0; n < 8; n++) {
        bench b;
        prepare(&b, "fixed", "recorded");
        b.arrivals.time = at_once;
        b.arrivals.times = sizeof at_once / sizeof *at_once;
        b.type.choose = choose_none;
        b.options.step = compare_step;
        b.options.max_num_batched_tokens = n % 2 ? 7 : 40;
        b.options.long_prefill_token_threshold = n & 2 ? 5 : 0;
        b.options.block_size = 64; // one for each request, so that none is preempted
        b.options.kv_blocks = n & 4 ? 3 : 0;
        expecting = forecasted = false;
        compared = calls = 0;
        serve(&b);
        assert_int_equal(calls, b.totals.steps);
        assert_int_equal(compared, b.totals.steps - 1);
        assert_int_equal(b.totals.preemptions, 0);
        finish(&b);
    }
}

// --- the other policies --------------------------------------------------------------------------

// The draft length of `next` requests after a batch of `size`, two of which had drafts and accepted
// x and y tokens; x < 0: there were no drafts.
static int32_t after_batch_of(dsc_serve_policy *policy, int64_t size, int x, int y, int64_t next)
{
    dsc_error err;
    dsc_serve_engine e = {.step = {.decoding = size}};
    dsc_serve_sequence s = {.most = 100, .k = 100}, *slot[100];
    for (int i = 0; i < 100; i++)
        slot[i] = &s;
    if (x >= 0)
        policy->type->observe(policy, &s, 7, x);
    if (x >= 0)
        policy->type->observe(policy, &s, 7, y);
    assert_ok(policy->type->choose(policy, &e, slot, next, &err), err);
    return s.k;
}

static int32_t after_batch(dsc_serve_policy *policy, int x, int y)
{
    return after_batch_of(policy, 2, x, y, 2);
}

static dsc_serve_policy parse(const char *text, int32_t k)
{
    dsc_error err;
    dsc_serve_policy policy;
    assert_ok(dsc_serve_policy_parse(&policy, text, k, &err), err);
    if (policy.type->begin)
        assert_ok(policy.type->begin(&policy, NULL, &err), err);
    return policy;
}

static void ema_by_hand(void **state)
{
    (void)state;
    dsc_error err;
    dsc_serve_policy policy = parse("ema:candidate_steps=1/3/7", 7);
    assert_int_equal(policy.k, 7);
    for (int run = 0; run < 2; run++) {
        assert_ok(policy.type->begin(&policy, NULL, &err), err);
        // From 6, the average moves to 3 + 3 0.8^15 = 3.106 in 15 batches, above 3 - 0.75.
        for (int batch = 1; batch <= 15; batch++)
            assert_int_equal(after_batch(&policy, 4, 2), 7);
        // 1.018 in batch 20 is at most 3 - 0.75, and above 1 - 0.75; so is 0.333 in batch 25; 0.109
        // in batch 30 is not.
        for (int batch = 16; batch <= 30; batch++)
            assert_int_equal(after_batch(&policy, 0, 0), batch < 20 ? 7 : batch < 30 ? 3 : 1);
        // 0.708 in batch 35 is above 1 - 0.5.
        for (int batch = 31; batch <= 35; batch++)
            assert_int_equal(after_batch(&policy, 1, 1), batch < 35 ? 1 : 3);
    }
    dsc_serve_policy_fini(&policy);
    policy = parse("ema:ema_alpha=1,update_interval=1,warmup_batches=0,down_hysteresis=0,"
                   "candidate_steps=8/5/2,up_hysteresis=0.5",
                   9);
    // 9 is no candidate: the one in the middle is first.
    assert_int_equal(after_batch(&policy, 5, 5), 5); // not above 5
    assert_int_equal(after_batch(&policy, 6, 5), 8);
    assert_int_equal(after_batch(&policy, 2, 2), 5); // at most 5 - 0.5, above 2 - 0.5
    assert_int_equal(after_batch(&policy, 2, 1), 2);
    // From 2 the length may rise by more than one candidate, and it does not rise where it fell.
    assert_int_equal(after_batch(&policy, 9, 9), 8);
    dsc_serve_policy_fini(&policy);
    policy = parse("ema:candidate_steps=1/4,ema_alpha=1,update_interval=1,warmup_batches=0,"
                   "ceiling_coeff=1,down_hysteresis=-3",
                   4);
    assert_int_equal(after_batch(&policy, 4, 3), 4); // ceil(3.5)
    assert_int_equal(after_batch(&policy, 3, 3), 1); // 3 is above 1 - 3.5, but 4 above the ceiling
    dsc_serve_policy_fini(&policy);
}

// The default slots: 1/3/5/7 for up to 7 requests, 0/1/3 from 8, 0/1 from 32, 0 from 64 on.
static void ema_slots(void **state)
{
    (void)state;
    dsc_serve_policy policy = parse("ema", 3);
    assert_int_equal(after_batch_of(&policy, 1, 1, 1, 7),
                     3); // 5 and 7 are longer than the method's
    assert_int_equal(after_batch_of(&policy, 1, 1, 1, 8), 3);
    assert_int_equal(after_batch_of(&policy, 1, 1, 1, 32), 1);
    assert_int_equal(after_batch_of(&policy, 1, 1, 1, 63), 1);
    assert_int_equal(after_batch_of(&policy, 1, 1, 1, 64), 0);
    dsc_serve_policy_fini(&policy);
    // Falls to 0 when the average is at most 0.5: 2 0.8^7 = 0.419, at the 15th batch 2 0.8^15. Then
    // five batches without drafts, the smallest length for five, and nothing again.
    policy = parse("ema", 3);
    for (int batch = 1; batch <= 40; batch++) {
        const bool drafted =
            batch <= 15 || (batch > 20 && batch <= 25) || (batch > 30 && batch <= 35);
        const int32_t k = after_batch_of(&policy, 8, drafted ? 0 : -1, 0, 8);
        const bool next =
            batch < 15 || (batch >= 20 && batch < 25) || (batch >= 30 && batch < 35) || batch == 40;
        assert_int_equal(k, next ? (batch < 15 ? 3 : 1) : 0);
    }
    dsc_serve_policy_fini(&policy);
    policy = parse("ema:update_interval=1,bs=4,candidate_steps=2/6,bs=9,candidate_steps=0/5", 9);
    assert_int_equal(after_batch_of(&policy, 1, 1, 1, 1), 6); // below the first slot, the first
    assert_int_equal(after_batch_of(&policy, 1, 1, 1, 8), 6);
    assert_int_equal(after_batch_of(&policy, 1, 1, 1, 9), 5);
    dsc_serve_policy_fini(&policy);
}

static void check_schedule(const char *text, int32_t k, const int32_t *expected, int64_t sizes)
{
    dsc_error err;
    dsc_serve_policy policy = parse(text, k);
    assert_int_equal(policy.k, k);
    for (int64_t size = 1; size <= sizes; size++) {
        const dsc_serve_engine engine = {
            .running_count = 99, .step = {.decoding = size / 2, .prefilling = size - size / 2}};
        dsc_serve_sequence a = {.most = 100, .k = 100}, b = {.most = 2, .k = 2};
        dsc_serve_sequence *slot[] = {&a, &b};
        assert_ok(policy.type->choose(&policy, &engine, slot, 2, &err), err);
        assert_int_equal(a.k, expected[size - 1]);
        assert_int_equal(b.k, expected[size - 1] < 2 ? expected[size - 1] : 2);
    }
    dsc_serve_policy_fini(&policy);
}

static void schedule_tiers(void **state)
{
    (void)state;
    check_schedule("schedule:1-4=5,5-6=3,7-=0", 5, (int32_t[]){5, 5, 5, 5, 3, 3, 0, 0, 0}, 9);
    check_schedule("schedule:[[1,4,5],[5,6,3],[7,7,0]]", 4, (int32_t[]){4, 4, 4, 4, 3, 3, 0, 0}, 8);
    // Gaps and the end go on with the range before them.
    check_schedule("schedule:1-1=2,4-5=0,8-8=1", 9, (int32_t[]){2, 2, 2, 0, 0, 0, 0, 1, 1}, 9);
    check_schedule("schedule:[[1, 2, 3], [5, 6, 0]]", 9, (int32_t[]){3, 3, 3, 3, 0, 0, 0}, 7);
}

// Whether a draft is made when `arrived` requests have arrived at `now`.
static bool drafts_at(dsc_serve_policy *policy, double now_s, int64_t arrived)
{
    dsc_error err;
    const dsc_serve_engine engine = {.now_s = now_s, .arrived = arrived};
    dsc_serve_sequence s = {.most = 3, .k = 3}, *slot[] = {&s};
    assert_ok(policy->type->choose(policy, &engine, slot, 1, &err), err);
    return s.k > 0;
}

static void off_above(void **state)
{
    (void)state;
    dsc_error err;
    dsc_serve_policy policy;
    const dsc_serve_engine start = {.now_s = 100};
    assert_ok(dsc_serve_policy_parse(&policy, "off-above:5", 3, &err), err);
    for (int run = 0; run < 2; run++) {
        assert_ok(policy.type->begin(&policy, &start, &err), err);
        assert_true(drafts_at(&policy, 100.5, 20));
        assert_true(drafts_at(&policy, 101.5, 50));  // 5 per second of the window
        assert_false(drafts_at(&policy, 103.5, 51)); // 5.1
        assert_false(drafts_at(&policy, 109.9, 51));
        assert_true(drafts_at(&policy, 110.1, 51)); // the first 20 have left the window
        assert_false(drafts_at(&policy, 110.2, 72));
        assert_true(drafts_at(&policy, 900, 73));
    }
    dsc_serve_policy_fini(&policy);
    assert_ok(dsc_serve_policy_parse(&policy, "off-above:5,2", 3, &err), err);
    assert_ok(policy.type->begin(&policy, &start, &err), err);
    assert_true(drafts_at(&policy, 100.5, 10));
    assert_false(drafts_at(&policy, 100.6, 11));
    dsc_serve_policy_fini(&policy);
}

static const char *const all[] = {"fixed",
                                  "oracle",
                                  "schedule:1-2=4,3-=1",
                                  "adaptive",
                                  "adaptive:oracle",
                                  "off-above:2",
                                  "adaptive:constant:.5",
                                  "adaptive:calibrated",
                                  "ema:warmup_batches=3,candidate_steps=1/2"};

// Each draft bounds the tokens that are accepted after a position of a request: all policies have
// to agree on them.
static struct {
    int32_t least, most;
} accepted_after[60][OUTPUT];
static void (*observe_inner)(dsc_serve_policy *, dsc_serve_sequence *, int32_t, int32_t);
static int64_t request_tokens[60];

static void observe_accepted(dsc_serve_policy *policy, dsc_serve_sequence *s, int32_t k,
                             int32_t accepted)
{
    const int32_t at = s->emitted - accepted - 1;
    int32_t *least = &accepted_after[s->number][at].least;
    int32_t *most = &accepted_after[s->number][at].most;
    *least = accepted > *least ? accepted : *least;
    *most = accepted < k && accepted < *most ? accepted : *most;
    assert_true(*least <= *most);
    if (observe_inner)
        observe_inner(policy, s, k, accepted);
}

static int count_request(void *user, const dsc_serve_sequence *s, dsc_error *err)
{
    (void)user, (void)err;
    assert_true(!request_tokens[s->number] || request_tokens[s->number] == s->emitted);
    request_tokens[s->number] = s->emitted;
    return DSC_OK;
}

static void same_tokens(void **state)
{
    (void)state;
    make_items(true);
    memset(request_tokens, 0, sizeof request_tokens);
    for (int i = 0; i < 60; i++)
        for (int t = 0; t < OUTPUT; t++) {
            accepted_after[i][t].least = 0;
            accepted_after[i][t].most = K;
        }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int limited = 0; limited < 2; limited++) {
            bench b;
            prepare(&b, all[i], "closed:5");
            observe_inner = b.type.observe;
            b.type.observe = observe_accepted;
            b.options.complete = count_request;
            b.options.kv_blocks = limited ? 5 : 0;
            serve(&b);
            assert_true(b.totals.num_draft_tokens > 0);
            assert_int_equal(b.totals.completed, 60);
            assert_true(!limited || b.totals.preemptions > 0);
            finish(&b);
        }
}

// Mean end-to-end latency of a policy on a load with room for all requests.
static double latency_of(const char *policy, int32_t k, const char *load,
                         dsc_serve_reference *reference)
{
    bench b;
    dsc_error err;
    prepare(&b, "fixed", load);
    dsc_serve_policy_fini(&b.policy);
    assert_ok(dsc_serve_policy_parse(&b.policy, policy, k, &err), err);
    assert_ok(dsc_cost_parse(&b.cost, "linear:.01,.0004,.0005", &err), err);
    b.price.cost = &b.cost;
    b.price.drafting = DSC_SERVE_DRAFT_ONCE;
    b.options.requests = 400;
    b.options.max_num_seqs = 64;
    b.options.max_num_batched_tokens = 512;
    serve(&b);
    if (reference)
        assert_ok(
            dsc_serve_reference_run(reference, K, &b.pool, &b.arrivals, &b.price, &b.options, &err),
            err);
    const double seconds = dsc_latency_mean(&b.totals.e2e);
    finish(&b);
    return seconds;
}

static void regrets(void **state)
{
    (void)state;
    static const char *const load[] = {"closed:1", "closed:8", "closed:64", "poisson:2"};
    make_items(false);
    for (int n = 0; n < 4; n++) {
        dsc_serve_reference r;
        double best = INFINITY;
        int32_t best_k = -1;
        const double oracle = latency_of("oracle", K, load[n], &r);
        for (int32_t k = 0; k <= K; k++) {
            const double seconds = latency_of("fixed", k, load[n], NULL);
            best_k = seconds < best ? k : best_k;
            best = fmin(best, seconds);
        }
        assert_true(r.oracle_s == oracle && r.fixed_s == best);
        assert_int_equal(r.best_k, best_k);
        const double adaptive = latency_of("adaptive", K, load[n], NULL);
        assert_true(dsc_serve_regret(adaptive, r.fixed_s) < .01);
        assert_true(latency_of("adaptive:oracle", K, load[n], NULL) < fmin(best, adaptive));
        assert_true(dsc_serve_regret(best, r.fixed_s) == 0);
        assert_close(dsc_serve_regret(1.1 * oracle, r.oracle_s), .1, 1e-12);
    }
}

static void refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"adaptive:",
                                      "adaptive:constant:1.1",
                                      "adaptive:constant:",
                                      "adaptive:constant:.5x",
                                      "ema:",
                                      "ema:ema_alpha=.2,",
                                      "ema:ema_alpha=2",
                                      "ema:ema_alpha=nan",
                                      "ema:update_interval=0",
                                      "ema:update_interval=1.5",
                                      "ema:candidate_steps=",
                                      "ema:candidate_steps=1.5",
                                      "ema:candidate_steps=9/8", // above K
                                      "ema:bs=4",
                                      "ema:bs=4,candidate_steps=1,bs=4,candidate_steps=2",
                                      "ema:steps=1",
                                      "schedule",
                                      "schedule:",
                                      "schedule:2-4=1",
                                      "schedule:1-4=1,4-5=2",
                                      "schedule:1-4=1,",
                                      "schedule:4-1=1",
                                      "schedule:[[1,4,5]",
                                      "schedule:[1,4,5]]",
                                      "schedule:[[1,4]]",
                                      "schedule:1-99999999=1",
                                      "off-above",
                                      "off-above:",
                                      "off-above:-1",
                                      "off-above:5,",
                                      "off-above:5,0",
                                      "off-above:inf",
                                      "oracle:1",
                                      "fixed:2"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dsc_error err;
        dsc_serve_policy policy;
        if (dsc_serve_policy_parse(&policy, bad[i], K, &err) != DSC_EUSAGE)
            fail_msg("%s is accepted", bad[i]);
        assert_non_null(strstr(err.message, "--speculation"));
    }
}

SUITE(serve_policy)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adaptive_is_best), cmocka_unit_test(forecast_is_next_step),
        cmocka_unit_test(ema_by_hand),      cmocka_unit_test(ema_slots),
        cmocka_unit_test(schedule_tiers),   cmocka_unit_test(off_above),
        cmocka_unit_test(same_tokens),      cmocka_unit_test(regrets),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// The adaptive policy against a search that prices every choice on its own, to the last bit, over
// random engines; isotonic regression against its min-max formula; and the times of many passes
// against single ones.
#include "sim/serve/isotonic.h"
#include "sim/serve/serve_forecast.h"
#include "sim/serve/serve_policy.h"
#include "tests/close.h"

#include <stdlib.h>
#include <string.h>

enum { ITEMS = 9, OUTPUT = 30, K = 6, SEQUENCES = 12, SLOTS = SEQUENCES * K };

static uint64_t state = 88172645463325252u;
static uint32_t pick(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 11) % n);
}

// --- every choice on its own ---------------------------------------------------------------------

typedef struct slot {
    double survival;
    int64_t request;
    int32_t depth;
} slot;

static int by_survival(const void *a, const void *b)
{
    const slot *x = a, *y = b;
    if (x->survival != y->survival)
        return x->survival > y->survival ? -1 : 1;
    if (x->request != y->request)
        return x->request < y->request ? -1 : 1;
    return (x->depth > y->depth) - (x->depth < y->depth);
}

static enum { POSITION, CALIBRATED, ORACLE, CONSTANT } kind;
static double shared[K]; // of ORACLE and CONSTANT; POSITION of recorded drafts

static double survival_at(const dsc_serve_engine *e, const dsc_serve_sequence *s, int32_t depth)
{
    double product = 1;
    if (kind == ORACLE)
        return depth <= s->run;
    for (int32_t d = 0; kind == CALIBRATED && d < depth; d++)
        product *= (double)s->item->confidence[s->emitted + d];
    if (kind == CALIBRATED)
        return product;
    if (kind == POSITION && s->item->survival)
        return s->item->survival[depth - 1];
    return kind == POSITION && !s->draft ? e->pool->survival[depth - 1] : shared[depth - 1];
}

static size_t list_slots(const dsc_serve_engine *e, dsc_serve_sequence *const *sequence,
                         int64_t count, dsc_serve_step *step, slot *out)
{
    size_t n = 0;
    memset(step->drafts, 0, sizeof step->drafts);
    step->longest = 0;
    step->draft_context = 0;
    for (int64_t i = 0; i < count; i++) {
        const size_t before = n;
        for (int32_t d = 1; d <= sequence[i]->most; d++) {
            const double survival = survival_at(e, sequence[i], d);
            if (survival <= 0)
                break;
            out[n++] = (slot){survival, i, d};
            step->drafts[d]++;
            step->longest = d > step->longest ? d : step->longest;
        }
        step->draft_context += n > before ? sequence[i]->computed + 1 : 0;
    }
    qsort(out, n, sizeof *out, by_survival);
    return n;
}

// Tokens per second of the first `slots` slots of at most `limit` tokens' depth.
static double rate_of(const dsc_serve_engine *e, dsc_serve_step step, const slot *s, size_t slots,
                      int32_t limit, int64_t sampled)
{
    dsc_error err;
    double expected = 0, target, draft = 0;
    for (size_t i = 0; i < slots; i++) {
        step.decode_tokens += s[i].depth <= limit;
        expected += s[i].depth <= limit ? s[i].survival : 0;
    }
    step.longest = limit;
    assert_ok(dsc_serve_target_time(e->price, &step, &target, &err), err);
    // The passes of the draft model follow the step at hand.
    memcpy(&step, &e->step, offsetof(dsc_serve_step, draft_context));
    if (limit)
        assert_ok(dsc_serve_draft_time(e->price, &step, &draft, &err), err);
    return ((double)sampled + expected) / dsc_serve_step_time(e->price, target, draft);
}

static void choose_slowly(const dsc_serve_engine *e, dsc_serve_sequence *const *sequence,
                          int64_t count, int32_t *k)
{
    static dsc_serve_step step;
    static slot s[SLOTS];
    const int64_t sampled = dsc_serve_forecast(e, &step);
    const size_t n = list_slots(e, sequence, count, &step, s);
    const int64_t room = e->options->max_num_batched_tokens - step.decode_tokens;
    const int32_t first = e->price->drafting == DSC_SERVE_DRAFT_EACH ? 1 : step.longest;
    double best = rate_of(e, step, s, 0, 0, sampled);
    size_t best_slots = 0;
    int32_t best_limit = 0;
    for (size_t slots = 1; slots <= n; slots++)
        for (int32_t limit = first; limit <= step.longest; limit++) {
            int64_t taken = 0;
            for (size_t i = 0; i < slots; i++)
                taken += s[i].depth <= limit;
            if (s[slots - 1].depth > limit || taken > room)
                continue;
            const double rate = rate_of(e, step, s, slots, limit, sampled);
            if (rate > best) {
                best = rate;
                best_slots = slots;
                best_limit = limit;
            }
        }
    memset(k, 0, (size_t)count * sizeof *k);
    for (size_t i = 0; i < best_slots; i++)
        k[s[i].request] += s[i].depth <= best_limit;
}

static int64_t compared, drafted;

static int choose_compared(dsc_serve_policy *policy, const dsc_serve_engine *e,
                           dsc_serve_sequence *const *sequence, int64_t count, dsc_error *err)
{
    int32_t k[SEQUENCES];
    if (count)
        choose_slowly(e, sequence, count, k);
    const int rc = dsc_serve_policy_adaptive.choose(policy, e, sequence, count, err);
    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(sequence[i]->k, k[i]);
        drafted += k[i];
        compared++;
    }
    return rc;
}

// --- random engines ------------------------------------------------------------------------------

// A step function, as CUDA graphs are padded, without times of many passes at once.
static int stairs(const dsc_cost *cost, dsc_pass pass, double *seconds, dsc_error *err)
{
    (void)err;
    *seconds = cost->fixed_s + cost->per_token_s * 4 * ceil(pass.tokens * pass.batch / 4 - 1e-9);
    return DSC_OK;
}

static int draft_pass(const dsc_cost *cost, dsc_pass pass, double *seconds, dsc_error *err)
{
    (void)err;
    *seconds = cost->draft_s * (1 + .1 * pass.batch) + 1e-6 * pass.context;
    return DSC_OK;
}

static const dsc_cost_type stairs_type = {.name = "stairs", .target = stairs, .draft = draft_pass};
static dsc_serve_draft drafts[ITEMS][OUTPUT];
static float confidence[ITEMS][OUTPUT];
static double own[ITEMS][K], pooled[K];
static dsc_serve_item item[ITEMS];

static void fill_falling(double *survival)
{
    double product = 1;
    for (int d = 0; d < K; d++) // ties, and none at times
        survival[d] = product *= pick(4) ? (pick(3) ? .5 + pick(50) / 100. : 1) : pick(2);
}

static void fill_items(void)
{
    const bool recorded = pick(2), rates = pick(3) == 0, close = pick(3) == 0;
    fill_falling(pooled);
    for (int i = 0; i < ITEMS; i++) {
        fill_falling(own[i]);
        for (int t = 0; t < OUTPUT; t++) {
            const uint16_t available = (uint16_t)pick(K + 1);
            drafts[i][t] = (dsc_serve_draft){available, (uint16_t)pick(available + 1u)};
            confidence[i][t] = pick(4) ? (float)(pick(8) + 1) / 8 : (float)pick(1000) / 1000;
            if (close)
                confidence[i][t] = 1 - (float)pick(8) / 4096;
        }
        item[i] = (dsc_serve_item){.prompt = 1 + (int32_t)pick(40),
                                   .output = 1 + (int32_t)pick(OUTPUT),
                                   .draft = recorded || pick(3) ? drafts[i] : NULL,
                                   .confidence = confidence[i],
                                   .survival = rates && pick(2) ? own[i] : NULL};
    }
}

// The curve of `position` over steps with the longest draft, counted for each depth on its own.
static void count_shared(void)
{
    double product = 1;
    for (int d = 1; d <= K; d++) {
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
        shared[d - 1] = product *= tried ? (double)accepted / (double)tried : 0;
        if (kind == CONSTANT)
            shared[d - 1] = pow(.75, d);
    }
}

static void make_cost(dsc_cost *cost)
{
    static const char *const text[] = {"linear:.01,.0007,.002",
                                       "roofline:llama-3.1-8b,eagle3,a100-80",
                                       "roofline:mixtral-8x7b,llama-3.1-8b,h100,tp=4"};
    dsc_error err;
    const uint32_t which = pick(4);
    *cost = (dsc_cost){
        .type = &stairs_type, .fixed_s = .01, .per_token_s = .0012, .draft_s = pick(2) * 2e-3};
    if (which < 3)
        assert_ok(dsc_cost_parse(cost, text[which], &err), err);
}

static void serve_random(void)
{
    static const char *const policy[] = {"adaptive", "adaptive:calibrated", "adaptive:oracle",
                                         "adaptive:constant:.75"};
    dsc_error err;
    dsc_cost cost;
    dsc_serve_policy p;
    dsc_serve_totals totals;
    dsc_arrivals arrivals;
    kind = pick(4);
    make_cost(&cost);
    fill_items();
    count_shared();
    const dsc_serve_pool pool = {
        .item = item, .count = ITEMS, .survival = pooled, .levels = K, .seed = pick(99)};
    const dsc_serve_price price = {.cost = &cost,
                                   .drafting = (dsc_serve_drafting)pick(3),
                                   .overlap = pick(4) == 0,
                                   .overhead_s = pick(2) * .001,
                                   .prefill_s = pick(2) ? NAN : .0004};
    const dsc_serve_options options = {.requests = 30,
                                       .drain = true,
                                       .max_num_seqs = 1 + (int32_t)pick(SEQUENCES),
                                       .max_num_batched_tokens = SEQUENCES + (int32_t)pick(60),
                                       .block_size = 16,
                                       .slo_ttft_s = INFINITY,
                                       .slo_tpot_s = INFINITY};
    assert_ok(dsc_serve_policy_parse(&p, policy[kind], K, &err), err);
    assert_ok(dsc_arrivals_parse(&arrivals, pick(2) ? "closed:9" : "poisson:20", &err), err);
    dsc_serve_policy_type type = *p.type;
    type.choose = choose_compared;
    // Its functions are static; the type is only copied to wrap one of them.
    p.type = &type;
    assert_ok(dsc_serve_run(&totals, &pool, &arrivals, &price, &p, &options, &err), err);
    dsc_serve_totals_fini(&totals);
    dsc_serve_policy_fini(&p);
    dsc_cost_fini(&cost);
}

static void same_decisions(void **unused)
{
    (void)unused;
    compared = drafted = 0;
    for (int n = 0; n < 300; n++)
        serve_random();
    assert_true(compared > 50000 && drafted > 20000);
}

// --- the times of many passes --------------------------------------------------------------------

static void same_times(void **unused)
{
    (void)unused;
    enum { COUNT = 50 };
    for (int n = 0; n < 300; n++) {
        dsc_cost cost;
        dsc_error err;
        double together[COUNT];
        make_cost(&cost);
        const dsc_serve_price price = {.cost = &cost,
                                       .drafting = (dsc_serve_drafting)pick(3),
                                       .prefill_s = pick(2) ? NAN : .0004};
        dsc_serve_step step = {.decoding = pick(9), .decode_tokens = 20, .prefilling = pick(2)};
        step.decode_context = step.decoding * (int64_t)pick(900);
        step.prefill_tokens = step.prefilling * 77;
        step.prefill_context = step.prefilling * (int64_t)pick(50);
        if (!step.decoding)
            step.decode_tokens = 0;
        if (step.decoding + step.prefilling) {
            const size_t count = 1 + pick(COUNT);
            assert_ok(dsc_serve_target_times(&price, &step, count, together, &err), err);
            for (size_t i = 0; i < count; i++, step.decode_tokens++) {
                double one;
                assert_ok(dsc_serve_target_time(&price, &step, &one, &err), err);
                assert_true(one == together[i]);
            }
        }
        dsc_cost_fini(&cost);
    }
}

// --- isotonic regression -------------------------------------------------------------------------

// max over i <= x of the min over j >= x of the mean of [i, j].
static double min_max(const dsc_isotonic_sample *s, int count, int x)
{
    double most = 0;
    for (int i = 0; i <= x; i++) {
        double least = 1, sum = 0;
        if (i && s[i].score == s[i - 1].score)
            continue; // equal scores are together
        for (int j = i; j < count; j++) {
            sum += s[j].success;
            if (j >= x && (j + 1 == count || s[j + 1].score > s[j].score))
                least = fmin(least, sum / (j - i + 1));
        }
        most = fmax(most, least);
    }
    return most;
}

static void isotonic(void **unused)
{
    (void)unused;
    enum { MOST = 30 };
    for (int n = 0; n < 2000; n++) {
        dsc_isotonic_sample s[MOST];
        dsc_isotonic fit;
        dsc_error err;
        const int count = 1 + (int)pick(MOST);
        for (int i = 0; i < count; i++) {
            s[i].score = pick(20) / 10.;
            s[i].success = pick(20) < 4 + 6 * s[i].score;
        }
        assert_ok(dsc_isotonic_fit(&fit, s, (size_t)count, &err), err);
        for (int i = 0; i < count; i++)
            assert_close(dsc_isotonic_value(&fit, s[i].score), min_max(s, count, i), 1e-15);
        for (size_t b = 1; b < fit.blocks; b++)
            assert_true(fit.from[b] > fit.from[b - 1] && fit.value[b] > fit.value[b - 1]);
        assert_true(dsc_isotonic_value(&fit, -1) == fit.value[0]);
        assert_true(dsc_isotonic_value(&fit, 9) == fit.value[fit.blocks - 1]);
        dsc_isotonic_fini(&fit);
    }
}

SUITE(serve_adaptive)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_decisions),
        cmocka_unit_test(same_times),
        cmocka_unit_test(isotonic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

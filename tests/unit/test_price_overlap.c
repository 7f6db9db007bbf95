// SPDX-License-Identifier: Apache-2.0
// The price of a batch whose sequences draft while the target verifies (PEARL), against a
// simulation of its events: every sequence has a state of its own, a pass covers the tokens of all,
// a step waits for the longest draft and for the pass, and a rollback costs its own sequence alone.
#include "sim/cost/price.h"
#include "tests/close.h"

#include <string.h>

enum { WINDOW = 6, SIZE = WINDOW + 1 };

static uint64_t draw(uint64_t *state) // SplitMix64
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static double uniform(uint64_t *state)
{
    return (double)(draw(state) >> 11) * 0x1p-53;
}

typedef struct step {
    int calls, width, emitted;
} step;

// One step of a sequence. `pending`: its window is verified in this step, else only the first token
// of the next one (sim/draft/pearl.c). Some steps end an output and draft less.
static step advance(bool *pending, double rate, uint64_t *seed)
{
    step s = {WINDOW, *pending ? WINDOW : 1, 0};
    while (s.emitted < s.width && uniform(seed) < rate)
        s.emitted++;
    *pending = s.emitted == s.width;
    if (!*pending)
        s.emitted++; // the correction
    if (uniform(seed) < 0.15) {
        s.calls = (int)(draw(seed) % SIZE);
        *pending = false;
    }
    return s;
}

// Seconds per token of all sequences together.
static double simulate(const dsc_cost *cost, int batch, double rate, int steps, uint64_t seed)
{
    bool pending[64] = {false};
    double time = 0, tokens = 0, draft, target;
    dsc_error err = {0};
    for (int i = 0; i < steps; i++) {
        int calls = 0, width = 0;
        for (int b = 0; b < batch; b++) {
            const step s = advance(&pending[b], rate, &seed);
            calls = s.calls > calls ? s.calls : calls;
            width += s.width;
            tokens += s.emitted;
        }
        dsc_pass pass = {1, 500, batch, true};
        assert_ok(dsc_cost_draft(cost, pass, &draft, &err), err);
        pass.tokens = (double)width / batch;
        assert_ok(dsc_cost_target(cost, pass, &target, &err), err);
        time += fmax(calls * draft, target);
    }
    return time / tokens;
}

typedef struct run {
    int64_t parallel[SIZE * SIZE];
    dsc_counts counts;
} run;

// The counts of one sequence.
static void count(run *r, double rate, int steps, uint64_t seed)
{
    bool pending = false;
    *r = (run){.counts = {.parallel_length = SIZE}};
    r->counts.parallel_steps = r->parallel;
    for (int i = 0; i < steps; i++) {
        const step s = advance(&pending, rate, &seed);
        r->parallel[s.calls * SIZE + s.width - 1]++;
        r->counts.output_tokens += s.emitted;
        r->counts.draft_calls += s.calls;
        r->counts.target_call_tokens += s.width;
    }
    r->counts.target_calls = steps;
    r->counts.target_call_context = 500 * r->counts.target_calls;
    r->counts.output_context = 500 * r->counts.output_tokens;
}

// Costs where the pass, the draft, or now one and now the other is longer.
static const char *const costs[] = {
    "linear:0.01,0.0001,0.001",
    "linear:0.001,0.0005,0.004",
    "linear:0.004,0.0004,0.0022",
    "roofline:vicuna-7b,qwen2.5-0.5b,rtx-4090,memory=1000",
};

static void a_batch_costs_what_its_events_cost(void **state)
{
    (void)state;
    static const int batches[] = {1, 2, 8, 32};
    const int steps = quick_part(200000, 40000);
    dsc_error err = {0};
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++)
        for (double rate = 0.4; rate < 1; rate += 0.25)
            for (size_t b = 0; b < 4; b++) {
                dsc_cost cost;
                dsc_price price;
                run r;
                count(&r, rate, 5 * steps, 17);
                assert_ok(dsc_cost_parse(&cost, costs[i], &err), err);
                assert_ok(dsc_price_run(&price, &cost, &r.counts, batches[b], &err), err);
                const double truth =
                    simulate(&cost, batches[b], rate, steps / batches[b] + 5000, 5);
                // Standard errors of tokens per step are below 0.4 % for the simulated steps.
                assert_close(1 / (price.tokens_per_s * truth), 1, 0.012);
                dsc_cost_fini(&cost);
            }
}

// One sequence: the sum over its steps. Alike steps: any batch is that of the same pass.
static void alike_steps_are_priced_by_hand(void **state)
{
    (void)state;
    dsc_error err = {0};
    dsc_cost cost;
    dsc_price p;
    run r = {.counts = {.parallel_length = SIZE, .target_calls = 10, .output_tokens = 20}};
    r.counts.parallel_steps = r.parallel;
    r.parallel[WINDOW * SIZE + 2] = 10; // 6 calls, 3 tokens
    assert_ok(dsc_cost_parse(&cost, "linear:0.01,0.001,0.002", &err), err);
    for (int64_t batch = 1; batch <= 64; batch *= 2) {
        assert_ok(dsc_price_run(&p, &cost, &r.counts, batch, &err), err);
        const double target = 0.01 + 0.003 * (double)batch;
        assert_close(p.time_s, 10 * fmax(0.012, target), 1e-12);
        assert_close(p.draft_s, 10 * 0.012, 1e-12);
        assert_close(p.verify_s, 10 * target, 1e-12);
        assert_close(p.plain_s, 20 * (0.01 + 0.001 * (double)batch), 1e-12);
    }
    // Half of the steps draft nothing: two sequences wait in three of four steps.
    r.parallel[WINDOW * SIZE + 2] = 5;
    r.parallel[0 * SIZE + 2] = 5;
    cost.per_token_s = 0;
    assert_ok(dsc_price_run(&p, &cost, &r.counts, 2, &err), err);
    assert_close(p.time_s, 10 * (0.75 * 0.012 + 0.25 * 0.01), 1e-12);
    assert_close(p.draft_s, 10 * 0.75 * 0.012, 1e-12);
}

// The speedups of nano-PEARL fall from batch size 1 to 32 by 0.62 to 0.66 (docs/limits.md). A
// roofline with an engine's shares falls, the bound does not.
static void batches_slow_pearl_down(void **state)
{
    (void)state;
    static const char pair[] = "roofline:qwen2.5-72b,qwen2.5-1.5b,h200,tp=2";
    double fall[2];
    run r;
    count(&r, 0.87, 200000, 3);
    for (int bound = 0; bound < 2; bound++) {
        char text[100];
        dsc_error err = {0};
        dsc_cost cost;
        dsc_price one, many;
        snprintf(text, sizeof text, "%s%s", pair, bound ? ",efficiency=1,overhead=0" : "");
        assert_ok(dsc_cost_parse(&cost, text, &err), err);
        assert_ok(dsc_price_run(&one, &cost, &r.counts, 1, &err), err);
        assert_ok(dsc_price_run(&many, &cost, &r.counts, 32, &err), err);
        fall[bound] = many.speedup / one.speedup;
        dsc_cost_fini(&cost);
    }
    assert_true(fall[0] < 0.85);
    assert_true(fall[1] > 0.95);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_costs_what_its_events_cost),
        cmocka_unit_test(alike_steps_are_priced_by_hand),
        cmocka_unit_test(batches_slow_pearl_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// Tests the closed form of a closed loop's throughput against the serving engine and its limits.
#include "sim/serve/mean_field.h"
#include "sim/serve/serve_policy.h"
#include "tests/close.h"

static const double step_s = .01, prefill_s = 1e-4; // of a step, of a prefill token

typedef struct loop {
    int clients, requests, ramp, prompt, output, k;
} loop;

static void serve(dsc_serve_totals *t, const loop *l)
{
    static const double survival[] = {.75, .5, .4};
    const dsc_serve_item item = {.prompt = l->prompt, .output = l->output};
    const dsc_serve_pool pool = {
        .item = &item, .count = 1, .survival = survival, .levels = 3, .seed = 7};
    const dsc_arrivals arrivals = {.kind = DSC_ARRIVALS_CLOSED, .clients = l->clients};
    const dsc_cost cost = {.type = &dsc_cost_linear, .fixed_s = step_s};
    const dsc_serve_price price = {.cost = &cost, .prefill_s = prefill_s};
    const dsc_serve_options options = {.requests = l->requests,
                                       .ramp = l->ramp,
                                       .drain = !l->ramp,
                                       .max_num_seqs = 256,
                                       .max_num_batched_tokens = 2048,
                                       .block_size = 16,
                                       .slo_ttft_s = INFINITY,
                                       .slo_tpot_s = INFINITY};
    dsc_serve_policy policy;
    dsc_error err;
    assert_ok(dsc_serve_policy_parse(&policy, "fixed", l->k, &err), err);
    assert_ok(dsc_serve_run(t, &pool, &arrivals, &price, &policy, &options, &err), err);
    dsc_serve_policy_fini(&policy);
}

// Clients that begin together, with prompts that fit into one step, stay together: the rate of each
// round is the closed form.
static void in_step(void **state)
{
    (void)state;
    static const loop loops[] = {{1, 3, 0, 700, 256, 0},
                                 {2, 6, 0, 700, 256, 0},
                                 {40, 120, 0, 50, 9, 0},
                                 {5, 20, 0, 30, 1, 0}};
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++) {
        const loop *l = &loops[i];
        dsc_serve_totals t;
        serve(&t, l);
        const double rate = l->requests / (t.end_s - t.begin_s);
        assert_close(
            dsc_serve_closed_rate(l->clients, l->prompt * prefill_s, l->output - 1, step_s), rate,
            1e-9 * rate);
        dsc_serve_totals_fini(&t);
    }
}

// Prompts that do not fit into one step, and drafts: within 1 % of a long run. The mean acceptance
// length is 1 + .75 + .5 + .4, where drafts are not cut by the end of the output.
static void long_run(void **state)
{
    (void)state;
    const int each = few_or_many(40, 200);
    for (int i = 0; i < 6; i++) {
        const int clients = (int[]){1, 8, 64}[i % 3], k = i < 3 ? 0 : 3;
        const loop l = {clients, clients * each, clients * each / 8, 700, 256, k};
        dsc_serve_totals t;
        serve(&t, &l);
        const double rate = (double)t.completed / (t.end_s - t.begin_s);
        const double steps = (l.output - 1) / (k ? 2.65 : 1.);
        assert_close(dsc_serve_closed_rate(clients, l.prompt * prefill_s, steps, step_s), rate,
                     few_or_many(3, 1) * .01 * rate);
        dsc_serve_totals_fini(&t);
    }
}

static void limits(void **state)
{
    (void)state;
    // Without prefill the rate is proportional to the clients; with many, only prefill counts.
    assert_close(dsc_serve_closed_rate(10, 0, 99, .01), 10, 1e-12);
    assert_close(dsc_serve_closed_rate(1e12, .25, 99, .01), 4, 1e-9);
    assert_true(isnan(dsc_serve_closed_rate(0, 1, 1, 1)));
    assert_true(isnan(dsc_serve_closed_rate(1, -1, 1, 1)));
    assert_true(isnan(dsc_serve_closed_rate(1, 1, -1, 1)));
    assert_true(isnan(dsc_serve_closed_rate(1, 1, 1, 0)));
    assert_true(isnan(dsc_serve_closed_rate(NAN, 1, 1, 1)));
}

SUITE(mean_field)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_step),
        cmocka_unit_test(long_run),
        cmocka_unit_test(limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

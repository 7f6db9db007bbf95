// SPDX-License-Identifier: Apache-2.0
// A served run over time: the bins add up to the totals of the run, each is what the steps that
// overlap it say, and their number is bounded whatever the length of the run.
#include "sim/serve/serve_occupancy.h"

#include "sim/serve/serve_policy.h"
#include "tests/close.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS = 20000 };

typedef struct seen {
    double from, to, running, drafted;
} seen;

typedef struct recorder {
    dsc_serve_occupancy occupancy;
    seen *step; // [steps]
    size_t steps;
    int64_t drafted; // before
} recorder;

static int record(void *user, const dsc_serve_engine *e, dsc_error *err)
{
    recorder *r = user;
    (void)err;
    assert_true(r->steps < STEPS);
    r->step[r->steps++] = (seen){e->now_s - e->step.seconds, e->now_s, (double)e->running_count,
                                 (double)(e->totals->num_draft_tokens - r->drafted)};
    r->drafted = e->totals->num_draft_tokens;
    dsc_serve_occupancy_add(&r->occupancy, e);
    return DSC_OK;
}

static double sum(const dsc_serve_occupancy *o, dsc_serve_quantity q)
{
    double all = 0;
    for (size_t i = 0; i < DSC_SERVE_BINS; i++)
        all += o->bin[i][q];
    return all;
}

// Bin i as the steps say.
static void check_bin(const recorder *r, size_t i)
{
    const dsc_serve_occupancy *o = &r->occupancy;
    const double low = o->begin_s + (double)i * o->width_s, high = low + o->width_s;
    double running = 0, drafted = 0;
    for (size_t s = 0; s < r->steps; s++) {
        const seen *x = &r->step[s];
        const double shared = fmin(high, x->to) - fmax(low, x->from);
        if (!(shared > 0))
            continue;
        running += shared * x->running;
        drafted += shared / (x->to - x->from) * x->drafted;
    }
    assert_close(o->bin[i][DSC_SERVE_RUNNING_S], running, 1e-9 * (1 + running));
    assert_close(o->bin[i][DSC_SERVE_DRAFTED], drafted, 1e-6 * (1 + drafted));
}

static void serve(recorder *r, dsc_serve_totals *t, const char *arrivals, int64_t requests)
{
    static const dsc_serve_item item[] = {{.prompt = 100, .output = 20},
                                          {.prompt = 30, .output = 60}};
    static const double survival[] = {.7, .5, .3};
    dsc_serve_pool pool = {.item = item, .count = 2, .survival = survival, .levels = 3, .seed = 3};
    dsc_serve_options options = {.requests = requests,
                                 .drain = true,
                                 .max_num_seqs = 8,
                                 .max_num_batched_tokens = 256,
                                 .kv_blocks = 40,
                                 .block_size = 16,
                                 .step = record,
                                 .user = r};
    dsc_arrivals a;
    dsc_serve_policy policy;
    dsc_cost cost;
    dsc_error err;
    *r = (recorder){.steps = 0};
    assert_non_null(r->step = calloc(STEPS, sizeof *r->step));
    assert_ok(dsc_arrivals_parse(&a, arrivals, &err), err);
    assert_ok(dsc_serve_policy_parse(&policy, "fixed", 3, &err), err);
    assert_ok(dsc_cost_parse(&cost, "linear:.01,.0001", &err), err);
    const dsc_serve_price price = {.cost = &cost, .prefill_s = NAN};
    assert_ok(dsc_serve_run(t, &pool, &a, &price, &policy, &options, &err), err);
    dsc_serve_policy_fini(&policy);
    dsc_cost_fini(&cost);
}

static void test_bins(void **state)
{
    (void)state;
    // long gaps between arrivals; a full server; one step
    static const struct {
        const char *arrivals;
        int64_t requests;
    } run[] = {{"constant:0.01", 20}, {"poisson:20", 400}, {"closed:8", 300}, {"closed:1", 1}};
    for (size_t i = 0; i < sizeof run / sizeof *run; i++) {
        recorder r;
        dsc_serve_totals t;
        serve(&r, &t, run[i].arrivals, run[i].requests);
        const dsc_serve_occupancy *o = &r.occupancy;
        const size_t bins = dsc_serve_occupancy_bins(o);
        assert_close(sum(o, DSC_SERVE_RUNNING_S), t.running_area, 1e-9 * t.running_area);
        assert_close(sum(o, DSC_SERVE_WAITING_S), t.waiting_area, 1e-9 * (1 + t.waiting_area));
        assert_close(sum(o, DSC_SERVE_BLOCKS_S), t.block_area, 1e-9 * t.block_area);
        assert_close(sum(o, DSC_SERVE_STEPS), (double)t.steps, 1e-9 * (double)t.steps);
        assert_close(sum(o, DSC_SERVE_DRAFTED), (double)t.num_draft_tokens, 1e-6);
        assert_close(sum(o, DSC_SERVE_ACCEPTED), (double)t.num_accepted_tokens, 1e-6);
        assert_close(sum(o, DSC_SERVE_BUSY_S), t.end_s - t.begin_s - t.idle_s, 1e-9 * t.end_s);
        assert_true(bins > DSC_SERVE_BINS / 2 && bins <= DSC_SERVE_BINS);
        double seconds = 0;
        for (size_t b = 0; b < DSC_SERVE_BINS; b++) {
            check_bin(&r, b);
            if (b < bins)
                seconds += dsc_serve_occupancy_seconds(o, b);
            else
                assert_true(o->bin[b][DSC_SERVE_BUSY_S] < 1e-12);
        }
        assert_close(seconds, t.end_s - t.begin_s, 1e-9 * t.end_s);
        free(r.step);
        dsc_serve_totals_fini(&t);
    }
}

static void test_no_step(void **state)
{
    (void)state;
    const dsc_serve_occupancy o = {.width_s = 0};
    assert_int_equal(dsc_serve_occupancy_bins(&o), 0);
}

SUITE(serve_occupancy)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bins),
        cmocka_unit_test(test_no_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// Times the serving engine with 64 running requests, in simulated output tokens per second and
// core. The bar is 20 M with a fixed draft length, and 7 M with adaptive ones.
//
// Usage: bench_serve [REQUESTS]; prints CSV, the best of 5 rounds. Every position of a request
// draws how much of a draft is accepted; with `recorded`, drafts are looked up.
#include "sim/serve/serve_policy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ITEMS = 200, LONGEST_OUTPUT = 400, K = 5, ROUNDS = 5, CLIENTS = 64 };

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); // others may share the core
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(int rc, const dsc_error *err)
{
    if (rc) {
        fprintf(stderr, "bench_serve: %s\n", err->message);
        exit(dsc_exit_code(rc));
    }
}

static dsc_serve_draft drafts[ITEMS][LONGEST_OUTPUT];
static float confidence[ITEMS][LONGEST_OUTPUT];

static void run(const char *text, const char *cost_text, bool recorded, int64_t requests)
{
    static const double survival[K] = {.8, .6, .45, .35, .25};
    static dsc_serve_item item[ITEMS];
    dsc_error err;
    dsc_cost cost;
    dsc_serve_policy policy;
    dsc_serve_totals totals = {0};
    for (int i = 0; i < ITEMS; i++)
        item[i] = (dsc_serve_item){.prompt = 1 + i * 37 % 500,
                                   .output = LONGEST_OUTPUT / 4 + i * 7 % 300,
                                   .draft = recorded ? drafts[i] : NULL,
                                   .confidence = confidence[i]};
    const dsc_serve_pool pool = {
        .item = item, .count = ITEMS, .survival = survival, .levels = K, .seed = 1};
    const dsc_arrivals arrivals = {.kind = DSC_ARRIVALS_CLOSED, .clients = CLIENTS};
    const dsc_serve_price price = {
        .cost = &cost, .drafting = DSC_SERVE_DRAFT_EACH, .prefill_s = 1e-5};
    const dsc_serve_options options = {.requests = requests,
                                       .drain = true,
                                       .max_num_seqs = 256,
                                       .max_num_batched_tokens = 2048,
                                       .kv_blocks = 20000,
                                       .block_size = 16,
                                       .lookahead = K,
                                       .slo_ttft_s = INFINITY,
                                       .slo_tpot_s = INFINITY};
    must(dsc_cost_parse(&cost, cost_text, &err), &err);
    must(dsc_serve_policy_parse(&policy, text, K, &err), &err);
    double best = 1e99;
    for (int round = 0; round < ROUNDS; round++) {
        dsc_serve_totals_fini(&totals);
        const double start = now_s();
        must(dsc_serve_run(&totals, &pool, &arrivals, &price, &policy, &options, &err), &err);
        best = fmin(best, now_s() - start);
    }
    printf("%s,%s,%s,%.2f,%.1f,%.2f,%.3f\n", text, recorded ? "recorded" : "sampled",
           cost.type->name, (double)totals.output_tokens / best / 1e6,
           totals.running_area / totals.end_s, (double)totals.output_tokens / (double)totals.steps,
           best / (double)totals.steps * 1e6);
    dsc_serve_totals_fini(&totals);
    dsc_serve_policy_fini(&policy);
    dsc_cost_fini(&cost);
}

int main(int argc, char **argv)
{
    static const char *const policy[] = {
        "fixed",          "oracle",   "schedule:1-=2",        "ema",
        "off-above:1e9",  "adaptive", "adaptive:constant:.7", "adaptive:calibrated",
        "adaptive:oracle"};
    static const char linear[] = "linear:.01,.0001,.0005";
    static const char roofline[] = "roofline:llama-3.1-70b,llama-3.1-8b,h100,tp=4";
    const int64_t requests = argc > 1 ? strtoll(argv[1], NULL, 10) : 10000;
    for (int i = 0; i < ITEMS; i++)
        for (int t = 0; t < LONGEST_OUTPUT; t++) {
            drafts[i][t] = (dsc_serve_draft){K, (uint16_t)((i * 7 + t * t) % (K + 1))};
            confidence[i][t] = (float)(1 + (i * 5 + t * 13) % 19) / 20;
        }
    printf("# %s\npolicy,drafts,cost,M_tokens_per_s,running,tokens_per_step,us_per_step\n",
           BENCH_FLAGS);
    for (size_t i = 0; i < sizeof policy / sizeof *policy; i++)
        for (int recorded = 0; recorded < 2; recorded++)
            run(policy[i], linear, recorded, requests);
    run("fixed", roofline, true, requests);
    run("adaptive", roofline, true, requests);
    run("adaptive:calibrated", roofline, true, requests);
    return 0;
}

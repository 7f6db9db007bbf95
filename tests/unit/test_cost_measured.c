// SPDX-License-Identifier: Apache-2.0
// Costs from what servers, benchmarks, engines and logs wrote, against figures worked out by hand:
// every file is made from a known cost, which must be found again; refusals.
#include "tests/close.h"
#include "tests/unit/trace_fixture.h"

#include "sim/cost/price.h"
#include "sim/cost/server_load.h"

#include <math.h>
#include <string.h>

// The cost of "TYPE:FILE[,FILE...]" with files in the scratch folder.
static int parse(dsc_cost *cost, const char *type, const char *const *file, size_t files,
                 dsc_error *err)
{
    char text[2000];
    int n = snprintf(text, sizeof text, "%s:", type);
    for (size_t i = 0; i < files; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%s", i ? "," : "", in_scratch(file[i]));
    return dsc_cost_parse(cost, text, err);
}

static double target_s(const dsc_cost *cost, double tokens, double batch)
{
    double s;
    dsc_error err = {0};
    assert_ok(dsc_cost_target(cost, (dsc_pass){tokens, 10, batch, false}, &s, &err), err);
    return s;
}

// --- metrics pages -----------------------------------------------------------------------------

typedef struct page {
    double seconds, observations, first, output, running, iterations; // iterations < 0: not there
    double drafts, draft_tokens, accepted;                            // drafts < 0: not there
    const char *model;
    int engines;
    bool older; // the name of the latency before 0.11
    double started;
} page;

static void put_page(const char *name, const page *p)
{
    FILE *f = fopen(in_scratch(name), "w");
    assert_non_null(f);
    fputs("# HELP vllm:num_requests_running Number of requests.\nother{ is not read\n", f);
    if (p->started > 0)
        fprintf(f, "process_start_time_seconds %.17g\n", p->started);
    for (int e = 0; e < p->engines; e++) {
        const char *latency = p->older ? "time_per_output_token" : "inter_token_latency";
        const struct {
            const char *name;
            double value;
        } line[] = {{latency, p->seconds},
                    {latency, p->observations},
                    {"time_to_first_token_seconds_count", p->first},
                    {"generation_tokens_total", p->output},
                    {"num_requests_running", p->running},
                    {"iteration_tokens_total_count", p->iterations},
                    {"spec_decode_num_drafts_total", p->drafts},
                    {"spec_decode_num_draft_tokens_total", p->drafts < 0 ? -1 : p->draft_tokens},
                    {"spec_decode_num_accepted_tokens_total", p->drafts < 0 ? -1 : p->accepted}};
        for (size_t i = 0; i < sizeof line / sizeof *line; i++)
            if (line[i].value >= 0)
                fprintf(f, "vllm:%s%s{engine=\"%d\",model_name=\"%s\"} %.17g\n", line[i].name,
                        i == 0   ? "_seconds_sum"
                        : i == 1 ? "_seconds_count"
                                 : "",
                        e, p->model, line[i].value / p->engines);
    }
    assert_int_equal(fclose(f), 0);
}

// `steps` steps of batch `batch` that took step_s each, after `from`.
static page later(page from, double steps, double batch, double step_s, double drafted,
                  double accepted)
{
    from.observations += steps * batch;
    from.seconds += steps * batch * step_s;
    from.first += batch;
    from.output += batch + steps * batch * (1 + accepted);
    from.iterations += from.iterations < 0 ? 0 : steps;
    from.running = batch;
    from.drafts += drafted > 0 ? steps * batch : 0;
    from.draft_tokens += steps * batch * drafted;
    from.accepted += steps * batch * accepted;
    return from;
}

static const page idle = {.seconds = 3,
                          .observations = 200,
                          .first = 10,
                          .output = 210,
                          .iterations = 90,
                          .running = 1,
                          .drafts = -1,
                          .model = "m",
                          .engines = 1,
                          .started = 1700000000.25};

// Steps take 9.9 ms and .1 ms per token of the batch; four draft tokens take 2.9 ms more.
static void a_server_is_a_line(void **state)
{
    (void)state;
    const page drafting = {.iterations = 0, .model = "m", .engines = 1};
    const page after[] = {later(idle, 9000, 1, .0100, 0, 0), later(idle, 1000, 8, .0107, 0, 0),
                          later(drafting, 1000, 4, .0148, 4, 1.5)};
    const char *pair[] = {"idle", "one", "idle", "eight", "zero", "four"};
    dsc_error err = {0};
    dsc_cost cost;
    put_page("idle", &idle);
    put_page("zero", &drafting);
    for (size_t i = 0; i < 3; i++)
        put_page(pair[2 * i + 1], &after[i]);
    assert_ok(parse(&cost, "prometheus", pair, 6, &err), err);
    assert_close(cost.fixed_s, .0099, 1e-12);
    assert_close(cost.per_token_s, .0001, 1e-13);
    assert_close(cost.draft_s, .0029 / 4, 1e-12);
    assert_null(cost.no_plain);
    assert_close(target_s(&cost, 5, 4), .0119, 1e-12);
    assert_non_null(strstr(cost.note, "3 loads of 1 to 20 tokens"));
    assert_ok(parse(&cost, "prometheus", pair, 4, &err), err);
    assert_close(cost.draft_s, 0, 0);
    // One load without drafts: a line through both, which contains the draft model.
    const char *mixed[] = {"idle", "one", "zero", "four"};
    assert_ok(parse(&cost, "prometheus", mixed, 4, &err), err);
    assert_close(target_s(&cost, 1, 1), .0100, 1e-12);
    assert_close(target_s(&cost, 5, 4), .0148, 1e-12);
    assert_null(cost.no_plain);
    // No load without: the time of a step without speculation is unknown.
    assert_ok(parse(&cost, "prometheus", mixed + 2, 2, &err), err);
    assert_non_null(cost.no_plain);
    const dsc_counts counts = {.output_tokens = 25, .target_calls = 10, .target_call_tokens = 50};
    dsc_price p;
    assert_ok(dsc_price_run(&p, &cost, &counts, 1, &err), err);
    assert_true(isnan(p.speedup) && isnan(p.plain_s));
    assert_close(p.time_s, .148, 1e-12);
    expect_failure(parse(&cost, "prometheus", pair, 2, &err), DSC_EINPUT, &err, "one load");
}

static void loads_are_counted(void **state)
{
    (void)state;
    dsc_server_load load;
    dsc_error err = {0};
    page before = idle, after = later(idle, 1000, 8, .0107, 0, 0);
    before.engines = after.engines = 2; // each has half of the sequences in as many steps
    after.iterations = idle.iterations + 2000;
    put_page("b", &before);
    put_page("a", &after);
    assert_ok(dsc_server_load_read(&load, in_scratch("b"), in_scratch("a"), &err), err);
    assert_int_equal(load.engines, 2);
    assert_close(load.batch, 4, 1e-9);
    assert_close(load.step_s, .0107, 1e-12);
    // Without iterations: the mean of the requests running, for each engine.
    before.iterations = after.iterations = -1;
    put_page("b", &before);
    put_page("a", &after);
    assert_ok(dsc_server_load_read(&load, in_scratch("b"), in_scratch("a"), &err), err);
    assert_close(load.batch, (1 + 8) / 2. / 2, 1e-9);
    // The older name, and a histogram of tokens instead of steps.
    before = (page){.iterations = 0, .model = "m", .engines = 1, .older = true};
    after = later(before, 1000, 4, .0148, 4, 1.5);
    after.observations *= 2.5;
    put_page("b", &before);
    put_page("a", &after);
    assert_ok(dsc_server_load_read(&load, in_scratch("b"), in_scratch("a"), &err), err);
    assert_close(load.steps, 4000, 1e-9);
    assert_close(load.step_s, .0148, 1e-12);
    assert_close(load.batch, 4, 1e-12);
    assert_close(load.num_draft_tokens, 16000, 0);
    assert_string_equal(load.model, "m");
}

static void bad_pages_are_refused(void **state)
{
    (void)state;
    dsc_server_load load;
    dsc_error err = {0};
    const page good = later(idle, 1000, 8, .0107, 0, 0);
    page bad[6];
    for (size_t i = 0; i < 6; i++)
        bad[i] = good;
    bad[0].model = "other";
    bad[1].started += 60;
    bad[2] = idle;
    bad[3].seconds = 1; // reset
    bad[4].output *= 2;
    bad[5].seconds = -1; // not there
    static const char *const says[] = {
        "before it was 'm'",        "process_start_time_seconds differs",
        "no token was generated",   "decreased or disappeared",
        "not of the same requests", "no metric vllm:inter_token_latency_seconds_sum"};
    put_page("b", &idle);
    for (size_t i = 0; i < 6; i++) {
        put_page("a", &bad[i]);
        expect_failure(dsc_server_load_read(&load, in_scratch("b"), in_scratch("a"), &err),
                       DSC_EINPUT, &err, says[i]);
    }
    put_page("a", &good);
    expect_failure(dsc_server_load_read(&load, in_scratch("a"), in_scratch("b"), &err), DSC_EINPUT,
                   &err, "wrong order");
    expect_failure(dsc_server_load_read(&load, in_scratch("b"), in_scratch("nil"), &err),
                   DSC_EINPUT, &err, "nil");
    assert_int_equal(dsc_server_load_read(&load, NULL, "a", &err), DSC_EUSAGE);
    static const struct {
        const char *text, *says;
    } lines[] = {
        {"vllm:generation_tokens_total{model_name=\"a\"} 1\n"
         "vllm:prompt_tokens_total{model_name=\"b\"} 1\n",
         ":2: the page has metrics of 'a' and of 'b'"},
        {"vllm:prompt_tokens 1\nvllm:prompt_tokens 2\n", ":2: the metric occurs twice"},
        {"vllm:prompt_tokens NaN\n", ":1: prompt_tokens is 'NaN'"},
        {"vllm:prompt_tokens x\n", ":1: a number must follow the metric, not 'x'"},
        {"vllm:prompt_tokens -1\n", ":1: prompt_tokens is '-1'"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        put_text(in_scratch("a"), lines[i].text);
        expect_failure(dsc_server_load_read(&load, in_scratch("b"), in_scratch("a"), &err),
                       DSC_EINPUT, &err, lines[i].says);
    }
}

// --- benchmarks --------------------------------------------------------------------------------

// `requests` requests with `chunks` latencies each.
static void put_bench(const char *name, int requests, int chunks, double step_s, double batch,
                      int tokens, const char *more)
{
    FILE *f = fopen(in_scratch(name), "w");
    assert_non_null(f);
    fprintf(f, "{\"duration\": %.17g%s", step_s * chunks * requests / batch, more);
    static const char *const list[] = {"output_lens", "ttfts", "itls", "errors"};
    for (int l = 0; l < 4; l++) {
        fprintf(f, ", \"%s\": [", list[l]);
        for (int r = 0; r <= requests; r++) { // the last one failed
            fputs(r ? ", " : "", f);
            if (l == 0)
                fprintf(f, "%d", r < requests ? tokens : 0);
            else if (l == 1)
                fputs("0.5", f);
            else if (l == 3)
                fputs(r < requests ? "\"\"" : "\"timeout\"", f);
            for (int c = 0; c < chunks && l == 2; c++)
                fprintf(f, c ? ", %.17g" : "[%.17g", step_s);
            fputs(l == 2 ? "]" : "", f);
        }
        fputs("]", f);
    }
    fputs("}\n", f);
    assert_int_equal(fclose(f), 0);
}

static void a_benchmark_is_a_line(void **state)
{
    (void)state;
    dsc_cost cost;
    dsc_error err = {0};
    const char *file[] = {"one.json", "eight.json", "four.json"};
    put_bench("one.json", 5, 100, .0100, 1, 101, "");
    put_bench("eight.json", 20, 50, .0107, 8, 51, "");
    put_bench("four.json", 10, 40, .0148, 4, 101, ", \"spec_decode_draft_tokens\": 1600");
    assert_ok(parse(&cost, "bench", file, 3, &err), err);
    assert_close(cost.fixed_s, .0099, 1e-12);
    assert_close(cost.per_token_s, .0001, 1e-13);
    assert_close(cost.draft_s, .0029 / 4, 1e-12);
    expect_failure(parse(&cost, "bench", file, 1, &err), DSC_EINPUT, &err, "one load");
    put_bench("one.json", 10, 40, .0148, 4, 101, "");
    expect_failure(parse(&cost, "bench", file, 1, &err), DSC_EINPUT, &err, "was speculative");
    put_text(in_scratch("one.json"), "{\"duration\": 3, \"output_lens\": [1], \"ttfts\": [1]}");
    expect_failure(parse(&cost, "bench", file, 1, &err), DSC_EINPUT, &err, "--save-detailed");
    put_text(in_scratch("one.json"), "{\"output_lens\": [1]}");
    expect_failure(parse(&cost, "bench", file, 1, &err), DSC_EINPUT, &err, "vllm bench serve");
    put_text(in_scratch("one.json"), "{\"duration\": 3, \"output_lens\": [2], \"ttfts\": [1], "
                                     "\"itls\": [[\"x\"]]}");
    expect_failure(parse(&cost, "bench", file, 1, &err), DSC_EINPUT, &err, "itls[0][0]");
    assert_int_equal(dsc_cost_parse(&cost, "bench:", &err), DSC_EUSAGE);
}

// --- tables of engines -------------------------------------------------------------------------

static const char *const table = "t.json";

static void step_tables_are_interpolated(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double tokens, batch, s;
    } cases[] = {
        {"{\"sample_batch_tokens\": [1, 4, 16], \"sample_steps_per_sec\": [100, 80, 50], "
         "\"max_batch_tokens\": 64}",
         5, 2, .0125 + (10 - 4) / 12. * (.02 - .0125)},
        {"{\"bias_seconds\": 0.009, \"bs_probes\": [1, 9], \"alpha_seconds\": [0.0, 0.0016], "
         "\"m_probes\": [1, 64], \"theta_seconds\": [0.0001, 0.0064]}",
         5, 5, .009 + .0008 + .0025},
        {"{\"token_counts\": [1, 64], \"step_time_ms\": [0.1, 6.4], \"fixed_overhead_ms\": 9, "
         "\"batch_sizes\": [1, 9], \"batch_overhead_ms\": [0, 1.6]}",
         5, 5, .009 + .0008 + .0025},
        {"{\"token_counts\": [1, 64], \"step_time_ms\": [9.1, 15.4]}", 5, 5, .0115},
        // No tokens stand for five drafts, which are 12 tokens of two sequences.
        {"{\"schema_version\": 2, \"engine_fingerprint\": {\"max_draft_len\": 5}, \"cost_tables\": "
         "{\"1\": {\"token_counts\": [0, 1, 3], \"step_time_ms\": [11, 8, 9]}, "
         "\"2\": {\"token_counts\": [0, 2, 4], \"step_time_ms\": [14, 10, 12]}}}",
         4, 2, .013},
    };
    dsc_error err = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dsc_cost cost;
        double s;
        put_text(in_scratch(table), cases[i].text);
        assert_ok(parse(&cost, "sps", &table, 1, &err), err);
        assert_close(target_s(&cost, cases[i].tokens, cases[i].batch), cases[i].s, 1e-15);
        assert_non_null(cost.no_plain);
        assert_ok(dsc_cost_draft(&cost, (dsc_pass){1, 1, 1, false}, &s, &err), err);
        assert_close(s, 0, 0);
        expect_failure(dsc_cost_target(&cost, (dsc_pass){65, 1, 2, false}, &s, &err), DSC_EINPUT,
                       &err, "not extrapolated");
        if (i == 4)
            expect_failure(dsc_cost_target(&cost, (dsc_pass){1, 1, 3, false}, &s, &err), DSC_EINPUT,
                           &err, "a batch of 3 was not measured");
        dsc_cost_fini(&cost);
    }
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"{\"x\": 1}", "no table of steps per second"},
        {"{\"sample_batch_tokens\": [1], \"sample_steps_per_sec\": [1.0]}", "table of one point"},
        {"{\"sample_batch_tokens\": [1, 1], \"sample_steps_per_sec\": [1, 2]}", "must increase"},
        {"{\"sample_batch_tokens\": [1, 2], \"sample_steps_per_sec\": [1, 0]}", "above 0"},
        {"{\"token_counts\": [1, 2], \"step_time_ms\": [1]}", "has 2 elements"},
        {"{\"token_counts\": [1, 2], \"step_time_ms\": [1, null]}", "step_time_ms[1]"},
        {"{\"cost_tables\": {}, \"schema_version\": 2}", "schema_version must be 2"},
        {"{\"schema_version\": 2, \"engine_fingerprint\": {\"max_draft_len\": 5}, \"cost_tables\": "
         "{\"x\": {\"token_counts\": [0], \"step_time_ms\": [1]}}}",
         "no batch size"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dsc_cost cost;
        put_text(in_scratch(table), bad[i].text);
        expect_failure(parse(&cost, "sps", &table, 1, &err), DSC_EINPUT, &err, bad[i].says);
    }
}

// --- wall times --------------------------------------------------------------------------------

enum { REQUESTS = 60, STEPS = 40 };
typedef enum drafts { NO_DRAFTS, RECORDED, UNKNOWN, FIXED } drafts;

// A step takes 20 ms and 2 us per token before it, a draft token 1.5 ms, a prompt token .1 ms.
static void write_walls(drafts how, int requests, bool prompts, double wrong_wall)
{
    static const int32_t token[400];
    uint16_t accepted[STEPS], drafted[STEPS];
    uint64_t s = 5;
    dsc_error err = {0};
    dsc_trace_writer *w;
    dsc_trace_info info = sample_info(false, false);
    info.steps = DSC_STEPS_LOGGED;
    info.has_step_drafted = how == RECORDED || how == FIXED;
    expect_ok(dsc_trace_writer_open(&w, in_scratch("w.dst"), &info, true, 0, &err), &err);
    for (int r = 0; r < requests; r++) {
        char id[16], metadata[200];
        const int64_t steps = 10 + (int64_t)(draw(&s) % (STEPS - 10));
        const int64_t prompt = prompts ? 20 + (int64_t)(draw(&s) % 300) : 0, turns = 1 + r % 2;
        int64_t output = 0, all = 0;
        for (int64_t i = 0; i < steps; i++) {
            drafted[i] = how == FIXED ? 3 : how == NO_DRAFTS ? 0 : (uint16_t)(1 + draw(&s) % 6);
            accepted[i] = (uint16_t)(draw(&s) % (drafted[i] + 1u));
            output += accepted[i] + 1;
            all += drafted[i];
        }
        const double context = (double)prompt + (double)output / 2;
        double wall = .02 * (double)steps + 2e-6 * (double)steps * context + .0015 * (double)all +
                      1e-4 * (double)prompt;
        if (r % 13 == 6)
            wall *= 2; // disturbed
        if (r == 3 && wrong_wall <= 0)
            wall = wrong_wall;
        dsc_request_input q = {.id = {id, snprintf(id, sizeof id, "q%d", r)},
                               .prompt = {token, prompt},
                               .output = {token, output},
                               .metadata = {metadata, 0}};
        q.metadata.length =
            snprintf(metadata, sizeof metadata,
                     turns == 1 ? "{\"category\": \"qa\", \"wall_time\": [%.17g]}"
                                : "{\"category\": \"rag\", \"wall_time\": [%.17g, %.17g]}",
                     wall / (double)turns, wall / (double)turns);
        q.steps = (dsc_steps){steps, accepted, info.has_step_drafted ? drafted : NULL, NULL, NULL};
        expect_ok(dsc_trace_writer_add(w, &q, &err), &err);
    }
    expect_ok(dsc_trace_writer_commit(w, NULL, &err), &err);
}

static void wall_times_are_taken_apart(void **state)
{
    (void)state;
    const char *file = "w.dst";
    dsc_error err = {0};
    dsc_cost cost;
    write_walls(RECORDED, REQUESTS, true, 1);
    assert_ok(parse(&cost, "fit", &file, 1, &err), err);
    assert_close(cost.per_token_s, .0015, 1e-8);
    assert_true(cost.fixed_s + cost.per_token_s > .02 && cost.fixed_s + cost.per_token_s < .021);
    assert_null(cost.no_plain);
    assert_non_null(strstr(cost.note, "60 requests: wall_s = 0.02 x steps + 0.0015 x draft tokens "
                                      "+ 0.0001 x prompt tokens + 0.002 x thousand"));
    assert_non_null(strstr(cost.note, "on the held-out half R2"));
    assert_non_null(strstr(cost.note, " rag ")); // 30 requests, as many as qa
    write_walls(RECORDED, 30, true, 1);          // 15 of each: too few for a category
    assert_ok(parse(&cost, "fit", &file, 1, &err), err);
    assert_non_null(strstr(cost.note, " others "));
    assert_null(strstr(cost.note, " rag "));
    write_walls(NO_DRAFTS, REQUESTS, true, 1);
    assert_ok(parse(&cost, "fit", &file, 1, &err), err);
    assert_close(cost.per_token_s, 1e-4, 1e-9); // as a prompt token
    assert_null(cost.no_plain);
    write_walls(UNKNOWN, REQUESTS, true, 1);
    assert_ok(parse(&cost, "fit", &file, 1, &err), err);
    assert_non_null(cost.no_plain);
    assert_non_null(strstr(cost.note, "x accepted tokens"));
    static const struct {
        drafts how;
        int requests;
        bool prompts;
        double wrong;
        const char *says;
    } bad[] = {{NO_DRAFTS, REQUESTS, false, 1, "the trace has no prompts"},
               {FIXED, REQUESTS, true, 1, "draft tokens are a fixed multiple of the steps"},
               {RECORDED, 19, true, 1, "only 19 requests have wall times"},
               {RECORDED, REQUESTS, true, 0, "request q3: wall_time must be a time"},
               {RECORDED, REQUESTS, true, -2, "request q3: wall_time must be a time"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_walls(bad[i].how, bad[i].requests, bad[i].prompts, bad[i].wrong);
        expect_failure(parse(&cost, "fit", &file, 1, &err), DSC_EINPUT, &err, bad[i].says);
    }
}

// --- the spread of a table ---------------------------------------------------------------------

static void quartiles_reach_the_speedup(void **state)
{
    (void)state;
    const char *file = "q.tsv";
    dsc_error err = {0};
    dsc_cost cost;
    put_text(in_scratch(file), "tokens\ttarget_s\ttarget_s_low\ttarget_s_high\n"
                               "1\t0.010\t0.009\t0.012\n3\t0.012\t0.010\t0.016\n");
    assert_ok(parse(&cost, "table", &file, 1, &err), err);
    assert_true(cost.spread);
    assert_string_equal(cost.spread_caveat,
                        "quartiles are more than 1.5x apart in 1 of 2 cells: tokens 3");
    const dsc_counts counts = {.output_tokens = 20,
                               .target_calls = 10,
                               .target_call_tokens = 30,
                               .target_call_context = 100,
                               .output_context = 200};
    static const double wanted[] = {.24 / .1, .2 / .12, .18 / .16}; // at -1, 0, 1
    for (int quartile = -1; quartile <= 1; quartile++) {
        dsc_price p;
        cost.quartile = quartile;
        assert_ok(dsc_price_run(&p, &cost, &counts, 1, &err), err);
        assert_close(p.speedup, wanted[quartile + 1], 1e-12);
    }
    dsc_cost_fini(&cost);
    put_text(in_scratch(file),
             "tokens\ttarget_s\ttarget_s_low\ttarget_s_high\n1\t0.01\t0.03\t0.02\n");
    expect_failure(parse(&cost, "table", &file, 1, &err), DSC_EINPUT, &err,
                   "target_s_low is above target_s_high");
    put_text(in_scratch(file), "tokens\ttarget_s\n1\t0.01\n");
    assert_ok(parse(&cost, "table", &file, 1, &err), err);
    assert_false(cost.spread);
    assert_string_equal(cost.spread_caveat, "");
    dsc_cost_fini(&cost);
}

SUITE(cost_measured)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_is_a_line),
        cmocka_unit_test(loads_are_counted),
        cmocka_unit_test(bad_pages_are_refused),
        cmocka_unit_test(a_benchmark_is_a_line),
        cmocka_unit_test(step_tables_are_interpolated),
        cmocka_unit_test(wall_times_are_taken_apart),
        cmocka_unit_test(quartiles_reach_the_speedup),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}

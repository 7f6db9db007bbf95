// SPDX-License-Identifier: Apache-2.0
// The steps of a served run as a file: what is read is what was written, its sums have the price
// that the engine had, and what no engine writes is refused with file and line.
#include "sim/serve/serve_policy.h"
#include "sim/serve/serve_steps.h"
#include "tests/close.h"
#include "tests/unit/trace_fixture.h"

#include <string.h>

enum { MOST_STEPS = 4000 };

typedef struct run {
    dsc_serve_record record;
    dsc_table head;
    FILE *f;
    dsc_serve_step step[MOST_STEPS]; // of the engine
    int64_t steps, tokens, prefill, drafts, next[8];
} run;

static int on_pass(void *user, const dsc_serve_engine *e, dsc_error *err)
{
    run *r = user;
    return dsc_serve_record_pass(&r->record, e, err);
}

static int on_step(void *user, const dsc_serve_engine *e, dsc_error *err)
{
    run *r = user;
    (void)err;
    assert_true(r->steps < MOST_STEPS);
    dsc_serve_record_drafts(&r->record, e);
    dsc_serve_steps_write(&r->head, &r->record, r->f);
    r->step[r->steps++] = e->step;
    return DSC_OK;
}

// Serves requests with prompts in chunks and preemptions; writes "s.jsonl".
static void serve(run *r, dsc_serve_price *price, dsc_serve_totals *totals)
{
    static const double survival[] = {0.8, 0.6, 0.3};
    static const dsc_serve_item item[] = {
        {.prompt = 70, .output = 40}, {.prompt = 9, .output = 25}, {.prompt = 33, .output = 60}};
    const dsc_serve_pool pool = {
        .item = item, .count = 3, .survival = survival, .levels = 3, .seed = 3};
    const dsc_serve_options options = {.requests = 30,
                                       .drain = true,
                                       .max_num_seqs = 8,
                                       .max_num_batched_tokens = 40,
                                       .kv_blocks = 40,
                                       .block_size = 8,
                                       .lookahead = 3,
                                       .slo_ttft_s = INFINITY,
                                       .slo_tpot_s = INFINITY,
                                       .pass = on_pass,
                                       .step = on_step,
                                       .user = r};
    dsc_arrivals arrivals;
    dsc_serve_policy policy;
    dsc_error err;
    assert_ok(dsc_table_add_columns(&r->head, dsc_serve_steps_columns, dsc_serve_steps_column_count,
                                    &err),
              err);
    assert_ok(dsc_arrivals_parse(&arrivals, "closed:8", &err), err);
    assert_ok(dsc_serve_policy_parse(&policy, "fixed", 3, &err), err);
    assert_non_null(r->f = fopen(in_scratch("s.jsonl"), "w"));
    dsc_serve_steps_write_head(&r->head, r->f);
    assert_ok(dsc_serve_run(totals, &pool, &arrivals, price, &policy, &options, &err), err);
    assert_int_equal(fclose(r->f), 0);
    dsc_serve_policy_fini(&policy);
}

// A sequence's tokens follow each other: its context grows by its prompt's parts, and falls only
// after a preemption.
static void count(run *r, const dsc_serve_record *x)
{
    for (int64_t n = 0; n < x->sequences; n++) {
        r->tokens += x->list[DSC_STEPS_TOKENS][n];
        r->prefill += x->list[DSC_STEPS_PREFILL][n] ? x->list[DSC_STEPS_TOKENS][n] : 0;
        r->drafts += x->list[DSC_STEPS_DRAFT_PASSES][n];
        if (x->list[DSC_STEPS_DRAFT_PASSES][n])
            assert_true(x->list[DSC_STEPS_DRAFT_CONTEXT][n] > x->list[DSC_STEPS_CONTEXT][n]);
    }
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    run *r = calloc(1, sizeof *r);
    dsc_cost cost;
    dsc_serve_totals totals;
    dsc_error err;
    dsc_serve_steps *file;
    dsc_serve_record x = {0};
    bool more = true;
    int64_t at = 0, planned = 0;
    assert_ok(dsc_cost_parse(&cost, "linear:0.01,0.0003,0.002", &err), err);
    dsc_serve_price price = {
        .cost = &cost, .drafting = DSC_SERVE_DRAFT_EACH, .overhead_s = 1e-3, .prefill_s = 1e-4};
    serve(r, &price, &totals);
    assert_true(totals.preemptions > 0);
    assert_ok(dsc_serve_steps_open(&file, in_scratch("s.jsonl"), &err), err);
    for (;; at++) {
        assert_ok(dsc_serve_steps_next(file, &x, &more, &err), err);
        if (!more)
            break;
        const dsc_serve_step *was = &r->step[at];
        dsc_serve_step *sum = calloc(1, sizeof *sum);
        double target_s, draft_s;
        assert_int_equal(x.number, at);
        dsc_serve_record_sum(&x, sum);
        assert_int_equal(sum->decoding, was->decoding);
        assert_int_equal(sum->decode_tokens, was->decode_tokens);
        assert_int_equal(sum->decode_context, was->decode_context);
        assert_int_equal(sum->prefilling, was->prefilling);
        assert_int_equal(sum->prefill_tokens, was->prefill_tokens);
        assert_int_equal(sum->prefill_context, was->prefill_context);
        assert_int_equal(sum->longest, was->longest);
        assert_int_equal(sum->draft_context, was->draft_context);
        for (int k = 1; k <= was->longest; k++)
            assert_int_equal(sum->drafts[k], was->drafts[k]);
        assert_ok(dsc_serve_target_time(&price, sum, &target_s, &err), err);
        assert_ok(dsc_serve_draft_time(&price, sum, &draft_s, &err), err);
        assert_close(target_s, x.target_s, 0); // to the last bit
        assert_close(draft_s, x.draft_s, 0);
        assert_close(was->target_s, x.target_s, 0);
        assert_close(x.overhead_s, 1e-3, 0);
        planned += was->decode_tokens + was->prefill_tokens;
        count(r, &x);
        free(sum);
    }
    assert_int_equal(at, totals.steps);
    assert_int_equal(at, r->steps);
    assert_int_equal(r->tokens, planned);
    assert_int_equal(r->prefill, totals.prefill_tokens);
    assert_true(r->drafts >= totals.num_draft_tokens); // a preemption drops a draft
    dsc_serve_steps_close(file);
    dsc_serve_record_fini(&x);
    dsc_serve_record_fini(&r->record);
    dsc_table_fini(&r->head);
    dsc_serve_totals_fini(&totals);
    dsc_cost_fini(&cost);
    free(r);
}

// --- measured parts of prompts -------------------------------------------------------------------

static double pass_s(double tokens, double context, double batch)
{
    return 1e-3 + 1e-4 * tokens * batch + 1e-6 * context * batch;
}

static double chunk_s(double context, double chunk)
{
    return chunk * (5e-5 + 1e-7 * context);
}

static void write_table(const char *path)
{
    FILE *f = fopen(path, "w");
    fputs("tokens\tcontext\tbatch\tprefill_tokens\ttarget_s\ttarget_again_s\n", f);
    for (int chunk = 0; chunk <= 32; chunk += 32)
        for (int t = 1; t <= 4; t += 3)
            for (int c = 0; c <= 100; c += 100)
                for (int b = 1; b <= 4; b += 3)
                    fprintf(f, "%d\t%d\t%d\t%d\t%.17g\t%.17g\n", t, c, b, chunk,
                            pass_s(t, c, b) + chunk_s(c, chunk), pass_s(t, c, b) / 2);
    assert_int_equal(fclose(f), 0);
}

static double step_s(const dsc_serve_price *price, dsc_serve_step *step)
{
    double s;
    dsc_error err = {0};
    assert_ok(dsc_serve_target_time(price, step, &s, &err), err);
    return s;
}

// The pass over the decode tokens, after their context, and what the parts of prompts add, after
// theirs; where nothing decodes, the first token of each part counts as a decode token.
static void parts_of_prompts_have_their_measured_time(void **state)
{
    (void)state;
    char text[500];
    dsc_cost cost;
    dsc_error err = {0};
    write_table(in_scratch("t.tsv"));
    snprintf(text, sizeof text, "table:%s", in_scratch("t.tsv"));
    assert_ok(dsc_cost_parse(&cost, text, &err), err);
    dsc_serve_price price = {.cost = &cost, .drafting = DSC_SERVE_DRAFT_EACH, .prefill_s = NAN};
    dsc_serve_step *step = calloc(1, sizeof *step);
    *step = (dsc_serve_step){.decoding = 3, .decode_tokens = 6, .decode_context = 120};
    assert_close(step_s(&price, step), pass_s(2, 40, 3), 1e-15);
    step->prefilling = 2, step->prefill_tokens = 20, step->prefill_context = 60;
    assert_close(step_s(&price, step), pass_s(2, 40, 3) + chunk_s(30, 20), 1e-15);
    price.drafting = DSC_SERVE_DRAFT_FREE; // passes of the target follow each other
    assert_close(step_s(&price, step), pass_s(2, 40, 3) / 2 + chunk_s(30, 20), 1e-15);
    price.drafting = DSC_SERVE_DRAFT_EACH;
    step->decoding = step->decode_tokens = step->decode_context = 0;
    assert_close(step_s(&price, step), pass_s(1, 30, 2) + chunk_s(30, 18), 1e-15);
    price.prefill_s = 1e-2; // --prefill-time comes first
    assert_close(step_s(&price, step), pass_s(1, 60, 1) + 20 * 1e-2, 1e-15);
    price.prefill_s = NAN;
    double s;
    step->prefill_tokens = 35;
    expect_failure(dsc_serve_target_time(&price, step, &s, &err), DSC_EINPUT, &err,
                   "prefill_tokens 33 was not measured");
    free(step);
    dsc_cost_fini(&cost);
}

// 10 tokens in the two passes of two sequences: 2.5 tokens of each sequence, on average.
static void passes_of_draft_trees_have_their_mean_width(void **state)
{
    (void)state;
    char text[500];
    double s;
    dsc_cost cost;
    dsc_error err = {0};
    put_text(in_scratch("t.tsv"), "tokens\ttarget_s\tdraft_s\n1\t1\t0.01\n8\t1\t0.08\n");
    snprintf(text, sizeof text, "table:%s", in_scratch("t.tsv"));
    assert_ok(dsc_cost_parse(&cost, text, &err), err);
    const dsc_serve_price price = {
        .cost = &cost, .drafting = DSC_SERVE_DRAFT_EACH, .prefill_s = NAN};
    dsc_serve_step *step = calloc(1, sizeof *step);
    *step = (dsc_serve_step){
        .decoding = 2, .draft_context = 20, .draft_tokens = 10, .longest = 2, .drafts = {0, 2, 2}};
    assert_ok(dsc_serve_draft_time(&price, step, &s, &err), err);
    assert_close(s, 2 * .025, 1e-15);
    free(step);
    dsc_cost_fini(&cost);
}

// --- what is refused -----------------------------------------------------------------------------

#define TIMES "\"begin_s\":0,\"target_s\":1,\"draft_s\":0.5,\"overhead_s\":0"
#define LISTS(request, tokens, context, prefill, passes, draft)                                    \
    ",\"request\":[" request "],\"tokens\":[" tokens "],\"context\":[" context                     \
    "],\"prefill\":[" prefill "],\"draft_passes\":[" passes "],\"draft_context\":[" draft "]}\n"
#define STEP(number) "{\"step\":" number "," TIMES LISTS("4,5", "1,2", "7,0", "0,1", "1,0", "8,0")

static int read_all(const char *text, int64_t *steps, dsc_error *err)
{
    dsc_serve_steps *file;
    dsc_serve_record x = {0};
    bool more = true;
    put_file(in_scratch("b.jsonl"), text, strlen(text));
    int rc = dsc_serve_steps_open(&file, in_scratch("b.jsonl"), err);
    assert_int_equal(rc, DSC_OK);
    *steps = 0;
    while (!rc && !(rc = dsc_serve_steps_next(file, &x, &more, err)) && more)
        ++*steps;
    dsc_serve_record_fini(&x);
    dsc_serve_steps_close(file);
    return rc;
}

static void what_no_engine_writes_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"{\"step\":0}\n", ":1: tokens must be a list"},
        {"[1]\n", ":1: step must be a whole number"},
        {"tokens\n", ":1: column"},
        {STEP("0") "{\"step\":1", ":2: column"},
        {STEP("0") STEP("0"), ":2: step must be a whole number that ascends"},
        {STEP("3") STEP("2"), ":2: step must be a whole number that ascends"},
        {STEP("-1"), ":1: step must be a whole number that ascends from 0"},
        {STEP("0.5"), ":1: step must be"},
        {"{\"step\":0," TIMES LISTS("", "", "", "", "", ""), ":1: tokens must be a list"},
        {"{\"step\":0," TIMES LISTS("1", "0", "1", "0", "0", "0"),
         ":1: tokens must contain whole numbers from 1 to"},
        {"{\"step\":0," TIMES LISTS("1", "-3", "1", "0", "0", "0"), "not -3"},
        {"{\"step\":0," TIMES LISTS("1", "1e3", "1", "0", "0", "0"), "tokens must contain whole"},
        {"{\"step\":0," TIMES LISTS("1", "9999999999", "1", "0", "0", "0"), "not 9999999999"},
        {"{\"step\":0," TIMES LISTS("1", "1", "-1", "0", "0", "0"), ":1: context must contain"},
        {"{\"step\":0," TIMES LISTS("1", "1", "2147483648", "0", "0", "0"), ":1: context"},
        {"{\"step\":0," TIMES LISTS("1", "1", "1,2", "0", "0", "0"),
         ":1: context must be a list with a number for each sequence"},
        {"{\"step\":0," TIMES LISTS("1", "1", "1", "2", "0", "0"), ":1: prefill must contain"},
        {"{\"step\":0," TIMES LISTS("1", "1", "1", "0", "1025", "0"), ":1: draft_passes must"},
        {"{\"step\":0," TIMES LISTS("1", "1", "1", "0", "0", "-8"), ":1: draft_context must"},
        {"{\"step\":0,\"begin_s\":0,\"target_s\":-1,\"draft_s\":0,\"overhead_s\":0" LISTS(
             "1", "1", "1", "0", "0", "0"),
         ":1: target_s must be a number of seconds"},
        {"{\"step\":0,\"begin_s\":0,\"target_s\":1,\"draft_s\":null,\"overhead_s\":0" LISTS(
             "1", "1", "1", "0", "0", "0"),
         ":1: draft_s must be a number of seconds"},
        {"{\"step\":0," TIMES "}\n", ":1: tokens must be a list"},
    };
    int64_t steps;
    dsc_error err = {0};
    assert_ok(read_all("{\"#\": {}}\n" STEP("0") STEP("7"), &steps, &err), err);
    assert_int_equal(steps, 2);
    assert_ok(read_all("", &steps, &err), err);
    assert_int_equal(steps, 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect_failure(read_all(bad[i].text, &steps, &err), DSC_EINPUT, &err, bad[i].says);
        expect_failure(err.status, DSC_EINPUT, &err, "b.jsonl");
    }
    dsc_serve_steps *file;
    expect_failure(dsc_serve_steps_open(&file, "/nowhere/at.all", &err), DSC_EINPUT, &err,
                   "/nowhere/at.all");
    expect_failure(dsc_serve_steps_open(&file, "/dev", &err), DSC_EINPUT, &err, "/dev");
}

SUITE(serve_steps)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(parts_of_prompts_have_their_measured_time),
        cmocka_unit_test(passes_of_draft_trees_have_their_mean_width),
        cmocka_unit_test(what_no_engine_writes_is_refused),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}

// SPDX-License-Identifier: Apache-2.0
// Tests the recorded draft model of a trace, and the description of the run that recorded it.
#include "tests/close.h"

#include "sim/model/model_trace.h"

#include <string.h>

enum { N = 6, DEPTH = 2, ROLLOUT = 3, VOCAB = 30, NONE = DSC_RANK_NONE };

static const int32_t output[N] = {10, 11, 12, 13, 14, 1};
static const int32_t argmax[N] = {10, 11, 20, 13, 14, 21}; // wrong at 2 and 5
static const uint16_t rank[N][DEPTH] = {{0, 0}, {0, 3}, {2, 0}, {0, 1}, {0, NONE}, {4, NONE}};
static const int32_t rollout[N][ROLLOUT] = {{10, 11, 20}, {11, 20, 22}, {20, 23, 1},
                                            {13, 14, 21}, {14, 21, 24}, {21, 25, 26}};

typedef struct bench {
    dsc_model_trace target, model;
    dsc_draft draft;
    dsc_request request;
    dsc_trace_info info;
    dsc_recorded_run run;
} bench;

static bench *make_bench(int head, bool ranks, bool rollouts)
{
    static bench b;
    b = (bench){.request = {.output = {output, N},
                            .replayed = {.argmax = {[DSC_SIDE_DRAFT] = argmax},
                                         .draft_rank = ranks ? rank[0] : NULL}},
                .info = {.vocab_size = VOCAB,
                         .eos_token = 1,
                         .has_draft_rank = ranks,
                         .rank_depth = ranks ? DEPTH : 0,
                         .has_argmax = {[DSC_SIDE_DRAFT] = true},
                         .has_rollout = {[DSC_SIDE_DRAFT] = rollouts},
                         .rollout_length = rollouts ? ROLLOUT : 0},
                .run = {0, 0, head}};
    if (rollouts)
        b.request.rollouts.draft = rollout[0];
    dsc_model_trace_begin(&b.target, b.request.output);
    dsc_model_trace_set_ends(&b.target, &b.info, &b.run);
    dsc_model_trace_begin_draft(&b.model, &b.request, &b.info, &b.run);
    return &b;
}

static void bench_fini(bench *b)
{
    dsc_model_trace_fini(&b->target);
    dsc_model_trace_fini(&b->model);
    dsc_draft_fini(&b->draft);
}

// The draft model's token behind a chain of n tokens, after `committed` of the output.
static int ask(bench *b, int64_t committed, const int32_t *chain, size_t n, int32_t *token,
               dsc_error *err)
{
    dsc_model *m = &b->model.base;
    dsc_next next = {0};
    dsc_draft_clear(&b->draft);
    m->length = committed;
    assert_ok(dsc_draft_append_chain(&b->draft, -1, chain, n, err), *err);
    assert_ok(m->type->score(m, &b->draft, err), *err);
    int rc = m->type->next(m, (int32_t)n - 1, &next, err);
    *token = next.token;
    return rc;
}

static void expect_token(bench *b, int64_t committed, size_t along, int32_t want)
{
    dsc_error err = {0};
    int32_t token;
    assert_ok(ask(b, committed, output + committed, along, &token, &err), err);
    assert_int_equal(token, want);
}

static void a_model_of_its_own(void **state)
{
    static const int32_t off[] = {7, 10};
    dsc_error err = {0};
    int32_t token;
    (void)state;
    bench *b = make_bench(0, true, false);
    expect_token(b, 0, 0, 10);
    expect_token(b, 0, 2, 20); // deeper than ranks were recorded: as from there
    expect_token(b, 0, 3, 13);
    expect_token(b, 4, 1, 21);
    assert_ok(ask(b, 0, off, 2, &token, &err), err); // left the output: not even by its own token
    assert_int_equal(token, DSC_TOKEN_OTHER);
    bench_fini(b);
}

static void a_head_of_the_target(void **state)
{
    dsc_error err = {0};
    int32_t token;
    (void)state;
    bench *b = make_bench(1, true, false);
    expect_token(b, 0, 1, 11);
    expect_token(b, 1, 1, DSC_TOKEN_OTHER); // its second candidate is not its argmax there
    expect_token(b, 2, 1, 13);
    assert_int_equal(ask(b, 0, output, 2, &token, &err), DSC_EUSAGE);
    assert_non_null(strstr(err.message, "--rank-depth"));
    bench_fini(b);
    b = make_bench(1, false, false); // without ranks, its first tokens alone are known
    expect_token(b, 2, 0, 20);
    bench_fini(b);
}

static void most_probable_tokens_alone(void **state)
{
    dsc_error err = {0};
    dsc_model *m;
    int32_t token[3];
    size_t count;
    (void)state;
    bench *b = make_bench(-1, false, false);
    expect_token(b, 0, 2, DSC_TOKEN_OTHER); // wrong, by a token that may be another here
    expect_token(b, 0, 3, 13);
    m = &b->model.base;
    assert_int_equal(m->type->top(m, -1, 3, token, &count, &err), DSC_EUSAGE); // no ranks
    bench_fini(b);
}

static void expect_top(bench *b, int64_t committed, size_t k, const int32_t *want, size_t n)
{
    dsc_error err = {0};
    dsc_model *m = &b->model.base;
    int32_t token[VOCAB + 1];
    size_t count;
    dsc_draft_clear(&b->draft);
    m->length = committed;
    assert_ok(m->type->score(m, &b->draft, &err), err);
    assert_ok(m->type->top(m, -1, k, token, &count, &err), err);
    assert_int_equal(count, n);
    for (size_t i = 0; i < n && want; i++)
        assert_int_equal(token[i], want[i]);
}

static void candidates(void **state)
{
    static const int32_t other = DSC_TOKEN_OTHER;
    const int32_t first[] = {10, other, other}, third[] = {20, other, 12, other},
                  few[] = {20, other};
    (void)state;
    bench *b = make_bench(0, true, false);
    expect_top(b, 0, 3, first, 3);
    expect_top(b, 2, 4, third, 4);
    expect_top(b, 2, 2, few, 2); // too few for the output's token
    expect_top(b, 0, VOCAB + 1, NULL, VOCAB);
    bench_fini(b);
}

// Off the output a rollout goes on, and only along its own tokens.
static void rollouts(void **state)
{
    static const int32_t follows[] = {10, 11, 20}, strays[] = {10, 11, 22};
    dsc_error err = {0};
    int32_t token;
    (void)state;
    bench *b = make_bench(0, true, true);
    assert_ok(ask(b, 0, follows, 3, &token, &err), err);
    assert_int_equal(token, 23); // the rollout from position 2
    assert_ok(ask(b, 0, strays, 3, &token, &err), err);
    assert_int_equal(token, DSC_TOKEN_OTHER);
    bench_fini(b);
    b = make_bench(1, true, true); // a head's is of where the draft began, and as long
    assert_ok(ask(b, 1, follows + 1, 2, &token, &err), err);
    assert_int_equal(token, 22);
    assert_ok(ask(b, 0, follows, 3, &token, &err), err);
    assert_int_equal(token, DSC_TOKEN_OTHER);
    bench_fini(b);
}

static void where_drafts_end(void **state)
{
    (void)state;
    bench *b = make_bench(0, true, false);
    const dsc_recorded_run unknown = {0, 0, 0}, longer = {0, 9, 0}, full = {0, N, 0};
    assert_true(dsc_model_ends(&b->target.base, 0, 1)); // the EOS token
    assert_false(dsc_model_ends(&b->target.base, 0, DSC_TOKEN_OTHER));
    assert_true(dsc_model_ends(&b->target.base, N - 1, 20)); // the output's room
    b->info.eos_token = 5;                                   // one of several
    dsc_model_trace_set_ends(&b->target, &b->info, &longer);
    assert_false(dsc_model_ends(&b->target.base, N - 1, 20));
    assert_true(dsc_model_ends(&b->target.base, 8, 20));
    assert_true(dsc_model_ends(&b->target.base, 0, 1) && dsc_model_ends(&b->target.base, 0, 5));
    for (int i = 0; i < 2; i++) {
        dsc_model_trace_begin(&b->target, b->request.output);
        dsc_model_trace_set_ends(&b->target, &b->info, i ? &full : &unknown);
        assert_true(dsc_model_ends(&b->target.base, N - 1, 20));
        assert_false(dsc_model_ends(&b->target.base, 0, 1)); // not known to end anything
    }
    bench_fini(b);
}

// --- provenance ----------------------------------------------------------------------------------

static void expect_run(const char *provenance, double temperature, int64_t most, int head)
{
    const dsc_trace_info info = {.provenance = (char *)(uintptr_t)provenance};
    dsc_recorded_run run;
    assert_int_equal(dsc_trace_recorded_run(&run, &info, NULL), DSC_OK);
    assert_true(temperature < 0 ? isnan(run.temperature) : run.temperature == temperature);
    assert_int_equal(run.max_tokens, most);
    assert_int_equal(run.head, head);
}

#define RUN(t, head) "{\"temperature\":" t ",\"max_tokens\":7,\"draft\":{\"head\":" head "}}"
#define SOURCE(run) "{\"trace\":\"x\",\"provenance\":" run "}"

static void provenance(void **state)
{
    (void)state;
    expect_run(NULL, -1, 0, -1);
    expect_run("{}", -1, 0, -1);
    expect_run("not JSON", -1, 0, -1);
    expect_run("{\"temperature\":\"1\",\"max_tokens\":-3,\"draft\":{\"head\":0}}", -1, 0, -1);
    expect_run(RUN("0.0", "false"), 0, 7, 0);
    expect_run(RUN("0.8", "true"), 0.8, 7, 1);
    expect_run("{\"sources\":[" SOURCE(RUN("1", "true")) "]}", 1, 0, 1);
    expect_run("{\"sources\":[" SOURCE(RUN("1", "true")) "," SOURCE(RUN("1", "false")) "]}", 1, 0,
               -1);
    expect_run("{\"sources\":[" SOURCE(RUN("1", "true")) "," SOURCE("{}") "]}", -1, 0, -1);
    expect_run("{\"sources\":[" SOURCE("{}") "," SOURCE(RUN("1", "true")) "]}", -1, 0, -1);
    expect_run("{\"sources\":[{\"file\":\"x.jsonl\"}]}", -1, 0, -1); // of an import
    expect_run("{\"temperature\":1,\"appended\":[{\"sources\":[" SOURCE(RUN("1", "true")) "]}]}", 1,
               0, -1);
    expect_run("{\"temperature\":1,\"appended\":[{\"sources\":[" SOURCE(RUN("0", "true")) "]}]}",
               -1, 0, -1);
}

SUITE(recorded_draft)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_of_its_own),
        cmocka_unit_test(a_head_of_the_target),
        cmocka_unit_test(most_probable_tokens_alone),
        cmocka_unit_test(candidates),
        cmocka_unit_test(rollouts),
        cmocka_unit_test(where_drafts_end),
        cmocka_unit_test(provenance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// Tests the verdict on a search and the settings of engines that follow it.
#include "tests/unit/tune_fixture.h"

#include <jansson.h>

// --- engines -----------------------------------------------------------------------------------

static dsc_config configured(const dsc_drafter_type *drafter, const char *const *over, size_t overs)
{
    dsc_error err;
    dsc_space s;
    assert_ok(space_of(&s, drafter, over, overs, NULL, 0, &err), err);
    assert_int_equal(s.total, 1);
    dsc_config c = dsc_space_at(&s, 0);
    dsc_space_fini(&s);
    return c;
}

static void batches(void **state)
{
    (void)state;
    dsc_error err;
    dsc_buffer b = {0};
    const char *const length[] = {"length=5", "length=2", "length=0"};
    dsc_config c[4];
    cli_engine_choice choice[4];
    static const int64_t sizes[] = {1, 8, 32, 256};
    const cli_engine_use vllm = {CLI_VLLM, CLI_DRAFT_MODEL}, sglang = {CLI_SGLANG, CLI_DRAFT_EAGLE};
    for (size_t i = 0; i < 4; i++) {
        c[i] = configured(&dsc_drafter_draft_model, &length[i < 2 ? 0 : i - 1], 1);
        choice[i] = (cli_engine_choice){&c[i], &dsc_verifier_greedy, sizes[i]};
    }
    assert_ok(cli_engine_lines(&b, &vllm, choice, 4, &err), err);
    assert_string_equal(b.data,
                        "vllm serve MODEL --speculative-config '{\"method\": \"draft_model\", "
                        "\"model\": \"DRAFT\", \"num_speculative_tokens\": 5, "
                        "\"num_speculative_tokens_per_batch_size\": [[1, 8, 5], [9, 32, 2], "
                        "[33, 256, 0]]}'\n");
    dsc_buffer_fini(&b);
    assert_ok(cli_engine_lines(&b, &sglang, choice, 4, &err), err);
    assert_non_null(strstr(b.data, "--speculative-num-steps 2 --speculative-eagle-topk 1 "
                                   "--speculative-num-draft-tokens 3\n"));
    assert_non_null(strstr(b.data, "# batches of up to 256:\n# no speculation"));
    assert_non_null(strstr(b.data, "\"33\": {\"candidate_steps\": [0]}}\n"));
    dsc_buffer_fini(&b);
    assert_ok(cli_engine_lines(&b, &vllm, &choice[3], 1, &err), err);
    assert_string_equal(b.data, "# no speculation: leave the speculative options out\n");
    dsc_buffer_fini(&b);
    choice[0].rule = &dsc_verifier_rejection;
    assert_ok(cli_engine_lines(&b, &vllm, choice, 1, &err), err);
    assert_non_null(strstr(b.data, "\"draft_sample_method\": \"probabilistic\""));
    dsc_buffer_fini(&b);
}

static const char *said(const dsc_table *t, const char *key)
{
    const char *text = dsc_table_get_comment(t, key);
    assert_non_null(text);
    return text;
}

// Two batch sizes, the second of which pays for every token: one search, two winners, one line.
static void a_winner_for_each_batch_size(void **state)
{
    (void)state;
    enum { REQUESTS = 30 };
    dsc_error err;
    dsc_space space;
    dsc_tune t;
    dsc_standing *standing[2];
    dsc_table table = {0};
    dsc_buffer lines = {0};
    const dsc_cost busy = {
        .type = &dsc_cost_linear, .fixed_s = 0.01, .per_token_s = 0.05, .draft_s = 0.001};
    const dsc_cost idle = {
        .type = &dsc_cost_linear, .fixed_s = 1, .per_token_s = 1e-6, .draft_s = 1e-6};
    const dsc_tune_price two[] = {{1, &idle}, {64, &busy}};
    const char *const over[] = {"length=0:4"};
    const cli_tune_naming name = {"speedup", "grid"};
    const cli_engine_use use = {CLI_VLLM, CLI_DRAFT_MODEL};
    cli_verdict *verdict;
    setting m = markov(REQUESTS, 1);
    m.run.workload = &m.load;
    dsc_tune_options o = options(REQUESTS, 0.5, 2);
    o.price = two;
    o.prices = 2;
    assert_ok(space_of(&space, &dsc_drafter_draft_model, over, 1, NULL, 0, &err), err);
    assert_ok(dsc_tune_init(&t, &o, &err), err);
    assert_ok(dsc_tune_run(&t, NULL, &space, &m.run, &err), err);
    dsc_space none;
    assert_ok(space_of(&none, &dsc_drafter_none, NULL, 0, NULL, 0, &err), err);
    assert_ok(dsc_tune_run(&t, NULL, &none, &m.run, &err), err);
    for (size_t p = 0; p < 2; p++)
        assert_ok(dsc_tune_rank(&t, p, 1, &standing[p], &err), err);
    assert_ok(cli_tune_judge(&verdict, &t, standing, &use, 1, &err), err);
    assert_ok(cli_tune_describe(&table, &t, standing, &name, &use, verdict, &err), err);
    assert_ok(cli_tune_rows(&table, &t, standing, 2, &err), err);
    assert_ok(cli_tune_engine_lines(&lines, &t, standing, &use, verdict, &err), err);
    assert_non_null(strstr(said(&table, "best_batch_1"), "draft-model num-speculative-tokens=4: "));
    assert_non_null(strstr(said(&table, "best_batch_64"),
                           "draft-model num-speculative-tokens=0: 1.0000 on test"));
    assert_string_equal(said(&table, "tried_draft-model_batch_64"), "5 of 5 configurations");
    assert_int_equal(table.rows, 4);
    assert_int_equal(dsc_table_at(&table, 2, CLI_TUNE_BATCH)->i, 64);
    assert_int_equal(dsc_table_at(&table, 2, CLI_TUNE_RANK)->i, 1);
    assert_non_null(strstr(lines.data, "[[1, 1, 4], [2, 64, 0]]"));
    dsc_buffer_fini(&lines);
    dsc_table_fini(&table);
    free(verdict);
    free(standing[0]);
    free(standing[1]);
    dsc_tune_fini(&t);
    dsc_space_fini(&none);
    dsc_space_fini(&space);
    setting_fini(&m);
}

// Runs chains of 1 to 4 tokens, with or without `none`, and judges them.
static int advise(const dsc_cost *cost, double split, dsc_objective objective, bool with_none,
                  dsc_advice *a, dsc_standing *judged, dsc_error *err)
{
    enum { REQUESTS = 8 }; // few, so that intervals are wide
    dsc_space space, none;
    dsc_tune t;
    dsc_standing *standing;
    const char *const over[] = {"length=1:4"};
    const dsc_tune_price one = {1, cost};
    setting m = markov(REQUESTS, 1);
    m.run.workload = &m.load;
    dsc_tune_options o = options(REQUESTS, split, 1);
    o.objective = objective;
    o.price = &one;
    o.prices = 1;
    assert_ok(space_of(&space, &dsc_drafter_draft_model, over, 1, NULL, 0, err), *err);
    assert_ok(space_of(&none, &dsc_drafter_none, NULL, 0, NULL, 0, err), *err);
    assert_ok(dsc_tune_init(&t, &o, err), *err);
    assert_ok(dsc_tune_run(&t, NULL, &space, &m.run, err), *err);
    if (with_none)
        assert_ok(dsc_tune_run(&t, NULL, &none, &m.run, err), *err);
    assert_ok(dsc_tune_rank(&t, 0, 1, &standing, err), *err);
    int rc = dsc_tune_advise(&t, 0, standing, NULL, NULL, 1, a, err);
    if (!rc)
        *judged = standing[a->standing];
    free(standing);
    dsc_tune_fini(&t);
    dsc_space_fini(&none);
    dsc_space_fini(&space);
    setting_fini(&m);
    return rc;
}

// Over costs from drafts that are almost free to drafts that cost more than the target: a
// recommendation exactly when the lower end of the interval is above 1, and never without costs, a
// test set or a comparison.
static void verdicts(void **state)
{
    (void)state;
    dsc_error err;
    dsc_advice a;
    dsc_standing s;
    bool on = false, off = false;
    for (double draft_s = 1e-4; draft_s < 2; draft_s *= 1.08) {
        const dsc_cost cost = {
            .type = &dsc_cost_linear, .fixed_s = 1, .per_token_s = 1e-6, .draft_s = draft_s};
        for (int objective = DSC_OBJECTIVE_SPEEDUP; objective <= DSC_OBJECTIVE_THROUGHPUT;
             objective++) {
            assert_ok(advise(&cost, 0.5, (dsc_objective)objective, true, &a, &s, &err), err);
            if (a.kind == DSC_ADVICE_ON)
                assert_true(a.low > 1 && a.speedup >= a.low && a.speedup <= a.high);
            else
                assert_true(a.kind == DSC_ADVICE_OFF && !(a.low > 1));
            if (objective == DSC_OBJECTIVE_SPEEDUP && a.speedup > 0)
                assert_close(a.speedup, s.test, 1e-12); // without speculation it is 1
            on |= a.kind == DSC_ADVICE_ON;
            off |= a.kind == DSC_ADVICE_OFF;
        }
        assert_ok(advise(&cost, 0, DSC_OBJECTIVE_SPEEDUP, true, &a, &s, &err), err);
        assert_true(a.kind == DSC_ADVICE_ABSTAIN && isnan(a.speedup) &&
                    strstr(a.why, "exploratory"));
        assert_ok(advise(&cost, 0.5, DSC_OBJECTIVE_BLOCK_EFFICIENCY, true, &a, &s, &err), err);
        assert_true(a.kind == DSC_ADVICE_ABSTAIN && strstr(a.why, "block efficiency"));
        assert_int_equal(advise(&cost, 0.5, DSC_OBJECTIVE_SPEEDUP, false, &a, &s, &err),
                         DSC_EUSAGE);
    }
    assert_true(on && off);
    assert_ok(advise(&unit, 0.5, DSC_OBJECTIVE_SPEEDUP, true, &a, &s, &err), err);
    assert_true(a.kind == DSC_ADVICE_ABSTAIN && strstr(a.why, "unit"));
}

// What vLLM gets between quotes is JSON.
static void check_json(const char *lines)
{
    const char *begin = strstr(lines, "--speculative-config '");
    if (!begin)
        return;
    begin += strlen("--speculative-config '");
    json_t *j = json_loadb(begin, strcspn(begin, "'"), JSON_REJECT_DUPLICATES, NULL);
    assert_true(json_is_object(j));
    assert_true(json_is_string(json_object_get(j, "method")));
    assert_true(json_integer_value(json_object_get(j, "num_speculative_tokens")) > 0);
    json_decref(j);
}

// Prints the line of one configuration, if the engine has it; returns whether it does.
static bool prints(cli_engine_use use, const dsc_drafter_type *drafter)
{
    dsc_error err;
    dsc_buffer b = {0};
    const char *own = cli_engine_semantics(&use);
    char lookup[64];
    const char *const as[] = {lookup};
    snprintf(lookup, sizeof lookup, "semantics=%s", own ? own : "vllm");
    dsc_config c = configured(drafter, as, drafter == &dsc_drafter_ngram);
    const cli_engine_choice choice = {&c, &dsc_verifier_greedy, 1};
    const char *lacks = cli_engine_lacks(&use, &c, &dsc_verifier_greedy);
    if (!cli_engine_has(&use, drafter)) {
        assert_non_null(lacks);
        return false;
    }
    assert_null(lacks); // the defaults are what engines do
    assert_ok(cli_engine_lines(&b, &use, &choice, 1, &err), err);
    assert_true(b.length > 10 && b.data[b.length - 1] == '\n');
    assert_null(strstr(b.data, "(null)"));
    check_json(b.data);
    dsc_buffer_fini(&b);
    return true;
}

static void every_form(void **state)
{
    (void)state;
    const size_t forms[CLI_ENGINE_COUNT] = {8, 9, 7, 6, 5}; // drafters times kinds of draft models
    size_t printed[CLI_ENGINE_COUNT] = {0};
    for (const dsc_drafter_type *const *d = dsc_drafters(); *d; d++)
        for (int engine = CLI_VLLM; engine < CLI_ENGINE_COUNT; engine++)
            for (int kind = 0; kind < ((*d)->needs_draft ? CLI_DRAFT_KIND_COUNT : 1); kind++)
                printed[engine] +=
                    prints((cli_engine_use){(cli_engine)engine, (cli_draft_kind)kind}, *d);
    assert_memory_equal(printed, forms, sizeof forms);
    const char *const two[] = {"branches=2"},
                      *const least[] = {"prompt-lookup-min=2", "semantics=vllm"},
                      *const up[] = {"increment=3"};
    const cli_engine_use vllm = {CLI_VLLM, CLI_DRAFT_MODEL}, hf = {CLI_HF, CLI_DRAFT_MODEL},
                         mtp = {CLI_HF, CLI_DRAFT_MTP};
    const dsc_verifier_type *greedy = &dsc_verifier_greedy;
    // TensorRT-LLM verifies at most num-steps x eagle-topk tokens of a tree.
    const char *const wide[] = {"num-steps=2", "eagle-topk=4", "num-draft-tokens=20"},
                      *const fits[] = {"num-steps=2", "eagle-topk=4", "num-draft-tokens=9"};
    const cli_engine_use trtllm = {CLI_TRTLLM, CLI_DRAFT_EAGLE3},
                         sglang = {CLI_SGLANG, CLI_DRAFT_EAGLE3};
    dsc_config c = configured(&dsc_drafter_dynamic_tree, wide, 3);
    assert_non_null(cli_engine_lacks(&trtllm, &c, greedy));
    assert_null(cli_engine_lacks(&sglang, &c, greedy));
    c = configured(&dsc_drafter_dynamic_tree, fits, 3);
    assert_null(cli_engine_lacks(&trtllm, &c, greedy));
    c = configured(&dsc_drafter_suffix, two, 1);
    assert_non_null(cli_engine_lacks(&vllm, &c, greedy));
    c = configured(&dsc_drafter_ngram, least, 2);
    assert_non_null(cli_engine_lacks(&hf, &c, greedy));
    assert_null(cli_engine_lacks(&vllm, &c, greedy));
    c = configured(&dsc_drafter_ngram, least, 1); // --semantics original
    assert_non_null(cli_engine_lacks(&vllm, &c, greedy));
    c = configured(&dsc_drafter_hf_dynamic, up, 1);
    assert_non_null(cli_engine_lacks(&hf, &c, greedy));
    c = configured(&dsc_drafter_draft_model, NULL, 0);
    assert_null(cli_engine_lacks(&vllm, &c, &dsc_verifier_block));
    assert_non_null(cli_engine_lacks(&hf, &c, &dsc_verifier_block));
    assert_non_null(cli_engine_lacks(&mtp, &c, greedy));
}

static void load_tests(void **state)
{
    (void)state;
    dsc_error err;
    double rate[] = {.75, .5, .25};
    const dsc_metrics m = {.positions = 3, .acceptance_rate_pos = rate}, none = {0};
    dsc_buffer b = {0};
    assert_ok(cli_tune_acceptance(&b, CLI_ACCEPTANCE_VLLM, &m, 4, &err), err);
    assert_non_null(strstr(b.data, "[0.750000, 0.500000, 0.250000, 0.000000], "
                                   "\"num_speculative_tokens\": 4"));
    dsc_buffer_fini(&b);
    assert_ok(cli_tune_acceptance(&b, CLI_ACCEPTANCE_SGLANG, &m, 4, &err), err);
    assert_non_null(strstr(b.data, "SGLANG_SIMULATE_ACC_LEN=2.500000 ")); // bonus included
    dsc_buffer_fini(&b);
    assert_ok(cli_tune_acceptance(&b, CLI_ACCEPTANCE_TRTLLM, &m, 4, &err), err);
    assert_non_null(strstr(b.data, "FORCE_NUM_ACCEPTED_TOKENS=1.500000\n")); // bonus excluded
    dsc_buffer_fini(&b);
    assert_ok(cli_tune_acceptance(&b, CLI_ACCEPTANCE_VLLM, &none, 0, &err), err);
    assert_true(b.data[0] == '#');
    dsc_buffer_fini(&b);
}

SUITE(advice)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches),    cmocka_unit_test(a_winner_for_each_batch_size),
        cmocka_unit_test(verdicts),   cmocka_unit_test(every_form),
        cmocka_unit_test(load_tests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

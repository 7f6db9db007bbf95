// SPDX-License-Identifier: Apache-2.0
// A run over ranges of the requests adds up to the run over all of them, whatever the ranges have
// to do with the files of the trace: of a trace in many files, with both engines, and of a model
// pair. Counts of groups of requests add up to those of all requests, which groups do not change.
#include "tests/close.h"
#include "tests/unit/trace_fixture.h"

#include "base/rng.h"
#include "sim/model/model_spec.h"
#include "sim/model/workload.h"
#include "sim/sweep/shard_table.h"
#include "sim/sweep/sweep.h"

enum { REQUESTS = 23, PROMPT = 40, OUTPUT = 30 };

// Requests of few different tokens, so that copies are found; some outputs are empty. `probs`: with
// probabilities of a draft model and a target.
static void write_trace(const char *path, bool probs)
{
    dsc_error e;
    dsc_trace_writer *w;
    const dsc_trace_info info = {.tokenizer_name = (char *)"none",
                                 .vocab_size = 4,
                                 .eos_token = -1,
                                 .has_target_logp = probs,
                                 .has_draft_logp = probs};
    // A file for every two or three requests.
    expect_ok(dsc_trace_writer_open(&w, path, &info, false, 200, &e), &e);
    for (int r = 0; r < REQUESTS; r++) {
        int32_t text[2 * PROMPT + OUTPUT];
        char id[16];
        float logp[2][OUTPUT];
        for (int i = 0; i < 2 * OUTPUT; i++)
            logp[i % 2][i / 2] = -(float)(1 + (3 * i + r) % 7) / 8;
        for (int i = 0; i < 2 * PROMPT + OUTPUT; i++)
            text[i] = (int32_t)dsc_rng_below(1, (uint64_t)r, (uint32_t)i, DSC_RNG_OUTPUT, 4);
        const dsc_token_view reference = {text + PROMPT, PROMPT};
        const dsc_reference_kind kind = DSC_REFERENCE_DOCUMENT;
        snprintf(id, sizeof id, "r%d", r);
        const dsc_request_input q = {
            .id = {id, (int64_t)strlen(id)},
            .prompt = {text, PROMPT},
            .output = {text + 2 * PROMPT, r % 7 ? OUTPUT - r % 5 : r % 2},
            .references = 1,
            .reference = &reference,
            .kind = &kind,
            .target_logp = logp[0],
            .draft_logp = logp[1],
        };
        expect_ok(dsc_trace_writer_add(w, &q, &e), &e);
    }
    expect_ok(dsc_trace_writer_commit(w, NULL, &e), &e);
}

static void equal_counts(const dsc_counts *a, const dsc_counts *b)
{
    assert_memory_equal(a, b, DSC_COUNTS_TOTALS * sizeof(int64_t));
    for (int64_t m = 0; m < a->histogram_length || m < b->histogram_length; m++)
        assert_int_equal(m < a->histogram_length ? a->histogram[m] : 0,
                         m < b->histogram_length ? b->histogram[m] : 0);
    assert_int_equal(a->parallel_length, b->parallel_length);
    for (int64_t i = 0; i < a->parallel_length * a->parallel_length; i++)
        assert_int_equal(a->parallel_steps[i], b->parallel_steps[i]);
}

static void check_ranges(const dsc_trace *trace, const dsc_config *config, size_t count,
                         dsc_run_options run)
{
    dsc_error e;
    dsc_results whole, part;
    expect_ok(dsc_run(trace, config, count, &run, &whole, &e), &e);
    assert_true(whole.counts[count - 1].num_accepted_tokens > 0);
    for (int64_t block = 1; block <= REQUESTS + 1; block += 3) {
        dsc_sums sums;
        expect_ok(dsc_sums_init(&sums, count, 0, &e), &e);
        for (int64_t first = 0; first < REQUESTS; first += block) {
            run.first_request = first;
            run.end_request = first + block < REQUESTS ? first + block : REQUESTS;
            expect_ok(dsc_run(trace, config, count, &run, &part, &e), &e);
            for (size_t c = 0; c < count; c++) {
                assert_int_equal(part.counts[c].requests, run.end_request - first);
                expect_ok(dsc_sums_add(&sums.counts[c], &part.counts[c], &e), &e);
            }
            dsc_results_fini(&part);
        }
        for (size_t c = 0; c < count; c++)
            equal_counts(&whole.counts[c], &sums.counts[c]);
        dsc_sums_fini(&sums);
    }
    dsc_results_fini(&whole);
}

// Three groups of requests, one of which is empty.
static void check_groups(const dsc_trace *trace, const dsc_config *config, size_t count,
                         dsc_run_options run)
{
    enum { GROUPS = 3 };
    dsc_error e;
    dsc_results whole, parts;
    int32_t group[REQUESTS];
    for (int r = 0; r < REQUESTS; r++)
        group[r] = r * r % 4 ? 2 : 0;
    expect_ok(dsc_run(trace, config, count, &run, &whole, &e), &e);
    run.group = group;
    run.groups = GROUPS;
    expect_ok(dsc_run(trace, config, count, &run, &parts, &e), &e);
    assert_int_equal(parts.count, count * (1 + GROUPS));
    for (size_t c = 0; c < count; c++) {
        const dsc_counts *of = &parts.counts[c * (1 + GROUPS)];
        equal_counts(&whole.counts[c], of);
        assert_int_equal(of[1].requests, (REQUESTS + 1) / 2);
        assert_int_equal(of[2].requests, 0);
        if (of->expected) {
            const double sum = of[1].expected->target_calls + of[3].expected->target_calls;
            assert_memory_equal(whole.counts[c].expected, of->expected,
                                DSC_EXPECTED_TOTALS * sizeof(double));
            assert_true(of[1].expected->num_accepted_tokens > 0);
            assert_close(sum, of->expected->target_calls, 1e-9);
            continue;
        }
        dsc_counts sum = of[1]; // its lists are those of the first group
        dsc_counts_add(&sum, &of[3]);
        equal_counts(&whole.counts[c], &sum);
    }
    dsc_results_fini(&whole);
    dsc_results_fini(&parts);
    group[REQUESTS - 1] = GROUPS;
    assert_int_equal(dsc_run(trace, config, count, &run, &parts, &e), DSC_EUSAGE);
    run.groups = 0;
    assert_int_equal(dsc_run(trace, config, count, &run, &parts, &e), DSC_EUSAGE);
}

static void of_expectations(void **state)
{
    (void)state;
    dsc_error e;
    dsc_trace *trace;
    dsc_config config = {0};
    write_trace(in_scratch("probs.dst"), true);
    expect_ok(dsc_trace_open(&trace, in_scratch("probs.dst"), &e), &e);
    dsc_config_init(&config, &dsc_drafter_draft_model);
    expect_ok(dsc_config_prepare(&config, &e), &e);
    check_groups(trace, &config, 1,
                 (dsc_run_options){.engine = DSC_ENGINE_EXPECT,
                                   .rule = dsc_verifier_find("rejection", &e),
                                   .threads = 2});
    dsc_config_fini(&config);
    dsc_trace_close(trace);
}

static void defaults(dsc_option_value *text, const dsc_drafter_type *d, const char *name,
                     const char *value)
{
    for (size_t o = 0; o < d->option_count; o++)
        text[o] = (dsc_option_value){.text = strcmp(d->option[o].name, name) ? d->option[o].initial
                                                                             : value};
}

static void of_a_trace(void **state)
{
    (void)state;
    dsc_error e;
    dsc_trace *trace;
    dsc_grid grid;
    dsc_config config[4];
    dsc_option_value text[DSC_MAX_PARAMETERS];
    write_trace(in_scratch("a.dst"), false);
    expect_ok(dsc_trace_open(&trace, in_scratch("a.dst"), &e), &e);
    assert_true(dsc_trace_shards(trace) > 5);
    assert_int_equal(dsc_trace_first_request(trace, 0), 0);
    assert_int_equal(dsc_trace_first_request(trace, dsc_trace_shards(trace)), REQUESTS);
    defaults(text, &dsc_drafter_llma, "num-speculative-tokens", "1,2,5,9");
    expect_ok(dsc_grid_init(&grid, &dsc_drafter_llma, &dsc_verifier_greedy, text, &e), &e);
    for (size_t c = 0; c < 4; c++)
        config[c] = dsc_grid_at(&grid, c);
    check_ranges(trace, config, 4, (dsc_run_options){.engine = DSC_ENGINE_EXPECT, .threads = 2});
    check_ranges(trace, config, 4, (dsc_run_options){.engine = DSC_ENGINE_LOOP, .threads = 1});
    check_groups(trace, config, 4, (dsc_run_options){.engine = DSC_ENGINE_EXPECT, .threads = 2});
    check_groups(trace, config, 4, (dsc_run_options){.engine = DSC_ENGINE_LOOP, .threads = 2});
    dsc_grid_fini(&grid);
    dsc_trace_close(trace);
}

static void check_models(const dsc_drafter_type *drafter)
{
    dsc_error e;
    dsc_workload load = {
        .temperature = 1, .requests = REQUESTS, .prompt_tokens = PROMPT, .max_tokens = OUTPUT};
    dsc_language *target, *draft;
    expect_ok(dsc_language_make(&target, "markov:6,seed=1", DSC_SIDE_TARGET, NULL, &e), &e);
    expect_ok(dsc_language_make(&draft, "markov:6,seed=1", DSC_SIDE_DRAFT, NULL, &e), &e);
    load.target = target;
    load.draft = draft;
    dsc_config config[2] = {{.drafter = drafter}, {.drafter = drafter}};
    for (size_t c = 0; c < 2; c++) {
        for (size_t o = 0; o < drafter->option_count; o++)
            if (drafter->option[o].kind == DSC_OPTION_INT)
                config[c].parameter[o] = 2 + (int64_t)c;
        expect_ok(dsc_config_prepare(&config[c], &e), &e);
    }
    const dsc_verifier_type *rule = dsc_verifier_find("rejection", &e);
    assert_non_null(rule);
    check_ranges(NULL, config, 2,
                 (dsc_run_options){.rule = rule, .workload = &load, .threads = 2, .seed = 3});
    for (size_t c = 0; c < 2; c++)
        dsc_config_fini(&config[c]);
    dsc_language_free(target);
    dsc_language_free(draft);
}

static void of_models(void **state)
{
    (void)state;
    check_models(&dsc_drafter_draft_model);
    check_models(&dsc_drafter_pearl); // its counts have a list more
}

SUITE(ranges)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(of_a_trace, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(of_expectations, make_scratch, remove_scratch),
        cmocka_unit_test(of_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

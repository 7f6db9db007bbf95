// SPDX-License-Identifier: Apache-2.0
// LLMA from JSON lines to counts: against the published figures of the authors' development set
// (skipped when it is not at hand) and against a second program on the bundled sample.
#include "tests/close.h"

#include "base/table.h"
#include "sim/run/run.h"
#include "traces/import/import.h"

#include <string.h>

static char folder[] = "/tmp/draftscope-golden-XXXXXX";

enum { N, K, MAX_MATCH, TIE, SEMANTICS, REFERENCES }; // LLMA's options

static dsc_trace *import(const char *file, const char *tokenizer_file, const char *semantics,
                         const char *name)
{
    dsc_error e;
    dsc_tokenizer *tokenizer;
    dsc_trace *trace;
    char path[512];
    dsc_import_options o = {
        .semantics = semantics, .version = "test", .command = "test", .force = true};
    snprintf(path, sizeof path, "%s/%s.dst", folder, name);
    assert_ok(dsc_tokenizer_load(&tokenizer, tokenizer_file, &e), e);
    assert_ok(dsc_import(&file, 1, tokenizer, path, &o, NULL, &e), e);
    dsc_tokenizer_free(tokenizer);
    assert_ok(dsc_trace_open(&trace, path, &e), e);
    assert_ok(dsc_trace_verify(trace, &e), e);
    return trace;
}

// Runs one configuration by both engines, which must agree, and returns the counts.
static dsc_counts run(const dsc_trace *trace, dsc_config config)
{
    dsc_error e;
    dsc_results a, b;
    dsc_run_options loop = {.engine = DSC_ENGINE_LOOP, .threads = 2},
                    expect = {.engine = DSC_ENGINE_EXPECT, .threads = 1};
    assert_ok(dsc_run(trace, &config, 1, &loop, &a, &e), e);
    assert_ok(dsc_run(trace, &config, 1, &expect, &b, &e), e);
    dsc_counts c = a.counts[0];
    assert_int_equal(c.target_calls, b.counts[0].target_calls);
    assert_int_equal(c.num_drafts, b.counts[0].num_drafts);
    assert_int_equal(c.num_draft_tokens, b.counts[0].num_draft_tokens);
    dsc_results_fini(&a);
    dsc_results_fini(&b);
    c.histogram = NULL; // gone with the results
    return c;
}

// LLMA Table 1 and Figure 4, first row (its RAG development set): per request, to two decimals.
static void published_figures(void **state)
{
    (void)state;
    static const struct {
        int64_t semantics, k;
        double drafts, accepted, calls;
    } row[] = {
        {1, 4, 42.76, 62.96, 48.27},  {1, 8, 33.11, 72.61, 38.62},  {1, 15, 29.05, 76.67, 34.56},
        {1, 18, 28.51, 77.21, 34.02}, {1, 20, 28.14, 77.58, 33.65}, {0, 4, 38.66, 67.06, 44.17},
        {0, 18, 28.25, 77.47, 33.76},
    };
    char file[512], tokenizer[512];
    dsc_trace *trace = import(data_path("llma/rag.jsonl", file, sizeof file),
                              data_path("tokenizers/llama2.json", tokenizer, sizeof tokenizer),
                              "code", "rag-published");
    const dsc_trace_info *info = dsc_trace_get_info(trace);
    assert_int_equal(info->requests, 100);
    assert_close((double)info->prompt_tokens / 100, 903.6, 0.05);
    assert_close((double)info->output_tokens / 100, 111.2, 0.05);
    for (size_t r = 0; r < sizeof row / sizeof *row; r++) {
        dsc_config config = {.drafter = &dsc_drafter_llma,
                             .parameter = {1, row[r].k, 5, 0, row[r].semantics, 0}};
        dsc_counts c = run(trace, config);
        assert_close((double)c.num_drafts / 100, row[r].drafts, 0.005);
        assert_close((double)c.num_accepted_tokens / 100, row[r].accepted, 0.005);
        assert_close((double)c.target_calls / 100, row[r].calls, 0.005);
    }
    // Exact-n matching without a preference for longer ones, n = 1, k = 18.
    dsc_counts exact =
        run(trace, (dsc_config){.drafter = &dsc_drafter_llma, .parameter = {1, 18, 1, 0, 0, 0}});
    assert_close((double)exact.num_drafts / 100, 32.67, 0.005);
    assert_close((double)exact.num_accepted_tokens / 100, 73.05, 0.005);
    assert_close((double)exact.target_calls / 100, 38.18, 0.005);
    // The paper's text, matches without limit and random ties: within 1 % of the mean of its draws.
    dsc_counts text =
        run(trace, (dsc_config){.drafter = &dsc_drafter_llma, .parameter = {1, 18, 0, 1, 0, 0}});
    assert_close((double)text.num_drafts / 100, 28.77, 0.2877);
    assert_close((double)text.target_calls / 100, 34.28, 0.3428);
    dsc_trace_close(trace);
}

static int64_t choice(const char *const *names, const char *name)
{
    int64_t i = 0;
    while (strcmp(names[i], name))
        i++;
    return i;
}

static void sample_equals_the_second_program(void **state)
{
    (void)state;
    static const char *const semantics[] = {"paper", "code"};
    static const char *const references[] = {"docs", "turns", "prompt", "all"};
    static const char *const count[] = {"requests",           "prompt_tokens", "output_tokens",
                                        "target_calls",       "num_drafts",    "num_draft_tokens",
                                        "num_accepted_tokens"};
    dsc_error e;
    dsc_table golden;
    char path[512], tokenizer[512], file[512], name[64];
    assert_ok(
        dsc_table_read(&golden, source_path("tests/golden/sample.tsv", path, sizeof path), &e), e);
    assert_int_equal(golden.rows, 70);
    source_path("traces/sample/tokenizer.json", tokenizer, sizeof tokenizer);
    for (size_t r = 0; r < golden.rows; r++) {
        const char *set = dsc_table_at(&golden, r, 0)->text;
        snprintf(name, sizeof name, "traces/sample/%s.jsonl", set);
        dsc_trace *trace = import(source_path(name, file, sizeof file), tokenizer, "paper", set);
        dsc_config config = {.drafter = &dsc_drafter_llma,
                             .parameter = {dsc_table_at(&golden, r, 3)->i,
                                           dsc_table_at(&golden, r, 4)->i, 5, 0,
                                           choice(semantics, dsc_table_at(&golden, r, 2)->text),
                                           choice(references, dsc_table_at(&golden, r, 1)->text)}};
        dsc_counts c = run(trace, config);
        const int64_t ours[] = {c.requests,           dsc_trace_get_info(trace)->prompt_tokens,
                                c.output_tokens,      c.target_calls,
                                c.num_drafts,         c.num_draft_tokens,
                                c.num_accepted_tokens};
        for (size_t i = 0; i < 7; i++)
            if (ours[i] != dsc_table_at(&golden, r, 5 + i)->i)
                fail_msg("row %zu: %s %lld, golden %lld", r, count[i], (long long)ours[i],
                         (long long)dsc_table_at(&golden, r, 5 + i)->i);
        dsc_trace_close(trace);
    }
    dsc_table_fini(&golden);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_figures),
        cmocka_unit_test(sample_equals_the_second_program),
    };
    return cmocka_run_group_tests_name("golden llma", tests, make_folder, remove_folder);
}

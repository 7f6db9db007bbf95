// SPDX-License-Identifier: Apache-2.0
// The loop and the exact replay of recorded accept lengths and steps agree in every count and list,
// for several drafters and lengths in one run; the loop makes its drafts of tokens, the replay of
// numbers only.
#include "tests/scratch.h"

#include "sim/run/run.h"
#include "sim/sweep/grid.h"
#include "traces/import/import.h"

#include <stdlib.h>
#include <string.h>

static dsc_trace *import(const char *name)
{
    dsc_error e;
    dsc_trace *trace;
    char inside[128], file[512], path[512];
    const char *const paths[] = {file};
    const dsc_import_options o = {
        .vocab_size = 64, .version = "test", .command = "test", .force = true};
    snprintf(inside, sizeof inside, "tests/golden/%s.jsonl", name);
    source_path(inside, file, sizeof file);
    snprintf(path, sizeof path, "%s/%s.dst", scratch, name);
    assert_ok(dsc_import(paths, 1, NULL, path, &o, NULL, &e), e);
    assert_ok(dsc_trace_open(&trace, path, &e), e);
    return trace;
}

static void assert_equal(const dsc_counts *a, const dsc_counts *b)
{
    assert_memory_equal(a, b, DSC_COUNTS_TOTALS * sizeof(int64_t));
    assert_int_equal(a->histogram_length, b->histogram_length);
    assert_int_equal(a->lengths_length, b->lengths_length);
    const size_t m = (size_t)a->histogram_length * sizeof(int64_t);
    assert_memory_equal(a->histogram, b->histogram, m);
    assert_memory_equal(a->whole, b->whole, m);
    assert_memory_equal(a->lengths, b->lengths, (size_t)a->lengths_length * sizeof(int64_t));
}

// All configurations of a grid, in one run of each engine. Returns their number.
static size_t compare(const dsc_trace *trace, const char *words)
{
    dsc_error e;
    dsc_grid grid;
    dsc_results loop, replay;
    assert_ok(dsc_grid_parse(&grid, words, &e), e);
    const size_t count = grid.total;
    dsc_config *config = calloc(count, sizeof *config);
    assert_ok(dsc_grid_configs(&grid, 0, count, config, &e), e);
    dsc_run_options o = {.engine = DSC_ENGINE_LOOP, .threads = 2};
    assert_ok(dsc_run(trace, config, count, &o, &loop, &e), e);
    o.engine = DSC_ENGINE_EXPECT;
    assert_ok(dsc_run(trace, config, count, &o, &replay, &e), e);
    for (size_t c = 0; c < count; c++) {
        assert_equal(&loop.counts[c], &replay.counts[c]);
        dsc_config_fini(&config[c]);
    }
    assert_true(loop.counts[0].num_accepted_tokens > 0);
    dsc_results_fini(&loop);
    dsc_results_fini(&replay);
    dsc_grid_fini(&grid);
    free(config);
    return count;
}

static void loop_equals_replay(void **state)
{
    (void)state;
    dsc_trace *trace = import("recorded");
    assert_int_equal(compare(trace, "method=recorded drafter=eagle,ngram "
                                    "num-speculative-tokens=1:9 policy=fixed,oracle "
                                    "draft-passes=-1,0,1,7"),
                     2 * 9 * 2 * 4);
    compare(trace, "method=recorded-steps num-speculative-tokens=0 draft-passes=-1,0,5");
    dsc_trace_close(trace);
    trace = import("logged");
    compare(trace, "method=recorded-steps num-speculative-tokens=1,4,30 draft-passes=-1,0,5");
    dsc_trace_close(trace);
}

static void refuse(const dsc_trace *trace, const char *words, const char *message)
{
    dsc_error e;
    dsc_grid grid;
    dsc_results r;
    dsc_config config;
    const dsc_run_options o = {.threads = 1};
    assert_ok(dsc_grid_parse(&grid, words, &e), e);
    assert_ok(dsc_grid_configs(&grid, 0, 1, &config, &e), e);
    assert_int_equal(dsc_run(trace, &config, 1, &o, &r, &e), DSC_EUSAGE);
    if (!strstr(e.message, message))
        fail_msg("'%s' does not contain '%s'", e.message, message);
    dsc_config_fini(&config);
    dsc_grid_fini(&grid);
}

static void what_the_trace_lacks_is_refused(void **state)
{
    (void)state;
#define GRID(options)                                                                              \
    "method=recorded num-speculative-tokens=" options " policy=fixed draft-passes=0"
    dsc_error e;
    dsc_grid grid;
    dsc_trace *recorded = import("recorded"), *logged = import("logged");
    refuse(recorded, GRID("5"), "the trace has 2 drafters, so --drafter is needed: eagle, ngram");
    refuse(recorded, GRID("5 drafter=x"), "--drafter x: the trace has no accept lengths of it");
    refuse(recorded, GRID("10 drafter=eagle"), "of drafter eagle were recorded up to 9");
    refuse(logged, GRID("5"), "needs accept lengths by position, which the trace lacks");
    refuse(logged, "method=recorded-steps num-speculative-tokens=0 draft-passes=0",
           "--num-speculative-tokens N sets it");
    assert_int_equal(dsc_grid_parse(&grid, GRID("5 drafter=a,a"), &e), DSC_EUSAGE);
    assert_non_null(strstr(e.message, "--drafter: a is given twice"));
    assert_int_equal(dsc_grid_parse(&grid, GRID("5 drafter=a,"), &e), DSC_EUSAGE);
    assert_non_null(strstr(e.message, "--drafter: a value is empty"));
    dsc_trace_close(recorded);
    dsc_trace_close(logged);
}

SUITE(recorded)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loop_equals_replay),
        cmocka_unit_test(what_the_trace_lacks_is_refused),
    };
    return cmocka_run_group_tests_name("recorded acceptance", tests, make_scratch, remove_scratch);
}

// SPDX-License-Identifier: Apache-2.0
// Tests the answer of draftscope serve on tables whose gains are known: up to which load it says
// that speculation pays, in which setting, with which lines of an engine; and that a table that was
// written and read again has the same answer.
#include "base/file.h"
#include "cli/serve/serve.h"
#include "cli/serve/serve_answer.h"
#include "tests/close.h"

#include <string.h>

static const dsc_column columns[] = {{"method", DSC_CELL_TEXT, NULL},
                                     {"rule", DSC_CELL_TEXT, NULL},
                                     {"num_speculative_tokens", DSC_CELL_REAL, NULL},
                                     {"speculation", DSC_CELL_TEXT, NULL},
                                     {"arrivals", DSC_CELL_TEXT, NULL},
                                     {"saturated", DSC_CELL_TEXT, NULL},
                                     {"requests", DSC_CELL_INT, NULL},
                                     {"output_tokens", DSC_CELL_INT, NULL},
                                     {"mean_running", DSC_CELL_REAL, NULL},
                                     {"e2e_mean_s", DSC_CELL_REAL, NULL},
                                     {"tokens_per_s", DSC_CELL_REAL, NULL},
                                     {"requests_per_s", DSC_CELL_REAL, NULL},
                                     {"goodput", DSC_CELL_REAL, NULL}};
enum { OWN = sizeof columns / sizeof *columns };

static dsc_table table(const char *engine)
{
    dsc_table t = {0};
    dsc_error err;
    assert_ok(dsc_table_comment(&t, "cost", "linear:0.02,0.0001", &err), err);
    if (engine)
        assert_ok(dsc_table_comment(&t, "engine", engine, &err), err);
    if (engine)
        assert_ok(dsc_table_comment(&t, "draft_kind", "eagle", &err), err);
    assert_ok(dsc_table_add_columns(&t, columns, OWN, &err), err);
    assert_ok(dsc_table_add_columns(&t, cli_serve_gain_columns, CLI_SERVE_GAIN_COLUMNS, &err), err);
    assert_ok(
        dsc_table_add_columns(&t, cli_serve_block_columns, cli_serve_block_columns_count, &err),
        err);
    return t;
}

// A row of 400 requests that is `gain` times as fast as without speculation. `k` 0: without.
static void add(dsc_table *t, const char *arrivals, int k, const char *policy, double gain,
                double running)
{
    enum { BEFORE = OWN + CLI_SERVE_GAIN_COLUMNS, MOST = 40 };
    dsc_error err;
    cli_serve_blocks b = {.items = 40, .blocks = 40, .batches = 20};
    cli_serve_block_room room;
    const bool late = !k && dsc_table_get_comment(t, "slo");
    dsc_cell cell[MOST] = {dsc_cell_text(k ? "draft-model" : "none"),
                           dsc_cell_text("greedy"),
                           k ? dsc_cell_real(k) : dsc_cell_absent(),
                           dsc_cell_text(policy),
                           dsc_cell_text(arrivals),
                           dsc_cell_text("no"),
                           dsc_cell_int(400),
                           dsc_cell_int(9000),
                           dsc_cell_real(running),
                           dsc_cell_real(2.5 / gain),
                           dsc_cell_real(100 * gain),
                           dsc_cell_real(4),
                           dsc_cell_real(late ? 3 : 4),
                           dsc_cell_absent(),
                           dsc_cell_absent(),
                           dsc_cell_absent(),
                           dsc_cell_text("")};
    assert_true(t->columns <= MOST);
    for (int i = 0; i < 40; i++)
        b.block[i] = (cli_serve_sums){.requests = 10,
                                      .good = late ? 7 + i % 2 : 10,
                                      .latency_s = (20 + i % 7) / gain,
                                      .engine_s = (5 + i % 3) / gain};
    for (int i = 0; i < 20; i++)
        b.batch[i] = (cli_serve_sums){.requests = 20,
                                      .good = late ? 15 : 20,
                                      .latency_s = (20 + i % 3) / gain,
                                      .engine_s = 5 / gain};
    cli_serve_block_cells(&b, cell + BEFORE, &room);
    assert_ok(dsc_table_add_row(t, cell, &err), err);
}

static void both(dsc_table *t, const char *arrivals, double gain, double running)
{
    add(t, arrivals, 0, "", 1, running);
    add(t, arrivals, 4, "fixed", gain, running);
}

static const char *said(const dsc_table *t, const char *key)
{
    const char *text = dsc_table_get_comment(t, key);
    if (!text)
        fail_msg("no comment %s", key);
    return text;
}

static void answer(dsc_table *t)
{
    dsc_error err;
    cli_serve_answer a;
    assert_ok(cli_serve_answer_make(&a, t, &err), err);
    cli_serve_answer_fini(&a);
}

static void expect(dsc_table *t, const char *text)
{
    answer(t);
    assert_string_equal(said(t, "load_answer_1"), text);
    dsc_table_fini(t);
}

#define RUN "run draft-model num-speculative-tokens=4"

static void up_to_which_load(void **state)
{
    (void)state;
    dsc_table t = table(NULL);
    both(&t, "poisson:5", .9, 9);
    both(&t, "poisson:1", 1.5, 2); // loads need no order
    both(&t, "poisson:3", 1.2, 5);
    expect(&t,
           "Poisson arrivals: speculation pays up to a load between 3 and 5 requests/s; at 1 to "
           "3 requests/s " RUN "; at 5 requests/s leave speculation off");
    t = table(NULL);
    both(&t, "closed:1", 1.5, 1);
    both(&t, "closed:8", 1.2, 8);
    expect(&t,
           "Closed loop: speculation pays at every load, 1 to 8 clients; at 1 to 8 clients " RUN);
    t = table(NULL);
    both(&t, "gamma:1,2", .9, 1);
    both(&t, "gamma:2,2", .8, 8);
    expect(&t, "Gamma arrivals, cv 2: speculation pays at no load, 1 to 2 requests/s; at 1 to 2 "
               "requests/s leave speculation off");
    t = table(NULL);
    both(&t, "recorded:x0.5", .9, 1);
    both(&t, "recorded", 1.3, 8);
    expect(&t,
           "Recorded arrivals: speculation pays from a load between 0.5 and 1 times the "
           "recorded speed on; at 0.5 times the recorded speed leave speculation off; at 1 times "
           "the recorded speed " RUN);
    t = table(NULL); // verdicts need not be monotone
    both(&t, "constant:1", 1.3, 1);
    both(&t, "constant:2", .9, 2);
    both(&t, "constant:3", 1.3, 3);
    both(&t, "constant:4", 1.3, 4);
    expect(&t,
           "Constant arrivals: speculation pays at 1 request/s and at 3 to 4 requests/s; at 1 "
           "request/s " RUN "; at 2 requests/s leave speculation off; at 3 to 4 requests/s " RUN);
}

static void several_kinds(void **state)
{
    (void)state;
    dsc_table t = table(NULL);
    both(&t, "poisson:1", 1.5, 2);
    both(&t, "closed:8", .9, 8);
    both(&t, "poisson:2", 1.5, 2);
    both(&t, "file:times.csv", 1.5, 2);
    answer(&t);
    assert_non_null(strstr(said(&t, "load_answer_1"), "at every load, 1 to 2 requests/s"));
    assert_string_equal(said(&t, "load_answer_2"),
                        "Closed loop: speculation does not pay at 8 clients; "
                        "at 8 clients leave speculation off");
    assert_non_null(strstr(said(&t, "load_answer_3"), "file:times.csv"));
    assert_null(dsc_table_get_comment(&t, "load_answer_4"));
    assert_string_equal(said(&t, "load_verdict_1"),
                        "poisson:1: " RUN ": 1.5000 times as fast as without speculation from "
                        "arrival to last token (95 %: 1.5000 to 1.5000); e2e_mean_s 1.667, without "
                        "2.5");
    assert_non_null(strstr(said(&t, "load_verdict_3"),
                           "has 0.9000 times the throughput of no speculation (95 %: 0.9000 to "
                           "0.9000); tokens_per_s 90, without 100"));
    dsc_table_fini(&t);
}

// With an SLO, 3 of 4 requests are within it without speculation and all with it.
static void speed_and_goodput(void **state)
{
    (void)state;
    dsc_error err;
    dsc_table t = table(NULL);
    assert_ok(dsc_table_comment(&t, "slo", "ttft=1", &err), err);
    both(&t, "poisson:1", 1.24, 2);
    both(&t, "closed:8", .5, 8);
    answer(&t);
    assert_non_null(strstr(said(&t, "load_verdict_1"),
                           RUN ": 1.6000 times the utility of no speculation (95 %: 1.5"));
    assert_non_null(strstr(said(&t, "load_verdict_1"), "; e2e_mean_s 2.016, without 2.5; within "
                                                       "the SLO 100 %, without 75 %"));
    assert_non_null(strstr(said(&t, "load_verdict_2"),
                           "has 0.6452 times the utility of no speculation (95 %: 0.6"));
    dsc_table_fini(&t);
}

// Every row has its gain, and one of each load the advice.
static void rows_have_the_answer(void **state)
{
    (void)state;
    static const double gain[] = {1, 1.5, 1.2, 1, .9, 2};
    static const char *const advice[] = {"", "run", "", "run", "judged", ""};
    dsc_table t = table(NULL);
    both(&t, "poisson:1", 1.5, 2);
    add(&t, "poisson:1", 2, "fixed", 1.2, 2);
    both(&t, "poisson:4", .9, 2);
    add(&t, "poisson:4", 4, "oracle", 2, 2);
    answer(&t);
    for (size_t r = 0; r < t.rows; r++) {
        assert_close(cli_serve_number(&t, r, "gain"), gain[r], 1e-12);
        assert_true(cli_serve_number(&t, r, "gain_low") <= gain[r] + 1e-12);
        assert_true(cli_serve_number(&t, r, "gain_high") >= gain[r] - 1e-12);
        assert_string_equal(cli_serve_text(&t, r, "advice"), advice[r]);
    }
    dsc_table_fini(&t);
}

static void what_cannot_be_run(void **state)
{
    (void)state;
    dsc_table t = table(NULL);
    both(&t, "poisson:1", 1.2, 2);
    add(&t, "poisson:1", 4, "oracle", 2, 2);
    add(&t, "poisson:1", 4, "adaptive:oracle", 2, 2);
    answer(&t);
    assert_non_null(strstr(said(&t, "load_verdict_1"), RUN ": 1.2000"));
    dsc_table_fini(&t);
    t = table("vllm");
    both(&t, "poisson:1", 1.2, 2);
    add(&t, "poisson:1", 4, "off-above:3", 1.5, 2);
    answer(&t);
    assert_non_null(strstr(said(&t, "load_verdict_1"), RUN ": 1.2000"));
    assert_non_null(strstr(said(&t, "load_best_of_all_1"), "vllm has no setting for it: it has no "
                                                           "such policy"));
    dsc_table_fini(&t);
    t = table(NULL); // nothing drafts
    add(&t, "poisson:1", 0, "", 1, 2);
    answer(&t);
    assert_null(dsc_table_get_comment(&t, "load_verdict_1"));
    dsc_table_fini(&t);
}

static void engine_lines(void **state)
{
    (void)state;
    dsc_table t = table("vllm");
    both(&t, "closed:1", 1.5, 1);
    add(&t, "closed:1", 2, "fixed", 1.2, 1);
    both(&t, "closed:8", 1.1, 7.5);
    add(&t, "closed:8", 2, "fixed", 1.2, 7.5);
    both(&t, "closed:64", .9, 60);
    answer(&t);
    assert_string_equal(said(&t, "engine_line_1"),
                        "# Closed loop: the mean number of running requests is 1 at 1 client, 8 at "
                        "8, 60 at 64");
    assert_string_equal(said(&t, "engine_line_2"),
                        "vllm serve MODEL --speculative-config '{\"method\": \"eagle\", \"model\": "
                        "\"DRAFT\", \"num_speculative_tokens\": 4, "
                        "\"num_speculative_tokens_per_batch_size\": [[1, 1, 4], [2, 8, 2], "
                        "[9, 60, 0]]}'");
    dsc_table_fini(&t);
    t = table("vllm"); // a schedule is printed as it was simulated
    both(&t, "closed:1", 1.1, 1);
    add(&t, "closed:1", 4, "schedule:1-4=4,5-=2", 1.5, 8.5);
    answer(&t);
    assert_non_null(strstr(said(&t, "load_verdict_1"),
                           "run draft-model with --speculation schedule:1-4=4,5-=2: 1.5"));
    assert_non_null(strstr(said(&t, "engine_line_2"), "[[1, 4, 4], [5, 9, 2]]"));
    dsc_table_fini(&t);
}

static void compare_answers(const dsc_table *a, const dsc_table *b)
{
    size_t lines = 0;
    for (size_t i = 0; i < a->comments; i++)
        if (!strncmp(a->key[i], "load_", 5) || !strncmp(a->key[i], "engine_line", 11)) {
            assert_string_equal(a->value[i], said(b, a->key[i]));
            lines++;
        }
    assert_true(lines > 4);
}

static void write_file(const dsc_table *t, const char *name)
{
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    dsc_table_write_tsv_head(t, f);
    for (size_t r = 0; r < t->rows; r++)
        dsc_table_write_tsv_row(t, r, f);
    assert_int_equal(fclose(f), 0);
}

// As a table that was merged of shards: its answer is that of the table in memory, and rows and
// other comments stay as they are.
static void a_file_has_the_same_answer(void **state)
{
    (void)state;
    dsc_error err;
    dsc_table t = table("sglang"), again = {0};
    char name[] = "/tmp/serve-answer-XXXXXX", *whole, *made;
    size_t length;
    const int fd = mkstemp(name);
    assert_true(fd >= 0);
    close(fd);
    both(&t, "poisson:1", 1.5, 2);
    both(&t, "poisson:4", 1.07, 4);
    both(&t, "poisson:9", .7, 9);
    write_file(&t, name);
    for (int twice = 0; twice < 2; twice++) // one that has an answer keeps it
        assert_ok(cli_serve_answer_file(name, false, &err), err);
    assert_ok(dsc_table_read(&again, name, &err), err);
    assert_ok(dsc_read_file(&made, &length, name, 1 << 20, &err), err);
    answer(&t);
    compare_answers(&t, &again);
    write_file(&t, name);
    assert_ok(dsc_read_file(&whole, &length, name, 1 << 20, &err), err);
    assert_string_equal(made, whole);
    free(made);
    free(whole);
    dsc_table_fini(&again);
    dsc_table_fini(&t);
    FILE *f = fopen(name, "w"); // of something else
    fputs("method\tspeedup\nngram\t1.5\n", f);
    fclose(f);
    assert_ok(cli_serve_answer_file(name, false, &err), err);
    assert_ok(dsc_read_file(&whole, &length, name, 1 << 20, &err), err);
    assert_string_equal(whole, "method\tspeedup\nngram\t1.5\n");
    free(whole);
    unlink(name);
}

SUITE(serve_answer)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(up_to_which_load),          cmocka_unit_test(several_kinds),
        cmocka_unit_test(speed_and_goodput),         cmocka_unit_test(rows_have_the_answer),
        cmocka_unit_test(what_cannot_be_run),        cmocka_unit_test(engine_lines),
        cmocka_unit_test(a_file_has_the_same_answer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

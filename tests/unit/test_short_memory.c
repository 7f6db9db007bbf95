// SPDX-License-Identifier: Apache-2.0
// Readers of JSON while memory is short, once or from some allocation on: a sound text is read
// whole or not at all, and it is not reported as a bad one.
#include "tests/close.h"

#include "base/table.h"
#include "plots/draw/join.h"
#include "plots/report/report_result.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#define NAME "a name of a trace that is longer than the first buffer of a parser"
#define COMMAND "draftscope sweep a-trace-with-a-long-name.dst -o table.jsonl"

static const char info[] =
    "{\n\"trace\": \"" NAME "\",\n\"provenance\": {\"command\": \"" COMMAND "\"},\n"
    "\"conditional_acceptance_rate\": [0.5, 0.25],\n\"conditional_acceptance_reached\": [8, 4]}\n";
static const char lines[] =
    "{\"#\": {\"command\": \"" COMMAND "\"}}\n"
    "{\"method\": \"llma\", \"speedup\": 1.2345678901234567, \"accept_histogram\": [1, 2]}\n"
    "{\"method\": \"ngram\", \"speedup\": 1.5, \"accept_histogram\": [3, 2]}\n";

static char folder[] = "/tmp/test_short_memory_XXXXXX";
static int left;     // allocations that succeed before one fails
static bool lasting; // and all after it

static void *scarce_malloc(size_t n)
{
    left--;
    return left == -1 || (left < 0 && lasting) ? (errno = ENOMEM, NULL) : malloc(n);
}

static const char *put_file(const char *text)
{
    static char path[64];
    snprintf(path, sizeof path, "%s/file", folder);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
    return path;
}

static int read_table(dsc_error *err)
{
    dsc_table t;
    int rc = dsc_table_read(&t, put_file(lines), err);
    if (!rc) {
        assert_int_equal(t.rows, 2);
        assert_string_equal(dsc_table_get_comment(&t, "command"), COMMAND);
        assert_string_equal(t.column[2].name, "accept_histogram");
        assert_string_equal(dsc_table_at(&t, 1, 0)->text, "ngram");
        assert_true(dsc_table_at(&t, 0, 1)->r == 1.2345678901234567);
    }
    dsc_table_fini(&t);
    return rc;
}

static int read_rates(dsc_error *err)
{
    dsc_table t;
    int rc = dsc_read_trace_info(&t, info, err);
    if (!rc) {
        assert_int_equal(t.rows, 1);
        assert_string_equal(dsc_table_at(&t, 0, 0)->text, NAME);
    }
    dsc_table_fini(&t);
    return rc;
}

static int read_facts(dsc_error *err)
{
    dsc_result_view r = {0};
    r.memory = dsc_plot_of(&r.table, NULL, err);
    int rc = dsc_read_facts(&r, info, err);
    if (!rc)
        assert_string_equal(dsc_fact_find(&r, "trace"), NAME);
    dsc_result_view_fini(&r);
    return rc;
}

// Facts and rates of one file: rates are not left out because memory is too short for them.
static int read_view(dsc_error *err)
{
    dsc_result_view r = {0};
    int rc = dsc_result_view_read(&r, put_file(info), err);
    if (!rc)
        assert_int_equal(r.table.rows, 1);
    dsc_result_view_fini(&r);
    return rc;
}

static void check_reader(int read(dsc_error *err))
{
    int n = 0;
    for (left = -1; left < 0; n++) {
        dsc_error e = {0};
        json_set_alloc_funcs(scarce_malloc, free);
        left = n;
        int rc = read(&e);
        json_set_alloc_funcs(malloc, free);
        if (rc != DSC_OK && rc != DSC_ENOMEM)
            fail_msg("allocation %d fails: %s", n, e.message);
        assert_true(rc == DSC_OK || left < 0);
        assert_true(rc == DSC_ENOMEM || left >= 0 || !lasting);
    }
    assert_true(n > 12);
}

static void no_text_is_blamed(void **state)
{
    (void)state;
    for (int all = 0; all < 2; all++) {
        lasting = all;
        check_reader(read_table);
        check_reader(read_rates);
        check_reader(read_facts);
        check_reader(read_view);
    }
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(put_file(""));
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_text_is_blamed)};
    return cmocka_run_group_tests_name("short memory", tests, make_folder, remove_folder);
}

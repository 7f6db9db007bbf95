// SPDX-License-Identifier: Apache-2.0
// Readers and writers of JSON while memory is short, once or from some allocation on: a sound text
// is read whole or not at all, and it is not reported as a bad one.
#include "tests/scratch.h"

#include "base/json_text.h"
#include "base/table.h"
#include "plots/draw/join.h"
#include "plots/report/report_result.h"
#include "traces/import/import.h"
#include "traces/trace/recorded_run.h"
#include "traces/trace/trace_cut.h"
#include "traces/trace/trace_groups.h"
#include "traces/trace/trace_json.h"

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

static char folder[64];
static int left;     // allocations that succeed before one fails
static bool lasting; // and all after it

static void *scarce_malloc(size_t n)
{
    left--;
    return left == -1 || (left < 0 && lasting) ? (errno = ENOMEM, NULL) : malloc(n);
}

static const char *file_of(const char *text)
{
    static char path[80];
    snprintf(path, sizeof path, "%s/file", folder);
    put_text(path, text);
    return path;
}

static int read_table(dsc_error *err)
{
    dsc_table t;
    int rc = dsc_table_read(&t, file_of(lines), err);
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
    int rc = dsc_result_view_read(&r, file_of(info), err);
    if (!rc)
        assert_int_equal(r.table.rows, 1);
    dsc_result_view_fini(&r);
    return rc;
}

// --- the texts of a trace
// -------------------------------------------------------------------------

#define RUN                                                                                        \
    "{\"command\": \"" COMMAND                                                                     \
    "\", \"temperature\": 0.5, \"seed\": [1, 2], \"draft\": {\"head\": true}}"

static int read_recorded_run(dsc_error *err)
{
    const dsc_trace_info of = {.provenance = (char *)(uintptr_t)RUN};
    dsc_recorded_run run;
    int rc = dsc_trace_recorded_run(&run, &of, err);
    assert_true(rc ? run.head == -1 : run.temperature == 0.5 && run.head == 1);
    return rc;
}

static int read_metadata(dsc_error *err)
{
    const dsc_request q = {.metadata = {RUN, (int64_t)strlen(RUN)}};
    json_t *metadata;
    int rc = dsc_request_metadata(&metadata, &q, err);
    if (!rc)
        assert_string_equal(json_string_value(json_object_get(metadata, "command")), COMMAND);
    json_decref(metadata);
    return rc;
}

static int read_groups(dsc_error *err)
{
    dsc_trace_groups g = {0};
    int rc = dsc_trace_groups_parse(
        &g, "category", "[\"" NAME "\", \"a\", \"b\", \"c\", \"d\", \"e\", \"f\"]", err);
    if (!rc) {
        assert_int_equal(g.count, 7);
        assert_string_equal(g.value[0], NAME);
    }
    dsc_trace_groups_fini(&g);
    return rc;
}

static const char *trace_path(void)
{
    static char path[80];
    snprintf(path, sizeof path, "%s/a.dst", folder);
    return path;
}

static int add_request(dsc_trace_writer *w, const char *id, const char *provenance, dsc_error *err)
{
    const int32_t token[] = {1, 2, 3};
    const dsc_request_input in = {.id = {id, (int64_t)strlen(id)},
                                  .prompt = {token, 3},
                                  .output = {token, 3},
                                  .metadata = {RUN, (int64_t)strlen(RUN)}};
    int rc = dsc_trace_writer_add(w, &in, err);
    if (!rc)
        return dsc_trace_writer_commit(w, provenance, err);
    dsc_trace_writer_abort(w);
    return rc;
}

// Writes a trace of one request and appends another.
static int write_twice(const dsc_trace_info *of, dsc_error *err)
{
    dsc_trace_writer *w;
    int rc = dsc_trace_writer_open(&w, trace_path(), of, true, 0, err);
    if (!rc)
        rc = add_request(w, "first", NULL, err);
    if (!rc)
        rc = dsc_trace_writer_append(&w, trace_path(), of, 0, err);
    if (!rc)
        rc = add_request(w, "second", "{\"trace\": \"" NAME "\"}", err);
    return rc;
}

static int write_trace(dsc_error *err)
{
    const dsc_trace_info of = {.tokenizer_name = "bytes",
                               .vocab_size = 256,
                               .eos_token = -1,
                               .format = "jsonl",
                               .semantics = "paper",
                               .provenance = (char *)(uintptr_t)RUN};
    dsc_trace *t = NULL;
    json_t *all = NULL;
    int rc = write_twice(&of, err);
    if (!rc)
        rc = dsc_trace_open(&t, trace_path(), err);
    if (!rc)
        rc = dsc_trace_verify(t, err);
    if (!rc)
        rc = dsc_trace_provenance(&all, dsc_trace_get_info(t), err);
    if (!rc) {
        const json_t *more = json_array_get(json_object_get(all, "appended"), 0);
        assert_int_equal(dsc_trace_get_info(t)->requests, 2);
        assert_string_equal(json_string_value(json_object_get(all, "command")), COMMAND);
        assert_string_equal(json_string_value(json_object_get(more, "trace")), NAME);
    }
    json_decref(all);
    dsc_trace_close(t);
    return rc;
}

// Metadata, ids and provenance of an export; text beyond ASCII keeps its bytes.
static int export_trace(dsc_error *err)
{
    dsc_trace *t;
    char *text = NULL;
    size_t size;
    int rc = dsc_trace_open(&t, trace_path(), err);
    if (rc)
        return rc;
    FILE *f = open_memstream(&text, &size);
    assert_non_null(f);
    rc = dsc_trace_export(t, "jsonl", f, err);
    assert_int_equal(fclose(f), 0);
    if (!rc)
        assert_non_null(strstr(text, COMMAND));
    free(text);
    dsc_trace_close(t);
    return rc;
}

static int cut_trace(dsc_error *err)
{
    static char out[80];
    static const char *const where[] = {"temperature=0.5"};
    static const dsc_join_options o = {.force = true, .version = "1", .command = COMMAND};
    const dsc_cut cut = {.range = "0:2", .where = where, .wheres = 1, .sample = 1, .tokens = 2};
    dsc_trace *t = NULL;
    json_t *all = NULL;
    snprintf(out, sizeof out, "%s/b.dst", folder);
    int rc = dsc_trace_cut(trace_path(), out, &cut, &o, err);
    if (!rc)
        rc = dsc_trace_open(&t, out, err);
    if (!rc)
        rc = dsc_trace_verify(t, err);
    if (!rc)
        rc = dsc_trace_provenance(&all, dsc_trace_get_info(t), err);
    if (!rc) {
        json_t *of = json_object_get(all, "cut");
        assert_int_equal(json_object_size(of), 5);
        assert_int_equal(json_array_size(json_object_get(of, "where")), 1);
        assert_string_equal(json_string_value(json_object_get(all, "command")), COMMAND);
    }
    json_decref(all);
    dsc_trace_close(t);
    return rc;
}

static int describe_text(dsc_error *err)
{
    static const char name[] = "\xc3\xa4.jsonl of a folder";
    json_t *j = json_array();
    int bad = 0;
    for (int i = 0; i < 8 && !bad; i++)
        bad = json_array_append_new(j, dsc_json_text(name));
    for (size_t i = 0; i < json_array_size(j); i++)
        assert_string_equal(json_string_value(json_array_get(j, i)), name);
    json_decref(j);
    return bad ? dsc_fail(err, DSC_ENOMEM, "out of memory") : DSC_OK;
}

// --- all readers
// ----------------------------------------------------------------------------------

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
        check_reader(read_recorded_run);
        check_reader(read_metadata);
        check_reader(read_groups);
        check_reader(write_trace);
        check_reader(export_trace);
        check_reader(cut_trace);
        check_reader(describe_text);
    }
}

static int make_folder(void **state)
{
    (void)state;
    // A trace is written a thousand times, and a disk would be waited for each time.
    const char *parent = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
    snprintf(folder, sizeof folder, "%s/test_short_memory_XXXXXX", parent);
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return remove_tree(folder);
}

SUITE(short_memory)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_text_is_blamed)};
    return cmocka_run_group_tests_name("short memory", tests, make_folder, remove_folder);
}

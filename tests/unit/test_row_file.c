// SPDX-License-Identifier: Apache-2.0
// Files of numbered rows: whatever the order of the units and wherever the file was cut, the result
// is the same, and merged shards are it.
#include "tests/close.h"

#include "sim/sweep/merge.h"
#include "sim/sweep/row_file.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { UNITS = 5, SHARDS = 2 };
static char folder[] = "/tmp/draftscope-rows-XXXXXX";

static const char *path_of(const char *name)
{
    static char path[16][256];
    static int next;
    char *p = path[next++ % 16];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

static void make_head(dsc_table *head)
{
    static const dsc_column columns[] = {{"name", DSC_CELL_TEXT, "a text"},
                                         {"count", DSC_CELL_INT, "an integer"},
                                         {"x", DSC_CELL_REAL, "a number"},
                                         {"list", DSC_CELL_LIST, NULL}};
    dsc_error e = {0};
    assert_ok(dsc_table_comment(head, "draftscope", "1", &e), e);
    assert_ok(dsc_table_comment(head, "command", "a command", &e), e);
    assert_ok(dsc_table_comment(head, "shard_options", "--some", &e), e);
    assert_ok(dsc_table_add_columns(head, columns, 4, &e), e);
}

// Unit u has u + 1 rows.
static void add_unit(dsc_row_file *f, const dsc_table *head, int64_t u)
{
    static const int64_t whole[] = {3, 1};
    static const double part[] = {0.5, 2};
    dsc_table t = {0};
    dsc_error e = {0};
    assert_ok(dsc_table_add_columns(&t, head->column, head->columns, &e), e);
    for (int64_t i = 0; i <= u; i++) {
        const dsc_cell cell[] = {dsc_cell_text(u % 2 ? "odd one" : ""), dsc_cell_int(-10 * u - i),
                                 i ? dsc_cell_real((double)u / 3) : dsc_cell_absent(),
                                 u % 2
                                     ? (dsc_cell){.type = DSC_CELL_LIST, .list = whole, .i = u - 1}
                                     : (dsc_cell){.type = DSC_CELL_LIST, .reals = part, .i = 2}};
        assert_ok(dsc_table_add_row(&t, cell, &e), e);
    }
    // In two calls.
    dsc_table first = t, rest = t;
    first.rows = (size_t)u / 2;
    rest.cell += first.rows * t.columns;
    rest.rows -= first.rows;
    assert_ok(dsc_row_file_add(f, u, &first, (int64_t)rest.rows, &e), e);
    assert_ok(dsc_row_file_add(f, u, &rest, 0, &e), e);
    assert_ok(dsc_row_file_flush(f, &e), e);
    dsc_table_fini(&t);
}

static int take(void *user, size_t unit, const dsc_cell *cell, dsc_error *err)
{
    (void)err;
    assert_int_equal(cell[1].i, -11 * (int64_t)unit);
    assert_int_equal(cell[3].i, unit % 2 ? (int64_t)unit - 1 : 2);
    ((bool *)user)[unit] = true;
    return DSC_OK;
}

// Opens the file and adds what it lacks of the shard, from its end.
static void complete(const char *path, const dsc_split *split, bool jsonl)
{
    bool there[UNITS] = {false};
    dsc_table head = {0};
    dsc_row_file f;
    dsc_error e = {0};
    make_head(&head);
    assert_ok(dsc_row_file_open(&f, path, true, &head, split, take, there, &e), e);
    for (int64_t u = UNITS; u-- > 0;)
        if (!there[u] && u % split->shards + 1 == split->shard)
            add_unit(&f, &head, u);
    assert_ok(dsc_row_file_finish(&f, split->shards > 1, jsonl, &e), e);
    dsc_table_fini(&head);
}

static dsc_split split_of(int64_t shard, int64_t shards)
{
    return (dsc_split){shard, shards, UNITS, 1, 1, 1};
}

static size_t read_whole(const char *path, char *text, size_t size)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t n = fread(text, 1, size, f);
    fclose(f);
    assert_true(n < size);
    text[n] = '\0';
    return n;
}

static void assert_same(const char *path, const char *text)
{
    char now[1 << 14];
    read_whole(path, now, sizeof now);
    assert_string_equal(now, text);
}

static char result[1 << 14], json[1 << 14];

static void writes(void **state)
{
    const dsc_split whole = split_of(1, 1);
    (void)state;
    complete(path_of("a.tsv"), &whole, false);
    read_whole(path_of("a.tsv"), result, sizeof result);
    assert_null(strstr(result, "shard_options"));
    assert_non_null(strstr(result, "\nname\tcount\tx\tlist\n\t0\t\t0.5;2\nodd one\t-10\t\t\n"
                                   "odd one\t-11\t0.333"));
    complete(path_of("a.jsonl"), &whole, true);
    read_whole(path_of("a.jsonl"), json, sizeof json);
    assert_non_null(strstr(json, "{\"name\": \"odd one\", \"count\": -30, \"x\": null, "
                                 "\"list\": [3,1]}\n"));
    assert_int_equal(access(path_of("a.tsv.part"), F_OK), -1);
    assert_int_equal(access(path_of("a.tsv.part.sorted"), F_OK), -1);
}

// An unfinished file of `order`, whose units the digits name.
static size_t leave(const char *path, const char *order)
{
    bool there[UNITS] = {false};
    const dsc_split whole = split_of(1, 1);
    char name[300];
    struct stat st;
    dsc_table head = {0};
    dsc_row_file f;
    dsc_error e = {0};
    make_head(&head);
    snprintf(name, sizeof name, "%s.part", path);
    unlink(name);
    assert_ok(dsc_row_file_open(&f, path, false, &head, &whole, take, there, &e), e);
    for (const char *u = order; *u; u++)
        add_unit(&f, &head, *u - '0');
    dsc_row_file_close(&f, true);
    dsc_table_fini(&head);
    assert_int_equal(stat(name, &st), 0);
    return (size_t)st.st_size;
}

// The process may end after any byte. Unit 3 is written twice.
static void resumes_anywhere(void **state)
{
    const char *path = path_of("cut.tsv");
    const dsc_split whole = split_of(1, 1);
    (void)state;
    size_t size = 1;
    for (size_t cut = 0; cut <= size; cut++) {
        char part[300];
        size = leave(path, "31340");
        snprintf(part, sizeof part, "%s.part", path);
        assert_int_equal(truncate(part, (off_t)cut), 0);
        bool there[UNITS] = {false};
        dsc_table head = {0};
        dsc_row_file f;
        dsc_error e = {0};
        make_head(&head);
        assert_ok(dsc_row_file_open(&f, path, false, &head, &whole, take, there, &e), e);
        assert_true(cut < size || (there[0] && there[1] && there[3] && there[4] && !there[2]));
        for (int64_t u = 0; u < UNITS; u++)
            if (!there[u])
                add_unit(&f, &head, u);
        assert_ok(dsc_row_file_finish(&f, false, false, &e), e);
        dsc_table_fini(&head);
        assert_same(path, result);
        unlink(path);
    }
}

static void merges_shards(void **state)
{
    const dsc_merge_options tsv = {.version = "1", .force = true},
                            lines = {.version = "1", .force = true, .jsonl = true};
    const char *part[SHARDS] = {path_of("s.1"), path_of("s.2")};
    dsc_error e = {0};
    (void)state;
    for (int64_t s = 1; s <= SHARDS; s++) {
        const dsc_split split = split_of(s, SHARDS);
        complete(part[s - 1], &split, false);
    }
    assert_ok(dsc_merge(part, SHARDS, path_of("m.tsv"), &tsv, &e), e);
    assert_same(path_of("m.tsv"), result);
    assert_ok(dsc_merge(part, SHARDS, path_of("m.jsonl"), &lines, &e), e);
    assert_same(path_of("m.jsonl"), json);
    assert_int_equal(dsc_merge(part, 1, path_of("one.tsv"), &tsv, &e), DSC_EUSAGE);
    assert_non_null(strstr(e.message, "missing of 2 shards: 2"));
    struct stat st;
    assert_int_equal(stat(part[1], &st), 0);
    assert_int_equal(truncate(part[1], st.st_size - 30), 0); // in the last of several rows
    assert_int_equal(dsc_merge(part, SHARDS, path_of("one.tsv"), &tsv, &e), DSC_EINPUT);
    assert_int_equal(access(path_of("one.tsv"), F_OK), -1);
}

static void refuses_another_sweep(void **state)
{
    const char *path = path_of("other.tsv");
    bool there[UNITS] = {false};
    const dsc_split other = split_of(1, 2);
    dsc_table head = {0};
    dsc_row_file f;
    dsc_error e = {0};
    (void)state;
    leave(path, "1");
    make_head(&head);
    assert_int_equal(dsc_row_file_open(&f, path, false, &head, &other, take, there, &e),
                     DSC_EUSAGE);
    assert_non_null(strstr(e.message, "different sweep"));
    dsc_row_file_close(&f, true);
    assert_int_equal(access(path_of("other.tsv.part"), F_OK), 0);
    dsc_table_fini(&head);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[300];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

SUITE(row_file)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes),
        cmocka_unit_test(resumes_anywhere),
        cmocka_unit_test(merges_shards),
        cmocka_unit_test(refuses_another_sweep),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

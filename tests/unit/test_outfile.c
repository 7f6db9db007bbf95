// SPDX-License-Identifier: Apache-2.0
// Output files: exclusive temporary names, concurrent writers, links, modes, full disks.
#include "tests/unit/trace_fixture.h"

#include "base/outfile.h"
#include "tests/close.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void put(const char *name, const char *text)
{
    put_file(in_scratch(name), text, strlen(text));
}

static void expect_text(const char *name, const char *text)
{
    dsc_error e;
    char *have;
    size_t n;
    assert_ok(dsc_read_file(&have, &n, in_scratch(name), 1 << 24, &e), e);
    assert_string_equal(have, text);
    free(have);
}

// Counts the files of the scratch folder; with `temporary` only those under temporary names.
static int files;
static bool only_temporary;

static int count_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    const char *name = path + ftw->base;
    files += type != FTW_D && (!only_temporary || dsc_outfile_final_length(name, strlen(name)));
    return 0;
}

static int count_files(bool temporary)
{
    files = 0;
    only_temporary = temporary;
    assert_int_equal(nftw(scratch, count_one, 16, FTW_PHYS), 0);
    return files;
}

static int write_text(const char *name, const char *text, bool force, dsc_error *e)
{
    dsc_outfile f;
    int rc = dsc_outfile_open(&f, in_scratch(name), force, e);
    if (rc)
        return rc;
    fputs(text, f.stream);
    return dsc_outfile_commit(&f, e);
}

static void names_of_the_user_are_left_alone(void **state)
{
    (void)state;
    dsc_error e;
    put("victim", "precious");
    put("x.tmp", "mine");
    assert_int_equal(symlink(in_scratch("victim"), in_scratch("y.tmp")), 0);
    assert_ok(write_text("x", "result", false, &e), e);
    assert_ok(write_text("y", "result", false, &e), e);
    expect_text("x", "result");
    expect_text("x.tmp", "mine");
    expect_text("victim", "precious");
    assert_int_equal(count_files(true), 0);
}

static void a_link_is_replaced_and_not_followed(void **state)
{
    (void)state;
    dsc_error e;
    put("victim", "precious");
    assert_int_equal(symlink(in_scratch("victim"), in_scratch("x")), 0);
    assert_int_equal(write_text("x", "result", false, &e), DSC_EUSAGE);
    assert_ok(write_text("x", "result", true, &e), e);
    expect_text("x", "result");
    expect_text("victim", "precious");
}

static void a_replaced_file_keeps_its_mode(void **state)
{
    (void)state;
    dsc_error e;
    struct stat st;
    put("x", "old");
    assert_int_equal(chmod(in_scratch("x"), 04600), 0);
    assert_ok(write_text("x", "new", true, &e), e);
    assert_int_equal(stat(in_scratch("x"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    mode_t mask = umask(027);
    assert_ok(write_text("y", "new", false, &e), e);
    umask(mask);
    assert_int_equal(stat(in_scratch("y"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
}

static void a_name_taken_meanwhile_loses_nothing(void **state)
{
    (void)state;
    dsc_error e;
    dsc_outfile f;
    assert_ok(dsc_outfile_open(&f, in_scratch("x"), false, &e), e);
    fputs("second", f.stream);
    put("x", "first");
    assert_int_equal(dsc_outfile_commit(&f, &e), DSC_EUSAGE);
    expect_text("x", "first");
    const char *kept = strstr(e.message, "this result is in ");
    assert_non_null(kept);
    char *text;
    size_t n;
    assert_ok(dsc_read_file(&text, &n, kept + strlen("this result is in "), 100, &e), e);
    assert_string_equal(text, "second");
    free(text);
}

// A process that writes 100 kB of one letter.
static pid_t start_writer(char letter, bool force)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child)
        return child;
    dsc_error e;
    dsc_outfile f;
    int rc = dsc_outfile_open(&f, in_scratch("both"), force, &e);
    for (int i = 0; i < 100000 && !rc; i++)
        putc(letter, f.stream);
    _exit(-(rc ? rc : dsc_outfile_commit(&f, &e)));
}

static int wait_for(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return -WEXITSTATUS(status);
}

static void two_writers_write_whole_files(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        bool force = i % 2;
        dsc_error e;
        char *text;
        size_t n;
        unlink(in_scratch("both"));
        pid_t a = start_writer('a', force), b = start_writer('b', force);
        int first = wait_for(a), second = wait_for(b);
        if (force)
            assert_true(!first && !second);
        else
            assert_true((first == DSC_OK) + (second == DSC_OK) == 1 &&
                        first + second == DSC_EUSAGE);
        assert_ok(dsc_read_file(&text, &n, in_scratch("both"), 1 << 20, &e), e);
        assert_int_equal(n, 100000);
        assert_int_equal(strspn(text, *text == 'a' ? "a" : "b"), n);
        if (!force)
            assert_int_equal(*text, first == DSC_OK ? 'a' : 'b');
        free(text);
    }
}

static void a_full_disk_leaves_none_of_several(void **state)
{
    (void)state;
    const struct rlimit small = {1000, RLIM_INFINITY};
    struct rlimit before;
    dsc_error e;
    dsc_outfile f[3] = {{0}};
    const char *const name[] = {"a", "b", "c"};
    signal(SIGXFSZ, SIG_IGN);
    for (int i = 0; i < 3; i++)
        assert_ok(dsc_outfile_open(&f[i], in_scratch(name[i]), false, &e), e);
    fputs("short", f[0].stream);
    for (int i = 0; i < 2000; i++)
        putc('x', f[1].stream);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int rc = dsc_outfile_commit_all(f, 3, &e);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(rc, DSC_EIO);
    assert_non_null(strstr(e.message, "File too large"));
    assert_int_equal(count_files(false), 0);
}

static void bad_names_are_refused(void **state)
{
    (void)state;
    dsc_error e;
    dsc_outfile f;
    put("x", "there");
    assert_int_equal(dsc_outfile_check(in_scratch("x"), false, &e), DSC_EUSAGE);
    assert_non_null(strstr(e.message, "--force"));
    assert_ok(dsc_outfile_check(in_scratch("x"), true, &e), e);
    assert_ok(dsc_outfile_check("-", false, &e), e);
    assert_int_equal(dsc_outfile_open(&f, "", false, &e), DSC_EUSAGE);
    assert_int_equal(dsc_outfile_open(&f, scratch, true, &e), DSC_EUSAGE);
    assert_int_equal(dsc_outfile_open(&f, "/dev/full", true, &e), DSC_EUSAGE);
    assert_int_equal(dsc_outfile_open(&f, in_scratch("no/x"), true, &e), DSC_EIO);
    assert_int_equal(count_files(false), 1);
}

// A check that is killed leaves nothing, because the file that it makes has no name.
static void a_check_makes_no_name(void **state)
{
    (void)state;
    dsc_error e;
    char event[4096];
    int nameless = open(scratch, O_TMPFILE | O_WRONLY, 0600);
    if (nameless < 0)
        skip(); // a file system whose files all have names
    close(nameless);
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (watch < 0)
        skip();
    assert_true(inotify_add_watch(watch, scratch, IN_CREATE | IN_DELETE | IN_MOVE) >= 0);
    assert_ok(dsc_outfile_check(in_scratch("new"), false, &e), e);
    assert_ok(dsc_outfile_check(in_scratch("new"), true, &e), e);
    assert_int_equal(read(watch, event, sizeof event), -1);
    assert_int_equal(errno, EAGAIN);
    put("new", "seen");
    assert_true(read(watch, event, sizeof event) > 0);
    close(watch);
    assert_int_equal(dsc_outfile_check(in_scratch("no/x"), false, &e), DSC_EIO);
    assert_int_equal(dsc_outfile_check("", false, &e), DSC_EUSAGE);
}

static void temporary_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t length;
    } cases[] = {{"x.abcd0123.tmp", 1}, {"manifest.json.zzzzzzzz.tmp", 13},
                 {"x.tmp", 0},          {".abcd0123.tmp", 0},
                 {"x.ABCD0123.tmp", 0}, {"x.abcd0123.part", 0},
                 {"x.abcd012.tmp", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(dsc_outfile_final_length(cases[i].name, strlen(cases[i].name)),
                         cases[i].length);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_scratch, remove_scratch)

SUITE(outfile)
{
    const struct CMUnitTest tests[] = {
        TEST(names_of_the_user_are_left_alone),
        TEST(a_link_is_replaced_and_not_followed),
        TEST(a_replaced_file_keeps_its_mode),
        TEST(a_name_taken_meanwhile_loses_nothing),
        TEST(two_writers_write_whole_files),
        TEST(a_full_disk_leaves_none_of_several),
        TEST(bad_names_are_refused),
        TEST(a_check_makes_no_name),
        cmocka_unit_test(temporary_names),
    };
    return cmocka_run_group_tests_name("outfile", tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// The memory of draftscope serve grows with the running requests, not with those that it serves: a
// million take at most a few megabytes more than ten thousand. With --per-request, the times of one
// run's requests are kept until it ends, but not their rows.
#include "tests/close.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/draftscope-memory-XXXXXX";
static const char *program;

// Runs the program; returns the most memory that it had, in KiB.
static long run(const char *const *argument)
{
    const char *argv[32] = {program};
    struct rusage use;
    int status, n = 1;
    while (*argument)
        argv[n++] = *argument++;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        execv(program, (char *const *)argv);
        _exit(99);
    }
    assert_int_equal(wait4(child, &status, 0, &use), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    return use.ru_maxrss;
}

static long serve(const char *requests, const char *more)
{
    char trace[64], out[64];
    snprintf(trace, sizeof trace, "%s/a.dst", folder);
    snprintf(out, sizeof out, "%s/out.tsv", folder);
    const char *const argument[] = {"serve",
                                    trace,
                                    "--method",
                                    "ngram",
                                    "--num-speculative-tokens",
                                    "3",
                                    "--cost",
                                    "linear:0.01,0.001",
                                    "--arrivals",
                                    "closed:16",
                                    "--requests",
                                    requests,
                                    "--threads",
                                    "1",
                                    "--force",
                                    "-o",
                                    out,
                                    more,
                                    NULL};
    return run(argument);
}

static void import_trace(void)
{
    char lines[64], trace[64];
    snprintf(lines, sizeof lines, "%s/in.jsonl", folder);
    snprintf(trace, sizeof trace, "%s/a.dst", folder);
    FILE *f = fopen(lines, "w");
    assert_non_null(f);
    for (int i = 0; i < 50; i++)
        fprintf(f, "{\"prompt\": \"a %d\", \"output\": \"b %d\"}\n", i, i % 7);
    fclose(f);
    const char *const argument[] = {"trace", "import", "--tokenizer", "bytes",
                                    lines,   "-o",     trace,         NULL};
    (void)run(argument);
}

static void constant(void **state)
{
    (void)state;
    import_trace();
    const long few = serve("10000", NULL), many = serve("1000000", NULL);
    printf("[          ] %ld and %ld KiB\n", few, many);
    assert_in_range(many, 0, few + 4096);
}

// A request takes 56 bytes while its run lasts; its row has a kilobyte.
static void per_request(void **state)
{
    (void)state;
    const long few = serve("10000", "--per-request"), many = serve("100000", "--per-request");
    printf("[          ] %ld and %ld KiB\n", few, many);
    assert_in_range(many, 0, few + (90000 * 56 >> 10) + (32 << 10));
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

#ifdef __SANITIZE_ADDRESS__
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

SUITE(memory)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(constant), cmocka_unit_test(per_request)};
    if (SANITIZED) { // it keeps freed memory
        puts("memory is not measured under a sanitizer");
        return SUITE_SKIPPED;
    }
    program = getenv("DRAFTSCOPE") ? getenv("DRAFTSCOPE") : "./draftscope";
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

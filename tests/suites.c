// SPDX-License-Identifier: Apache-2.0
// The program of a folder of tests. It runs the suites (tests/close.h) that its arguments name, or
// all of them, each in a process of its own: what one sets, leaks or breaks does not reach another.
#include "tests/close.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

static const char usage[] =
    "Usage: PROGRAM [--device DEVICE] [SUITE]...\n"
    "Runs these suites, or all; SUITE may be a pattern (load*). The environment variable ONLY has "
    "more\n"
    "of them: make check TESTS=tests/unit/unit ONLY='split load*'.\n"
    "  --device DEVICE   cpu, cuda or cuda:INDEX, for suites that run on one\n"
    "  --list            print the names of the suites\n"
    "Exit code: 0, 1 if a test failed, 2 for a wrong call, 77 if all was skipped.\n";

enum { SKIPPED = 77, MOST = 64 };

// From the linker: the section that SUITE fills.
extern const test_suite *const __start_suites[], *const __stop_suites[];

const char *suite_device;

typedef struct selection {
    char *pattern[MOST];
    int count, optional; // the first ones, of ONLY, may be for other programs
} selection;

static bool is_selected(const selection *s, const char *suite)
{
    for (int i = 0; i < s->count; i++)
        if (!fnmatch(s->pattern[i], suite, 0))
            return true;
    return !s->count;
}

static bool is_here(const char *pattern)
{
    for (const test_suite *const *p = __start_suites; p < __stop_suites; p++)
        if (!fnmatch(pattern, (*p)->name, 0))
            return true;
    fprintf(stderr, "no suite '%s': see --list\n", pattern);
    return false;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Returns 0, 1 or SKIPPED.
static int run_suite(const test_suite *s)
{
    const double start = seconds();
    int status;
    printf("# %s\n", s->name);
    fflush(stdout);
    const pid_t child = fork();
    if (!child) {
        const int failed = s->run();
        exit(failed == SUITE_SKIPPED ? SKIPPED : failed != 0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("fork");
        return 1;
    }
    if (WIFSIGNALED(status))
        printf("%s: signal %d (%s)\n", s->name, WTERMSIG(status), strsignal(WTERMSIG(status)));
    printf("# %s: %.1f s\n", s->name, seconds() - start);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    return code == 0 || code == SKIPPED ? code : 1;
}

static int run_all(const selection *s)
{
    int ran = 0, skipped = 0, failed = 0;
    for (int i = s->optional; i < s->count; i++)
        if (!is_here(s->pattern[i]))
            return 2;
    for (const test_suite *const *p = __start_suites; p < __stop_suites; p++) {
        if (!is_selected(s, (*p)->name))
            continue;
        const int code = run_suite(*p);
        ran++;
        skipped += code == SKIPPED;
        failed += code == 1;
        if (code == 1)
            printf("not ok - suite %s\n", (*p)->name);
    }
    printf("# %d suites, %d failed, %d skipped\n", ran, failed, skipped);
    return failed ? 1 : skipped == ran ? SKIPPED : 0;
}

static void select_suites(selection *s, char *names)
{
    for (char *p = strtok(names, " "); p; p = strtok(NULL, " ")) {
        if (s->count == MOST) {
            fprintf(stderr, "more than %d suites: use patterns\n", MOST);
            exit(2);
        }
        s->pattern[s->count++] = p;
    }
}

int main(int argc, char **argv)
{
    selection s = {.count = 0};
    char *only = getenv("ONLY");
    if (only)
        select_suites(&s, only);
    s.optional = s.count;
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--device") && i + 1 < argc) {
            suite_device = argv[++i];
        } else if (!strcmp(argv[i], "--list")) {
            for (const test_suite *const *p = __start_suites; p < __stop_suites; p++)
                puts((*p)->name);
            return 0;
        } else if (!strcmp(argv[i], "--help")) {
            fputs(usage, stdout);
            return 0;
        } else if (*argv[i] == '-') {
            fputs(usage, stderr);
            return 2;
        } else {
            select_suites(&s, argv[i]);
        }
    return run_all(&s);
}

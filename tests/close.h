// SPDX-License-Identifier: Apache-2.0
// What all tests in C have: suites, assertions that the cmocka of Debian 12 lacks, and the location
// of test data.
#ifndef DSC_TESTS_CLOSE_H
#define DSC_TESTS_CLOSE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h wants the four above first.
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// A file of tests is a suite of the program of its folder (tests/suites.c):
//
//     SUITE(dist) // in test_dist.c
//     {
//         const struct CMUnitTest tests[] = {...};
//         return cmocka_run_group_tests(tests, NULL, NULL);
//     }
//
// It returns the number of failed tests, or SUITE_SKIPPED if it can test nothing here.
enum { SUITE_SKIPPED = -77 };

typedef struct test_suite {
    const char *name;
    int (*run)(void);
} test_suite;

#define SUITE(suite)                                                                               \
    static int run_##suite(void);                                                                  \
    static const test_suite suite_##suite = {#suite, run_##suite};                                 \
    static const test_suite *const listed_##suite __attribute__((used, section("suites"))) =       \
        &suite_##suite;                                                                            \
    static int run_##suite(void)

extern const char *suite_device; // of --device, or NULL

#define assert_close(a, b, tolerance)                                                              \
    do {                                                                                           \
        double a_ = (a), b_ = (b);                                                                 \
        if (!(fabs(a_ - b_) <= (tolerance)))                                                       \
            fail_msg("%s = %.17g, %s = %.17g, tolerance %g", #a, a_, #b, b_, (double)(tolerance)); \
    } while (0)

// DSC_OK, or the message.
#define assert_ok(call, err)                                                                       \
    do {                                                                                           \
        if ((call) != DSC_OK)                                                                      \
            fail_msg("%s: %s", #call, (err).message);                                              \
    } while (0)

// Returns the number of draws, requests, files or figures to test: `few`, or `many` where
// DSC_TEST_ALL is set, as make check-all does.
static inline int few_or_many(int few, int many)
{
    const char *all = getenv("DSC_TEST_ALL");
    return all && *all ? many : few;
}

// A file of the source tree.
static inline const char *source_path(const char *name, char *out, size_t size)
{
    const char *top = getenv("top_srcdir");
    snprintf(out, size, "%s/%s", top ? top : ".", name);
    return out;
}

// A file of the development data, which is beside the source tree and not part of it; skips the
// test when it is not there.
static inline const char *data_path(const char *name, char *out, size_t size)
{
    const char *data = getenv("DSC_TEST_DATA"), *top = getenv("top_srcdir");
    if (data)
        snprintf(out, size, "%s/%s", data, name);
    else
        snprintf(out, size, "%s/../shared/data/%s", top ? top : ".", name);
    if (access(out, R_OK))
        skip();
    return out;
}

#endif

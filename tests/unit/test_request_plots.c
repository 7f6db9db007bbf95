// SPDX-License-Identifier: Apache-2.0
// The figure of request order: each point is the quotient of the sums over its requests, counted
// here one by one; lines are configurations in the order of their own rows; a table of totals is
// refused.
#include "tests/unit/plot_check.h"
#include "tests/unit/plot_fixture.h"

#include <math.h>

#define FIELDS                                                                                     \
    "request# id$ method$ max_cached_requests# requests# target_calls# num_accepted_tokens#"

static double calls_of(int request)
{
    return 10 + request % 7;
}

static double accepted_of(int request, int cache)
{
    return cache ? 20 * (1 - exp(-request / 5.)) : 3 + request % 5;
}

// Adds a row for each request, whose index begins at `first`.
static void fill(dsc_table *t, int requests, int first)
{
    if (!t->columns)
        add_named(t, FIELDS);
    for (int cache = 0; cache <= 100; cache += 100)
        for (int i = 0; i < requests; i++)
            add_row(t, (double[]){first + i, cache, 1, calls_of(i), floor(accepted_of(i, cache))},
                    (const char *[]){"q", "suffix"});
}

// Requests [from, end), counted from 0.
static double quotient(int from, int end, int cache)
{
    double calls = 0, accepted = 0;
    for (int i = from; i < end; i++) {
        calls += calls_of(i);
        accepted += floor(accepted_of(i, cache));
    }
    return accepted / calls;
}

static void blocks(void **state)
{
    (void)state;
    for (int first = 0; first <= 500; first += 500) {
        dsc_table t = {0};
        dsc_drawing d;
        fill(&t, 37, first);
        draw("request-order", &t, NULL, "svg", &d);
        check_script(&d.script);
        assert_int_equal(d.data.rows, 12); // requests 1, 2-3, 4-7, 8-15, 16-31 and 32-37
        for (size_t i = 0; i < 12; i++) {
            const int from = 1 << i % 6, end = 2 * from < 38 ? 2 * from : 38;
            assert_true(drawn(&d, i, "first_request") == from);
            assert_true(drawn(&d, i, "requests") == end - from);
            assert_close(drawn(&d, i, "accepted_per_call"),
                         quotient(from - 1, end - 1, i < 6 ? 0 : 100), 1e-12);
        }
        assert_contains(&d.script, "set logscale x 2");
        assert_contains(&d.finding, "max_cached_requests 100: 0 for request 1");
        dsc_drawing_fini(&d);
        draw("request-order", &t, NULL, "dumb", &d);
        dsc_drawing_fini(&d);
        const dsc_figure_filter one = {"max_cached_requests", "100"};
        draw("request-order", &t, &(dsc_figure_options){.filter = &one, .filters = 1}, "svg", &d);
        assert_int_equal(d.data.rows, 6);
        assert_close(drawn(&d, 5, "accepted_per_call"), quotient(31, 37, 100), 1e-12);
        dsc_drawing_fini(&d);
        dsc_table_fini(&t);
    }
}

static void single_request(void **state)
{
    (void)state;
    dsc_table t = {0};
    dsc_drawing d;
    fill(&t, 1, 0);
    draw("request-order", &t, NULL, "svg", &d);
    assert_int_equal(d.data.rows, 2);
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

static void refused(void **state)
{
    (void)state;
    dsc_table t = {0};
    add_named(&t, "method$ requests# target_calls# num_accepted_tokens#");
    add_row(&t, (double[]){9, 100, 50}, (const char *[]){"suffix"});
    refuse("request-order", &t, NULL, "sim --per-request prints a row per request");
    dsc_table_fini(&t);
    add_named(&t, FIELDS);
    refuse("request-order", &t, NULL, "no rows");
    add_row(&t, (double[]){0, 10, 1, 0, 0}, (const char *[]){"q", "suffix"});
    refuse("request-order", &t, NULL, "accepted_per_call");
    dsc_table_fini(&t);
    add_named(&t, "request# method$ requests# target_calls#");
    add_row(&t, (double[]){0, 1, 10}, (const char *[]){"suffix"});
    refuse("request-order", &t, NULL, "num_accepted_tokens");
    dsc_table_fini(&t);
}

SUITE(request_plots)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks),
        cmocka_unit_test(single_request),
        cmocka_unit_test(refused),
    };
    if (!in_path("gnuplot")) {
        puts("no gnuplot: skipped");
        return SUITE_SKIPPED;
    }
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}

// SPDX-License-Identifier: Apache-2.0
// Block efficiency, conditional acceptance rates with right-censoring and autocorrelation of
// accepted counts, against figures counted by hand and against the definitions applied to random
// sequences.
#include "tests/close.h"

#include "base/rng.h"
#include "traces/trace/accept_tally.h"

#include <math.h>

static void add(dsc_accept_tally *t, const int32_t (*step)[2], int n)
{
    dsc_error err = {0};
    dsc_accept_tally_begin(t);
    for (int i = 0; i < n; i++)
        assert_ok(dsc_accept_tally_add(t, step[i][0], step[i][1], &err), err);
}

static void expect_conditional_rate(const dsc_accept_tally *t, int32_t i, int64_t passed,
                                    int64_t reached)
{
    int64_t n;
    assert_close(dsc_accept_tally_conditional_rate(t, i, &n), (double)passed / (double)reached,
                 1e-15);
    assert_int_equal(n, reached);
}

// {accepted, drafted}
static void counted_by_hand(void **state)
{
    (void)state;
    static const int32_t first[][2] = {{2, 2}, {0, 3}, {3, 3}, {1, 4}},
                         second[][2] = {{1, 1}, {2, 4}};
    dsc_accept_tally t = {0};
    int64_t n;
    add(&t, first, 4);
    add(&t, second, 2);
    assert_int_equal(t.steps, 6);
    assert_close(dsc_accept_tally_block_efficiency(&t), 15.0 / 6, 1e-15);
    assert_int_equal(dsc_accept_tally_depth(&t), 3);
    expect_conditional_rate(&t, 1, 5, 6);
    expect_conditional_rate(&t, 2, 3, 4); // {1, 1} drafted no second token
    expect_conditional_rate(&t, 3, 1, 2); // {2, 2} drafted no third one
    assert_true(isnan(dsc_accept_tally_conditional_rate(&t, 0, &n)));
    assert_true(isnan(dsc_accept_tally_conditional_rate(&t, 4, &n)) && n == 0);
    // Pairs (2,0) (0,3) (3,1), and (1,2) of the second request; not (1,1) across.
    assert_int_equal(t.pairs, 4);
    assert_close(dsc_accept_tally_autocorrelation(&t), -0.8, 1e-12);
    dsc_accept_tally_fini(&t);
}

// A rejection at the largest count: one more was drafted there, and never accepted.
static void the_last_depth(void **state)
{
    (void)state;
    static const int32_t known[][2] = {{1, 2}, {0, 2}}, unknown[][2] = {{1, -1}, {0, -1}};
    dsc_accept_tally t = {0};
    add(&t, known, 2);
    assert_int_equal(dsc_accept_tally_depth(&t), 2);
    expect_conditional_rate(&t, 2, 0, 1);
    dsc_accept_tally_fini(&t);
    add(&t, unknown, 2);
    assert_int_equal(dsc_accept_tally_depth(&t), 1);
    expect_conditional_rate(&t, 1, 1, 2);
    dsc_accept_tally_fini(&t);
}

static void nothing(void **state)
{
    (void)state;
    static const int32_t plain[][2] = {{0, 0}, {0, 0}, {0, 0}};
    dsc_accept_tally t = {0};
    assert_true(isnan(dsc_accept_tally_block_efficiency(&t)));
    assert_int_equal(dsc_accept_tally_depth(&t), 0);
    add(&t, plain, 3);
    assert_close(dsc_accept_tally_block_efficiency(&t), 1, 0);
    assert_int_equal(dsc_accept_tally_depth(&t), 0);
    assert_true(isnan(dsc_accept_tally_autocorrelation(&t)));
    dsc_accept_tally_fini(&t);
}

// Drafts of random lengths with known conditional acceptance rates: the estimates are within four
// standard errors, which they would not be if censored steps counted as rejections.
static void censoring_does_not_bias(void **state)
{
    (void)state;
    static const double conditional_rate[] = {0.9, 0.8, 0.7, 0.5};
    dsc_accept_tally t = {0};
    dsc_error err = {0};
    dsc_accept_tally_begin(&t);
    for (int64_t i = 0; i < 40000; i++) {
        int32_t drafted = 1 + (int32_t)(4 * dsc_rng_uniform(7, (uint64_t)i, 0, 1)), accepted = 0;
        while (accepted < drafted && dsc_rng_uniform(7, (uint64_t)i, 1 + (uint32_t)accepted, 1) <
                                         conditional_rate[accepted])
            accepted++;
        assert_ok(dsc_accept_tally_add(&t, accepted, drafted, &err), err);
    }
    assert_int_equal(dsc_accept_tally_depth(&t), 4);
    for (int32_t i = 1; i <= 4; i++) {
        int64_t n;
        double h = conditional_rate[i - 1], got = dsc_accept_tally_conditional_rate(&t, i, &n);
        assert_close(got, h, 4 * sqrt(h * (1 - h) / (double)n));
    }
    assert_close(dsc_accept_tally_autocorrelation(&t), 0, 4 / sqrt(40000));
    dsc_accept_tally_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counted_by_hand),
        cmocka_unit_test(the_last_depth),
        cmocka_unit_test(nothing),
        cmocka_unit_test(censoring_does_not_bias),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// Block efficiency, conditional acceptance rates with right-censoring and autocorrelation of
// accepted counts, against figures counted by hand and against the definitions applied to random
// sequences.
#include "tests/close.h"

#include "base/rng.h"
#include "theory/block.h"
#include "traces/trace/accept_tally.h"

#include <math.h>

static void add(dsc_accept_tally *t, const int32_t (*step)[2], int n)
{
    dsc_error err = {0};
    dsc_accept_tally_begin(t);
    for (int i = 0; i < n; i++)
        assert_ok(dsc_accept_tally_add(t, step[i][0], step[i][1], &err), err);
}

// The metrics of a tally; the arena is reset by the next call.
static dsc_metrics metrics_of(const dsc_accept_tally *t)
{
    static dsc_arena arena;
    dsc_error err = {0};
    dsc_metrics m;
    const dsc_metric_counts c = dsc_accept_tally_counts(t);
    dsc_arena_reset(&arena);
    assert_ok(dsc_metrics_init(&m, &c, &arena, &err), err);
    return m;
}

static void expect_position(const dsc_metrics *m, int64_t i, double all, double accepted,
                            double reached)
{
    assert_true(i <= m->positions);
    assert_close(m->acceptance_rate_pos[i - 1], accepted / all, 1e-15);
    assert_close(m->conditional_acceptance_rate[i - 1], accepted / reached, 1e-15);
    assert_close(m->reached[i - 1], reached, 0);
}

// {accepted, drafted}
static void counted_by_hand(void **state)
{
    (void)state;
    static const int32_t first[][2] = {{2, 2}, {0, 3}, {3, 3}, {1, 4}, {0, 0}},
                         second[][2] = {{1, 1}, {2, 4}};
    dsc_accept_tally t = {0};
    add(&t, first, 5);
    add(&t, second, 2);
    assert_int_equal(t.steps, 7);
    const dsc_metrics m = metrics_of(&t);
    assert_close(m.block_efficiency, 16.0 / 7, 1e-15);
    assert_close(m.mean_acceptance_length, 15.0 / 6, 1e-15); // the step without a draft is none
    assert_close(m.draft_acceptance_rate, 9.0 / 17, 1e-15);
    assert_int_equal(m.positions, 3);
    expect_position(&m, 1, 6, 5, 6);
    expect_position(&m, 2, 6, 3, 4); // {1, 1} drafted no second token
    expect_position(&m, 3, 6, 1, 2); // {2, 2} drafted no third one
    const double a = m.alpha_iid;    // lengths 2 3 3 4 1 4
    assert_close(6 * a + 5 * a * a + 4 * pow(a, 3) + 2 * pow(a, 4), 9, 1e-12);
    // Pairs (2,0) (0,3) (3,1) (1,0), and (1,2) of the second request; not (0,1) across.
    assert_int_equal(t.pairs, 5);
    assert_close(dsc_accept_tally_autocorrelation(&t), -17 / sqrt(26 * 34.), 1e-12);
    dsc_accept_tally_fini(&t);
}

// A rejection after the most accepted tokens: one more was drafted there, and never accepted.
static void the_last_position(void **state)
{
    (void)state;
    static const int32_t known[][2] = {{1, 2}, {0, 2}}, unknown[][2] = {{1, -1}, {0, -1}};
    dsc_accept_tally t = {0};
    add(&t, known, 2);
    dsc_metrics m = metrics_of(&t);
    assert_int_equal(m.positions, 2);
    expect_position(&m, 2, 2, 0, 1);
    assert_close(m.alpha_iid, (sqrt(3) - 1) / 2, 1e-14); // 2 a + 2 a^2 = 1
    dsc_accept_tally_fini(&t);
    add(&t, unknown, 2);
    m = metrics_of(&t);
    assert_int_equal(m.positions, 1);
    expect_position(&m, 1, 2, 1, 2);
    assert_close(m.mean_acceptance_length, 1.5, 0);
    assert_true(isnan(m.draft_acceptance_rate) && isnan(m.alpha_iid));
    dsc_accept_tally_fini(&t);
}

static void nothing(void **state)
{
    (void)state;
    static const int32_t plain[][2] = {{0, 0}, {0, 0}, {0, 0}};
    dsc_accept_tally t = {0};
    dsc_metrics m = metrics_of(&t);
    assert_true(isnan(m.block_efficiency) && isnan(m.alpha_iid));
    assert_int_equal(m.positions, 0);
    add(&t, plain, 3);
    m = metrics_of(&t);
    assert_close(m.block_efficiency, 1, 0);
    assert_true(isnan(m.mean_acceptance_length) && isnan(m.alpha_iid));
    assert_int_equal(m.positions, 0);
    assert_true(isnan(dsc_accept_tally_autocorrelation(&t)));
    dsc_accept_tally_fini(&t);
}

// Drafts of one length: alpha_iid is the rate of the closed form; 0 and 1 are reached exactly.
static void alpha_of_one_length(void **state)
{
    (void)state;
    for (int length = 1; length <= 9; length += 2)
        for (int accepted = 0; accepted <= length; accepted++) {
            const int32_t step[][2] = {{accepted, length}, {0, length}, {length, length}};
            const int n = accepted == 0 ? 2 : accepted == length ? 1 : 3;
            dsc_accept_tally t = {0};
            add(&t, step, n);
            const double mean = (double)t.accepted / n;
            assert_close(metrics_of(&t).alpha_iid, dsc_iid_rate(mean, length), 1e-12);
            dsc_accept_tally_fini(&t);
        }
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
    const dsc_metrics m = metrics_of(&t);
    assert_int_equal(m.positions, 4);
    for (int i = 0; i < 4; i++) {
        const double h = conditional_rate[i];
        assert_close(m.conditional_acceptance_rate[i], h, 4 * sqrt(h * (1 - h) / m.reached[i]));
    }
    assert_close(dsc_accept_tally_autocorrelation(&t), 0, 4 / sqrt(40000));
    dsc_accept_tally_fini(&t);
}

SUITE(accept_tally)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counted_by_hand),
        cmocka_unit_test(the_last_position),
        cmocka_unit_test(nothing),
        cmocka_unit_test(alpha_of_one_length),
        cmocka_unit_test(censoring_does_not_bias),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

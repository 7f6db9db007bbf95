// SPDX-License-Identifier: Apache-2.0
// Controllers of the draft length: candidates, the moving average by hand, and upper confidence
// bounds.
#include "sim/controller.h"
#include "tests/close.h"

#include "base/rng.h"

#include <math.h>
#include <string.h>

static dsc_candidates candidates(const char *text)
{
    dsc_candidates c;
    assert_true(dsc_candidates_read(&c, 0, 100, &text));
    assert_string_equal(text, "");
    return c;
}

static void candidates_are_sorted(void **state)
{
    (void)state;
    const char *bad[] = {"",   "x",   "1/",   "101",
                         "-1", "1.5", "1//2", "1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17"};
    dsc_candidates c = candidates("7/0/3/7/1");
    assert_int_equal(c.count, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(c.k[i], ((int[]){0, 1, 3, 7})[i]);
    assert_int_equal(dsc_candidates_add(&c, 5), 3);
    assert_int_equal(dsc_candidates_add(&c, 3), 2);
    assert_int_equal(c.count, 5);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *text = bad[i];
        assert_false(dsc_candidates_read(&c, 0, 100, &text));
    }
    c = candidates("5");
    for (int32_t k = 0; k < DSC_MOST_CANDIDATES; k++)
        assert_int_equal(dsc_candidates_add(&c, k), k);
    assert_int_equal(dsc_candidates_add(&c, 99), -1);
}

// The lengths after each of the given numbers of accepted tokens.
static void ema_follows(dsc_ema x, const char *steps, int32_t initial, const char *accepted,
                        const int *expected)
{
    const dsc_candidates c = candidates(steps);
    dsc_ema_begin(&x, &c, initial);
    for (size_t i = 0; accepted[i]; i++) {
        dsc_ema_update(&x, &c, accepted[i] - '0');
        assert_int_equal(c.k[x.current], expected[i]);
    }
}

static void ema_by_hand(void **state)
{
    (void)state;
    // An average of the last step only: thresholds k - 0.5 to rise, and below - 0.75 to fall.
    dsc_ema last = {.ema_alpha = 1, .update_interval = 1, .down_hysteresis = -0.25};
    ema_follows(last, "1/3/5", 1, "2325410", (int[]){3, 5, 3, 5, 5, 3, 1});
    // From 2, the average moves to 1, 0.5, 2.25, 3.125, or to 0.125 and 3.03. The first two steps
    // are the warm-up, then every second one counts.
    dsc_ema slow = {.ema_alpha = 0.5, .update_interval = 2, .warmup_batches = 2};
    ema_follows(slow, "1/3/5", 1, "00444", (int[]){3, 3, 3, 5, 5});
    ema_follows(slow, "1/3/5", 1, "000044", (int[]){3, 3, 3, 1, 1, 5});
    // 0 is left at the next update; a fall excludes a rise, although both thresholds allow it.
    dsc_ema none = {.ema_alpha = 1, .update_interval = 1, .down_hysteresis = 1};
    ema_follows(none, "0/2/4", 1, "1000", (int[]){0, 2, 0, 2});
    // The ceiling of an average of 2 is 3; it never holds back a rise.
    dsc_ema capped = {
        .ema_alpha = 1, .update_interval = 1, .down_hysteresis = -9, .ceiling_coeff = 1.5};
    ema_follows(capped, "1/3/5/7", 2, "25", (int[]){3, 7});
    // Without a history the average starts at that of the first positive length.
    dsc_candidates c = candidates("0/2");
    dsc_ema_begin(&none, &c, 0);
    assert_close(none.average, -1, 0);
    dsc_ema_update(&none, &c, 0);
    assert_close(none.average, 1, 0);
}

// The candidate with the largest mean is chosen most, and no other is given up. tests/golden has
// the bounds of the whole history.
static void ucb_finds_the_best(void **state)
{
    (void)state;
    enum { STEPS = 300, BEST = 2 };
    for (int radius = DSC_UCB_PAPER; radius <= DSC_UCB_UCB1; radius++) {
        const dsc_candidates c = candidates("0/1/4/9");
        dsc_ucb x = {.radius = (dsc_ucb_radius)radius, .delta = 0.2, .exploration_weight = 2};
        int32_t used[4] = {0};
        dsc_ucb_begin(&x);
        for (int t = 0; t < STEPS; t++) {
            const int32_t i = dsc_ucb_choose(&x, &c);
            dsc_ucb_update(&x, i,
                           dsc_rng_uniform(7, (uint64_t)t, (uint32_t)radius, 1) + (i == BEST));
            used[i]++;
        }
        for (int i = 0; i < 4; i++)
            assert_true(i == BEST ? used[i] > STEPS / 4 : used[i] >= 1 && used[i] < used[BEST]);
    }
}

SUITE(controller)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(candidates_are_sorted),
        cmocka_unit_test(ema_by_hand),
        cmocka_unit_test(ucb_finds_the_best),
    };
    return cmocka_run_group_tests_name("controllers", tests, NULL, NULL);
}

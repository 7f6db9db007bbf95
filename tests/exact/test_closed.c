// SPDX-License-Identifier: Apache-2.0
// Closed forms of one draft sequence per target call, and of Ouroboros, against sums, simulation,
// the papers' own numbers and each other.
#include "tests/close.h"

#include "base/rng.h"
#include "theory/block.h"
#include "theory/ouroboros.h"

#include <string.h>

static dsc_error err;

static double power_sum(double a, int length)
{
    long double sum = 0, power = 1;
    for (int j = 1; j <= length; j++)
        sum += power *= a;
    return (double)sum;
}

// Compares with the sum of the series, where the quotient would cancel as well.
static void test_iid(void **state)
{
    (void)state;
    static const double rate[] = {0,    5e-324,   1e-300,    1e-9,         0.1, 0.5,
                                  0.75, 0.999999, 1 - 1e-12, 1 - 1.11e-16, 1};
    for (size_t i = 0; i < sizeof rate / sizeof *rate; i++)
        for (int length = 0; length <= 300; length = length * 2 + 1) {
            double exact = power_sum(rate[i], length);
            assert_close(dsc_iid_accepted(rate[i], length), exact, 4e-15 * exact);
        }
    assert_true(dsc_iid_accepted(1, 7) == 7);
    assert_true(dsc_iid_accepted(0, 7) == 0);
    assert_true(dsc_iid_accepted(0.5, 0) == 0);
}

static void test_iid_rate(void **state)
{
    (void)state;
    for (int length = 1; length <= 64; length += 7)
        for (double a = 0; a <= 1; a += 0.0625)
            assert_close(dsc_iid_rate(dsc_iid_accepted(a, length), length), a, 1e-12);
    assert_true(dsc_iid_rate(0, 4) == 0);
    assert_true(dsc_iid_rate(4, 4) == 1);
}

// Leviathan et al. 2023, Table 1 (inference speed with a draft that costs nothing).
static void test_leviathan(void **state)
{
    (void)state;
    static const struct {
        double rate;
        int length;
        double speed;
    } row[] = {{0.6, 2, 1.96}, {0.7, 3, 2.53}, {0.8, 2, 2.44},
               {0.8, 5, 3.69}, {0.9, 2, 2.71}, {0.9, 10, 6.86}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        assert_close(dsc_block_speedup(dsc_iid_accepted(row[i].rate, row[i].length), row[i].length,
                                       (dsc_block_cost){0}),
                     row[i].speed, 0.005);
    // Theorem 3.8, and the slope of the target call in addition.
    assert_close(dsc_block_speedup(dsc_iid_accepted(0.75, 7), 7, (dsc_block_cost){.draft = 0.02}),
                 (1 - pow(0.75, 8)) / (0.25 * 1.14), 1e-14);
    assert_close(dsc_block_speedup(1.5, 4, (dsc_block_cost){0.05, 0.01}), 2.5 / 1.24, 1e-15);
    assert_close(dsc_block_speedup(0, 0, (dsc_block_cost){0.05, 0.01}), 1, 0);
}

// Simulated steps stop at the first rejection; their mean is within 4 standard errors of the closed
// form.
static void test_simulation(void **state)
{
    (void)state;
    enum { ROUNDS = 40000 };
    static const double conditional_rate[] = {0.58, 0.66, 0.71, 0.75, 0.8, 0.83, 0.86};
    static const dsc_acceptance dists[] = {
        {.rate = 0.8}, {.conditional_rate = conditional_rate, .conditional_rates = 7}};
    for (size_t l = 0; l < 2; l++) {
        double expected[8], sum = 0, squares = 0;
        dsc_conditional_count count[7] = {{0}};
        assert_ok(dsc_block_accepted(&dists[l], 7, expected, &err), err);
        for (uint32_t round = 0; round < ROUNDS; round++) {
            int drafted = 1 + (int)(round % 7), m = 0; // of different lengths: censored differently
            for (uint32_t j = 0; (int)j < drafted; j++, m++)
                if (dsc_rng_uniform(7, l, round, j) >=
                    (conditional_rate[j] - dists[l].rate) * (double)l + dists[l].rate)
                    break;
            assert_ok(dsc_conditional_add(count, 7, m, drafted, 1, &err), err);
            sum += m - expected[drafted];
            squares += (m - expected[drafted]) * (m - expected[drafted]);
        }
        assert_close(sum / ROUNDS, 0, 4 * sqrt(squares) / ROUNDS);
        for (int j = 0; j < 7; j++) {
            double h = l ? conditional_rate[j] : dists[l].rate;
            assert_close(dsc_conditional_rate(&count[j]), h,
                         4 * sqrt(h * (1 - h) / (double)count[j].at_risk));
        }
    }
}

static void test_conditional_rates(void **state)
{
    (void)state;
    // SGLang's histogram of a chain of 5: 43 steps, 63 accepted, 106 tokens.
    static const int64_t histogram[] = {11, 14, 11, 4, 0, 3};
    dsc_conditional_count count[6] = {{0}};
    int64_t steps = 0, accepted = 0;
    for (int m = 0; m <= 5; m++) {
        assert_ok(dsc_conditional_add(count, 5, m, 5, histogram[m], &err), err);
        steps += histogram[m];
        accepted += m * histogram[m];
    }
    assert_int_equal(steps, 43);
    assert_int_equal(accepted, 63);
    assert_int_equal(count[0].at_risk, 43);
    assert_int_equal(count[0].accepted, 32);
    assert_int_equal(count[3].at_risk, 7);
    assert_int_equal(count[3].accepted, 3);
    assert_int_equal(count[5].at_risk, 0); // no step drafted a sixth token
    assert_true(isnan(dsc_conditional_rate(&count[5])));
    double conditional_rate[5], curve[6];
    for (int j = 0; j < 5; j++)
        conditional_rate[j] = dsc_conditional_rate(&count[j]);
    dsc_acceptance dist = {.conditional_rate = conditional_rate, .conditional_rates = 5};
    assert_ok(dsc_block_accepted(&dist, 5, curve, &err), err);
    assert_close(curve[5] + 1, 106.0 / 43, 1e-14);
    // Censored steps give no information about positions that they did not draft.
    dsc_conditional_count censored[2] = {{0}};
    assert_ok(dsc_conditional_add(censored, 2, 1, 1, 10, &err), err);
    assert_ok(dsc_conditional_add(censored, 2, 1, 2, 3, &err), err);
    assert_ok(dsc_conditional_add(censored, 2, 2, 2, 1, &err), err);
    assert_close(dsc_conditional_rate(&censored[0]), 1, 0);
    assert_close(dsc_conditional_rate(&censored[1]), 0.25, 0);
    // vLLM prints acceptance per position, which is the product of conditional acceptance rates:
    // mean length 2.87.
    static const double reached[] = {0.740, 0.473, 0.309, 0.187, 0.099, 0.057};
    double h[6], accepted_by[7];
    for (int j = 0; j < 6; j++)
        h[j] = reached[j] / (j ? reached[j - 1] : 1);
    assert_ok(dsc_block_accepted(&(dsc_acceptance){.conditional_rate = h, .conditional_rates = 6},
                                 6, accepted_by, &err),
              err);
    assert_close(accepted_by[6] + 1, 2.865, 1e-12);
}

static void test_refusals(void **state)
{
    (void)state;
    double curve[16];
    static const double conditional_rate[] = {0.5, 0.6}, bad[] = {0.5, 1.5};
    dsc_acceptance dist = {.conditional_rate = conditional_rate, .conditional_rates = 2};
    dsc_block_best best;
    assert_int_equal(dsc_block_accepted(&dist, 3, curve, &err), DSC_EUSAGE);
    assert_non_null(strstr(err.message, "exceeds the 2 positions"));
    assert_int_equal(dsc_block_best_length(&dist, 1, 3, (dsc_block_cost){0}, &best, &err),
                     DSC_EUSAGE);
    dist.conditional_rate = bad;
    assert_int_equal(dsc_block_accepted(&dist, 2, curve, &err), DSC_EUSAGE);
    dist = (dsc_acceptance){.rate = NAN};
    assert_int_equal(dsc_block_accepted(&dist, 2, curve, &err), DSC_EUSAGE);
    dist.rate = 0.5;
    assert_int_equal(dsc_block_accepted(&dist, -1, curve, &err), DSC_EUSAGE);
    assert_int_equal(dsc_block_accepted(&dist, DSC_BLOCK_LONGEST + 1, curve, &err), DSC_EUSAGE);
    assert_int_equal(dsc_block_best_length(&dist, 3, 2, (dsc_block_cost){0}, &best, &err),
                     DSC_EUSAGE);
    assert_int_equal(dsc_block_best_length(&dist, 0, 2, (dsc_block_cost){.draft = -1}, &best, &err),
                     DSC_EUSAGE);
    dsc_conditional_count count[2] = {{0}};
    assert_int_equal(dsc_conditional_add(count, 2, 2, 1, 1, &err), DSC_EUSAGE);
    assert_int_equal(dsc_conditional_add(count, 2, 1, 3, 1, &err), DSC_EUSAGE);
    assert_int_equal(dsc_conditional_add(count, 2, -1, 1, 1, &err), DSC_EUSAGE);
}

static void test_best_length(void **state)
{
    (void)state;
    dsc_block_best best;
    for (double rate = 0; rate <= 1; rate += 0.05)
        for (double draft = 0.01; draft < 1; draft *= 2) {
            dsc_acceptance dist = {.rate = rate < 1 ? rate : 1};
            double top = 0;
            int at = 0;
            for (int length = 0; length <= 60; length++) {
                double s = dsc_block_speedup(power_sum(dist.rate, length), length,
                                             (dsc_block_cost){.draft = draft});
                if (s > top + 1e-12) {
                    top = s;
                    at = length;
                }
            }
            assert_ok(
                dsc_block_best_length(&dist, 0, 60, (dsc_block_cost){.draft = draft}, &best, &err),
                err);
            assert_int_equal(best.length, at);
            assert_close(best.speedup, top, 1e-12);
        }
    // If nothing is accepted, no speculation is best. If drafts are free and always accepted, the
    // longest draft is.
    assert_ok(dsc_block_best_length(&(dsc_acceptance){.rate = 0}, 0, 8, (dsc_block_cost){0.1, 0},
                                    &best, &err),
              err);
    assert_int_equal(best.length, 0);
    assert_close(best.speedup, 1, 0);
    assert_ok(
        dsc_block_best_length(&(dsc_acceptance){.rate = 1}, 0, 8, (dsc_block_cost){0}, &best, &err),
        err);
    assert_int_equal(best.length, 8);
    assert_close(best.speedup, 9, 0);
    // The shorter of equals is returned: (1 + a)/(1 + c) at a = c equals the speedup without
    // speculation.
    assert_ok(dsc_block_best_length(&(dsc_acceptance){.rate = 0.25}, 0, 1,
                                    (dsc_block_cost){0.25, 0}, &best, &err),
              err);
    assert_int_equal(best.length, 0);
    // The same for conditional acceptance rates, against the sums of products.
    for (uint64_t trial = 0; trial < 200; trial++) {
        double conditional_rate[20], reach = 1, accepted = 0, top = 1;
        int at = 0;
        for (uint32_t j = 0; j < 20; j++) {
            conditional_rate[j] = fmin(1, 1.3 * dsc_rng_uniform(11, trial, j, 0));
            accepted += reach *= conditional_rate[j];
            if ((accepted + 1) / (1 + 0.09 * (j + 1)) > top + 1e-12) {
                top = (accepted + 1) / (1 + 0.09 * (j + 1));
                at = (int)j + 1;
            }
        }
        dsc_acceptance dist = {.conditional_rate = conditional_rate, .conditional_rates = 20};
        assert_ok(dsc_block_best_length(&dist, 0, 20, (dsc_block_cost){0.05, 0.04}, &best, &err),
                  err);
        assert_int_equal(best.length, at);
        assert_close(best.speedup, top, 1e-12);
    }
}

// For rising conditional acceptance rates, i.i.d. acceptance with the same mean predicts too much
// for a short draft and too little for a long one.
static void test_iid_misfit(void **state)
{
    (void)state;
    static const double conditional_rate[] = {0.58, 0.66, 0.71, 0.75, 0.8, 0.83, 0.86};
    double curve[8];
    dsc_acceptance dist = {.conditional_rate = conditional_rate, .conditional_rates = 7};
    assert_ok(dsc_block_accepted(&dist, 7, curve, &err), err);
    double rate = dsc_iid_rate(curve[4], 4);
    assert_close(dsc_iid_accepted(rate, 4), curve[4], 1e-14);
    assert_true(dsc_iid_accepted(rate, 1) > curve[1] + 0.03);
    assert_true(dsc_iid_accepted(rate, 7) < curve[7] - 0.1);
}

// Eq. (5) is Theorem 3.8; Eq. (6) by hand: A(8) at rate .8, 4 tokens in 4/2 forwards of .25.
static void test_ouroboros(void **state)
{
    (void)state;
    dsc_ouroboros plain = {.length = 5, .per_forward = 1, .draft = 0.1};
    assert_close(dsc_ouroboros_speedup(&plain, dsc_iid_accepted(0.8, 5)),
                 dsc_block_speedup(dsc_iid_accepted(0.8, 5), 5, (dsc_block_cost){.draft = 0.1}),
                 1e-15);
    dsc_ouroboros phrases = {.length = 4, .phrase = 4, .per_forward = 2, .draft = 0.25};
    assert_close(dsc_ouroboros_speedup(&phrases, dsc_iid_accepted(0.8, 8)),
                 (1 - pow(0.8, 9)) / 0.2 / 1.5, 1e-14);
    dsc_ouroboros none = {.length = 0, .per_forward = 1, .draft = 0.25};
    assert_close(dsc_ouroboros_speedup(&none, 0), 1, 0);
}

SUITE(closed)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_iid),
        cmocka_unit_test(test_iid_rate),
        cmocka_unit_test(test_leviathan),
        cmocka_unit_test(test_simulation),
        cmocka_unit_test(test_conditional_rates),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_best_length),
        cmocka_unit_test(test_iid_misfit),
        cmocka_unit_test(test_ouroboros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

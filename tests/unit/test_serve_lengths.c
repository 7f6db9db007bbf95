// SPDX-License-Identifier: Apache-2.0
// Lengths of served requests follow their distributions: of n draws, each n-th of a distribution
// has one, so that the empirical distribution is nowhere more than 1 / n away. And the rates of
// requests that differ, together, are the pooled ones.
#include "sim/model/model_iid.h"
#include "sim/serve/lengths.h"
#include "tests/close.h"
#include "tests/unit/trace_fixture.h"

enum { DRAWS = 20000, LONGEST = 4000 };

static dsc_lengths parse(const char *text)
{
    dsc_error e;
    dsc_lengths l;
    assert_ok(dsc_lengths_parse(&l, "max-tokens", text, &e), e);
    return l;
}

// below(x): the probability of a length of at most x.
static void check_draws(const char *text, double (*below)(double x))
{
    static int64_t count[LONGEST + 2];
    const dsc_lengths l = parse(text);
    const double bound = (1 + 1e-9) / DRAWS;
    double sum = 0;
    memset(count, 0, sizeof count);
    for (int i = 0; i < DRAWS; i++) {
        const int32_t n = dsc_lengths_draw(&l, 3, i, DRAWS, DSC_LENGTHS_OUTPUT);
        assert_true(n >= 1);
        assert_int_equal(n, dsc_lengths_draw(&l, 3, i, DRAWS, DSC_LENGTHS_OUTPUT));
        count[n < LONGEST ? n : LONGEST + 1]++;
    }
    for (int x = 0; x <= LONGEST; x++) {
        sum += (double)count[x] / DRAWS;
        assert_true(fabs(sum - below(x)) <= bound);
    }
}

static double below_uniform(double x)
{
    return fmin(fmax((x - 39) / 41, 0), 1);
}

static double below_geometric(double x)
{
    return 1 - pow(1 - 1. / 100, x);
}

// Mean 100 and coefficient of variation 0.7, rounded.
static double below_lognormal(double x)
{
    const double variance = log(1 + .7 * .7), mean = log(100) - variance / 2;
    return x < 1 ? 0 : .5 * erfc(-(log(x + .5) - mean) / sqrt(2 * variance));
}

static double below_constant(double x)
{
    return x >= 77;
}

static void distributions(void **state)
{
    (void)state;
    check_draws("uniform:40:80", below_uniform);
    check_draws("geometric:100", below_geometric);
    check_draws("lognormal:100,0.7", below_lognormal);
    check_draws("77", below_constant);
    check_draws("lognormal:77,0", below_constant);
    check_draws("uniform:77:77", below_constant);
    const dsc_lengths one = parse("geometric:1");
    assert_int_equal(dsc_lengths_draw(&one, 0, 5, 6, DSC_LENGTHS_PROMPT), 1);
    const dsc_lengths longest = parse("lognormal:268435456,100");
    for (int i = 0; i < 1000; i++)
        assert_in_range(dsc_lengths_draw(&longest, 0, i, 1000, DSC_LENGTHS_PROMPT), 1,
                        DSC_LONGEST_SERVED);
}

// Rows of two lists are drawn together; other lengths of a request are independent.
static void pairs(void **state)
{
    (void)state;
    int32_t prompt[] = {10, 20, 30}, output[] = {1, 2, 3};
    const dsc_lengths p = {.kind = DSC_LENGTHS_LISTED, .list = prompt, .count = 3},
                      o = {.kind = DSC_LENGTHS_LISTED, .list = output, .count = 3},
                      u = parse("uniform:1:1000");
    int64_t seen[4] = {0}, equal = 0;
    for (int i = 0; i < 3000; i++) {
        const int32_t n = dsc_lengths_draw(&o, 1, i, 3000, DSC_LENGTHS_OUTPUT);
        assert_int_equal(dsc_lengths_draw(&p, 1, i, 3000, DSC_LENGTHS_PROMPT), 10 * n);
        seen[n]++;
        equal += dsc_lengths_draw(&u, 1, i, 3000, DSC_LENGTHS_PROMPT) ==
                 dsc_lengths_draw(&u, 1, i, 3000, DSC_LENGTHS_OUTPUT);
    }
    for (int n = 1; n <= 3; n++)
        assert_int_equal(seen[n], 1000);
    assert_true(equal < 20);
}

static void refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "0",
                                      "1.5",
                                      "-2",
                                      "x",
                                      "268435457",
                                      "uniform:3",
                                      "uniform:3:2",
                                      "uniform:0:2",
                                      "uniform:1:2:3",
                                      "lognormal:5",
                                      "lognormal:0.5,1",
                                      "lognormal:5,101",
                                      "geometric:0",
                                      "geometric:nan",
                                      "normal:3"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dsc_error e;
        dsc_lengths l;
        assert_int_equal(dsc_lengths_parse(&l, "max-tokens", bad[i], &e), DSC_EUSAGE);
        assert_non_null(strstr(e.message, "--max-tokens: '"));
    }
}

// Drafts of `count` tokens in requests that write equally long outputs: a request of level l has
// them in proportion to 1 / (1 + accepted tokens).
static void split(void **state)
{
    (void)state;
    enum { COUNT = 5 };
    static const double pooled[COUNT] = {.8, .7, 1, .75, 0};
    static double rate[DSC_IID_LEVELS][COUNT];
    for (int sd = 0; sd < 4; sd++) {
        double tried[COUNT + 1] = {0};
        dsc_iid_split_rates(rate[0], pooled, COUNT, sd);
        for (int l = 0; l < DSC_IID_LEVELS; l++) {
            double survival = 1, accepted = 0;
            for (int d = 0; d < COUNT; d++)
                accepted += survival *= rate[l][d];
            const double drafts = survival = 1 / (1 + accepted);
            tried[0] += drafts;
            for (int d = 0; d < COUNT; d++)
                tried[d + 1] += survival *= rate[l][d];
            assert_true(sd ? !l || rate[l][0] > rate[l - 1][0] : fabs(rate[l][0] - .8) < 1e-12);
        }
        for (int d = 0; d < COUNT; d++)
            assert_close(tried[d] > 0 ? tried[d + 1] / tried[d] : 0, pooled[d], 1e-6);
        const double odds = rate[63][0] / (1 - rate[63][0]) / (rate[0][0] / (1 - rate[0][0]));
        // The outer levels are 2.41 standard deviations from the middle.
        assert_close(log(odds), 2 * 2.4 * sd, .1 * sd + 1e-9);
    }
    assert_true(dsc_iid_level(7) < DSC_IID_LEVELS);
}

SUITE(serve_lengths)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distributions),
        cmocka_unit_test(pairs),
        cmocka_unit_test(refused),
        cmocka_unit_test(split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// Tests the comparison of predictions with measurements: the standard error is that of the
// difference, z is close to a standard normal variate where both are sampled from one distribution,
// equal counts have no error, and a difference is found.
#include "base/rng.h"
#include "base/statistics.h"
#include "sim/tune/compare.h"
#include "tests/close.h"

#include <math.h>
#include <string.h>

enum { REQUESTS = 60, WORLDS = 400, LENGTH = 4 };

static int64_t request[REQUESTS];

static dsc_resampling resampling(uint64_t seed)
{
    for (int64_t i = 0; i < REQUESTS; i++)
        request[i] = i;
    return (dsc_resampling){request, REQUESTS, 400, seed, 1};
}

// The difficulty of request i, which is the same for both sides.
static double hardness(int i)
{
    return 0.2 + 0.6 * dsc_rng_uniform(1, (uint64_t)i, 0, DSC_RNG_SAMPLE);
}

// A request of 100 tokens: calls that accept one draft token by chance, until there are enough.
static void draw(uint64_t seed, int i, double shift, double *tokens, double *calls, double *dist)
{
    double n = 0, c = 0;
    for (uint32_t k = 0; n < 100; k++) {
        int accepted = 0;
        while (accepted < LENGTH - 1 &&
               dsc_rng_uniform(seed, (uint64_t)i, k * LENGTH + (uint32_t)accepted, DSC_RNG_VERIFY) <
                   hardness(i) + shift)
            accepted++;
        dist[accepted]++;
        n += accepted + 1;
        c++;
    }
    *tokens = n;
    *calls = c;
}

typedef struct side {
    double tokens[REQUESTS], calls[REQUESTS], dist[REQUESTS * LENGTH];
} side;

static void fill(side *s, uint64_t seed, double shift)
{
    memset(s, 0, sizeof *s);
    for (int i = 0; i < REQUESTS; i++)
        draw(seed, i, shift, &s->tokens[i], &s->calls[i], &s->dist[(size_t)i * LENGTH]);
}

static dsc_comparison ratios(const side *p, const side *m, uint64_t seed)
{
    const dsc_resampling how = resampling(seed);
    const dsc_ratio predicted = {p->tokens, p->calls}, measured = {m->tokens, m->calls};
    dsc_comparison c;
    dsc_error err;
    assert_ok(dsc_compare_ratios(&how, &predicted, &measured, &c, &err), err);
    return c;
}

static dsc_comparison dists(const side *p, const side *m, uint64_t seed)
{
    const dsc_resampling how = resampling(seed);
    dsc_comparison c;
    dsc_error err;
    assert_ok(dsc_compare_dists(&how, p->dist, m->dist, LENGTH, &c, &err), err);
    return c;
}

static void test_z_of_equal_dists(void **state)
{
    static side p, m;
    double sum = 0, squares = 0, se = 0, errors = 0;
    int far = 0, far_dist = 0;
    (void)state;
    for (uint64_t w = 0; w < WORLDS; w++) {
        fill(&p, 2 * w, 0);
        fill(&m, 2 * w + 1, 0);
        const dsc_comparison c = ratios(&p, &m, w), d = dists(&p, &m, w);
        sum += c.z;
        squares += c.z * c.z;
        se += c.se;
        errors += c.error * c.error;
        far += fabs(c.z) > 2;
        far_dist += d.z > 2;
        assert_true(d.z >= 0 && d.error <= 1);
    }
    // 400 worlds: the mean of z is within 0.2, its standard deviation within 15 % of 1, each at
    // four of its standard errors.
    assert_true(fabs(sum / WORLDS) < 0.2);
    assert_true(fabs(sqrt(squares / WORLDS) - 1) < 0.15);
    // The standard error is the spread of the errors.
    assert_true(fabs(se / WORLDS / sqrt(errors / WORLDS) - 1) < 0.15);
    // 4.6 % of a normal variate are beyond 2; of the distance fewer.
    assert_true(far > 4 && far < 36);
    assert_true(far_dist < 36);
}

// Requests differ more than samples do; without pairs the standard error would be several times
// that.
static void test_pairs(void **state)
{
    static side p, m, other;
    (void)state;
    fill(&p, 7, 0);
    fill(&m, 8, 0);
    for (int i = 0; i < REQUESTS; i++) { // the same requests in another order: no pairs
        other.tokens[i] = m.tokens[(i + 31) % REQUESTS];
        other.calls[i] = m.calls[(i + 31) % REQUESTS];
    }
    assert_true(ratios(&p, &other, 1).se > 2 * ratios(&p, &m, 1).se);
    assert_close(ratios(&p, &other, 1).error, ratios(&p, &m, 1).error, 1e-12);
}

static void test_a_shift_is_found(void **state)
{
    static side p, m;
    (void)state;
    fill(&p, 3, 0);
    fill(&m, 4, 0.08);
    assert_true(ratios(&p, &m, 1).z < -4);
    assert_true(dists(&p, &m, 1).z > 4);
}

static void test_equal_counts(void **state)
{
    static side p, m;
    (void)state;
    fill(&p, 5, 0);
    m = p;
    dsc_comparison c = ratios(&p, &m, 1);
    assert_true(c.error == 0 && c.se == 0 && c.z == 0);
    c = dists(&p, &m, 1);
    assert_true(c.error == 0 && c.se == 0 && c.z == 0);
    for (int i = 0; i < REQUESTS; i++) // sums of doubles are not exact
        p.calls[i] *= 1 + 1e-13;
    c = ratios(&p, &m, 1);
    assert_true(c.error == 0 && c.se == 0 && c.z == 0);
    // The error is the same in every resample: nothing is sampled, and the two differ.
    for (int i = 0; i < REQUESTS; i++)
        p.tokens[i] = 2 * m.tokens[i], p.calls[i] = m.tokens[i], m.calls[i] = m.tokens[i];
    c = ratios(&p, &m, 1);
    assert_true(c.error == 1 && c.se == 0 && isinf(c.z) && c.z > 0);
}

// Values are ratios of sums, not means of ratios; an empty request has no effect.
static void test_values(void **state)
{
    const double top[] = {10, 2, 0}, bottom[] = {5, 4, 0}, dist[] = {1, 3, 0, 4, 0, 0},
                 other[] = {2, 2, 0, 3, 1, 0};
    const int64_t all[] = {0, 1, 2};
    const dsc_resampling how = {all, 3, 4, 1, 1}, one = {all, 1, 4, 1, 1};
    const dsc_ratio r = {top, bottom}, inverse = {bottom, top};
    dsc_comparison c;
    dsc_error err;
    (void)state;
    assert_ok(dsc_compare_ratios(&how, &r, &inverse, &c, &err), err);
    assert_close(c.predicted, 12. / 9, 1e-15);
    assert_close(c.measured, 9. / 12, 1e-15);
    assert_close(c.error, 12. / 9 - 9. / 12, 1e-15);
    assert_ok(dsc_compare_ratios(&one, &r, &inverse, &c, &err), err);
    assert_close(c.error, 1.5, 1e-15);
    assert_true(isnan(c.se) && isnan(c.z));
    // Cumulated shares of 0: 1/8 and 2/8; of up to 1: 8/8 and 6/8 (two requests of three values).
    const double p[] = {1, 3, 0, 0, 4, 0}, m[] = {2, 2, 0, 0, 2, 2};
    const dsc_resampling two = {all, 2, 4, 1, 1};
    assert_ok(dsc_compare_dists(&two, p, m, 3, &c, &err), err);
    assert_close(c.error, 0.25, 1e-15);
    assert_ok(dsc_compare_dists(&two, dist, other, 3, &c, &err), err);
    assert_close(c.error, 0, 1e-15); // 5/8 and 3/8 in both
    assert_true(dsc_compare_equal(3, 3 * (1 + 1e-12)) && !dsc_compare_equal(3, 3.0001));
    assert_true(dsc_compare_equal(0, 0) && !dsc_compare_equal(0, 1e-9));
}

static void test_deterministic(void **state)
{
    static side p, m;
    (void)state;
    fill(&p, 10, 0);
    fill(&m, 11, 0);
    const dsc_comparison a = ratios(&p, &m, 5), b = ratios(&p, &m, 5), other = ratios(&p, &m, 6);
    assert_true(a.se == b.se && a.z == b.z);
    assert_true(a.se != other.se);
}

static void test_median(void **state)
{
    double odd[] = {5, 1, 3}, even[] = {4, 1, 2, 10};
    (void)state;
    assert_close(dsc_summarize(odd, 3).median, 3, 0);
    assert_close(dsc_summarize(even, 4).median, 3, 0);
    assert_true(isnan(dsc_summarize(odd, 0).median));
}

SUITE(compare)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_z_of_equal_dists), cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_a_shift_is_found), cmocka_unit_test(test_equal_counts),
        cmocka_unit_test(test_values),           cmocka_unit_test(test_deterministic),
        cmocka_unit_test(test_median),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

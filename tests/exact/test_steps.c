// SPDX-License-Identifier: Apache-2.0
// Simulated steps: against the same samples taken one by one, against the distribution, and against
// the closed form.
#include "tests/close.h"

#include "base/rng.h"
#include "theory/steps.h"

#include <string.h>

enum { MOST = 64, BLOCK = 131072 };

// Pr(m tokens are accepted).
static void exact(const dsc_acceptance *dist, int length, double *p)
{
    double reached = 1;
    for (int m = 0; m <= length; m++) {
        double go_on = m == length              ? 0
                       : dist->conditional_rate ? dist->conditional_rate[m]
                                                : dist->rate;
        p[m] = reached * (1 - go_on);
        reached *= go_on;
    }
}

static uint64_t turn(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

// The bits of one block: xoshiro256++ as its authors print it, eight side by side, in chunks of 128
// words of each.
typedef struct source {
    uint64_t s[8][4], word[8];
    int64_t at; // bytes taken
} source;

static void source_init(source *x, uint64_t seed, uint64_t block)
{
    x->at = 0;
    for (uint32_t l = 0; l < 8; l++)
        for (uint32_t half = 0; half < 2; half++) {
            uint32_t w[4];
            dsc_rng_words(seed, block, 2 * l + half, DSC_RNG_STEPS, w);
            x->s[l][2 * half] = (uint64_t)w[0] << 32 | w[1];
            x->s[l][2 * half + 1] = (uint64_t)w[2] << 32 | w[3];
        }
}

static unsigned next_byte(source *x)
{
    int lane = (int)(x->at / 8 % 8), byte = (int)(x->at % 8);
    if (byte == 0) {
        uint64_t *s = x->s[lane], t = s[1] << 17;
        x->word[lane] = turn(s[0] + s[3], 23) + s[0];
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = turn(s[3], 45);
    }
    x->at++;
    return (unsigned)(x->word[lane] >> 8 * byte) & 255;
}

// Numbers of a given width as vectors compare them: the sign bit is set in the greater half.
static int next_value(source *x, int bits)
{
    int value = (int)next_byte(x);
    if (bits == 16)
        value += (int)next_byte(x) << 8;
    return value ^ 1 << (bits - 1);
}

static void end_chunk(source *x)
{
    while (x->at % (128 * 64))
        next_byte(x);
}

// The token that a value stands for, -1: none; p becomes the distribution of the remainder.
static void divide(double *p, int length, int bits, int *of)
{
    int values = 0, all = 1 << bits;
    double left = 0;
    for (int m = 0; m <= length; m++) {
        double whole = floor(all * p[m]);
        for (int i = 0; i < (int)whole; i++)
            of[values++] = m;
        p[m] = all * p[m] - whole;
        left += p[m];
    }
    while (values < all)
        of[values++] = -1;
    for (int m = 0; m <= length; m++)
        p[m] = left > 0 ? p[m] / left : 0;
}

// The vector operations, number by number.
static void one_by_one(const dsc_acceptance *dist, int length, uint64_t seed, int64_t steps,
                       int64_t *histogram)
{
    static int first[256], second[65536];
    double p[MOST + 1];
    exact(dist, length, p);
    divide(p, length, 8, first);
    divide(p, length, 16, second);
    for (int m = 1; m <= length; m++)
        p[m] += p[m - 1];
    for (int64_t block = 0; block * BLOCK < steps; block++) {
        int64_t n = steps - block * BLOCK < BLOCK ? steps - block * BLOCK : BLOCK, left = 0,
                rest = 0;
        source x;
        source_init(&x, seed, (uint64_t)block);
        for (int64_t i = 0; i < n; i++) {
            int m = first[next_value(&x, 8)];
            left += m < 0;
            histogram[m < 0 ? MOST : m] += m >= 0;
        }
        end_chunk(&x);
        for (int64_t i = 0; i < left; i++) {
            int m = second[next_value(&x, 16)];
            rest += m < 0;
            histogram[m < 0 ? MOST : m] += m >= 0;
        }
        for (int64_t i = 0; i < rest; i++) {
            double u =
                p[length] * dsc_rng_uniform(seed, (uint64_t)block, (uint32_t)i, DSC_RNG_STEPS_REST);
            int m = 0;
            while (p[m] <= u)
                m++;
            histogram[m]++;
        }
    }
}

static const double falling[] = {.897, .803, .725, .517, .625, .3, .05, .001};
static const dsc_acceptance dists[] = {{.rate = .7},
                                       {.rate = .3},
                                       {.rate = 0},
                                       {.rate = 1},
                                       {.conditional_rate = falling, .conditional_rates = 8},
                                       {.rate = .99999},
                                       {.rate = .5},
                                       {.rate = 1e-5}};
enum { DISTS = sizeof dists / sizeof *dists };

// Vectors of every width that this processor has.
static void as_one_by_one(void **state)
{
    (void)state;
    dsc_error e;
    static const int64_t steps[] = {0, 1, 5, 8191, 8192, 8193, 131072, 131073, 400001};
    static const int widths[] = {0, 16, 32, 64};
    for (int l = 0; l < DISTS; l++)
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            int64_t want[MOST + 1] = {0};
            int length = dists[l].conditional_rate ? 8 : 1 + (int)(5 * i);
            one_by_one(&dists[l], length, 7 + i, steps[i], want);
            for (int w = 0; w < 4; w++) {
                int64_t got[MOST + 1] = {0};
                int rc =
                    dsc_steps_sample_width(widths[w], &dists[l], length, 7 + i, steps[i], got, &e);
                if (rc == DSC_EABSENT && widths[w] > 16)
                    continue;
                assert_ok(rc, e);
                for (int m = 0; m <= length; m++)
                    if (got[m] != want[m])
                        fail_msg("width %d, distribution %d, length %d, %ld steps: %ld and not %ld "
                                 "accepted "
                                 "%d",
                                 widths[w], l, length, (long)steps[i], (long)got[m], (long)want[m],
                                 m);
            }
        }
}

static void have_the_distribution(void **state)
{
    (void)state;
    enum { STEPS = 20000000 };
    dsc_error e;
    for (int l = 0; l < DISTS; l++) {
        int64_t histogram[MOST + 1] = {0};
        double p[MOST + 1], accepted[MOST + 1];
        int length = dists[l].conditional_rate ? 8 : 12;
        exact(&dists[l], length, p);
        assert_ok(dsc_steps_sample(&dists[l], length, 11, STEPS, histogram, &e), e);
        int64_t all = 0;
        for (int m = 0; m <= length; m++) {
            double error = sqrt(STEPS * p[m] * (1 - p[m]));
            all += histogram[m];
            assert_true(fabs((double)histogram[m] - STEPS * p[m]) <= 4.5 * error + 1e-6);
        }
        assert_int_equal(all, STEPS);
        dsc_steps_mean mean = dsc_steps_summary(histogram, length);
        assert_ok(dsc_block_accepted(&dists[l], length, accepted, &e), e);
        assert_true(fabs(mean.accepted - accepted[length]) <= 4 * mean.error + 1e-12);
    }
}

static void refusals(void **state)
{
    (void)state;
    dsc_error e;
    int64_t histogram[MOST + 1] = {0};
    const dsc_acceptance bad = {.rate = 1.5}, good = {.rate = .5},
                         few = {.conditional_rate = falling, .conditional_rates = 8};
    assert_int_equal(dsc_steps_sample(&bad, 4, 1, 10, histogram, &e), DSC_EUSAGE);
    assert_int_equal(dsc_steps_sample(&few, 9, 1, 10, histogram, &e), DSC_EUSAGE);
    assert_int_equal(dsc_steps_sample(&good, 4, 1, -1, histogram, &e), DSC_EUSAGE);
    for (int m = 0; m <= MOST; m++)
        assert_int_equal(histogram[m], 0);
    assert_true(isnan(dsc_steps_summary(histogram, 4).accepted));
}

SUITE(steps)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_one_by_one),
                                       cmocka_unit_test(have_the_distribution),
                                       cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

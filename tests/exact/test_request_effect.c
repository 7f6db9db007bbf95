// SPDX-License-Identifier: Apache-2.0
// The effect of a request against an independent likelihood, integrated by Simpson's rule: it is
// stationary where the fit ends, it is the gain that the fit returns, and the same integrals give
// the curve. Without differences between requests there is no effect.
#include "tests/close.h"

#include "theory/request_effect.h"

#include <math.h>
#include <stdlib.h>

enum { REQUESTS = 40, POSITIONS = 3, PANELS = 4000 };

static uint32_t lcg(uint32_t *s)
{
    return (*s = *s * 1664525u + 1013904223u) >> 8;
}

static double uniform(uint32_t *s)
{
    return lcg(s) / 16777216.0;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

// Steps of requests whose logits differ by `spread`, at most.
static void make_up(dsc_conditional_count count[REQUESTS][POSITIONS], double *tokens, double spread)
{
    dsc_error e;
    uint32_t s = 5;
    for (int i = 0; i < REQUESTS; i++) {
        const double effect = spread * (2 * uniform(&s) - 1);
        tokens[i] = 0;
        for (int j = 0; j < POSITIONS; j++)
            count[i][j] = (dsc_conditional_count){0};
        for (int n = 0; n < 5 + i; n++) {
            int m = 0, drafted = 1 + (int)(lcg(&s) % POSITIONS);
            while (m < drafted && uniform(&s) < sigmoid(0.9 - 0.5 * m + effect))
                m++;
            tokens[i] += m + 1;
            assert_ok(dsc_conditional_add(count[i], POSITIONS, m, drafted, 1, &e), e);
        }
    }
}

// The integral over z of f(z) times the likelihood of one request, per sqrt(2 pi).
static double integrate(const dsc_conditional_count *c, const double *intercept, double sd,
                        int length)
{
    double sum = 0;
    for (int p = 0; p <= PANELS; p++) {
        const double z = 16.0 * p / PANELS - 8, weight = p == 0 || p == PANELS ? 1 : p % 2 ? 4 : 2;
        double density = exp(-z * z / 2), survive = 1, tokens = 1;
        for (int j = 0; j < POSITIONS; j++) {
            const double h = sigmoid(intercept[j] + sd * z);
            density *=
                pow(h, (double)c[j].accepted) * pow(1 - h, (double)(c[j].at_risk - c[j].accepted));
        }
        for (int l = 0; l < length; l++) {
            survive *= sigmoid(intercept[l < POSITIONS ? l : POSITIONS - 1] + sd * z);
            tokens += survive;
        }
        sum += weight * density / tokens;
    }
    return sum * (16.0 / PANELS) / 3 / sqrt(2 * acos(-1));
}

static double likelihood(dsc_conditional_count count[REQUESTS][POSITIONS], const double *intercept,
                         double sd)
{
    double sum = 0;
    for (int i = 0; i < REQUESTS; i++)
        sum += log(integrate(count[i], intercept, sd, 0));
    return sum;
}

static void the_fit_is_a_maximum(void **state)
{
    (void)state;
    dsc_conditional_count count[REQUESTS][POSITIONS];
    double tokens[REQUESTS], plain = 0, gain = 0;
    dsc_request_effect f;
    dsc_error e;
    make_up(count, tokens, 1.5);
    assert_ok(dsc_request_effect_fit(count[0], REQUESTS, POSITIONS, &f, &e), e);
    assert_int_equal(f.positions, POSITIONS);
    assert_true(f.sd > 0.6 && f.sd < 1.3); // 1.5/sqrt(3) is 0.87
    const double best = likelihood(count, f.intercept, f.sd), h = 1e-3;
    for (int j = 0; j <= POSITIONS; j++) {
        double up[POSITIONS], down[POSITIONS], sd_up = f.sd, sd_down = f.sd;
        for (int i = 0; i < POSITIONS; i++)
            up[i] = down[i] = f.intercept[i];
        *(j < POSITIONS ? &up[j] : &sd_up) += h;
        *(j < POSITIONS ? &down[j] : &sd_down) -= h;
        const double a = likelihood(count, up, sd_up), b = likelihood(count, down, sd_down);
        assert_close((a - b) / (2 * h), 0, 1e-4);
        assert_true(a < best && b < best);
    }
    for (int i = 0; i < REQUESTS; i++)
        for (int j = 0; j < POSITIONS; j++)
            plain += (double)count[i][j].accepted * log(f.rate[j]) +
                     (double)(count[i][j].at_risk - count[i][j].accepted) * log1p(-f.rate[j]);
    assert_close(f.gain, best - plain, 1e-7);
    for (int i = 0; i < REQUESTS; i++)
        gain += dsc_request_effect_gain(&f, count[i]);
    assert_close(gain, f.gain, 1e-7);
}

static void the_curve_is_the_integral(void **state)
{
    (void)state;
    enum { MOST = 6 };
    dsc_conditional_count count[REQUESTS][POSITIONS];
    double tokens[REQUESTS], plain[MOST + 1], with[MOST + 1];
    dsc_request_effect f;
    dsc_error e;
    make_up(count, tokens, 1.5);
    assert_ok(dsc_request_effect_fit(count[0], REQUESTS, POSITIONS, &f, &e), e);
    assert_ok(
        dsc_request_effect_curve(&f, count[0], POSITIONS, tokens, REQUESTS, MOST, plain, with, &e),
        e);
    double survive = 1, wanted = 1;
    for (int l = 0; l <= MOST; l++) {
        double all = 0, calls = 0;
        for (int i = 0; i < REQUESTS; i++) {
            all += tokens[i];
            calls += tokens[i] * integrate(count[i], f.intercept, f.sd, l) /
                     integrate(count[i], f.intercept, f.sd, 0);
        }
        assert_close(with[l], all / calls, 1e-9);
        assert_close(plain[l], wanted, 1e-12);
        wanted += survive *= f.rate[l < POSITIONS ? l : POSITIONS - 1];
    }
}

static void equal_requests_have_no_effect(void **state)
{
    (void)state;
    enum { MOST = 5 };
    dsc_conditional_count count[REQUESTS][2];
    double tokens[REQUESTS], plain[MOST + 1], with[MOST + 1];
    dsc_request_effect f;
    dsc_error e;
    for (int i = 0; i < REQUESTS; i++) {
        count[i][0] = (dsc_conditional_count){100, 60};
        count[i][1] = (dsc_conditional_count){60, 60}; // never rejected
        tokens[i] = 220;
    }
    assert_ok(dsc_request_effect_fit(count[0], REQUESTS, 2, &f, &e), e);
    assert_close(f.sd, 0, 0.01);
    assert_close(f.gain, 0, 1e-4);
    count[0][1].accepted = 59; // a rejection at a position whose fitted rate is 1
    assert_close(dsc_request_effect_gain(&f, count[0]), 0, 1e-3);
    count[0][1].accepted = 60;
    assert_ok(dsc_request_effect_curve(&f, count[0], 2, tokens, REQUESTS, MOST, plain, with, &e),
              e);
    for (int l = 0; l <= MOST; l++)
        assert_close(with[l], plain[l], 1e-3);
}

static void misuse_is_refused(void **state)
{
    (void)state;
    dsc_conditional_count none[2] = {{0}};
    dsc_request_effect f;
    dsc_error e;
    assert_int_equal(dsc_request_effect_fit(none, 1, 2, &f, &e), DSC_EUSAGE);
    assert_string_equal(e.message, "no request has a draft");
    assert_int_equal(dsc_request_effect_fit(none, 0, 2, &f, &e), DSC_EUSAGE);
    assert_int_equal(dsc_request_effect_fit(none, 1, 65, &f, &e), DSC_EUSAGE);
    assert_int_equal(dsc_request_effect_fit(NULL, 1, 2, &f, NULL), DSC_EUSAGE);
}

SUITE(request_effect)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fit_is_a_maximum),
        cmocka_unit_test(the_curve_is_the_integral),
        cmocka_unit_test(equal_requests_have_no_effect),
        cmocka_unit_test(misuse_is_refused),
    };
    return cmocka_run_group_tests_name("effect of a request", tests, NULL, NULL);
}

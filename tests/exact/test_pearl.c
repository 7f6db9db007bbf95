// SPDX-License-Identifier: Apache-2.0
// PEARL's closed forms against the exact stationary distribution of its state machine, token test
// by token test, and against the tables of the paper.
#include "tests/close.h"

#include "theory/block.h"
#include "theory/pearl.h"
#include "theory/pearl_published.h"

#include <string.h>

// --- the state machine ---------------------------------------------------------------------
//
// Its states are the moments before a token test: state 0 is the test of the first token in PRE;
// states 1 .. g are the tests of POST. A form without the test in PRE has a state that always
// passes on. With no post-verify, states 1 .. g - 1 are the second iteration's tests. Each step
// earns tokens and starts iterations; their long-run ratio is the throughput.

enum { MOST = 40 }; // states

typedef struct machine {
    int states;
    double next[MOST][MOST]; // transition probabilities
    double tokens[MOST];     // expected, earned by the test of this state
    double iterations[MOST]; // 1 in states that open an iteration
} machine;

static void build(machine *m, dsc_pearl_form form, double a, int g)
{
    *m = (machine){.states = g + 1};
    int tests = form == DSC_PEARL_NO_POST_VERIFY ? g - 1 : g;
    m->iterations[0] = 1;
    if (form == DSC_PEARL_NO_PRE_VERIFY) { // drafted only
        m->next[0][1] = 1;
    } else {
        m->tokens[0] = 1; // the token or its correction
        m->next[0][0] = 1 - a;
        m->next[0][tests ? 1 : 0] += a;
        if (!tests) { // window 1 without post-verify: the second iteration adds a token alone
            m->iterations[0] += a;
            m->tokens[0] += a;
        }
    }
    for (int t = 1; t <= tests; t++) {
        m->iterations[t] = t == 1;
        m->tokens[t] = 1;
        m->next[t][0] = 1 - a;
        if (t < tests)
            m->next[t][t + 1] = a;
        else if (form == DSC_PEARL_NO_POST_VERIFY) {
            m->next[t][0] += a;
            m->tokens[t] += a; // the target's own token behind a full window
        } else {
            m->next[t][1] += a;
        }
    }
}

// The stationary distribution solves x = x next, sum x = 1: Gauss-Jordan with pivoting.
static void stationary(const machine *m, double *x)
{
    double row[MOST][MOST + 1];
    int n = m->states;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++)
            row[i][j] = i == n - 1 ? 1 : m->next[j][i] - (i == j);
        row[i][n] = i == n - 1;
    }
    for (int c = 0; c < n; c++) {
        int pivot = c;
        for (int i = c; i < n; i++)
            if (fabs(row[i][c]) > fabs(row[pivot][c]))
                pivot = i;
        for (int j = 0; j <= n; j++) {
            double swap = row[c][j];
            row[c][j] = row[pivot][j];
            row[pivot][j] = swap;
        }
        for (int i = 0; i < n; i++)
            for (int j = n; i != c && j >= c; j--)
                row[i][j] -= row[i][c] / row[c][c] * row[c][j];
    }
    for (int i = 0; i < n; i++)
        x[i] = row[i][n] / row[i][i];
}

static double chain_tokens(dsc_pearl_form form, double a, int g)
{
    machine m;
    double x[MOST], tokens = 0, iterations = 0;
    build(&m, form, a, g);
    if (form == DSC_PEARL_NO_POST_VERIFY)
        m.states = g; // state g is not reached
    stationary(&m, x);
    for (int i = 0; i < m.states; i++) {
        tokens += x[i] * m.tokens[i];
        iterations += x[i] * m.iterations[i];
    }
    return tokens / iterations;
}

static void test_machine(void **state)
{
    (void)state;
    static const double rate[] = {0.05, 0.3, 0.5, 0.8, 0.9, 0.965, 0.999};
    for (int form = 0; form < DSC_PEARL_FORMS; form++)
        for (size_t i = 0; i < sizeof rate / sizeof *rate; i++)
            for (int g = 1; g <= 32; g += g < 8 ? 1 : 8)
                assert_close(dsc_pearl_tokens((dsc_pearl_form)form, rate[i], g),
                             chain_tokens((dsc_pearl_form)form, rate[i], g), 1e-11 * g);
}

static void test_limits(void **state)
{
    (void)state;
    for (int g = 1; g <= 16; g++) {
        assert_close(dsc_pearl_tokens(DSC_PEARL_FULL, 0, g), 1, 0);
        assert_close(dsc_pearl_tokens(DSC_PEARL_FULL, 1, g), g, 0);
        assert_close(dsc_pearl_tokens(DSC_PEARL_NO_PRE_VERIFY, 0, g), 0.5, 0);
        assert_close(dsc_pearl_tokens(DSC_PEARL_NO_PRE_VERIFY, 1, g), g, 0);
        assert_close(dsc_pearl_tokens(DSC_PEARL_NO_POST_VERIFY, 0, g), 1, 0);
        assert_close(dsc_pearl_tokens(DSC_PEARL_NO_POST_VERIFY, 1, g), (g + 1) / 2.0, 1e-15);
        // Nothing jumps on the way to 0 and 1.
        for (int form = 0; form < DSC_PEARL_FORMS; form++) {
            assert_close(dsc_pearl_tokens((dsc_pearl_form)form, 1 - 1e-13, g),
                         dsc_pearl_tokens((dsc_pearl_form)form, 1, g), 1e-10);
            assert_close(dsc_pearl_tokens((dsc_pearl_form)form, 1e-300, g),
                         dsc_pearl_tokens((dsc_pearl_form)form, 0, g), 1e-10);
        }
    }
}

// Theorem 1: rising up to the ratio, falling after it, for any acceptance and every form.
static void test_theorem_1(void **state)
{
    (void)state;
    for (int form = 0; form < DSC_PEARL_FORMS; form++)
        for (double a = 0.05; a < 1; a += 0.05)
            for (double ratio = 1.1; ratio < 20; ratio *= 1.37) {
                double before = 0;
                for (double g = 1; g < 40; g += 0.25) {
                    double s = dsc_pearl_speedup((dsc_pearl_form)form, a, g, ratio);
                    double top = dsc_pearl_speedup((dsc_pearl_form)form, a, ratio, ratio);
                    assert_true(s <= top * (1 + 1e-12));
                    assert_true(g <= 1 || (g <= ratio ? s >= before * (1 - 1e-12)
                                                      : g - 0.25 < ratio || s < before));
                    before = s;
                }
                int best = 1;
                for (int g = 2; g < 40; g++)
                    if (dsc_pearl_speedup((dsc_pearl_form)form, a, g, ratio) >
                        dsc_pearl_speedup((dsc_pearl_form)form, a, best, ratio))
                        best = g;
                // Long windows that are hardly ever accepted whole are equal to rounding.
                int found = dsc_pearl_best_window((dsc_pearl_form)form, a, ratio);
                double gain = dsc_pearl_speedup((dsc_pearl_form)form, a, best, ratio) /
                              dsc_pearl_speedup((dsc_pearl_form)form, a, found, ratio);
                assert_close(gain, 1, found == best ? 0 : 1e-15);
            }
    assert_int_equal(dsc_pearl_best_window(DSC_PEARL_FULL, 0.9, 0.25), 1);
    assert_int_equal(dsc_pearl_best_window(DSC_PEARL_FULL, 0.9, 5), 5);
}

// Theorem 2 is one too many: accepted drafts per segment are tokens less the correction.
static void test_theorem_2(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        double a = 0.1 * i, sum = 0, mass = 1 - a;
        for (int k = 0; k < 2000; k++, mass *= a)
            sum += k * mass;
        assert_close(dsc_pearl_accepted_exact(a), sum, 1e-12);
        assert_close(dsc_pearl_accepted_as_printed(a) - dsc_pearl_accepted_exact(a), 2, 1e-12);
    }
    assert_close(dsc_pearl_accepted_exact(0.9), 9, 1e-13);
    assert_close(dsc_pearl_accepted_as_printed(0.9), 11, 1e-13);
    // More than any draft length of speculative decoding accepts.
    assert_true(dsc_pearl_accepted_exact(0.9) > dsc_iid_accepted(0.9, 100));
}

static void test_published(void **state)
{
    (void)state;
    // Predictions worked out by hand from the paper's Tables 4 and 7, to the digits given.
    static const struct {
        const char *quantity;
        int window;
        double predicted, tolerance;
    } known[] = {
        {"speedup", 0, 2.38, 6},
        {"speedup", 0, 3.93, 6},
        {"speedup", 0, 3.49, 6},
        {"speedup", 0, 2.80, 6},
        {"speedup_no_pre_verify", 0, 2.30, 10},
        {"speedup_no_pre_verify", 0, 3.81, 10},
        {"speedup_no_pre_verify", 0, 3.39, 10},
        {"speedup_no_post_verify", 0, 1.69, 10},
        {"speedup_no_post_verify", 0, 2.67, 10},
        {"speedup_no_post_verify", 0, 2.38, 10},
        {"speedup_speculative", 0, 1.92, NAN},
        {"speedup_speculative", 0, 2.98, NAN},
        {"speedup_speculative", 0, 2.78, NAN},
        {"speedup_speculative", 0, 2.21, NAN},
    };
    size_t seen[sizeof known / sizeof *known] = {0}, judged = 0, points = 0, best = 0;
    for (size_t i = 0; i < dsc_pearl_published_rows(); i++) {
        dsc_pearl_row r = dsc_pearl_published_row(i);
        assert_true(r.published > 0 && r.predicted > 0);
        if (!r.ok)
            fail_msg("%s %s: predicted %g, published %g", r.pair, r.quantity, r.predicted,
                     r.published);
        judged += !isnan(r.tolerance_percent);
        points += !strcmp(r.quantity, "tokens_per_s");
        best += !strcmp(r.quantity, "best_window");
        if (!isnan(r.tolerance_percent))
            assert_true(fabs(r.error_percent) <= r.tolerance_percent);
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            if (!strcmp(r.quantity, known[k].quantity) &&
                fabs(r.predicted - known[k].predicted) < 0.0051) {
                seen[k]++;
                assert_true(isnan(known[k].tolerance) ? isnan(r.tolerance_percent)
                                                      : r.tolerance_percent == known[k].tolerance);
            }
    }
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        assert_int_equal(seen[k], 1);
    assert_int_equal(judged, 4 + 3 + 3 + 3);
    assert_int_equal(points, 15);
    assert_int_equal(best, 3);
}

SUITE(pearl)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_machine),   cmocka_unit_test(test_limits),
        cmocka_unit_test(test_theorem_1), cmocka_unit_test(test_theorem_2),
        cmocka_unit_test(test_published),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

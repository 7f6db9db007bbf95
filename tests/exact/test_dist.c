// SPDX-License-Identifier: Apache-2.0
// The acceptance distributions on one position: published and hand-checked values, closed forms,
// every quantity by its definition on the rows, and the orders that must hold, on thousands of
// pairs.
#include "tests/close.h"
#include "tests/exact/pairs.h"

#include "theory/acceptance.h"
#include "theory/kseq.h"
#include "theory/probs.h"
#include "theory/specinfer.h"
#include "theory/otm.h"
#include "theory/single.h"

#include <float.h>

enum { LARGEST = 2000 };

static dsc_rule_acceptance accept(const double *draft, const double *target, size_t vocab, int k)
{
    dsc_curve c;
    dsc_error e;
    dsc_rule_acceptance a;
    assert_ok(dsc_curve_init(&c, draft, target, vocab, &e), e);
    dsc_acceptance_of_curve(&c, &k, 1, &a);
    dsc_curve_fini(&c);
    assert_int_equal(a.k, k);
    return a;
}

typedef struct golden {
    int k;
    double otm, kseq, rho, specinfer;
} golden;

static void assert_golden(const double *draft, const double *target, size_t vocab, golden g,
                          double digits)
{
    double half = .5001 * pow(10, -digits); // a unit of the last printed digit, halved
    dsc_rule_acceptance a = accept(draft, target, vocab, g.k);
    assert_close(a.otm, g.otm, half);
    assert_close(a.kseq, g.kseq, half);
    assert_close(a.kseq_rho, g.rho, half);
    assert_close(a.specinfer, g.specinfer, half);
}

static void golden_values(void **state)
{
    (void)state;
    const double d3[] = {.5, .3, .2}, t3[] = {.2, .3, .5};
    const golden three[] = {{2, .86, .791355287257, 1.456776436283, .76},
                            {3, .988, .858518605654, 1.792593028269, .808},
                            {4, 1, .906007167812, 2.030035839058, .8464}};
    const double d4[] = {.6, .25, .1, .05}, t4[] = {.1, .2, .3, .4};
    const golden four[] = {{2, .5775, .550560386369, 1.670402575794, .5325},
                           {4, .77799375, .702875509755, 2.685836731702, .662231250000},
                           {8, .936579568711, .814473511234, 4.289470224680, .776168591836}};
    for (size_t i = 0; i < 3; i++) {
        assert_golden(d3, t3, 3, three[i], 12);
        assert_golden(d4, t4, 4, four[i], 12);
    }
}

// SpecTr App. B, draft Ber(1/4).
static void golden_bernoulli(void **state)
{
    (void)state;
    const struct {
        double target;
        golden g;
    } row[] = {
        {.1, {2, 1, .973072, 1.164096, .9625}},        {.5, {2, .9375, .847597, 1.390388, .8125}},
        {.5, {4, 1, .950217, 1.800869, .894531}},      {.75, {2, .6875, .648268, 1.593070, .625}},
        {.75, {8, 1, .962963, 2.851852, .933258}},     {1, {2, .4375, .4375, 1.75, .4375}},
        {1, {4, .683594, .683594, 2.734375, .683594}},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        double draft[2], target[2];
        dsc_probs_bernoulli(.25, row[i].target, draft, target);
        assert_golden(draft, target, 2, row[i].g, 6);
    }
}

static void closed_form_bernoulli(void **state)
{
    (void)state;
    for (int i = 0; i <= 20; i++)
        for (int j = 0; j <= 20; j++)
            for (int k = 1; k <= 64; k += k < 8 ? 1 : 7) {
                double p = i / 20., q = j / 20., draft[2], target[2];
                double want =
                    fmin(pow(p, k), q) + fmin(pow(1 - p, k), 1 - q) + 1 - pow(p, k) - pow(1 - p, k);
                dsc_probs_bernoulli(p, q, draft, target);
                assert_close(accept(draft, target, 2, k).otm, want, 1e-15);
            }
}

// U(d) to U(d/r): SpecTr Lemma 5 and after.
static void closed_form_uniform(void **state)
{
    (void)state;
    static double draft[LARGEST], target[LARGEST];
    const size_t shape[][2] = {{1, 1},   {6, 1},       {6, 2},      {6, 6},
                               {100, 5}, {2000, 1000}, {1999, 1999}};
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        for (int k = 1; k <= 64; k += k < 6 ? 1 : 29) {
            size_t d = shape[i][0];
            double r = (double)shape[i][1], want = 1 - pow(1 - 1 / r, k);
            dsc_probs_uniform(d, shape[i][1], draft, target);
            dsc_rule_acceptance a = accept(draft, target, d, k);
            assert_close(a.otm, want, 1e-12);
            assert_close(a.kseq, want, 1e-12);
            assert_close(a.kseq_rho, r * want, 1e-12 * r);
        }
}

// By the definitions, on the rows.
static double specinfer_on_rows(const double *draft, const double *target, size_t vocab, int k)
{
    static double r[LARGEST];
    double rejected = 1;
    for (size_t x = 0; x < vocab; x++)
        r[x] = target[x];
    for (int i = 0; i < k; i++) {
        double s = 0;
        for (size_t x = 0; x < vocab; x++) {
            s += fmin(draft[x], r[x]);
            r[x] = fmax(r[x] - draft[x], 0);
        }
        rejected *= 1 - s;
        pair_normalise(r, vocab);
        if (s >= 1 - 1e-12)
            return 1;
    }
    return 1 - rejected;
}

static double beta_on_rows(const double *draft, const double *target, size_t vocab, double rho)
{
    double beta = 0;
    for (size_t x = 0; x < vocab; x++)
        beta += fmin(draft[x], target[x] / rho);
    return beta;
}

static double otm_on_subsets(const double *draft, const double *target, size_t vocab, int k)
{
    double most = 0;
    for (unsigned set = 0; set < 1u << vocab; set++) {
        double p = 0, q = 0;
        for (size_t x = 0; x < vocab; x++)
            if (set >> x & 1) {
                p += draft[x];
                q += target[x];
            }
        most = fmax(most, pow(p, k) - q);
    }
    return 1 - most;
}

static const size_t vocabs[] = {1, 2, 3, 4, 5, 7, 10, 40, 300, 2000};
enum { VOCABS = sizeof vocabs / sizeof *vocabs };

static void assert_definitions(const double *draft, const double *target, size_t vocab, int k)
{
    dsc_curve c;
    dsc_error e;
    assert_ok(dsc_curve_init(&c, draft, target, vocab, &e), e);
    double single = beta_on_rows(draft, target, vocab, 1);
    assert_close(dsc_single_acceptance(&c), single, 1e-13);
    assert_close(dsc_specinfer_acceptance(&c, k), specinfer_on_rows(draft, target, vocab, k),
                 1e-11);
    dsc_kseq s = dsc_kseq_best(&c, k);
    assert_true(s.k == k && s.rho >= 1 && s.rho <= k);
    assert_close(s.beta, beta_on_rows(draft, target, vocab, s.rho), 1e-13);
    assert_close(s.accept, 1 - pow(1 - s.beta, k), 1e-12);
    assert_true(s.accept <= s.rho * s.beta * (1 + 1e-13)); // valid
    if (s.rho * (1 - 1e-8) >= 1 && s.beta > DBL_MIN) {     // and just below it is not
        dsc_kseq less = dsc_kseq_at(&c, k, s.rho * (1 - 1e-8));
        assert_true(less.accept > less.rho * less.beta ||
                    (less.accept > .99 && dsc_curve_w(&c, less.rho) > pow(1 - less.beta, k)));
    }
    dsc_otm o = dsc_otm_value(&c, k);
    assert_close(o.accept, fmin(1 - pow(o.draft_in, k) + o.target_in, 1), 1e-11);
    assert_true(o.cut <= c.atoms);
    // Rows sum to 1 within an ulp a token, which the k-th power multiplies by k.
    if (vocab <= 10)
        assert_close(o.accept, otm_on_subsets(draft, target, vocab, k),
                     (double)vocab * k * DBL_EPSILON);
    dsc_curve_fini(&c);
}

static void by_definition(void **state)
{
    (void)state;
    double *draft = test_calloc(LARGEST, sizeof *draft), *target = test_calloc(LARGEST, 8);
    const int ks[] = {1, 2, 3, 5, 16, 64};
    for (pair_shape shape = 0; shape < PAIR_SHAPES; shape++)
        for (size_t v = 0; v < VOCABS; v++)
            for (uint64_t seed = 0; seed < (vocabs[v] < 300 ? 20 : 3); seed++) {
                make_pair(shape, seed, vocabs[v], draft, target);
                for (size_t i = 0; i < sizeof ks / sizeof *ks; i++)
                    assert_definitions(draft, target, vocabs[v], ks[i]);
            }
    test_free(draft);
    test_free(target);
}

static void assert_orders(const double *draft, const double *target, size_t vocab)
{
    enum { COUNT = 12 };
    static const int ks[COUNT] = {1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 48, DSC_MAX_DRAFTS};
    const double slack = 1e-12;
    dsc_rule_acceptance a[COUNT];
    dsc_curve c;
    dsc_error e;
    assert_ok(dsc_curve_init(&c, draft, target, vocab, &e), e);
    dsc_acceptance_of_curve(&c, ks, COUNT, a);
    double limit = dsc_otm_limit(&c), support = 0, least = 1;
    dsc_curve_fini(&c);
    for (size_t x = 0; x < vocab; x++)
        if (draft[x] > 0) {
            support += target[x];
            least = fmin(least, draft[x]);
        }
    assert_close(limit, support, 1e-13);
    for (int i = 0; i < COUNT; i++) {
        double k = ks[i], share = 1 - pow(1 - 1 / k, k);
        assert_true(a[i].single >= 0 && a[i].single <= a[i].specinfer + slack);
        assert_true(a[i].specinfer <= a[i].kseq + slack);
        assert_true(a[i].kseq <= a[i].otm + slack);
        assert_true(a[i].kseq >= share * a[i].otm - slack);
        assert_true(a[i].otm <= 1 && a[i].otm <= limit + slack);
        if (i) {
            assert_true(a[i].specinfer >= a[i - 1].specinfer - slack);
            assert_true(a[i].kseq >= a[i - 1].kseq - slack);
            assert_true(a[i].otm >= a[i - 1].otm - slack);
            assert_true(a[i].kseq_rho >= a[i - 1].kseq_rho * (1 - slack));
        }
    }
    assert_close(a[0].specinfer, a[0].single, slack);
    assert_close(a[0].kseq, a[0].single, slack);
    assert_close(a[0].otm, a[0].single, slack);
    assert_true(a[0].kseq_rho == 1);
    if (least > 1e-6) { // Lemma 1
        assert_ok(dsc_curve_init(&c, draft, target, vocab, &e), e);
        assert_close(dsc_otm_value(&c, 1 << 30).accept, limit, slack);
        dsc_curve_fini(&c);
    }
}

static void orders(void **state)
{
    (void)state;
    double *draft = test_calloc(LARGEST, sizeof *draft), *target = test_calloc(LARGEST, 8);
    for (pair_shape shape = 0; shape < PAIR_SHAPES; shape++)
        for (size_t v = 0; v < VOCABS; v++)
            for (uint64_t seed = 100; seed < (vocabs[v] < 300 ? 160 : 105); seed++) {
                make_pair(shape, seed, vocabs[v], draft, target);
                assert_orders(draft, target, vocabs[v]);
            }
    test_free(draft);
    test_free(target);
}

static void degenerate(void **state)
{
    (void)state;
    const double one[] = {1}, left[] = {1, 0}, right[] = {0, 1};
    const double dist[] = {.1, .2, .3, .4};
    for (int k = 1; k <= DSC_MAX_DRAFTS; k++) {
        dsc_rule_acceptance a = accept(one, one, 1, k);
        assert_true(a.single == 1 && a.specinfer == 1 && a.kseq == 1 && a.otm == 1);
        assert_true(a.kseq_rho == 1);
        a = accept(dist, dist, 4, k);
        assert_close(a.single, 1, 1e-15);
        assert_close(a.specinfer, 1, 1e-15);
        assert_close(a.kseq, 1, 1e-15);
        assert_true(a.otm == 1 && a.kseq_rho == 1);
        a = accept(left, right, 2, k);
        assert_true(a.single == 0 && a.specinfer == 0 && a.kseq == 0 && a.otm == 0);
        // A one-hot draft is accepted with its target mass, however many copies of it there are.
        const double spread[] = {.3, .7};
        a = accept(left, spread, 2, k);
        assert_close(a.single, .3, 1e-15);
        assert_close(a.specinfer, .3, 1e-15);
        assert_close(a.kseq, .3, 1e-15);
        assert_close(a.otm, .3, 1e-15);
    }
    // The smallest mass there is: k times it is accepted, to the last bit of a denormal.
    const double tiny[] = {1e-310, 1}, certain[] = {1, 0};
    dsc_curve c;
    dsc_error e;
    assert_ok(dsc_curve_init(&c, tiny, certain, 2, &e), e);
    assert_close(dsc_kseq_best(&c, 8).accept, 8e-310, 1e-322);
    assert_close(dsc_single_acceptance(&c), 1e-310, 0);
    assert_close(dsc_otm_limit(&c), 1, 0);
    dsc_curve_fini(&c);
}

SUITE(dist)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_values),
        cmocka_unit_test(golden_bernoulli),
        cmocka_unit_test(closed_form_bernoulli),
        cmocka_unit_test(closed_form_uniform),
        cmocka_unit_test(by_definition),
        cmocka_unit_test(orders),
        cmocka_unit_test(degenerate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// Next-token distributions: refused rows and their messages, sampler settings by hand-computed
// cases, families; and the sorted curve on rows small enough to compute by hand.
#include "tests/close.h"

#include "theory/curve.h"
#include "theory/probs.h"

#include <float.h>
#include <string.h>

static void check_refuses(void **state)
{
    (void)state;
    const struct {
        double row[3];
        size_t vocab;
        bool normalize;
        const char *message;
    } bad[] = {
        {{0}, 0, false, "draft: there is no element"},
        {{.5, -.25, .75},
         3,
         true,
         "draft: element 1 is negative (-0.25), so it is no probability (use --logits if these are "
         "logits)"},
        {{.5, .5, NAN}, 3, true, "draft: element 2 is not finite (nan)"},
        {{INFINITY, 0, 0}, 3, true, "draft: element 0 is not finite (inf)"},
        {{.5, .25, .18},
         3,
         false,
         "draft: the sum is 0.93, not 1: these look like logits (use --logits) or unnormalized "
         "probabilities (use --normalize)"},
        {{.5, .5, .00011},
         3,
         false,
         "draft: the sum is 1.00011, not 1: these look like logits (use --logits) or unnormalized "
         "probabilities (use --normalize)"},
        {{0, 0, 0}, 3, true, "draft: the sum is 0; a positive finite sum is needed"},
        {{DBL_MAX, DBL_MAX, 0}, 3, true, "draft: the sum is inf; a positive finite sum is needed"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dsc_error e = {0};
        double row[3];
        memcpy(row, bad[i].row, sizeof row);
        assert_int_equal(dsc_probs_check("draft", row, bad[i].vocab, bad[i].normalize, &e),
                         DSC_EINPUT);
        assert_string_equal(e.message, bad[i].message);
        assert_memory_equal(row, bad[i].row, sizeof row);
    }
}

static void check_divides_by_the_sum(void **state)
{
    (void)state;
    dsc_error e;
    double near[] = {.5, .25, .25 + 9e-5}, counts[] = {3, 0, 1}, one[] = {1 - 5e-5};
    assert_ok(dsc_probs_check("row", near, 3, false, &e), e);
    assert_close(near[0] + near[1] + near[2], 1, 1e-15);
    assert_close(near[0] / near[1], 2, 1e-15);
    assert_ok(dsc_probs_check("row", counts, 3, true, &e), e);
    assert_close(counts[0], .75, 0);
    assert_close(counts[1], 0, 0);
    assert_ok(dsc_probs_check("row", one, 1, false, &e), e);
    assert_close(one[0], 1, 0);
    double least[] = {DBL_TRUE_MIN, 0};
    assert_ok(dsc_probs_check("row", least, 2, true, &e), e);
    assert_close(least[0], 1, 0);
}

static void softmax_refuses(void **state)
{
    (void)state;
    dsc_error e;
    double nan[] = {0, NAN}, inf[] = {INFINITY, 0}, none[] = {-INFINITY, -INFINITY},
           good[] = {0, 1};
    assert_int_equal(dsc_probs_softmax("target", nan, 2, 1, 0, 1, &e), DSC_EINPUT);
    assert_string_equal(e.message, "target: logit 1 is nan");
    assert_int_equal(dsc_probs_softmax("target", inf, 2, 0, 0, 1, &e), DSC_EINPUT);
    assert_string_equal(e.message, "target: logit 0 is inf");
    assert_int_equal(dsc_probs_softmax("target", none, 2, 1, 0, 1, &e), DSC_EINPUT);
    assert_string_equal(e.message, "target: every logit is -inf");
    assert_int_equal(dsc_probs_softmax("target", good, 0, 1, 0, 1, &e), DSC_EINPUT);
    assert_int_equal(dsc_probs_softmax("target", good, 2, -1, 0, 1, &e), DSC_EUSAGE);
    assert_int_equal(dsc_probs_softmax("target", good, 2, NAN, 0, 1, &e), DSC_EUSAGE);
    assert_int_equal(dsc_probs_softmax("target", good, 2, 1, 0, 0, &e), DSC_EUSAGE);
    assert_int_equal(dsc_probs_softmax("target", good, 2, 1, 0, 1.5, &e), DSC_EUSAGE);
}

// Logits ln(weight) + 7 (any constant) through the settings must give want / sum(want).
static void assert_settings(const double *weight, size_t vocab, double temperature, int64_t top_k,
                            double top_p, const double *want)
{
    double logits[8], sum = 0;
    dsc_error e;
    for (size_t x = 0; x < vocab; x++) {
        logits[x] = log(weight[x]) + 7;
        sum += want[x];
    }
    assert_ok(dsc_probs_softmax("row", logits, vocab, temperature, top_k, top_p, &e), e);
    for (size_t x = 0; x < vocab; x++)
        assert_close(logits[x], want[x] / sum, 1e-15);
}

static void softmax_follows_the_processors(void **state)
{
    (void)state;
    const double w[] = {2, 8, 1, 4, 1}; // probabilities 1/8 1/2 1/16 1/4 1/16
    assert_settings(w, 5, 1, 0, 1, w);
    assert_settings(w, 5, 1, 5, 1, w);
    assert_settings(w, 5, 1, INT64_MAX, 1, w);
    assert_settings(w, 5, .5, 0, 1, (const double[]){4, 64, 1, 16, 1});
    assert_settings(w, 5, 1, 1, 1, (const double[]){0, 1, 0, 0, 0});
    assert_settings(w, 5, 1, 2, 1, (const double[]){0, 8, 0, 4, 0});
    // Ties with the k-th largest stay.
    assert_settings(w, 5, 1, 4, 1, w);
    // The smallest set that reaches top-p; at least one token.
    assert_settings(w, 5, 1, 0, .45, (const double[]){0, 8, 0, 0, 0});
    assert_settings(w, 5, 1, 0, .55, (const double[]){0, 8, 0, 4, 0});
    assert_settings(w, 5, 1, 0, .7, (const double[]){0, 8, 0, 4, 0});
    assert_settings(w, 5, 1, 0, .8, (const double[]){2, 8, 0, 4, 0});
    assert_settings(w, 5, 1, 0, 1e-12, (const double[]){0, 8, 0, 0, 0});
    // A tie at the cut: the lower id stays.
    assert_settings(w, 5, 1, 0, .9, (const double[]){2, 8, 1, 4, 0});
    // Top-p refers to the mass that top-k left: 8/14, 12/14 of it, not 1/2, 3/4 of the whole.
    assert_settings(w, 5, 1, 3, .55, (const double[]){0, 8, 0, 0, 0});
    assert_settings(w, 5, 1, 3, .87, (const double[]){2, 8, 0, 4, 0});
    // Temperature comes first: at 1/2 the largest has 64/86 = .744 of the mass.
    assert_settings(w, 5, .5, 0, .74, (const double[]){0, 64, 0, 0, 0});
    assert_settings(w, 5, .5, 0, .75, (const double[]){0, 64, 0, 16, 0});
    // A sum that reaches top-p exactly ends the set.
    const double halves[] = {1, 1};
    assert_settings(halves, 2, 1, 0, .5, (const double[]){1, 0});
    assert_settings((const double[]){3}, 1, .1, 1, .1, (const double[]){1});
}

static void softmax_extremes(void **state)
{
    (void)state;
    dsc_error e;
    double tie[] = {1, 5, 5, -INFINITY};
    assert_ok(dsc_probs_softmax("row", tie, 4, 0, 3, .5, &e), e);
    assert_true(tie[0] == 0 && tie[1] == 1 && tie[2] == 0 && tie[3] == 0);
    double far[] = {1e308, -1e308, -INFINITY};
    assert_ok(dsc_probs_softmax("row", far, 3, 1e-300, 0, 1, &e), e);
    assert_true(far[0] == 1 && far[1] == 0 && far[2] == 0);
    double masked[] = {0, -INFINITY, -INFINITY};
    assert_ok(dsc_probs_softmax("row", masked, 3, 1, 2, 1, &e), e);
    assert_true(masked[0] == 1 && masked[1] == 0 && masked[2] == 0);
}

static void families(void **state)
{
    (void)state;
    enum { VOCAB = 20000 };
    static double draft[VOCAB], target[VOCAB], other[VOCAB];
    dsc_probs_bernoulli(.25, .75, draft, target);
    assert_true(draft[0] == .75 && draft[1] == .25 && target[0] == .25 && target[1] == .75);
    dsc_probs_uniform(12, 4, draft, target);
    for (size_t x = 0; x < 12; x++) {
        assert_close(draft[x], 1 / 12., 0);
        assert_close(target[x], x < 3 ? 1 / 3. : 0, 1e-16);
    }
    dsc_error e;
    dsc_probs_zipf(VOCAB, 1.1, .5, 42, draft, target);
    assert_close(draft[0] / draft[9], pow(10, 1.1), 1e-12);
    // ln(target/draft) = constant + .5 z: its standard deviation over 20 000 draws is .5 within
    // five standard errors, .5/sqrt(40 000) each.
    double sum = 0, squares = 0;
    for (size_t x = 0; x < VOCAB; x++) {
        double l = log(target[x] / draft[x]);
        sum += l / VOCAB;
        squares += l * l / VOCAB;
    }
    assert_close(sqrt(squares - sum * sum), .5, .0125);
    assert_ok(dsc_probs_check("draft", draft, VOCAB, false, &e), e);
    assert_ok(dsc_probs_check("target", target, VOCAB, false, &e), e);
    // The noise of a rank does not depend on the vocabulary, only on the seed.
    double ratio = target[3] / draft[3] / (target[0] / draft[0]);
    dsc_probs_zipf(7, 1.1, .5, 42, draft, other);
    assert_close(other[3] / draft[3] / (other[0] / draft[0]), ratio, 1e-12);
    dsc_probs_zipf(7, 1.1, .5, 43, draft, target);
    assert_true(fabs(target[3] - other[3]) > 1e-6);
    dsc_probs_zipf(7, 1.1, 0, 1, draft, target);
    assert_memory_equal(draft, target, 7 * sizeof *draft);
    dsc_probs_zipf(1, 2, 3, 1, draft, target);
    assert_true(draft[0] == 1 && target[0] == 1);
}

static double curve_by_definition(const double *draft, const double *target, size_t n, double at)
{
    double w = 0;
    for (size_t x = 0; x < n; x++)
        w += fmax(target[x] - at * draft[x], 0);
    return w;
}

static void curve_by_hand(void **state)
{
    (void)state;
    // Ratios 0, .5, .5, 2, inf; token 5 is in neither distribution.
    const double draft[] = {.25, .5, .125, .125, 0, 0}, target[] = {0, .25, .0625, .25, .4375, 0};
    dsc_curve c;
    dsc_error e;
    assert_ok(dsc_curve_init(&c, draft, target, 6, &e), e);
    assert_int_equal(c.atoms, 4);
    const double ratio[] = {0, .5, 2, INFINITY}, below[] = {0, .25, .875, 1, 1},
                 left[] = {0, 0, .3125, .5625, 1};
    for (size_t i = 0; i <= 4; i++) {
        if (i < 4)
            assert_true(c.ratio[i] == ratio[i]);
        assert_close(c.draft_below[i], below[i], 0);
        assert_close(c.target_below[i], left[i], 0);
        assert_close(c.draft_above[i], 1 - below[i], 0);
        assert_close(c.target_above[i], 1 - left[i], 0);
    }
    assert_int_equal(dsc_curve_count(&c, 0), 1);
    assert_int_equal(dsc_curve_count(&c, .49), 1);
    assert_int_equal(dsc_curve_count(&c, .5), 2);
    assert_int_equal(dsc_curve_count(&c, 100), 3);
    assert_int_equal(dsc_curve_count(&c, INFINITY), 4);
    for (double at = 0; at <= 3; at += .125)
        assert_close(dsc_curve_w(&c, at), curve_by_definition(draft, target, 6, at), 1e-16);
    assert_close(dsc_curve_w(&c, INFINITY), .4375, 0);
    dsc_curve_fini(&c);
}

static void curve_at_its_ends(void **state)
{
    (void)state;
    dsc_error e;
    dsc_curve c;
    const double one = 1;
    assert_ok(dsc_curve_init(&c, &one, &one, 1, &e), e);
    assert_int_equal(c.atoms, 1);
    assert_close(dsc_curve_w(&c, 0), 1, 0);
    assert_close(dsc_curve_w(&c, 1), 0, 0);
    dsc_curve_fini(&c);
    // Token 1's target/draft overflows, yet it is in the draft's support; token 2 is not.
    const double least[] = {1, 1e-310, 0}, spread[] = {.5, .25, .25};
    assert_ok(dsc_curve_init(&c, least, spread, 3, &e), e);
    assert_close(dsc_curve_w(&c, INFINITY), .25, 0);
    assert_close(dsc_curve_w(&c, 64), .5, 1e-16);
    dsc_curve_fini(&c);
    // No token in common.
    const double left[] = {1, 0}, right[] = {0, 1};
    assert_ok(dsc_curve_init(&c, left, right, 2, &e), e);
    assert_close(dsc_curve_w(&c, 1e300), 1, 0);
    assert_close(dsc_curve_w(&c, INFINITY), 1, 0);
    dsc_curve_fini(&c);
    dsc_curve_fini(&c);
}

SUITE(probs)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_refuses),    cmocka_unit_test(check_divides_by_the_sum),
        cmocka_unit_test(softmax_refuses),  cmocka_unit_test(softmax_follows_the_processors),
        cmocka_unit_test(softmax_extremes), cmocka_unit_test(families),
        cmocka_unit_test(curve_by_hand),    cmocka_unit_test(curve_at_its_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

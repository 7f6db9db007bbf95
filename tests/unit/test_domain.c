// SPDX-License-Identifier: Apache-2.0
// Exported functions of theory/ and base/ outside their domains: NaN or DSC_EUSAGE, never a number
// that looks right. tests/limits finds calls that crash or do not end.
#include "tests/close.h"

#include "base/metrics.h"
#include "base/option.h"
#include "theory/block.h"
#include "theory/kseq.h"
#include "theory/otm.h"
#include "theory/probs.h"
#include "theory/single.h"
#include "theory/specinfer.h"

#include <limits.h>
#include <string.h>

enum { VOCAB = 4 };

static const double draft[VOCAB] = {.4, .3, .2, .1}, target[VOCAB] = {.1, .2, .3, .4};
static const double bad_row[][VOCAB] = {
    {.5, NAN, .5, 0}, {.5, -.5, .5, .5}, {INFINITY, 0, 0, 0}, {4, 3, 2, 1}, {0}};
enum { BAD_ROWS = sizeof bad_row / sizeof *bad_row };

// What is no probability, or none that something may be divided by.
static const double bad[] = {NAN, -.1, 2, INFINITY, -INFINITY, 0};
enum { BAD = sizeof bad / sizeof *bad, NEVER = BAD - 1 };

static void assert_all_nan(const double *x, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_true(isnan(x[i]));
}

static void check_rows(void **state)
{
    (void)state;
    dsc_error e;
    dsc_curve c = {0};
    double accept[64], out[VOCAB];
    const dsc_kseq s = {2, 1.5, .5, .75};
    for (int i = 0; i <= BAD_ROWS; i++) {
        const double *row = i < BAD_ROWS ? bad_row[i] : NULL;
        assert_int_equal(dsc_curve_init(&c, row, target, VOCAB, &e), DSC_EUSAGE);
        assert_non_null(strstr(e.message, "dsc_curve_init: draft is not a distribution"));
        assert_int_equal(dsc_curve_init(&c, draft, row, VOCAB, &e), DSC_EUSAGE);
        assert_non_null(strstr(e.message, "target is not"));
        assert_int_equal(dsc_otm_wor(draft, row, VOCAB, 2, accept, &e), DSC_EUSAGE);
        assert_int_equal(dsc_otm_greedy(row, target, VOCAB, 2, accept, &e), DSC_EUSAGE);
        dsc_single_residual(row, target, VOCAB, out);
        assert_all_nan(out, VOCAB);
        dsc_kseq_residual(&s, draft, row, VOCAB, out);
        assert_all_nan(out, VOCAB);
    }
    const int bad_kmax[] = {-1, 0, 65, 1000000, INT_MAX};
    for (size_t i = 0; i < sizeof bad_kmax / sizeof *bad_kmax; i++) {
        assert_int_equal(dsc_otm_wor(draft, target, VOCAB, bad_kmax[i], accept, &e), DSC_EUSAGE);
        assert_int_equal(dsc_otm_greedy(draft, target, VOCAB, bad_kmax[i], accept, &e), DSC_EUSAGE);
        assert_non_null(strstr(e.message, "not from 1 to 64"));
    }
    assert_ok(dsc_otm_wor(draft, target, VOCAB, 64, accept, &e), e);
    assert_ok(dsc_otm_greedy(draft, target, VOCAB, 64, accept, &e), e);
}

static void check_rules(void **state)
{
    (void)state;
    dsc_error e;
    const dsc_curve none = {0};
    dsc_curve c = {0};
    dsc_specinfer r = {0};
    double dist[3];
    assert_ok(dsc_curve_init(&c, draft, target, VOCAB, &e), e);
    const double numbers[] = {
        dsc_curve_w(&c, -1),
        dsc_curve_w(&c, NAN),
        dsc_curve_w(&none, 1),
        dsc_single_acceptance(&none),
        dsc_kseq_best(&c, 0).accept,
        dsc_kseq_best(&none, 2).rho,
        dsc_kseq_at(&c, 2, .5).accept,
        dsc_kseq_at(&c, 2, NAN).beta,
        dsc_otm_value(&c, 0).accept,
        dsc_otm_value(&none, 1).accept,
        dsc_otm_limit(&none),
        dsc_specinfer_acceptance(&c, 0),
        dsc_specinfer_acceptance(&c, INT_MAX),
        dsc_specinfer_given(&r, .5, .5),
    };
    assert_all_nan(numbers, sizeof numbers / sizeof *numbers);
    assert_int_equal(dsc_specinfer_init(&r, &c, -1, &e), DSC_EUSAGE);
    assert_int_equal(dsc_specinfer_init(&r, &c, 1000000, &e), DSC_EUSAGE);
    assert_int_equal(dsc_specinfer_init(&r, &none, 2, &e), DSC_EUSAGE);
    assert_ok(dsc_specinfer_init(&r, &c, 2, &e), e);
    const dsc_kseq s = dsc_kseq_best(&c, 2);
    for (int i = 0; i < BAD; i++) {
        assert_true(isnan(dsc_single_token(bad[i], .5)));
        assert_true(isnan(dsc_single_given(.5, bad[i])));
        assert_true(isnan(dsc_kseq_token(&s, bad[i], .5)));
        assert_true(isnan(dsc_kseq_given(&s, .5, bad[i])));
        assert_true(isnan(dsc_specinfer_given(&r, .5, bad[i])));
        dsc_single_survivors(.5, bad[i], dist);
        assert_all_nan(dist, 2);
        dsc_kseq_survivors(&s, .5, bad[i], dist);
        assert_all_nan(dist, 3);
        dsc_specinfer_survivors(&r, .5, bad[i], dist);
        assert_all_nan(dist, 3);
    }
    for (int i = 0; i < NEVER; i++) {
        assert_true(isnan(dsc_single_token(.5, bad[i])));
        assert_true(isnan(dsc_kseq_given(&s, bad[i], .5)));
        assert_true(isnan(dsc_specinfer_residual(&r, 1, bad[i], .5)));
    }
    assert_true(isnan(dsc_specinfer_residual(&r, 3, .5, .5)));
    assert_true(isnan(dsc_specinfer_residual(&r, -1, .5, .5)));
    dsc_specinfer_fini(&r);
    dsc_curve_fini(&c);
}

static void check_block(void **state)
{
    (void)state;
    dsc_error e;
    const double numbers[] = {
        dsc_iid_accepted(-.1, 2),
        dsc_iid_accepted(1.1, 2),
        dsc_iid_accepted(NAN, 2),
        dsc_iid_accepted(.5, -1),
        dsc_iid_rate(-1, 2),
        dsc_iid_rate(3, 2),
        dsc_iid_rate(NAN, 2),
        dsc_iid_rate(0, 0),
        dsc_block_speedup(-1, 2, (dsc_block_cost){0}),
        dsc_block_speedup(1, -1, (dsc_block_cost){0}),
        dsc_block_speedup(1, 2, (dsc_block_cost){.draft = -.5}),
        dsc_block_speedup(1, 2, (dsc_block_cost){.slope = NAN}),
        dsc_conditional_rate(&(dsc_conditional_count){0, 0}),
        dsc_conditional_rate(&(dsc_conditional_count){-2, -1}),
        dsc_conditional_rate(&(dsc_conditional_count){2, 3}),
    };
    assert_all_nan(numbers, sizeof numbers / sizeof *numbers);
    dsc_conditional_count count[2] = {{0}};
    assert_int_equal(dsc_conditional_add(NULL, 2, 1, 2, 1, &e), DSC_EUSAGE);
    assert_ok(dsc_conditional_add(count, 2, 1, 2, INT64_MAX, &e), e);
    assert_int_equal(dsc_conditional_add(count, 2, 1, 2, 1, &e), DSC_EUSAGE);
    assert_true(count[0].at_risk == INT64_MAX && count[0].accepted == INT64_MAX);
}

static void check_families(void **state)
{
    (void)state;
    double pair[2][VOCAB];
    dsc_probs_bernoulli(.5, 1.5, pair[0], pair[1]);
    assert_all_nan(pair[0], 2);
    dsc_probs_uniform(VOCAB, 0, pair[0], pair[1]);
    assert_all_nan(pair[1], VOCAB);
    dsc_probs_uniform(VOCAB, 3, pair[0], pair[1]);
    assert_all_nan(pair[1], VOCAB);
    const double bad_zipf[][2] = {{1, -1}, {1, NAN}, {NAN, 1}, {INFINITY, 1}, {1, 1e308}};
    for (size_t i = 0; i < sizeof bad_zipf / sizeof *bad_zipf; i++) {
        dsc_probs_zipf(VOCAB, bad_zipf[i][0], bad_zipf[i][1], 1, pair[0], pair[1]);
        assert_all_nan(pair[0], VOCAB);
        assert_all_nan(pair[1], VOCAB);
    }
}

static void check_base(void **state)
{
    (void)state;
    dsc_error e;
    const int statuses[] = {INT_MIN, DSC_EDEVICE - 1, 0, 1};
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        assert_int_equal(dsc_fail(&e, statuses[i], "wrong"), DSC_EUSAGE);
        assert_int_equal(e.status, DSC_EUSAGE);
    }
    char text[8] = "before";
    const dsc_option choice = {.name = "mode", .kind = DSC_OPTION_CHOICE, .choices = "paper|code"};
    const char *const expected[] = {"", "paper", "code", "", ""};
    const int64_t index[] = {-1, 0, 1, 2, INT64_MAX};
    for (int i = 0; i < 5; i++) {
        dsc_option_text(&choice, index[i], text, sizeof text);
        assert_string_equal(text, expected[i]);
    }
    char *argv[] = {NULL};
    size_t words;
    dsc_option_set set = {.table = &choice, .count = 1};
    assert_int_equal(dsc_options_parse(&set, 1, 0, NULL, &words, &e), DSC_EUSAGE); // no values
    assert_int_equal(dsc_options_parse(&set, 1, 1, argv, &words, &e), DSC_EUSAGE);
    dsc_arena arena = {0};
    dsc_metrics m;
    const dsc_metric_counts counts = {.accepted = {.type = DSC_CELL_LIST, .i = -1}},
                            empty = {.lengths = {.type = DSC_CELL_LIST, .i = 2}};
    assert_int_equal(dsc_metrics_init(&m, &counts, &arena, &e), DSC_EUSAGE);
    assert_int_equal(dsc_metrics_init(&m, &empty, &arena, &e), DSC_EUSAGE);
    dsc_arena_fini(&arena);
}

SUITE(domain)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_rows),  cmocka_unit_test(check_rules),
        cmocka_unit_test(check_block), cmocka_unit_test(check_families),
        cmocka_unit_test(check_base),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

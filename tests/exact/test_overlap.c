// SPDX-License-Identifier: Apache-2.0
// The overlap of two rows: masses up to a ratio and residuals, against plain sums over the tokens
// and the sorted curve.
#include "tests/close.h"

#include "tests/exact/pairs.h"
#include "theory/curve.h"
#include "theory/rows/overlap.h"

#include <string.h>

enum { MOST = 300, SIZES = 5 };

static const size_t sizes[SIZES] = {1, 2, 17, 128, MOST};

typedef struct dists {
    double draft[MOST], target[MOST], room[MOST];
    size_t vocab;
    dsc_rows_overlap overlap;
} dists;

static void dists_make(dists *l, pair_shape shape, int size, bool drawn)
{
    l->vocab = sizes[size];
    make_pair(shape, 7 + (uint64_t)size, l->vocab, l->draft, l->target);
    dsc_rows_overlap_set(&l->overlap, drawn ? l->draft : NULL, l->target, l->vocab, l->room);
}

static const double ratios[] = {0, 1e-9, .3, .5, 1, 1.5, 2, 7, 64, 1e12};
enum { RATIOS = sizeof ratios / sizeof *ratios };

static void masses_and_curve_are_sums_over_tokens(void **state)
{
    dsc_rows_order order = {.slot = NULL};
    (void)state;
    for (int n = 0; n < PAIR_SHAPES * SIZES; n++) {
        static dists l;
        dsc_curve c = {0};
        dsc_error e;
        dists_make(&l, (pair_shape)(n / SIZES), n % SIZES, true);
        assert_ok(dsc_curve_init(&c, l.draft, l.target, l.vocab, &e), e);
        for (int i = 0; i < RATIOS; i++) {
            dsc_mass all = {0, 0};
            for (size_t x = 0; x < l.vocab; x++)
                if (l.target[x] <= ratios[i] * l.draft[x]) {
                    all.draft += l.draft[x];
                    all.target += l.target[x];
                }
            dsc_overlap *m = &l.overlap.base;
            const dsc_mass below = m->type->overlap_below(m, ratios[i]);
            assert_close(below.draft, all.draft, 1e-14);
            assert_close(below.target, all.target, 1e-14);
            assert_close(dsc_overlap_curve(m, ratios[i]), dsc_curve_w(&c, ratios[i]),
                         1e-14 * (1 + ratios[i]));
            // The same for rows that were sorted.
            dsc_rows_overlap ordered = l.overlap;
            assert_ok(dsc_rows_order_reserve(&order, l.vocab, &e), e);
            ordered.order = &order;
            assert_null(m->type->look_up);
            m->type->prepare(&ordered.base, 1);
            assert_false(ordered.ordered);
            m->type->prepare(&ordered.base, 1000);
            assert_true(ordered.ordered);
            const dsc_mass again = m->type->overlap_below(&ordered.base, ratios[i]);
            assert_close(again.draft, all.draft, 1e-14);
            assert_close(again.target, all.target, 1e-14);
        }
        dsc_curve_fini(&c);
    }
    dsc_rows_order_fini(&order);
}

// A residual with a given number of lines and of tokens with their own residual.
static dsc_residual some_residual(uint64_t n, size_t lines, size_t own, const int32_t *token,
                                  const double *residual)
{
    dsc_residual r = {.lines = lines, .own = own, .token = token, .residual = residual};
    for (size_t j = 0; j < lines; j++) {
        r.from[j] = j ? r.from[j - 1] + pair_uniform(n, j, 1) : 0;
        r.keep[j] = pair_uniform(n, j, 2);
        r.take[j] = 2 * pair_uniform(n, j, 3) - .5;
    }
    return r;
}

static double left_of(const dsc_residual *r, const dists *l, size_t x)
{
    const double d = l->overlap.draft ? l->draft[x] : 0, t = l->target[x];
    size_t line = 0;
    for (size_t i = 0; i < r->own; i++)
        if (r->token[i] == (int32_t)x)
            return r->residual ? r->residual[i] : 0;
    for (size_t j = 1; j < r->lines; j++)
        line = r->from[j] * d <= t ? j : line;
    return fmax(r->keep[line] * t - r->take[line] * d, 0);
}

static void check_residual(dists *l, const dsc_residual *r, uint64_t n)
{
    dsc_overlap *m = &l->overlap.base;
    double left[MOST], sum = 0, upto = 0;
    int32_t token;
    for (size_t x = 0; x < l->vocab; x++)
        sum += left[x] = left_of(r, l, x);
    assert_close(m->type->residual(m, r, 0, NULL), sum, 1e-13);
    if (!(sum > 1e-9))
        return;
    for (size_t x = 0; x < l->vocab; x++) { // in the middle of every token's share
        if (left[x] > 1e-9) {
            m->type->residual(m, r, (upto + left[x] / 2) / sum, &token);
            assert_int_equal(token, (int32_t)x);
        }
        upto += left[x];
    }
    assert_close(m->type->residual(m, r, pair_uniform(n, 0, 4), &token), sum, 1e-13);
    assert_true(left[token] > 0);
    m->type->residual(m, r, 1 - 0x1p-53, &token);
    assert_true(left[token] > 0);
}

static void rests_are_drawn_token_by_token(void **state)
{
    static const size_t lines[] = {1, 2, 3, DSC_RESIDUAL_LINES};
    (void)state;
    for (uint64_t n = 0; n < 8 * PAIR_SHAPES * SIZES; n++) {
        static dists l;
        int32_t token[3] = {0};
        double own[3] = {.25, 0, 1e-3};
        dists_make(&l, (pair_shape)(n / SIZES % PAIR_SHAPES), (int)(n % SIZES), n % 7 > 0);
        const size_t tokens = l.vocab < 3 ? l.vocab : 3;
        for (size_t i = 0; i < tokens; i++)
            token[i] = (int32_t)(l.vocab - 1 - i);
        const dsc_residual r =
            some_residual(n, lines[n % 4], n % 3 ? tokens : 0, token, n % 3 == 1 ? NULL : own);
        check_residual(&l, &r, n);
    }
}

// The mass of the residual above c is the curve at c.
static void a_residual_above_is_the_curve(void **state)
{
    (void)state;
    for (int n = 0; n < PAIR_SHAPES * SIZES; n++) {
        static dists l;
        dists_make(&l, (pair_shape)(n / SIZES), n % SIZES, true);
        dsc_overlap *m = &l.overlap.base;
        for (int i = 0; i < RATIOS; i++) {
            dsc_residual r;
            dsc_residual_above(&r, ratios[i]);
            assert_close(m->type->residual(m, &r, 0, NULL), dsc_overlap_curve(m, ratios[i]),
                         1e-14 * (1 + ratios[i]));
            check_residual(&l, &r, (uint64_t)n);
        }
    }
}

SUITE(overlap)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masses_and_curve_are_sums_over_tokens),
        cmocka_unit_test(rests_are_drawn_token_by_token),
        cmocka_unit_test(a_residual_above_is_the_curve),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

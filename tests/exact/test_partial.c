// SPDX-License-Identifier: Apache-2.0
// Tests rows with an unlisted tail. Whatever the tail contains, the curve and every acceptance
// quantity lie between the bounds. No completion is below the lower curve. Without a tail, the
// bounds are equal.
#include "tests/close.h"
#include "tests/exact/pairs.h"

#include "theory/acceptance.h"
#include "theory/probs.h"
#include "theory/partial.h"

#include <string.h>

enum { VOCAB = 60 };

typedef struct listing {
    int32_t id[VOCAB];
    double probability[VOCAB];
    bool listed[VOCAB];
    dsc_partial_row row;
} listing;

// The m most probable tokens (of equals the first).
static void list_top(listing *l, const double *dist, size_t vocab, size_t m, bool bounded)
{
    *l = (listing){.row = {.id = l->id, .probability = l->probability, .count = m, .tail = 1}};
    for (size_t i = 0; i < m; i++) {
        size_t best = vocab;
        for (size_t x = 0; x < vocab; x++)
            if (!l->listed[x] && (best == vocab || dist[x] > dist[best]))
                best = x;
        l->listed[best] = true;
        l->id[i] = (int32_t)best;
        l->probability[i] = dist[best];
        l->row.most = bounded ? dist[best] : 0;
    }
    l->row.tail = 0;
    for (size_t x = 0; x < vocab; x++)
        if (!l->listed[x])
            l->row.tail += dist[x];
}

// Other distributions of the same listing: kind 0 permutes the unlisted masses, which keeps the
// bound on each; 1 puts them anew at random, 2 all on one token, 3 on tokens that `wanted` has most
// of.
static void complete(const listing *l, double *dist, size_t vocab, const double *wanted, int kind,
                     uint64_t seed)
{
    double sum = 0;
    size_t first = vocab, best = vocab;
    for (size_t x = 0; x < vocab; x++) {
        if (l->listed[x])
            continue;
        size_t other = x + (size_t)(pair_uniform(seed, x, 9) * (double)(vocab - x));
        if (kind == 0 && !l->listed[other]) {
            double swap = dist[x];
            dist[x] = dist[other];
            dist[other] = swap;
        }
        if (kind == 1)
            dist[x] = -log1p(-pair_uniform(seed, x, 10));
        if (first == vocab && pair_uniform(seed, x, 11) < .3)
            first = x;
        if (best == vocab || wanted[x] > wanted[best])
            best = x;
        sum += dist[x];
    }
    for (size_t x = 0; x < vocab && kind; x++)
        if (!l->listed[x]) {
            if (kind == 1)
                dist[x] *= sum > 0 ? l->row.tail / sum : 0;
            else
                dist[x] = x == (kind == 2 && first < vocab ? first : best) ? l->row.tail : 0;
        }
}

static void assert_inside(double x, dsc_interval i, double slack)
{
    if (!(x >= i.low - slack && x <= i.high + slack))
        fail_msg("%.17g is not in [%.17g, %.17g]", x, i.low, i.high);
}

static void assert_between(const double *draft, const double *target, size_t vocab,
                           const dsc_curve *low, const dsc_curve *high)
{
    static const int ks[] = {1, 2, 3, 8, 64};
    const double slack = 1e-12;
    dsc_curve c;
    dsc_error e;
    assert_ok(dsc_curve_init(&c, draft, target, vocab, &e), e);
    for (double at = .01; at < 1e4; at *= 1.1) {
        double w = dsc_curve_w(&c, at);
        assert_inside(w, (dsc_interval){dsc_curve_w(low, at), dsc_curve_w(high, at)}, slack);
    }
    for (size_t i = 0; i < sizeof ks / sizeof *ks; i++) {
        dsc_rule_acceptance a;
        dsc_acceptance_of_curve(&c, &ks[i], 1, &a);
        dsc_partial b = dsc_partial_between(low, high, ks[i]);
        assert_int_equal(b.k, ks[i]);
        assert_inside(a.single, b.single, slack);
        assert_inside(a.specinfer, b.specinfer, slack);
        assert_inside(a.kseq, b.kseq, slack);
        assert_inside(a.otm, b.otm, slack);
        // Where nearly all is accepted, rho hangs on the last bits of W.
        assert_inside(a.kseq_rho, b.kseq_rho, a.kseq > 1 - 1e-6 ? 1e-5 : 1e-9);
    }
    dsc_curve_fini(&c);
}

static void assert_curve_of_dists(const dsc_curve *c)
{
    assert_close(c->draft_below[c->atoms], 1, 1e-12);
    assert_close(c->target_below[c->atoms], 1, 1e-12);
}

static void completions_are_between(void **state)
{
    (void)state;
    const size_t vocabs[] = {1, 2, 3, 6, VOCAB};
    for (pair_shape shape = 0; shape < PAIR_SHAPES; shape++)
        for (size_t v = 0; v < 5; v++)
            for (uint64_t seed = 0; seed < 12; seed++) {
                double draft[VOCAB], target[VOCAB], d[VOCAB], t[VOCAB];
                size_t vocab = vocabs[v], m = (size_t)(seed % 4) * vocab / 4;
                size_t n = seed < 6 ? m : vocab - m;
                bool bounded = seed % 2 && m && n;
                listing dl, tl;
                dsc_curve low, high;
                dsc_error e;
                make_pair(shape, seed, vocab, draft, target);
                list_top(&dl, draft, vocab, m, bounded);
                list_top(&tl, target, vocab, n, bounded);
                assert_ok(dsc_partial_curves(&dl.row, &tl.row, vocab, &low, &high, &e), e);
                assert_curve_of_dists(&low);
                assert_curve_of_dists(&high);
                assert_between(draft, target, vocab, &low, &high);
                for (int kind = 0; kind < (bounded ? 1 : 4); kind++) {
                    memcpy(d, draft, sizeof d);
                    memcpy(t, target, sizeof t);
                    complete(&dl, d, vocab, target, kind, seed);
                    complete(&tl, t, vocab, d, kind, seed + 77);
                    assert_between(d, t, vocab, &low, &high);
                }
                dsc_curve_fini(&low);
                dsc_curve_fini(&high);
            }
}

// W_low by its formula (theory/partial.c) instead of by the walk along its slopes.
static double low_by_formula(const listing *dl, const listing *tl, const double *draft,
                             const double *target, size_t vocab, double c)
{
    double v = dl->row.most > 0 ? fmin(dl->row.most, dl->row.tail) : dl->row.tail;
    double u = tl->row.most > 0 ? fmin(tl->row.most, tl->row.tail) : tl->row.tail;
    double both = 0, left = 0, only = 0, covered = 0;
    for (size_t x = 0; x < vocab; x++) {
        if (dl->listed[x] && tl->listed[x])
            both += fmax(target[x] - c * draft[x], 0);
        else if (tl->listed[x]) {
            left += fmax(target[x] - c * v, 0);
            only += target[x];
        } else if (dl->listed[x])
            covered += fmin(u, c * draft[x]);
    }
    return both + fmax(left, only - c * dl->row.tail + fmax(tl->row.tail - covered, 0));
}

static void low_is_the_formula(void **state)
{
    (void)state;
    for (pair_shape shape = 0; shape < PAIR_SHAPES; shape++)
        for (uint64_t seed = 0; seed < 40; seed++) {
            double draft[VOCAB], target[VOCAB];
            listing dl, tl;
            dsc_curve low, high;
            dsc_error e;
            make_pair(shape, seed, VOCAB, draft, target);
            list_top(&dl, draft, VOCAB, 1 + seed % 23, seed % 3);
            list_top(&tl, target, VOCAB, 1 + seed % 19, seed % 2);
            assert_ok(dsc_partial_curves(&dl.row, &tl.row, VOCAB, &low, &high, &e), e);
            for (double at = .01; at < 1e6; at *= 1.05)
                assert_close(dsc_curve_w(&low, at),
                             low_by_formula(&dl, &tl, draft, target, VOCAB, at), 1e-13);
            dsc_curve_fini(&low);
            dsc_curve_fini(&high);
        }
}

// Two distributions of three tokens, one listed in each: by hand, the lower curve is reached.
static void by_hand(void **state)
{
    (void)state;
    const int32_t zero = 0, one = 1;
    const double dp = .7, tp = .6;
    const dsc_partial_row draft = {&zero, &dp, 1, .3, 0}, target = {&one, &tp, 1, .4, 0};
    dsc_error e;
    dsc_partial p;
    const int k = 1;
    assert_ok(dsc_partial_acceptance(&draft, &target, 3, &k, 1, &p, &e), e);
    // All of the draft's tail on token 1 and of the target's on token 0: .4 + .3; or apart: none.
    assert_close(p.single.high, .7, 1e-15);
    assert_close(p.single.low, 0, 1e-15);
    assert_close(p.otm.high, .7, 1e-15);
    // At most .1 of it on one token: .1 + .1, and the draft's remaining .2 on tokens of neither.
    const dsc_partial_row d1 = {&zero, &dp, 1, .3, .1}, t1 = {&one, &tp, 1, .4, .1};
    assert_ok(dsc_partial_acceptance(&d1, &t1, 50, &k, 1, &p, &e), e);
    assert_close(p.single.high, .4, 1e-15);
}

static void no_tail_no_width(void **state)
{
    (void)state;
    static const int ks[] = {1, 2, 5, 64};
    for (pair_shape shape = 0; shape < PAIR_SHAPES; shape++)
        for (uint64_t seed = 0; seed < 10; seed++) {
            double draft[VOCAB], target[VOCAB];
            listing dl, tl;
            dsc_error e;
            dsc_partial b[4];
            dsc_rule_acceptance a[4];
            dsc_curve c;
            size_t vocab = seed ? 1 + seed * 6 : 1;
            make_pair(shape, seed, vocab, draft, target);
            list_top(&dl, draft, vocab, vocab, false);
            list_top(&tl, target, vocab, vocab, false);
            assert_ok(dsc_partial_acceptance(&dl.row, &tl.row, vocab, ks, 4, b, &e), e);
            assert_ok(dsc_curve_init(&c, draft, target, vocab, &e), e);
            dsc_acceptance_of_curve(&c, ks, 4, a);
            dsc_curve_fini(&c);
            for (int i = 0; i < 4; i++) {
                const dsc_interval got[] = {b[i].single, b[i].specinfer, b[i].kseq, b[i].otm};
                const double want[] = {a[i].single, a[i].specinfer, a[i].kseq, a[i].otm};
                for (int j = 0; j < 4; j++) {
                    assert_close(got[j].high - got[j].low, 0, 1e-14);
                    assert_close(got[j].low, want[j], 1e-13);
                }
                assert_true(b[i].kseq_rho.low == b[i].kseq_rho.high);
            }
        }
}

// A zero-tail row against one with a tail: only zeros of the first are outside its support.
static void wider_with_a_longer_tail(void **state)
{
    (void)state;
    double draft[VOCAB], target[VOCAB];
    double width = 0;
    make_pair(PAIR_ZIPF, 3, VOCAB, draft, target);
    for (size_t m = VOCAB; m > 0; m -= 6) {
        listing dl, tl;
        dsc_partial b;
        dsc_error e;
        const int k = 4;
        list_top(&dl, draft, VOCAB, m, true);
        list_top(&tl, target, VOCAB, m, true);
        assert_ok(dsc_partial_acceptance(&dl.row, &tl.row, VOCAB, &k, 1, &b, &e), e);
        assert_true(b.otm.high - b.otm.low >= width - 1e-13);
        width = b.otm.high - b.otm.low;
    }
    assert_true(width > .1);
}

static void refused(void **state)
{
    (void)state;
    const int32_t id[] = {2, 0}, twice[] = {2, 2}, outside[] = {0, 3}, negative_id[] = {-1, 0};
    const double half[] = {.5, .25}, negative[] = {-.5, 1.25}, nan[] = {.5, NAN};
    const dsc_partial_row good = {id, half, 2, .25, 0};
    const struct {
        dsc_partial_row row;
        const char *message;
    } bad[] = {
        {{twice, half, 2, .25, 0}, "draft: token 2 is listed twice"},
        {{outside, half, 2, .25, 0}, "draft: token 3 is not in [0, 3)"},
        {{negative_id, half, 2, .25, 0}, "draft: token -1 is not in [0, 3)"},
        {{id, negative, 2, .25, 0}, "draft: token 2 has probability -0.5"},
        {{id, nan, 2, .25, 0}, "draft: token 0 has probability nan"},
        {{id, half, 2, -.25, 0},
         "draft: the tail is -0.25 and its largest mass 0; both must be >= 0"},
        {{id, half, 2, NAN, 0}, "draft: the tail is nan and its largest mass 0; both must be >= 0"},
        {{id, half, 2, .25, -1},
         "draft: the tail is 0.25 and its largest mass -1; both must be >= 0"},
        {{id, half, 2, .26, 0},
         "draft: listed tokens and tail sum to 1.01; the sum must be 1 within 0.0001"},
        {{id, half, 2, .25, .1},
         "draft: the tail of 0.25 exceeds the largest mass that 1 unlisted tokens can have"},
    };
    const int k = 2;
    dsc_partial out;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dsc_error e = {0};
        assert_int_equal(dsc_partial_acceptance(&bad[i].row, &good, 3, &k, 1, &out, &e),
                         DSC_EINPUT);
        assert_string_equal(e.message, bad[i].message);
        assert_int_equal(dsc_partial_acceptance(&good, &bad[i].row, 3, &k, 1, &out, &e),
                         DSC_EINPUT);
        assert_string_equal(e.message + 6, bad[i].message + 5); // "target", "draft"
    }
    dsc_error e;
    assert_ok(dsc_partial_acceptance(&good, &good, 3, &k, 1, &out, &e), e);
    // A listed vocabulary leaves the tail no token.
    const int32_t all[] = {0, 1, 2};
    const double third[] = {.3, .3, .3};
    const dsc_partial_row full = {all, third, 3, .1, 0};
    assert_int_equal(dsc_partial_acceptance(&full, &good, 3, &k, 1, &out, &e), DSC_EINPUT);
}

SUITE(partial)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(completions_are_between),
        cmocka_unit_test(low_is_the_formula),
        cmocka_unit_test(by_hand),
        cmocka_unit_test(no_tail_no_width),
        cmocka_unit_test(wider_with_a_longer_tail),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

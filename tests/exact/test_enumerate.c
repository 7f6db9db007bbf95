// SPDX-License-Identifier: Apache-2.0
// The rules by full enumeration of the draft tuples, with the coins summed over. Every rule's
// output has exactly the target's distribution, its acceptance is the formula's, and the
// distributions given the output, on which exact replay is based, are those of the enumeration.
#include "tests/close.h"
#include "tests/exact/pairs.h"

#include "theory/kseq.h"
#include "theory/specinfer.h"
#include "theory/single.h"

enum { VOCAB = 4, DRAFTS = 4 };

// A rule at one position, as its paper defines it.
typedef struct rule {
    const double *draft, *target;
    size_t vocab;
    int k;
    double acceptance;                   // its formula
    double token[DRAFTS][VOCAB];         // Pr(draft i is accepted when it is x)
    double residual[VOCAB];              // sampled when all are rejected
    double given[VOCAB];                 // Pr(accepted | y)
    double survivors[VOCAB][DRAFTS + 1]; // [y][m]
} rule;

typedef struct outcome {
    double rejected;                    // Pr(all k rejected)
    double accepted[VOCAB][DRAFTS + 1]; // [y][m] Pr(y accepted and m of the k drafts are y)
} outcome;

static void try_tuple(const rule *r, const size_t *x, outcome *o)
{
    double weight = 1;
    for (int i = 0; i < r->k; i++)
        weight *= r->draft[x[i]];
    for (int i = 0; i < r->k && weight > 0; i++) {
        int same = 0;
        for (int j = 0; j < r->k; j++)
            same += x[j] == x[i];
        o->accepted[x[i]][same] += weight * r->token[i][x[i]];
        weight *= 1 - r->token[i][x[i]];
    }
    o->rejected += weight;
}

static outcome enumerate(const rule *r)
{
    outcome o = {0};
    size_t x[DRAFTS] = {0};
    for (;;) {
        try_tuple(r, x, &o);
        int i = 0;
        while (i < r->k && ++x[i] == r->vocab)
            x[i++] = 0;
        if (i == r->k)
            return o;
    }
}

static double dist_error(const rule *r)
{
    outcome o = enumerate(r);
    double worst = 0;
    for (size_t y = 0; y < r->vocab; y++) {
        double dist = o.rejected * r->residual[y];
        for (int m = 1; m <= r->k; m++)
            dist += o.accepted[y][m];
        assert_true(isfinite(dist)); // fmax drops nan
        worst = fmax(worst, fabs(dist - r->target[y]));
    }
    return worst;
}

static void assert_rule(const rule *r)
{
    const double tolerance = 1e-12;
    outcome o = enumerate(r);
    assert_close(dist_error(r), 0, tolerance);
    assert_close(r->acceptance, 1 - o.rejected, tolerance);
    for (size_t y = 0; y < r->vocab; y++) {
        if (r->target[y] < 1e-290) // a quotient of denormals has no digits
            continue;
        double given = 0, sum = r->survivors[y][0];
        for (int m = 1; m <= r->k; m++) {
            given += o.accepted[y][m] / r->target[y];
            sum += r->survivors[y][m];
            assert_close(r->survivors[y][m], o.accepted[y][m] / r->target[y], tolerance);
        }
        assert_close(r->given[y], given, tolerance);
        assert_close(sum, 1, tolerance);
    }
}

static rule single_rule(const double *draft, const double *target, size_t vocab, const dsc_curve *c)
{
    rule r = {draft, target, vocab, 1, .acceptance = dsc_single_acceptance(c)};
    dsc_single_residual(draft, target, vocab, r.residual);
    for (size_t x = 0; x < vocab; x++) {
        if (draft[x] > 0)
            r.token[0][x] = dsc_single_token(draft[x], target[x]);
        if (target[x] > 0) {
            r.given[x] = dsc_single_given(draft[x], target[x]);
            dsc_single_survivors(draft[x], target[x], r.survivors[x]);
        }
    }
    return r;
}

static rule kseq_rule(const double *draft, const double *target, size_t vocab, const dsc_kseq *s)
{
    rule r = {draft, target, vocab, s->k, .acceptance = s->accept};
    dsc_kseq_residual(s, draft, target, vocab, r.residual);
    for (size_t x = 0; x < vocab; x++) {
        for (int i = 0; i < s->k && draft[x] > 0; i++)
            r.token[i][x] = dsc_kseq_token(s, draft[x], target[x]);
        if (target[x] > 0) {
            r.given[x] = dsc_kseq_given(s, draft[x], target[x]);
            dsc_kseq_survivors(s, draft[x], target[x], r.survivors[x]);
        }
    }
    return r;
}

static rule specinfer_rule(const double *draft, const double *target, size_t vocab,
                           const dsc_specinfer *s)
{
    rule r = {draft, target, vocab, s->k, .acceptance = s->accept};
    for (size_t x = 0; x < vocab; x++) {
        for (int i = 0; i < s->k && draft[x] > 0; i++)
            r.token[i][x] = fmin(dsc_specinfer_residual(s, i, draft[x], target[x]) / draft[x], 1);
        r.residual[x] = dsc_specinfer_residual(s, s->k, draft[x], target[x]);
        if (target[x] > 0) {
            r.given[x] = dsc_specinfer_given(s, draft[x], target[x]);
            dsc_specinfer_survivors(s, draft[x], target[x], r.survivors[x]);
        }
    }
    return r;
}

static void assert_pair(const double *draft, const double *target, size_t vocab, int most)
{
    dsc_curve c;
    dsc_error e;
    assert_ok(dsc_curve_init(&c, draft, target, vocab, &e), e);
    rule r = single_rule(draft, target, vocab, &c);
    assert_rule(&r);
    for (int k = 1; k <= most; k++) {
        dsc_kseq s = dsc_kseq_best(&c, k);
        r = kseq_rule(draft, target, vocab, &s);
        assert_rule(&r);
        dsc_specinfer m;
        assert_ok(dsc_specinfer_init(&m, &c, k, &e), e);
        assert_close(m.accept, dsc_specinfer_acceptance(&c, k), 0);
        r = specinfer_rule(draft, target, vocab, &m);
        assert_rule(&r);
        dsc_specinfer_fini(&m);
        const double larger[] = {1.001, 1.3, 5};
        for (int i = 0; i < 3; i++) {
            s = dsc_kseq_at(&c, k, larger[i] * s.rho);
            r = kseq_rule(draft, target, vocab, &s);
            assert_rule(&r);
        }
    }
    dsc_curve_fini(&c);
}

static void random_and_degenerate(void **state)
{
    (void)state;
    double draft[VOCAB], target[VOCAB];
    for (pair_shape shape = 0; shape < PAIR_SHAPES; shape++)
        for (size_t vocab = 1; vocab <= VOCAB; vocab++)
            for (uint64_t seed = 0; seed < 100; seed++) {
                make_pair(shape, seed, vocab, draft, target);
                assert_pair(draft, target, vocab, vocab <= 3 ? DRAFTS : 3);
            }
}

// Below rho* k-Seq is not lossless, and the enumeration detects it.
static void too_small_a_rho_shows(void **state)
{
    (void)state;
    const double draft[] = {.5, .3, .2}, target[] = {.2, .3, .5};
    dsc_curve c;
    dsc_error e;
    assert_ok(dsc_curve_init(&c, draft, target, 3, &e), e);
    for (int k = 2; k <= DRAFTS; k++) {
        dsc_kseq s = dsc_kseq_at(&c, k, .95 * dsc_kseq_best(&c, k).rho);
        rule r = kseq_rule(draft, target, 3, &s);
        assert_true(dist_error(&r) > 1e-3);
    }
    dsc_curve_fini(&c);
}

// 64 drafts cannot be enumerated. Their survivor distributions must still be distributions: the sum
// over m >= 1 from the recursion, and dist[0] from the closed form.
static void many_drafts(void **state)
{
    (void)state;
    double draft[VOCAB], target[VOCAB], dist[1001];
    const int ks[] = {16, 64, 1000};
    for (pair_shape shape = 0; shape < PAIR_SHAPES; shape++)
        for (uint64_t seed = 0; seed < 5; seed++) {
            make_pair(shape, seed, VOCAB, draft, target);
            dsc_curve c;
            dsc_error e;
            assert_ok(dsc_curve_init(&c, draft, target, VOCAB, &e), e);
            for (int i = 0; i < 3; i++) {
                dsc_kseq s = dsc_kseq_best(&c, ks[i]);
                dsc_specinfer m;
                assert_ok(dsc_specinfer_init(&m, &c, ks[i], &e), e);
                for (size_t y = 0; y < VOCAB; y++)
                    for (int rule_index = 0; rule_index < 2 && target[y] > 1e-290; rule_index++) {
                        if (rule_index)
                            dsc_specinfer_survivors(&m, draft[y], target[y], dist);
                        else
                            dsc_kseq_survivors(&s, draft[y], target[y], dist);
                        double sum = 0;
                        for (int j = 0; j <= ks[i]; j++) {
                            assert_true(dist[j] >= 0);
                            sum += dist[j];
                        }
                        assert_close(sum, 1, 1e-11);
                    }
                dsc_specinfer_fini(&m);
            }
            dsc_curve_fini(&c);
        }
}

SUITE(enumerate)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_and_degenerate),
        cmocka_unit_test(too_small_a_rho_shows),
        cmocka_unit_test(many_drafts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

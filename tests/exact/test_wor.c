// SPDX-License-Identifier: Apache-2.0
// Drafts without replacement, the greedy draft set and Lemma 3, against enumeration and closed
// forms.
#include "tests/close.h"

#include "tests/exact/draws.h"
#include "theory/kseq.h"
#include "theory/probs.h"
#include "theory/lemma3.h"
#include "theory/specinfer.h"
#include "theory/specinfer_wor.h"
#include "theory/otm.h"

#include <string.h>

static dsc_curve curve_of(const double *draft, const double *target, size_t vocab)
{
    dsc_error e;
    dsc_curve c;
    assert_ok(dsc_curve_init(&c, draft, target, vocab, &e), e);
    return c;
}

static void prefixes_are_the_best_sets(void **state)
{
    (void)state;
    dsc_error e;
    for (uint64_t n = 0; n < 30 * PAIR_SHAPES; n++) {
        pair p = small_pair(n, 1 + n / PAIR_SHAPES % 6);
        double accept[6];
        assert_ok(dsc_otm_wor(p.draft, p.target, p.vocab, 6, accept, &e), e);
        for (int k = 1; k <= 6; k++) {
            double dist[1 << MAX_VOCAB] = {0};
            draw(&p, k, 0, 0, 1, dist);
            assert_close(accept[k - 1], best_acceptance(&p, dist), 1e-12);
        }
    }
}

static void greedy_is_the_best_for_its_set(void **state)
{
    (void)state;
    dsc_error e;
    for (uint64_t n = 0; n < 30 * PAIR_SHAPES; n++) {
        pair p = small_pair(n, 1 + n / PAIR_SHAPES % 8);
        double accept[9];
        assert_ok(dsc_otm_greedy(p.draft, p.target, p.vocab, 9, accept, &e), e);
        for (int k = 1; k <= 9; k++) {
            double dist[1 << MAX_VOCAB] = {0};
            draw_greedy(&p, k, dist);
            assert_close(accept[k - 1], best_acceptance(&p, dist), 1e-12);
        }
    }
}

// Drafts from a uniform distribution are a uniform set: Pr(all k of n among the first j) is a
// product.
static void uniform_drafts(void **state)
{
    (void)state;
    enum { V = 300, K = 64 };
    dsc_error e;
    double draft[V], target[V], accept[K];
    for (int n = 0; n < 3; n++) {
        double sum = 0;
        for (size_t x = 0; x < V; x++) // ascending, so prefixes are 0 .. j-1
            sum += target[x] = pow((double)(x + 1) / V, (n + 1) * 40.);
        for (size_t x = 0; x < V; x++) {
            draft[x] = 1. / V;
            target[x] /= sum;
        }
        assert_ok(dsc_otm_wor(draft, target, V, K, accept, &e), e);
        for (int k = 1; k <= K; k++) {
            double best = 1, below = 0;
            for (int j = 0; j <= V; j++) {
                double inside = 1;
                for (int i = 0; i < k; i++)
                    inside *= j > i ? (double)(j - i) / (V - i) : 0;
                best = fmin(best, 1 + below - inside);
                below += j < V ? target[j] : 0;
            }
            assert_close(accept[k - 1], best, 1e-12);
        }
    }
}

// Pr(two drafts in A) = sum over x in A of draft(x) (draft(A) - draft(x))/(1 - draft(x)), at a
// vocabulary of usual shape.
static void two_drafts(void **state)
{
    (void)state;
    enum { V = 3000 };
    dsc_error e;
    static double draft[V], target[V];
    dsc_probs_zipf(V, 1.1, 1, 7, draft, target);
    double accept[2], best = 1;
    assert_ok(dsc_otm_wor(draft, target, V, 2, accept, &e), e);
    for (size_t cut = 0; cut < V; cut++) { // A = the tokens up to the ratio of `cut`
        double ratio = target[cut] / draft[cut], in = 0, out = 0, both = 0;
        for (size_t x = 0; x < V; x++)
            if (target[x] / draft[x] <= ratio) {
                in += draft[x];
                out += target[x];
            }
        for (size_t x = 0; x < V; x++)
            if (target[x] / draft[x] <= ratio)
                both += draft[x] * (in - draft[x]) / (1 - draft[x]);
        best = fmin(best, 1 + out - both);
    }
    assert_close(accept[1], best, 1e-12);
}

static void orders(void **state)
{
    (void)state;
    enum { K = 64 };
    dsc_error e;
    static double draft[2000], target[2000];
    for (uint64_t n = 0; n < 2 * PAIR_SHAPES; n++) {
        size_t vocab = n < PAIR_SHAPES ? 2000 : 40;
        make_pair((pair_shape)(n % PAIR_SHAPES), n, vocab, draft, target);
        dsc_curve c = curve_of(draft, target, vocab);
        double wor[K], greedy[K], low[K], high[K];
        assert_ok(dsc_otm_wor(draft, target, vocab, K, wor, &e), e);
        assert_ok(dsc_otm_greedy(draft, target, vocab, K, greedy, &e), e);
        int rounds = vocab < 100 ? 12 : 4;
        assert_ok(dsc_specinfer_wor(&c, draft, target, vocab, rounds, 1000, low, high, &e), e);
        double single = 1 - dsc_curve_w(&c, 1), limit = dsc_otm_limit(&c);
        assert_close(wor[0], single, 1e-12);
        assert_close(greedy[0], single, 1e-12);
        for (int k = 1; k <= K; k++) {
            assert_true(wor[k - 1] >= dsc_otm_value(&c, k).accept - 1e-10);
            assert_true(wor[k - 1] <= limit + 1e-10 && greedy[k - 1] <= limit + 1e-12);
            assert_true(k == 1 || wor[k - 1] >= wor[k - 2] - 1e-10);
            assert_true(k == 1 || greedy[k - 1] >= greedy[k - 2] - 1e-12);
        }
        for (int k = 1; k <= rounds; k++) {
            assert_true(low[k - 1] <= high[k - 1] + 1e-13);
            assert_true(low[k - 1] >= dsc_specinfer_acceptance(&c, k) - 1e-12);
            assert_true(low[k - 1] <= wor[k - 1] + 1e-10);
        }
        dsc_curve_fini(&c);
    }
}

// Recursive rejection by its definition on rows. Adds Pr(accepted) to *accepted and the
// distribution of the output to out[].
typedef struct rejection {
    const pair *p;
    double accepted, out[MAX_VOCAB];
} rejection;

static void reject(rejection *s, int k, const double *draft, const double *target, double pr)
{
    size_t vocab = s->p->vocab;
    double next[MAX_VOCAB], drawn = 0, left = 0;
    for (size_t x = 0; x < vocab; x++) {
        drawn += draft[x];
        next[x] = fmax(target[x] - draft[x], 0);
        left += next[x];
    }
    if (k == 0 || drawn == 0) {
        for (size_t x = 0; x < vocab; x++)
            s->out[x] += pr * target[x];
        return;
    }
    for (size_t x = 0; x < vocab; x++)
        next[x] = left > 0 ? next[x] / left : target[x];
    for (size_t x = 0; x < vocab; x++) {
        if (!(draft[x] > 0))
            continue;
        double accept = fmin(target[x] / draft[x], 1);
        s->accepted += pr * draft[x] * accept;
        s->out[x] += pr * draft[x] * accept;
        double rejected = pr * draft[x] * (1 - accept);
        if (!(rejected > 1e-14)) // where residuals are rounding
            continue;
        double residual[MAX_VOCAB], sum = 0;
        for (size_t y = 0; y < vocab; y++)
            sum += residual[y] = y == x ? 0 : draft[y];
        for (size_t y = 0; y < vocab; y++)
            residual[y] = sum > 0 ? residual[y] / sum : 0;
        reject(s, k - 1, residual, next, rejected);
    }
}

// Where c does not fit in a double, values are not exact: masses are far apart instead.
static void widen(double *draft, size_t vocab)
{
    double sum = 0;
    for (size_t x = 0; x < vocab; x++)
        sum += draft[x] = pow(10, -40. * (double)((x + 1) % vocab));
    for (size_t x = 0; x < vocab; x++)
        draft[x] /= sum;
}

static void rejection_is_lossless_and_exact(void **state)
{
    (void)state;
    dsc_error e;
    for (uint64_t n = 0; n < 20 * PAIR_SHAPES; n++) {
        pair p = small_pair(n, 1 + n / PAIR_SHAPES % 5);
        if (n % PAIR_SHAPES == PAIR_DENORMAL)
            widen(p.draft, p.vocab);
        dsc_curve c = curve_of(p.draft, p.target, p.vocab);
        double low[4], high[4];
        assert_ok(dsc_specinfer_wor(&c, p.draft, p.target, p.vocab, 4, 1 << 20, low, high, &e), e);
        for (int k = 1; k <= 4; k++) {
            rejection s = {.p = &p};
            reject(&s, k, p.draft, p.target, 1);
            for (size_t x = 0; x < p.vocab; x++)
                assert_close(s.out[x], p.target[x], 1e-12);
            assert_close(low[k - 1], s.accepted, 1e-12);
            assert_close(high[k - 1], s.accepted, 1e-12);
            assert_true(s.accepted >= dsc_specinfer_acceptance(&c, k) - 1e-12);
        }
        dsc_curve_fini(&c);
    }
}

static void intervals_hold_the_value(void **state)
{
    (void)state;
    enum { K = 6, V = 9 };
    dsc_error e;
    for (uint64_t n = 0; n < 10 * PAIR_SHAPES; n++) {
        double draft[V], target[V], exact[K], high[K], low[K];
        make_pair((pair_shape)(n % PAIR_SHAPES), n, V, draft, target);
        if (n % PAIR_SHAPES == PAIR_DENORMAL)
            widen(draft, V - 2), draft[V - 2] = draft[V - 1] = 0;
        dsc_curve c = curve_of(draft, target, V);
        assert_ok(dsc_specinfer_wor(&c, draft, target, V, K, 1 << 20, exact, high, &e), e);
        for (int k = 1; k <= K; k++)
            assert_close(exact[k - 1], high[k - 1], 1e-13);
        for (int64_t budget = 10; budget < 100000; budget *= 8) {
            assert_ok(dsc_specinfer_wor(&c, draft, target, V, K, budget, low, high, &e), e);
            assert_close(low[1], high[1], 1e-13); // two drafts are always exact
            for (int k = 1; k <= K; k++)
                if (!(low[k - 1] <= exact[k - 1] + 1e-13 && high[k - 1] >= exact[k - 1] - 1e-13))
                    fail_msg("pair %d, k %d: %.17g not in %.17g .. %.17g", (int)n, k, exact[k - 1],
                             low[k - 1], high[k - 1]);
        }
        dsc_curve_fini(&c);
    }
}

// Beyond the range of c the interval still contains the value.
static void intervals_of_subnormal_masses(void **state)
{
    (void)state;
    dsc_error e;
    for (uint64_t n = PAIR_DENORMAL; n < 20 * PAIR_SHAPES; n += PAIR_SHAPES) {
        pair p = small_pair(n, 6);
        dsc_curve c = curve_of(p.draft, p.target, p.vocab);
        double low[5], high[5];
        assert_ok(dsc_specinfer_wor(&c, p.draft, p.target, 6, 5, 1 << 16, low, high, &e), e);
        for (int k = 1; k <= 5; k++) {
            rejection s = {.p = &p};
            reject(&s, k, p.draft, p.target, 1);
            assert_true(low[k - 1] <= s.accepted + 1e-12 && s.accepted <= high[k - 1] + 1e-12);
        }
        dsc_curve_fini(&c);
    }
}

// The rule is simulated: it accepts within 4 standard errors, and the interval is narrow.
static void rejection_by_simulation(void **state)
{
    (void)state;
    enum { V = 50, K = 4, N = 100000 };
    dsc_error e;
    double draft[V], target[V], low[K], high[K];
    dsc_probs_zipf(V, .8, 1, 3, draft, target);
    dsc_curve c = curve_of(draft, target, V);
    assert_ok(dsc_specinfer_wor(&c, draft, target, V, K, 1000000, low, high, &e), e);
    int accepted = 0;
    for (uint64_t n = 0; n < N; n++) {
        double left[V], c_i = 0, remaining = 1; // theory/specinfer_wor.h
        memcpy(left, draft, sizeof left);
        for (uint32_t i = 0; i < K; i++) {
            double at = dsc_rng_uniform(11, n, i, 1) * remaining;
            size_t x = 0;
            while (x + 1 < V && (at -= left[x]) >= 0)
                x++;
            double residual = fmax(target[x] - c_i * draft[x], 0) / dsc_curve_w(&c, c_i);
            if (dsc_rng_uniform(11, n, i, 2) < residual / draft[x] * remaining) {
                accepted++;
                break;
            }
            left[x] = 0;
            c_i += dsc_curve_w(&c, c_i) / remaining;
            remaining -= draft[x];
        }
    }
    double mean = (double)accepted / N, error = sqrt(mean * (1 - mean) / N);
    assert_close(low[K - 1], high[K - 1], 1e-4);
    assert_close(mean, low[K - 1], 4 * error + 1e-4);
    assert_true(low[K - 1] - dsc_specinfer_acceptance(&c, K) > 6 * error); // not the other rule
    dsc_curve_fini(&c);
}

// Lemma 3 by its definition: tuples of k tokens, as a mask; `product` is their probability.
static double tuples_term(const pair *p, int k, unsigned set, double product, unsigned outside)
{
    if (k == 0)
        return fmin(product, mass_of(p->target, p->vocab, set & outside));
    double sum = 0;
    for (size_t x = 0; x < p->vocab; x++)
        sum += tuples_term(p, k - 1, set | 1u << x, product * p->draft[x], outside);
    return sum;
}

static double lemma3_by_enumeration(const pair *p, int k)
{
    double best = INFINITY;
    for (unsigned omega0 = 0; omega0 < 1u << p->vocab; omega0++) {
        double sum = tuples_term(p, k, 0, 1, ~omega0);
        for (size_t y = 0; y < p->vocab; y++)
            if (omega0 >> y & 1)
                sum += fmin(p->target[y], 1 - pow(1 - p->draft[y], k));
        best = fmin(best, sum);
    }
    return best;
}

static void lemma3(void **state)
{
    (void)state;
    for (uint64_t n = 0; n < 30 * PAIR_SHAPES; n++) {
        pair p = small_pair(n, 1 + n / PAIR_SHAPES % 5);
        dsc_curve c = curve_of(p.draft, p.target, p.vocab);
        for (int k = 1; k <= 4; k++) {
            dsc_lemma3 b = dsc_lemma3_bounds(&c, k);
            assert_close(b.upper, lemma3_by_enumeration(&p, k), 1e-12);
            assert_close(b.lower, (1 - pow(1 - 1. / k, k)) * b.upper, 1e-14);
            assert_true(dsc_kseq_best(&c, k).accept >= b.lower - 1e-12);
        }
        dsc_curve_fini(&c);
    }
}

// SpecTr App. B: with U(d) against U(d/r), 1 - (1 - 1/r)^k; and the Bernoulli closed form.
static void lemma3_of_families(void **state)
{
    (void)state;
    double draft[12], target[12];
    for (size_t r = 1; r <= 12; r++) {
        if (12 % r)
            continue;
        dsc_probs_uniform(12, r, draft, target);
        dsc_curve c = curve_of(draft, target, 12);
        for (int k = 1; k <= 64; k++)
            assert_close(dsc_lemma3_bounds(&c, k).upper, 1 - pow(1 - 1. / (double)r, k), 1e-14);
        dsc_curve_fini(&c);
    }
    for (int i = 0; i <= 20; i++)
        for (int k = 1; k <= 64; k++) {
            double p = .25, q = i / 20.;
            dsc_probs_bernoulli(p, q, draft, target);
            dsc_curve c = curve_of(draft, target, 2);
            double one = pow(p, k), none = pow(1 - p, k);
            assert_close(dsc_lemma3_bounds(&c, k).upper,
                         fmin(one, q) + fmin(none, 1 - q) + 1 - one - none, 1e-14);
            dsc_curve_fini(&c);
        }
}

SUITE(wor)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefixes_are_the_best_sets),
        cmocka_unit_test(greedy_is_the_best_for_its_set),
        cmocka_unit_test(uniform_drafts),
        cmocka_unit_test(two_drafts),
        cmocka_unit_test(orders),
        cmocka_unit_test(rejection_is_lossless_and_exact),
        cmocka_unit_test(intervals_hold_the_value),
        cmocka_unit_test(intervals_of_subnormal_masses),
        cmocka_unit_test(rejection_by_simulation),
        cmocka_unit_test(lemma3),
        cmocka_unit_test(lemma3_of_families),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

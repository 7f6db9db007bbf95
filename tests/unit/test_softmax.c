// SPDX-License-Identifier: Apache-2.0
// Softmax over a row of logits, against long double and against the sampler's definition:
// probabilities, samples, the most probable tokens, sums over rows; and the tokens that top-k and
// top-p keep, against sorting everything.
#include "tests/close.h"

#include "base/rng.h"
#include "sim/dist.h"
#include "theory/probs.h"
#include "theory/rows/fast_exp.h"
#include "theory/rows/row_sum.h"
#include "theory/rows/softmax.h"

#include <math.h>
#include <stdlib.h>

enum { MOST = 5000, LARGE = 20000 };

static double uniform(uint64_t seed, size_t i)
{
    return dsc_rng_uniform(seed, i, 0, DSC_RNG_FAMILY);
}

// Logits with ties, wide and narrow ones, some -inf.
static float make_logits(float *logit, size_t vocab, uint64_t seed)
{
    const double width = seed % 3 == 0 ? 1 : seed % 3 == 1 ? 20 : 3000;
    float most = -INFINITY;
    for (size_t x = 0; x < vocab; x++) {
        logit[x] = (float)(width * (uniform(seed, x) - 0.25));
        if (seed % 4 == 1)
            logit[x] = roundf(logit[x]);
        if (seed % 5 == 2 && x % 7 == 3)
            logit[x] = -INFINITY;
        most = logit[x] > most ? logit[x] : most;
    }
    return most;
}

static const size_t sizes[] = {1, 2, 15, 16, 127, 128, 129, 144, 1000, 2048, MOST};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void exponential_is_within_a_unit(void **state)
{
    (void)state;
    double worst = 0;
    for (int i = 0; i < 400000; i++) {
        const double x = -640 * uniform(3, (size_t)i) * (i % 2 ? 1 : 1. / 64);
        const long double right = expl((long double)x);
        const double error = (double)fabsl(((long double)dsc_fast_exp_below(x) - right) / right);
        worst = isnan(error) ? INFINITY : fmax(worst, error);
    }
    assert_close(worst, 0, 4e-16);
    assert_true(dsc_fast_exp_below(0) == 1);
    assert_true(dsc_fast_exp_below(-639.999) > 0 && dsc_fast_exp_below(-640) == 0);
    assert_true(dsc_fast_exp_below(-1e308) == 0 && dsc_fast_exp_below(-INFINITY) == 0);
}

static void check_dist(const float *logit, size_t vocab, float most, double temperature)
{
    static double block[MOST], probs[MOST];
    dsc_softmax s;
    long double sum = 0, total = 0;
    dsc_softmax_begin(&s, logit, vocab, most, temperature, block);
    for (size_t x = 0; x < vocab; x++)
        sum += expl(((long double)logit[x] - most) / temperature);
    dsc_softmax_fill(&s, probs);
    for (size_t x = 0; x < vocab; x++) {
        const double depth = ((double)most - (double)logit[x]) / temperature;
        const double right = depth < 640 ? (double)(expl(-(long double)depth) / sum) : 0;
        const double bound = right > 0 ? right * (depth + 8) * 0x1p-52 : 0;
        if (fabs(depth - 640) < 1e-6)
            continue;
        assert_close(probs[x], right, bound);
        assert_close(dsc_softmax_probability(&s, x), probs[x], bound);
        total += probs[x];
    }
    assert_close((double)total, 1, 4e-15);
}

static void dists_are_those_of_long_double(void **state)
{
    static float logit[MOST];
    (void)state;
    for (size_t i = 0; i < SIZES; i++)
        for (uint64_t seed = 0; seed < 12; seed++) {
            const float most = make_logits(logit, sizes[i], seed);
            check_dist(logit, sizes[i], most, 1);
            check_dist(logit, sizes[i], most, 0.7);
            check_dist(logit, sizes[i], most, 2.5);
        }
}

static void a_temperature_of_nearly_nothing(void **state)
{
    const float logit[] = {3, 5, -INFINITY, 4.9999995f};
    double block[1], probs[4], row[4];
    int32_t token[4];
    dsc_softmax s;
    (void)state;
    dsc_softmax_begin(&s, logit, 4, 5, 1e-320, block);
    dsc_softmax_fill(&s, probs);
    assert_true(probs[0] == 0 && probs[1] == 1 && probs[2] == 0 && probs[3] == 0);
    assert_int_equal(dsc_softmax_draw(&s, 0.999), 1);
    const dsc_dist d = {.vocab_size = 4, .logits = &s};
    assert_int_equal(dsc_dist_top(&d, 4, row, token), 1);
    assert_int_equal(token[0], 1);
}

// A sample may differ from the running sum's only where u is next to a boundary.
static void draws_invert_the_running_sum(void **state)
{
    static float logit[MOST];
    static double block[MOST], probs[MOST];
    (void)state;
    for (size_t i = 0; i < SIZES; i++)
        for (uint64_t seed = 0; seed < 6; seed++) {
            const size_t vocab = sizes[i];
            dsc_softmax s;
            dsc_softmax_begin(&s, logit, vocab, make_logits(logit, vocab, seed), 0.9, block);
            dsc_softmax_fill(&s, probs);
            const dsc_dist dense = {.vocab_size = (int32_t)vocab, .dense = probs};
            const dsc_dist view = {.vocab_size = (int32_t)vocab, .logits = &s};
            for (size_t j = 0; j < 300; j++) {
                const double u = j == 0 ? 0 : j == 1 ? 1 - 0x1p-53 : uniform(seed + 99, j);
                double upto = 0;
                size_t x = 0;
                while (x < vocab && !((upto += probs[x]) > u + 1e-13))
                    x++;
                const int32_t a = dsc_dist_sample(&view, u), b = dsc_dist_sample(&dense, u);
                double below = 0;
                for (int32_t y = 0; y < a; y++)
                    below += probs[y];
                assert_true(probs[a] > 0 && probs[b] > 0);
                assert_true(below <= u + 1e-13 && below + probs[a] >= u - 1e-13);
                assert_true(a <= (int32_t)x && (a == b || fabs(below - u) < 1e-13 ||
                                                fabs(below + probs[a] - u) < 1e-13));
            }
        }
}

static const float *ordered;

static int most_probable_first(const void *pa, const void *pb)
{
    const int32_t a = *(const int32_t *)pa, b = *(const int32_t *)pb;
    if (ordered[a] != ordered[b])
        return ordered[a] > ordered[b] ? -1 : 1;
    return (a > b) - (a < b);
}

static void the_most_probable_are_those_of_sorting(void **state)
{
    static float logit[MOST];
    static double block[MOST], row[MOST], probs[MOST];
    static int32_t token[MOST], right[MOST], of_dist[MOST];
    (void)state;
    for (size_t i = 0; i < SIZES; i++)
        for (uint64_t seed = 0; seed < 12; seed++) {
            const size_t vocab = sizes[i];
            dsc_softmax s;
            dsc_softmax_begin(&s, logit, vocab, make_logits(logit, vocab, seed), 5, block);
            dsc_softmax_fill(&s, probs);
            size_t possible = 0;
            for (size_t x = 0; x < vocab; x++) {
                right[x] = (int32_t)x;
                possible += probs[x] > 0;
            }
            ordered = logit;
            qsort(right, vocab, sizeof *right, most_probable_first);
            const dsc_dist view = {.vocab_size = (int32_t)vocab, .logits = &s};
            const dsc_dist dense = {.vocab_size = (int32_t)vocab, .dense = probs};
            for (size_t k = 1; k <= vocab; k = k * 3 + 1) {
                const size_t n = dsc_dist_top(&view, k, row, token),
                             want = k < possible ? k : possible;
                assert_int_equal(n, want);
                assert_memory_equal(token, right, n * sizeof *token);
                assert_int_equal(dsc_dist_top(&dense, k, row, of_dist), n);
                for (size_t j = 0; j < n; j++)
                    assert_true(of_dist[j] == token[j] || probs[of_dist[j]] == probs[token[j]]);
            }
            assert_int_equal(dsc_dist_top(&view, 0, row, token), 0);
        }
}

static void rows_are_searched_to_their_ends(void **state)
{
    static double row[MOST];
    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        const size_t n = sizes[i], last = n - 1 - (n > 20 ? 17 : 0);
        for (size_t x = 0; x < n; x++)
            row[x] = x <= last && x % 3 == last % 3;
        double sum = 0;
        for (size_t x = 0; x < n; x++)
            sum += row[x];
        assert_true(dsc_row_sum(row, n) == sum);
        for (size_t x = 0, before = 0; x < n; x++)
            if (row[x] > 0)
                assert_int_equal(dsc_row_find(row, n, (double)before++), x);
        assert_int_equal(dsc_row_find(row, n, sum), last);
        assert_int_equal(dsc_row_find(row, n, 1e9), last);
        memset(row, 0, n * sizeof *row);
        assert_int_equal(dsc_row_find(row, n, 0), 0);
    }
}

// HF's order of processors, everything sorted.
static size_t keep_by_sorting(const float *logit, size_t vocab, double temperature, size_t top_k,
                              double top_p, int32_t *token)
{
    long double total = 0, before = 0;
    size_t n = top_k, kept = 0;
    for (size_t x = 0; x < vocab; x++)
        token[x] = (int32_t)x;
    ordered = logit;
    qsort(token, vocab, sizeof *token, most_probable_first);
    while (n < vocab && logit[token[n]] == logit[token[n - 1]])
        n++;
    const long double most = logit[token[0]];
    for (size_t i = 0; i < n; i++)
        total += expl((logit[token[i]] - most) / temperature);
    for (; kept < n && (top_p >= 1 || before < top_p * total); kept++)
        before += expl((logit[token[kept]] - most) / temperature);
    return kept;
}

static void filters_are_those_of_sorting(void **state)
{
    static float logit[MOST];
    static double probs[MOST];
    static int32_t token[MOST];
    static const double p[] = {1, 0.97, 0.5, 0.1, 1 - 1e-9};
    (void)state;
    for (size_t i = 0; i < SIZES; i++)
        for (uint64_t seed = 0; seed < 60; seed++) {
            const size_t vocab = sizes[i];
            const double top_p = p[seed % 5], temperature = seed % 2 ? 1.3 : 1;
            size_t top_k = seed % 3 ? vocab : 1 + (size_t)(uniform(5, seed) * 60);
            top_k = top_k < vocab ? top_k : vocab;
            dsc_error e;
            make_logits(logit, vocab, seed);
            for (size_t x = 0; x < vocab; x++)
                probs[x] = (double)logit[x];
            assert_ok(
                dsc_probs_softmax("row", probs, vocab, temperature, (int64_t)top_k, top_p, &e), e);
            const size_t kept = keep_by_sorting(logit, vocab, temperature, top_k, top_p, token);
            long double total = 0;
            for (size_t j = 0; j < kept; j++)
                total += expl(((long double)logit[token[j]] - logit[token[0]]) / temperature);
            for (size_t j = 0; j < vocab; j++) {
                const long double depth =
                    ((long double)logit[token[0]] - logit[token[j]]) / temperature;
                const double right = j < kept && depth < 640 ? (double)(expl(-depth) / total) : 0;
                if (fabsl(depth - 640) < 1e-9)
                    continue;
                assert_close(probs[token[j]], right, 1e-13 * right);
            }
        }
}

// Rows that a search for the cut could fail on: near a normal distribution, integers, all equal, a
// few values shared by thousands, a logit far below, one far above, all magnitudes.
static float make_hard_logits(float *logit, size_t vocab, uint64_t seed)
{
    float most = -INFINITY;
    for (size_t x = 0; x < vocab; x++) {
        const double u = uniform(seed, x), v = uniform(seed + 1000, x);
        const double z = sqrt(-2 * log(u + 1e-300)) * cos(6.283185307179586 * v);
        const double kinds[] = {z,
                                3 * z - 1e3,
                                round(z),
                                2.5,
                                u < .5   ? 1
                                : v < .5 ? 0.5
                                         : -0.0,
                                x == vocab / 2 ? -1e30 : z,
                                x == vocab / 3 ? 60 : z,
                                (v < .5 ? -1 : 1) * pow(10, 60 * u - 38),
                                u < .3 ? -INFINITY : 0.1 * round(20 * z),
                                x == 7 % vocab ? 0 : -INFINITY};
        logit[x] = (float)kinds[seed % 10];
        most = logit[x] > most ? logit[x] : most;
    }
    return most;
}

// The kept tokens, against the distribution in doubles (theory/probs.h). The last token of top-p
// may differ where the sum before it is `enough` except for rounding.
static void check_filter(const float *logit, size_t vocab, float most, double temperature,
                         size_t top_k, double top_p)
{
    static double probs[LARGE], right[LARGE], room[LARGE], block[LARGE];
    static int32_t token[LARGE];
    dsc_softmax s;
    dsc_error e;
    double sum = 0;
    for (size_t x = 0; x < vocab; x++)
        right[x] = (double)logit[x];
    assert_ok(dsc_probs_softmax("row", right, vocab, temperature, (int64_t)top_k, top_p, &e), e);
    dsc_softmax_begin_filtered(&s, logit, vocab, most, temperature, top_k, top_p, block, room);
    dsc_softmax_fill(&s, probs);
    const dsc_dist view = {.vocab_size = (int32_t)vocab, .logits = &s};
    const dsc_dist dense = {.vocab_size = (int32_t)vocab, .dense = probs};
    for (size_t x = 0; x < vocab; x++) {
        const double depth = ((double)most - (double)logit[x]) / temperature;
        const double bound = probs[x] > 0 ? probs[x] * (depth + 8) * 0x1p-51 : 0;
        assert_close(dsc_softmax_probability(&s, x), probs[x], bound);
        assert_true(dsc_softmax_keeps(&s, x) || probs[x] == 0);
        if (fabs(depth - 640) > 1e-6)
            assert_close(probs[x], right[x], right[x] > 0 ? right[x] * (depth + 100) * 0x1p-50 : 0);
        sum += probs[x];
    }
    assert_close(sum, 1, 1e-12);
    for (int i = 0; i < 20; i++) {
        const double u = i == 0 ? 1 - 0x1p-53 : uniform(77, (size_t)i);
        const int32_t a = dsc_dist_sample(&view, u), b = dsc_dist_sample(&dense, u);
        assert_true(probs[a] > 0 && (a == b || i == 0));
    }
    const size_t n = dsc_dist_top(&view, 3, room, token);
    for (size_t i = 0; i < n; i++)
        assert_true(probs[token[i]] > 0 && (i == 0 || logit[token[i]] <= logit[token[i - 1]]));
    assert_true(logit[token[0]] == most);
}

static void views_keep_what_filters_keep(void **state)
{
    static float logit[LARGE];
    static const double p[] = {1, 0.9, 0.5, 1e-300, 0.999, 1 - 1e-9, 0.03};
    (void)state;
    for (uint64_t seed = 0; seed < 120; seed++) {
        const size_t vocab = seed % 12 == 11 ? LARGE : sizes[seed % SIZES];
        const float most =
            seed % 2 ? make_hard_logits(logit, vocab, seed / 2) : make_logits(logit, vocab, seed);
        const size_t count[] = {1, 1 + (size_t)(uniform(6, seed) * (double)vocab), vocab,
                                vocab < 50 ? vocab : 50};
        const double temperature = seed % 7 == 3 ? 0.01 : seed % 3 ? 1 : 1.7;
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 2; j++)
                check_filter(logit, vocab, most, temperature, count[i], p[(seed / 2 + 4 * j) % 7]);
    }
    for (uint64_t seed = 0; seed < 10; seed++) // the cut is searched among thousands
        for (int i = 0; i < 7; i++) {
            const float most = make_hard_logits(logit, LARGE, seed);
            check_filter(logit, LARGE, most, 1, i % 2 ? LARGE : 3000, p[i]);
            check_filter(logit, LARGE, most, 0.6, i % 2 ? 50 : LARGE, p[i]);
            check_filter(logit, LARGE, most, 1, 2 + (size_t)i, p[i]);
        }
}

// Rows that mislead the estimate from a sample (theory/rows/softmax_sample.c): in order, of few
// values, with all weight, or all weight near the cut, where the sample looks or where it does not.
enum { AGAINST = 14 };

static bool is_sampled(size_t x)
{
    return x % DSC_SOFTMAX_BLOCK / 8 == x / DSC_SOFTMAX_BLOCK * 5 % 16;
}

static float make_logits_against(float *logit, size_t vocab, int kind)
{
    float most = -INFINITY;
    for (size_t x = 0; x < vocab; x++) {
        const double u = uniform(8, x), at = (double)x / (double)vocab;
        const double z = sqrt(-2 * log(u + 1e-300)) * cos(6.283185307179586 * uniform(9, x));
        const double kinds[AGAINST] = {-8 * at,
                                       8 * at,
                                       u < .4 ? 1 : 0,
                                       -3,
                                       x == vocab / 2 ? 500 : z,
                                       is_sampled(x) ? 5 + z : z,
                                       is_sampled(x) ? z : 5 + z,
                                       is_sampled(x) ? -30 : -8 * at,
                                       is_sampled(x) ? z : -INFINITY,
                                       is_sampled(x) ? -INFINITY : z,
                                       x < vocab / 2 ? -INFINITY : 3 * z,
                                       -1.3 * log((double)x + 1) + .3 * z,
                                       x == 77 % vocab ? 9 : .01 * z,
                                       -1e-6 * floor(3 * u)};
        logit[x] = (float)kinds[kind];
        most = logit[x] > most ? logit[x] : most;
    }
    return most;
}

// The kept tokens are the first in their order and enough, and not enough without the last of them;
// the sums refer to them.
static void check_cut(const float *logit, size_t vocab, float most, double temperature,
                      size_t top_k, double top_p)
{
    static double block[LARGE], of_k[LARGE], room[LARGE];
    dsc_softmax s;
    long double total = 0, kept = 0, last = 0;
    dsc_softmax_begin_filtered(&s, logit, vocab, most, temperature, top_k, top_p, block, room);
    dsc_softmax k = s; // top-k only
    if (top_k < vocab)
        dsc_softmax_begin_filtered(&k, logit, vocab, most, temperature, top_k, 1, of_k, room);
    else
        k.least = -INFINITY;
    for (size_t first = 0; first < vocab; first += DSC_SOFTMAX_BLOCK) {
        long double here = 0;
        for (size_t x = first; x < vocab && x < first + DSC_SOFTMAX_BLOCK; x++) {
            const double depth = ((double)most - (double)logit[x]) / temperature;
            const long double e = depth < 640 ? expl(-(long double)depth) : 0;
            total += dsc_softmax_keeps(&k, x) ? e : 0;
            here += dsc_softmax_keeps(&s, x) ? e : 0;
            assert_true(!dsc_softmax_keeps(&s, x) || dsc_softmax_keeps(&k, x));
            if (x == s.last && logit[x] == s.least)
                last = e;
        }
        assert_close(s.block[first / DSC_SOFTMAX_BLOCK], (double)here, 1e-14 * s.sum);
        kept += here;
    }
    assert_close(s.sum, (double)kept, 1e-14 * s.sum);
    assert_true(s.last < vocab && logit[s.last] == s.least);
    assert_true(kept >= top_p * total * (1 - 1e-14L));
    assert_true(kept - last < top_p * total * (1 + 1e-14L));
}

static void guesses_are_held_against_the_row(void **state)
{
    static float logit[LARGE];
    static const size_t vocabs[] = {1, 100, 1025, MOST, LARGE};
    static const double p[] = {1e-9, 0.1, 0.5, 0.9, 0.99, 1 - 1e-6, 1 - 1e-12};
    static const double temperatures[] = {0.01, 0.3, 1, 7, 100};
    (void)state;
    for (int v = 0; v < 5; v++)
        for (int kind = 0; kind < AGAINST; kind++) {
            const float most = make_logits_against(logit, vocabs[v], kind);
            if (!(most > -INFINITY))
                continue;
            for (int t = 0; t < 5; t++)
                for (int i = 0; i < 7; i++) {
                    check_cut(logit, vocabs[v], most, temperatures[t], vocabs[v], p[i]);
                    if (vocabs[v] == LARGE)
                        check_cut(logit, LARGE, most, temperatures[t], 3000, p[i]);
                }
        }
}

SUITE(softmax)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exponential_is_within_a_unit),
        cmocka_unit_test(dists_are_those_of_long_double),
        cmocka_unit_test(a_temperature_of_nearly_nothing),
        cmocka_unit_test(draws_invert_the_running_sum),
        cmocka_unit_test(the_most_probable_are_those_of_sorting),
        cmocka_unit_test(rows_are_searched_to_their_ends),
        cmocka_unit_test(filters_are_those_of_sorting),
        cmocka_unit_test(views_keep_what_filters_keep),
        cmocka_unit_test(guesses_are_held_against_the_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

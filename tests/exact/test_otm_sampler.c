// SPDX-License-Identifier: Apache-2.0
// The optimal-transport sampler: lossless by enumeration of every tuple of drafts, as good as
// alpha_k, and its distributions for conditional replay. Also when its weights are bad.
#include "tests/close.h"
#include "tests/exact/pairs.h"
#include "theory/otm.h"
#include "theory/otm_internal.h"

#include <string.h>

enum { MOST = 4 };

static dsc_otm_sampler *sampler;
static dsc_error e;

static int set_up(void **state)
{
    (void)state;
    return dsc_otm_sampler_new(&sampler, &e);
}

static int tear_down(void **state)
{
    (void)state;
    dsc_otm_sampler_free(sampler);
    return 0;
}

// The joint distribution of (accepted, m of the drafts are y, output y), over all tuples.
typedef struct enumerated {
    double output[MOST];          // distribution of the output
    double joint[MOST][MOST + 1]; // [y][m]: accepted with m survivors; [y][0]: not accepted
    double accept;
} enumerated;

static void add_tuple(const int *x, int k, const double *draft, const double *target,
                      enumerated *out)
{
    double d[MOST], t[MOST], dist[MOST + 1], mass = 1;
    for (int i = 0; i < k; i++) {
        d[i] = draft[x[i]];
        t[i] = target[x[i]];
        mass *= d[i];
    }
    if (mass == 0)
        return;
    dsc_otm_sampler_dist(sampler, d, t, dist);
    for (int i = 0; i < k; i++) {
        int m = 0;
        assert_true(dist[i] >= 0 && dist[i] <= 1 + 1e-14);
        for (int j = 0; j < k; j++)
            m += x[j] == x[i];
        out->joint[x[i]][m] += mass * dist[i];
        out->output[x[i]] += mass * dist[i];
        out->accept += mass * dist[i];
    }
    assert_true(dist[k] >= -1e-14);
}

static enumerated enumerate(const double *draft, const double *target, int vocab, int k)
{
    enumerated out = {.accept = 0};
    int x[MOST] = {0}, i;
    do {
        add_tuple(x, k, draft, target, &out);
        for (i = 0; i < k && ++x[i] == vocab; i++)
            x[i] = 0;
    } while (i < k);
    double row[MOST];
    dsc_residual rule;
    dsc_otm_sampler_residual(sampler, &rule);
    double sum = dsc_residual_fill(&rule, draft, target, (size_t)vocab, row);
    assert_close(sum, 1 - dsc_otm_sampler_accept(sampler), 1e-15);
    for (int y = 0; y < vocab; y++) {
        assert_true(row[y] >= 0);
        out.joint[y][0] = sum > 0 ? (1 - out.accept) * (row[y] / sum) : 0;
        out.output[y] += out.joint[y][0];
    }
    return out;
}

static void check_enumerated(const double *draft, const double *target, int vocab, int k)
{
    enumerated all = enumerate(draft, target, vocab, k);
    assert_close(all.accept, dsc_otm_sampler_accept(sampler), 1e-12);
    for (int y = 0; y < vocab; y++) {
        double dist[MOST + 1], accepted = 0;
        assert_close(all.output[y], target[y], 1e-12);
        if (!(target[y] > 0))
            continue;
        dsc_otm_sampler_survivors(sampler, draft[y], target[y], dist);
        for (int m = 1; m <= k; m++) {
            assert_close(dist[m] * target[y], all.joint[y][m], 1e-12);
            accepted += dist[m];
        }
        assert_close(dist[0], 1 - accepted, 1e-12);
        assert_close(dist[0] * target[y], all.joint[y][0], 1e-12);
    }
}

static void is_lossless(void **state)
{
    double draft[MOST], target[MOST];
    (void)state;
    for (int shape = 0; shape < PAIR_SHAPES; shape++)
        for (uint64_t seed = 0; seed < 6; seed++)
            for (int vocab = 1; vocab <= MOST; vocab++)
                for (int k = 1; k <= 3; k++) {
                    make_pair((pair_shape)shape, seed, (size_t)vocab, draft, target);
                    assert_ok(dsc_otm_sampler_build(sampler, draft, target, (size_t)vocab, k, &e),
                              e);
                    check_enumerated(draft, target, vocab, k);
                }
}

// Weights that were hardly fitted, or not at all, cost acceptance only.
static void is_lossless_with_bad_weights(void **state)
{
    double draft[MOST], target[MOST], lost = 0;
    (void)state;
    for (int iterations = 0; iterations < 3; iterations++)
        for (int shape = 0; shape < PAIR_SHAPES; shape++)
            for (uint64_t seed = 10; seed < 13; seed++)
                for (int k = 2; k <= 3; k++) {
                    make_pair((pair_shape)shape, seed, MOST, draft, target);
                    assert_ok(dsc_otm_sampler_build_rough(sampler, draft, target, MOST, k,
                                                          iterations, &e),
                              e);
                    check_enumerated(draft, target, MOST, k);
                    lost = fmax(lost, dsc_otm_sampler_gap(sampler));
                }
    assert_true(lost > 1e-3); // they were bad
}

static void check_gap(const double *draft, const double *target, size_t vocab, int k)
{
    dsc_curve c;
    assert_ok(dsc_curve_init(&c, draft, target, vocab, &e), e);
    double alpha = dsc_otm_value(&c, k).accept;
    dsc_curve_fini(&c);
    assert_ok(dsc_otm_sampler_build(sampler, draft, target, vocab, k, &e), e);
    assert_close(dsc_otm_sampler_accept(sampler) + dsc_otm_sampler_gap(sampler), alpha, 2e-10);
    assert_true(dsc_otm_sampler_gap(sampler) >= 0);
    if (dsc_otm_sampler_gap(sampler) > 1e-9)
        fail_msg("gap %g: %zu tokens, k %d", dsc_otm_sampler_gap(sampler), vocab, k);
    assert_true(dsc_otm_sampler_accept(sampler) <= alpha + 1e-12);
}

static void reaches_the_bound(void **state)
{
    static const int drafts[] = {1, 2, 3, 4, 6, 8, 16, 33, 64};
    static const size_t sizes[] = {1, 2, 3, 5, 17, 100, 1000};
    double draft[1000], target[1000];
    (void)state;
    for (int shape = 0; shape < PAIR_SHAPES; shape++)
        for (size_t v = 0; v < 7; v++)
            for (uint64_t seed = 20; seed < (sizes[v] > 100 ? 22u : 26u); seed++) {
                make_pair((pair_shape)shape, seed, sizes[v], draft, target);
                for (size_t k = 0; k < 9; k++)
                    check_gap(draft, target, sizes[v], drafts[k]);
            }
}

// choose() draws from distribution().
static void check_choice(const double *draft, const double *target, const int x[3], int iterations)
{
    enum { K = 3, DRAWS = 10000 };
    double dist[K + 1], uniform[2 * K + 2], d[K], t[K];
    int count[K + 1] = {0};
    assert_ok(dsc_otm_sampler_build_rough(sampler, draft, target, MOST, K, iterations, &e), e);
    for (int i = 0; i < K; i++) {
        d[i] = draft[x[i]];
        t[i] = target[x[i]];
    }
    dsc_otm_sampler_dist(sampler, d, t, dist);
    for (int n = 0; n < DRAWS; n++) {
        for (uint32_t u = 0; u < 2 * K + 2; u++)
            uniform[u] = dsc_rng_uniform(31, (uint64_t)n, u, 9);
        int chosen = dsc_otm_sampler_choose(sampler, d, t, uniform);
        count[chosen < 0 ? K : chosen]++;
    }
    for (int i = 0; i <= K; i++)
        assert_close((double)count[i] / DRAWS, dist[i],
                     4.5 * sqrt(fmax(0, dist[i] * (1 - dist[i])) / DRAWS) + 1e-9);
}

static void chooses_by_its_dist(void **state)
{
    static const int drawn[][3] = {{0, 1, 0}, {1, 0, 2}, {3, 2, 1}, {2, 2, 2}};
    double draft[MOST], target[MOST];
    (void)state;
    for (int shape = 0; shape < PAIR_SHAPES; shape++)
        for (size_t i = 0; i < 4; i++) {
            make_pair((pair_shape)shape, 30, MOST, draft, target);
            for (int x = 0; x < MOST; x++) // what is drawn has mass
                draft[x] = fmax(draft[x], 1e-3);
            pair_normalise(draft, MOST);
            check_choice(draft, target, drawn[i], 0);
            check_choice(draft, target, drawn[i], DSC_RACE_ITERATIONS);
        }
}

// Rows up to a factor are the same distributions.
static void takes_unnormalised_rows(void **state)
{
    enum { V = 300, K = 4 };
    double draft[V], target[V], dist[K + 1], scaled[K + 1];
    (void)state;
    make_pair(PAIR_EVEN, 40, V, draft, target);
    assert_ok(dsc_otm_sampler_build(sampler, draft, target, V, K, &e), e);
    double accept = dsc_otm_sampler_accept(sampler);
    dsc_otm_sampler_survivors(sampler, draft[7], target[7], dist);
    for (int x = 0; x < V; x++) {
        draft[x] *= 3;
        target[x] *= .25;
    }
    assert_ok(dsc_otm_sampler_build(sampler, draft, target, V, K, &e), e);
    assert_close(dsc_otm_sampler_accept(sampler), accept, 1e-9);
    dsc_otm_sampler_survivors(sampler, draft[7], target[7], scaled);
    for (int m = 0; m <= K; m++)
        assert_close(scaled[m], dist[m], 1e-9);
}

static void refuses(double draft_1, double target_1, int k, int status, const char *what)
{
    double draft[2] = {.5, draft_1}, target[2] = {.5, target_1};
    assert_int_equal(dsc_otm_sampler_build(sampler, draft, target, 2, k, &e), status);
    assert_non_null(strstr(e.message, what));
}

static void refuses_what_is_no_dist(void **state)
{
    (void)state;
    refuses(-.5, .5, 2, DSC_EINPUT, "draft row: element 1 is -0.5");
    refuses(.5, NAN, 2, DSC_EINPUT, "target row: element 1 is nan");
    refuses(INFINITY, .5, 2, DSC_EINPUT, "draft row: element 1 is inf");
    refuses(.5, .5, 0, DSC_EUSAGE, "1 to 64 drafts");
    refuses(.5, .5, 65, DSC_EUSAGE, "1 to 64 drafts");
    double zero[2] = {0, 0};
    assert_int_equal(dsc_otm_sampler_build(sampler, zero, zero, 2, 1, &e), DSC_EINPUT);
    assert_non_null(strstr(e.message, "the sum is 0"));
}

SUITE(otm_sampler)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_lossless),
        cmocka_unit_test(is_lossless_with_bad_weights),
        cmocka_unit_test(reaches_the_bound),
        cmocka_unit_test(chooses_by_its_dist),
        cmocka_unit_test(takes_unnormalised_rows),
        cmocka_unit_test(refuses_what_is_no_dist),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

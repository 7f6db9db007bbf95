// SPDX-License-Identifier: Apache-2.0
// Block verification by full enumeration of the drafts and coins, for distributions that depend on
// the whole path, and its expected length, exact and as certified bounds, compared with that
// enumeration.
#include "tests/close.h"
#include "tests/exact/pairs.h"

#include "theory/block_verify.h"
#include "theory/single.h"

#include <string.h>

enum { VOCAB = 3, LENGTH = 3, NODES = 1 + 3 + 9 + 27, PATHS = 81 }; // prefixes; outputs of 4 tokens

// Distributions of the next token after each prefix. Prefix x_1 .. x_i is node child(..child(0,
// x_1).., x_i).
typedef struct tree {
    size_t vocab;
    int length;
    double draft[NODES][VOCAB], target[NODES][VOCAB];
} tree;

static size_t child(const tree *t, size_t node, size_t x)
{
    return node * t->vocab + 1 + x;
}

static void make_tree(tree *t, pair_shape shape, uint64_t seed, size_t vocab, int length,
                      bool same_everywhere)
{
    *t = (tree){.vocab = vocab, .length = length};
    for (size_t n = 0; n < NODES; n++)
        make_pair(shape, same_everywhere ? seed : seed * NODES + n, vocab, t->draft[n],
                  t->target[n]);
}

typedef struct outcome {
    double expected_p[LENGTH + 1];   // E[p_i]
    double at_least[LENGTH + 1];     // Pr(tau >= i)
    double dist[PATHS];              // distribution of the first length + 1 output tokens
    double joint[LENGTH + 1][PATHS]; // with tau >= i
} outcome;

// One block after its drafts are sampled.
typedef struct block {
    const tree *t;
    outcome *o;
    size_t node[LENGTH + 1], output; // node of X^i; code of the tokens so far
    double weight, p[LENGTH + 1], coin[LENGTH + 1];
} block;

// The target continues from `node` until length + 1 tokens are emitted; `depth` are emitted so far.
static void go_on(const block *b, int tau, double weight, size_t node, size_t output, int depth)
{
    const tree *t = b->t;
    if (depth > t->length) {
        b->o->dist[output] += weight;
        for (int i = 0; i <= tau; i++)
            b->o->joint[i][output] += weight;
        return;
    }
    for (size_t x = 0; x < t->vocab; x++)
        go_on(b, tau, weight * t->target[node][x], child(t, node, x), output * t->vocab + x,
              depth + 1);
}

static void end_block(const block *b, const size_t *x)
{
    const tree *t = b->t;
    double reach = b->weight; // and no longer prefix is accepted
    for (int i = t->length; i >= 0; i--) {
        double residual[VOCAB], weight = reach * b->coin[i];
        size_t node = b->node[i], output = 0;
        reach *= 1 - b->coin[i];
        for (int j = 0; j < i; j++)
            output = output * t->vocab + x[j];
        for (int j = 0; j <= i; j++)
            b->o->at_least[j] += weight;
        if (i == t->length)
            memcpy(residual, t->target[node], sizeof residual);
        else
            dsc_block_residual(b->p[i], t->draft[node], t->target[node], t->vocab, residual);
        for (size_t y = 0; y < t->vocab; y++)
            go_on(b, i, weight * residual[y], child(t, node, y), output * t->vocab + y, i + 1);
    }
}

static void draft_on(block *b, size_t *x, int depth)
{
    const tree *t = b->t;
    size_t node = b->node[depth];
    dsc_curve c;
    dsc_error e;
    assert_ok(dsc_curve_init(&c, t->draft[node], t->target[node], t->vocab, &e), e);
    double left = dsc_block_left(&c, b->p[depth]);
    dsc_curve_fini(&c);
    b->o->expected_p[depth] += b->weight * b->p[depth];
    if (depth == t->length) {
        b->coin[depth] = b->p[depth];
        end_block(b, x);
        return;
    }
    b->coin[depth] = dsc_block_coin(b->p[depth], left);
    if (depth == 0)
        b->coin[0] = 1;
    for (x[depth] = 0; x[depth] < t->vocab; x[depth]++) {
        block next = *b;
        double draft = t->draft[node][x[depth]], target = t->target[node][x[depth]];
        if (!(draft > 0))
            continue;
        next.weight *= draft;
        next.p[depth + 1] = dsc_block_ratio(b->p[depth], draft, target);
        next.node[depth + 1] = child(t, node, x[depth]);
        draft_on(&next, x, depth + 1);
    }
}

static outcome enumerate(const tree *t)
{
    outcome o = {0};
    size_t x[LENGTH];
    block b = {.t = t, .o = &o, .weight = 1, .p = {1}};
    draft_on(&b, x, 0);
    return o;
}

static size_t power(size_t base, int exponent)
{
    return exponent ? base * power(base, exponent - 1) : 1;
}

// The probabilities along output `path`.
static void elements(const tree *t, size_t path, double *draft_y, double *target_y)
{
    size_t node = 0;
    for (int i = 0; i <= t->length; i++) {
        size_t y = path / power(t->vocab, t->length - i) % t->vocab;
        draft_y[i] = t->draft[node][y];
        target_y[i] = t->target[node][y];
        node = child(t, node, y);
    }
}

static void assert_lossless(const tree *t)
{
    const double tolerance = 1e-12;
    outcome o = enumerate(t);
    for (int i = 0; i <= t->length; i++)
        assert_close(o.at_least[i], o.expected_p[i], tolerance);
    for (size_t path = 0; path < power(t->vocab, t->length + 1); path++) {
        double draft_y[LENGTH + 1], target_y[LENGTH + 1], dist = 1, given[LENGTH + 1];
        double token[LENGTH + 1];
        elements(t, path, draft_y, target_y);
        for (int i = 0; i <= t->length; i++)
            dist *= target_y[i];
        assert_close(o.dist[path], dist, tolerance);
        if (dist < 1e-290)
            continue;
        // Relative to the distribution where the enumeration's own sums allow it.
        double unit = dist > 1e-3 ? dist : 1;
        dsc_block_given(draft_y, target_y, t->length, given);
        dsc_block_given_token(draft_y, target_y, t->length, token);
        for (int i = 0; i <= t->length; i++) {
            assert_close(given[i] * dist / unit, o.joint[i][path] / unit, tolerance);
            assert_true(given[i] >= token[i] * (1 - 1e-14));
        }
    }
}

static void lossless(void **state)
{
    (void)state;
    tree *t = test_malloc(sizeof *t);
    for (pair_shape shape = 0; shape < PAIR_SHAPES; shape++)
        for (size_t vocab = 1; vocab <= VOCAB; vocab++)
            for (int length = 1; length <= LENGTH; length++)
                for (uint64_t seed = 0; seed < 15; seed++) {
                    make_tree(t, shape, seed, vocab, length, false);
                    assert_lossless(t);
                    make_tree(t, shape, seed, vocab, length, true);
                    assert_lossless(t);
                }
    test_free(t);
}

// Sum of E[p_i] of the path-independent tree against the library's, exact and bounds.
static void expected_by_enumeration(void **state)
{
    (void)state;
    tree *t = test_malloc(sizeof *t);
    for (pair_shape shape = 0; shape < PAIR_SHAPES; shape++)
        for (size_t vocab = 1; vocab <= VOCAB; vocab++)
            for (uint64_t seed = 0; seed < 4; seed++) {
                dsc_curve c;
                dsc_error e;
                const dsc_curve *curve[LENGTH] = {&c, &c, &c};
                dsc_interval got[LENGTH], bound[LENGTH];
                make_tree(t, shape, seed, vocab, LENGTH, true);
                assert_ok(dsc_curve_init(&c, t->draft[0], t->target[0], vocab, &e), e);
                assert_ok(dsc_block_expected(curve, LENGTH, 0, got, &e), e);
                assert_ok(dsc_block_expected(curve, LENGTH, 512, bound, &e), e);
                for (int length = 1; length <= LENGTH; length++) {
                    make_tree(t, shape, seed, vocab, length, true);
                    outcome o = enumerate(t);
                    double want = 0;
                    for (int i = 1; i <= length; i++)
                        want += o.expected_p[i];
                    dsc_interval g = got[LENGTH - length], b = bound[LENGTH - length];
                    assert_close(g.low, want, 1e-12);
                    assert_close(g.high, want, 1e-12);
                    assert_true(b.low <= want + 1e-12 && b.high >= want - 1e-12);
                    assert_true(b.high - b.low < .01);
                }
                dsc_curve_fini(&c);
            }
    test_free(t);
}

enum { LONG = 8 };

static void make_curve(dsc_curve *c, pair_shape shape, uint64_t seed, size_t vocab)
{
    double *draft = test_calloc(vocab, sizeof *draft), *target = test_calloc(vocab, 8);
    dsc_error e;
    make_pair(shape, seed, vocab, draft, target);
    assert_ok(dsc_curve_init(c, draft, target, vocab, &e), e);
    test_free(draft);
    test_free(target);
}

// Different distributions at each position, and the orders.
static void bounds_hold_the_exact_value(void **state)
{
    (void)state;
    for (pair_shape shape = 0; shape < PAIR_SHAPES; shape++)
        for (uint64_t seed = 0; seed < 3; seed++) {
            dsc_curve c[LONG];
            const dsc_curve *curve[LONG];
            dsc_interval exact[LONG], coarse[LONG], fine[LONG];
            double token[LONG];
            dsc_error e;
            for (int i = 0; i < LONG; i++) {
                make_curve(&c[i], shape, seed * LONG + (uint64_t)i, 4);
                curve[i] = i % 2 && seed == 1 ? curve[i - 1] : &c[i];
            }
            assert_ok(dsc_block_expected(curve, LONG, 0, exact, &e), e);
            assert_ok(dsc_block_expected(curve, LONG, 128, coarse, &e), e);
            assert_ok(dsc_block_expected(curve, LONG, 1024, fine, &e), e);
            dsc_block_expected_token(curve, LONG, token);
            for (int i = 0; i < LONG; i++) {
                assert_true(exact[i].low == exact[i].high);
                assert_true(token[i] <= exact[i].low + 1e-12);
                assert_true(coarse[i].low <= exact[i].low + 1e-12);
                assert_true(coarse[i].high >= exact[i].low - 1e-12);
                assert_true(fine[i].low <= exact[i].low + 1e-12);
                assert_true(fine[i].high >= exact[i].low - 1e-12);
                assert_true(fine[i].high - fine[i].low <= .02);
            }
            assert_close(exact[LONG - 1].low, token[LONG - 1], 1e-12); // one draft: the same
            for (int i = 0; i < LONG; i++)
                dsc_curve_fini(&c[i]);
        }
}

// Pairs that resemble models over a vocabulary: the default is tight.
static void default_is_tight(void **state)
{
    (void)state;
    const pair_shape shapes[] = {PAIR_NEAR, PAIR_EVEN, PAIR_PEAKED, PAIR_ZIPF};
    for (size_t s = 0; s < 4; s++) {
        dsc_curve c;
        const dsc_curve *curve[LONG];
        dsc_interval got[LONG];
        dsc_error e;
        make_curve(&c, shapes[s], 5, 3000);
        for (int i = 0; i < LONG; i++)
            curve[i] = &c;
        assert_ok(dsc_block_expected(curve, LONG, 0, got, &e), e);
        assert_true(got[0].high - got[0].low < 1e-6 && got[0].high >= got[0].low - 1e-12);
        dsc_curve_fini(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lossless),
        cmocka_unit_test(expected_by_enumeration),
        cmocka_unit_test(bounds_hold_the_exact_value),
        cmocka_unit_test(default_is_tight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

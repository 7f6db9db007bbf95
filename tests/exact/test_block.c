// SPDX-License-Identifier: Apache-2.0
// Block verification by full enumeration of the drafts and coins, for distributions that depend on
// the whole path.
#include "tests/close.h"
#include "tests/exact/pairs.h"

#include "theory/block_verify.h"

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

// (p target - draft)+, whose sum it returns: the left of theory/block_verify.h.
static double residual_of(const tree *t, size_t node, double p, double *residual)
{
    double left = 0;
    for (size_t x = 0; x < t->vocab; x++)
        left += residual[x] = fmax(p * t->target[node][x] - t->draft[node][x], 0);
    return left;
}

static void end_block(const block *b, const size_t *x)
{
    const tree *t = b->t;
    double reach = b->weight; // and no longer prefix is accepted
    for (int i = t->length; i >= 0; i--) {
        double residual[VOCAB], left = 1, weight = reach * b->coin[i];
        size_t node = b->node[i], output = 0;
        reach *= 1 - b->coin[i];
        for (int j = 0; j < i; j++)
            output = output * t->vocab + x[j];
        for (int j = 0; j <= i; j++)
            b->o->at_least[j] += weight;
        if (i == t->length)
            memcpy(residual, t->target[node], sizeof residual);
        else
            left = residual_of(t, node, b->p[i], residual);
        for (size_t y = 0; y < t->vocab && left > 0; y++)
            go_on(b, i, weight * (residual[y] / left), child(t, node, y), output * t->vocab + y,
                  i + 1);
    }
}

static void draft_on(block *b, size_t *x, int depth)
{
    const tree *t = b->t;
    size_t node = b->node[depth];
    double residual[VOCAB];
    b->o->expected_p[depth] += b->weight * b->p[depth];
    if (depth == t->length) {
        b->coin[depth] = b->p[depth];
        end_block(b, x);
        return;
    }
    b->coin[depth] =
        depth ? dsc_block_coin(b->p[depth], residual_of(t, node, b->p[depth], residual)) : 1;
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
        double draft_y[LENGTH + 1], target_y[LENGTH + 1], dist = 1, product = 1, given = 1;
        elements(t, path, draft_y, target_y);
        for (int i = 0; i <= t->length; i++)
            dist *= target_y[i];
        assert_close(o.dist[path], dist, tolerance);
        if (dist < 1e-290)
            continue;
        // Relative to the distribution where the enumeration's own sums allow it. The minimum of
        // the products is the conditional replay of theory/block_verify.h.
        double unit = dist > 1e-3 ? dist : 1;
        for (int i = 0; i <= t->length; i++) {
            given = fmin(given, product);
            assert_close(given * dist / unit, o.joint[i][path] / unit, tolerance);
            product *= draft_y[i] / target_y[i];
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

SUITE(block)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lossless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

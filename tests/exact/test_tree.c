// SPDX-License-Identifier: Apache-2.0
// Draft trees: expected tokens against simulated walks, the published trees and chains, and the
// optimal tree against all trees and against the recursion written down directly.
#include "tests/close.h"

#include "base/rng.h"
#include "theory/tree.h"

#include <stdbool.h>
#include <string.h>

static dsc_error err;

// [depths][ranks] random acceptance rates; `falling`: they fall with rank.
static void random_dist(double *rate, int depths, int ranks, uint64_t trial, bool falling)
{
    for (int d = 0; d < depths; d++) {
        double sum = 0, *row = rate + d * ranks;
        for (int r = 0; r < ranks; r++) {
            row[r] = dsc_rng_uniform(5, trial, (uint32_t)(d * ranks + r), 1);
            if (dsc_rng_uniform(5, trial, (uint32_t)(d * ranks + r), 2) < 0.15)
                row[r] = 0;
            sum += row[r];
        }
        double scale = dsc_rng_uniform(5, trial, (uint32_t)d, 3) / fmax(sum, 1e-300);
        for (int r = 0; r < ranks; r++)
            row[r] *= scale;
        for (int r = 1; falling && r < ranks; r++)
            for (int s = r; s > 0 && row[s] > row[s - 1]; s--) {
                double swap = row[s];
                row[s] = row[s - 1];
                row[s - 1] = swap;
            }
    }
}

static void assert_tree(const dsc_tree *t)
{
    int depth = 0;
    assert_int_equal(t->parent[0], -1);
    assert_int_equal(t->rank[0], -1);
    assert_int_equal(t->level[0], 0);
    for (int i = 1; i < t->nodes; i++) {
        assert_in_range(t->parent[i], 0, i - 1);
        assert_int_equal(t->level[i], t->level[t->parent[i]] + 1);
        depth = t->level[i] > depth ? t->level[i] : depth;
        for (int j = 1; j < i; j++)
            assert_false(t->parent[i] == t->parent[j] && t->rank[i] == t->rank[j]);
    }
    assert_int_equal(t->depth, depth);
}

// --- expected tokens -----------------------------------------------------------------------

static void test_shapes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int nodes, depth;
    } known[] = {{"eagle", 26, 5},  {"medusa", 64, 4}, {"chain:0", 1, 0},
                 {"chain:7", 8, 7}, {"2^3", 15, 3},    {"1^4", 5, 4},
                 {"7^1", 8, 1},     {"31^2", 993, 2},  {"chain:64", 65, 64}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        dsc_tree t;
        assert_ok(dsc_tree_named(&t, known[i].name, &err), err);
        assert_int_equal(t.nodes, known[i].nodes);
        assert_int_equal(t.depth, known[i].depth);
        assert_tree(&t);
        dsc_tree_fini(&t);
    }
    static const char *const bad[] = {
        "",     "eagle2", "chain:", "chain:65", "chain:-1",      "chain:4x", "2^",
        "2^10", "32^2",   "0^3",    "2^3^1",    "99999999999^2", "^2",       "1024^1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dsc_tree t;
        assert_int_equal(dsc_tree_named(&t, bad[i], &err), DSC_EUSAGE);
        assert_null(t.parent);
    }
}

// The paths of the two published trees: the sums over their lists as published, where each depth
// and rank has its own acceptance rate.
static void test_published_paths(void **state)
{
    (void)state;
    static const double first[] = {.41, .19, .13, .07, .05, .037, .029, .023, .017, .011};
    double rate[5 * 10], expected;
    for (int i = 0; i < 50; i++)
        rate[i] = first[i % 10] * (1 - 0.05 * (i / 10));
    dsc_tree t;
    assert_ok(dsc_tree_named(&t, "eagle", &err), err);
    assert_ok(dsc_tree_expect(&t, &(dsc_tree_acceptance){rate, 5, 10}, NULL, &expected, &err), err);
    assert_close(expected, 2.5399549304999005, 1e-14);
    dsc_tree_fini(&t);
    assert_ok(dsc_tree_named(&t, "medusa", &err), err);
    assert_ok(dsc_tree_expect(&t, &(dsc_tree_acceptance){rate, 5, 10}, NULL, &expected, &err), err);
    assert_close(expected, 3.0377713900499987, 1e-14);
    dsc_tree_fini(&t);
}

// EAGLE (Li et al. 2024), MT-bench, T = 0: the acceptances by depth of its Table 1 give the chain's
// tokens per call of its Table 5 within 4 %; but the last model's two tables differ by 5.2 %.
static void test_eagle_chains(void **state)
{
    (void)state;
    static const struct {
        double alpha[5], predicted, published, error;
    } model[] = {
        {{.79, .74, .72, .73, .67}, 3.309, 3.20, .04},
        {{.79, .74, .72, .74, .70}, 3.333, 3.23, .04},
        {{.74, .69, .67, .67, .66}, 2.973, 2.97, .04},
        {{.76, .69, .67, .68, .68}, 3.04, 3.00, .04},
        {{.77, .69, .69, .70, .71}, 3.11, 3.18, .04},
        {{.75, .69, .65, .64, .64}, 2.957, 3.12, .0523},
    };
    dsc_tree t;
    assert_ok(dsc_tree_named(&t, "chain:5", &err), err);
    for (size_t i = 0; i < sizeof model / sizeof *model; i++) {
        double expected, direct = 1, product = 1;
        dsc_tree_acceptance dist = {model[i].alpha, 5, 1};
        assert_ok(dsc_tree_expect(&t, &dist, NULL, &expected, &err), err);
        for (int d = 0; d < 5; d++)
            direct += product *= model[i].alpha[d];
        assert_close(expected, direct, 1e-15);
        assert_close(expected, model[i].predicted, 0.01);
        assert_close(expected / model[i].published, 1, model[i].error);
    }
    dsc_tree_fini(&t);
}

// Walks down the tree: at each node one candidate, or none, is the target's token.
static void test_walks(void **state)
{
    (void)state;
    enum { WALKS = 40000, RANKS = 4, DEPTHS = 5 };
    double rate[DEPTHS * RANKS], probability[26], expected, squares = 0, sum = 0;
    int64_t reached[26] = {0};
    dsc_tree t;
    random_dist(rate, DEPTHS, RANKS, 1, true);
    for (int d = 0; d < DEPTHS; d++)
        rate[d * RANKS] += 0.2 * (1 - rate[d * RANKS] - rate[d * RANKS + 1] - rate[d * RANKS + 2] -
                                  rate[d * RANKS + 3]);
    assert_ok(dsc_tree_named(&t, "eagle", &err), err);
    assert_ok(dsc_tree_expect(&t, &(dsc_tree_acceptance){rate, DEPTHS, RANKS}, probability,
                              &expected, &err),
              err);
    for (uint32_t walk = 0; walk < WALKS; walk++) {
        int node = 0, tokens = 0;
        while (node >= 0) {
            double u = dsc_rng_uniform(9, walk, (uint32_t)tokens, 0);
            int rank = 0, next = -1;
            reached[node]++;
            tokens++;
            for (; rank < RANKS && tokens <= DEPTHS; rank++) {
                if (u < rate[(tokens - 1) * RANKS + rank])
                    break;
                u -= rate[(tokens - 1) * RANKS + rank];
            }
            for (int i = node + 1; i < t.nodes; i++)
                next = t.parent[i] == node && t.rank[i] == rank ? i : next;
            node = next;
        }
        sum += tokens;
        squares += (tokens - expected) * (tokens - expected);
    }
    assert_close(sum / WALKS, expected, 4 * sqrt(squares) / WALKS);
    for (int i = 0; i < t.nodes; i++)
        assert_close((double)reached[i] / WALKS, probability[i],
                     4.5 * sqrt(probability[i] * (1 - probability[i]) / WALKS) + 1e-12);
    dsc_tree_fini(&t);
}

// --- text ----------------------------------------------------------------------------------

static void test_parse(void **state)
{
    (void)state;
    dsc_tree t;
    assert_ok(dsc_tree_parse(&t, "# a tree\n  0,1 \n1\r\n\n0 # first\n0,1,12", "t", &err), err);
    static const int32_t parent[] = {-1, 0, 0, 1, 3}, rank[] = {-1, 0, 1, 1, 12};
    assert_int_equal(t.nodes, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(t.parent[i], parent[i]);
        assert_int_equal(t.rank[i], rank[i]);
    }
    assert_tree(&t);
    dsc_tree_fini(&t);
    static const char *const bad[][2] = {
        {"0\n0,\n", "t:2:"},
        {"0\n,0\n", "t:2:"},
        {"0\nx\n", "t:2:"},
        {"-1\n", "t:1:"},
        {"0\n1\n0\n", "t:3:"},
        {"0\n\n1,0\n", "t:3:"},
        {"1024\n", "t:1:"},
        {"0 1\n", "t:1:"},
        {"0,0\n", "t:1:"},
        {"0\n0,,0\n", "t:2:"},
        {"99999999999999999999\n", "t:1:"},
        {"", "t: it contains no path"},
        {"# 0\n", "t: it contains no path"},
        {"0\n0,0x\n", "t:2:"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(dsc_tree_parse(&t, bad[i][0], "t", &err), DSC_EINPUT);
        assert_non_null(strstr(err.message, bad[i][1]));
        assert_null(t.parent);
    }
    // Too deep, and too many.
    char text[8 * 1100] = "0";
    for (int d = 1; d <= DSC_TREE_DEPTH; d++)
        strcat(text, ",0");
    assert_int_equal(dsc_tree_parse(&t, text, "t", &err), DSC_EINPUT);
    assert_non_null(strstr(err.message, "more than 64 ranks"));
    text[0] = '\0';
    for (int i = 0, used = 0; i < 1024; i++)
        used += sprintf(text + used, i < 512 ? "%d\n" : "0,%d\n", i % 512);
    assert_int_equal(dsc_tree_parse(&t, text, "t", &err), DSC_EINPUT);
    assert_non_null(strstr(err.message, "t:1024: a tree of more than 1023"));
}

static void test_refusals(void **state)
{
    (void)state;
    dsc_tree t;
    dsc_tree_plan *plan;
    double expected;
    static const double rate[] = {0.5, 0.3}, negative[] = {0.5, -0.1}, over[] = {0.6, 0.5};
    assert_ok(dsc_tree_named(&t, "3^2", &err), err);
    assert_int_equal(dsc_tree_expect(&t, &(dsc_tree_acceptance){rate, 1, 2}, NULL, &expected, &err),
                     DSC_EUSAGE); // rank 2
    assert_int_equal(dsc_tree_plan_new(&plan, &(dsc_tree_acceptance){negative, 1, 2}, 4, 2, &err),
                     DSC_EUSAGE);
    assert_int_equal(dsc_tree_plan_new(&plan, &(dsc_tree_acceptance){over, 1, 2}, 4, 2, &err),
                     DSC_EUSAGE);
    assert_int_equal(dsc_tree_plan_new(&plan, &(dsc_tree_acceptance){rate, 2, 1}, 4, 3, &err),
                     DSC_EUSAGE);
    assert_int_equal(dsc_tree_plan_new(&plan, &(dsc_tree_acceptance){rate, 1, 2}, 0, 3, &err),
                     DSC_EUSAGE);
    assert_int_equal(dsc_tree_plan_new(&plan, &(dsc_tree_acceptance){rate, 1, 2}, 1025, 3, &err),
                     DSC_EUSAGE);
    assert_int_equal(dsc_tree_plan_new(&plan, &(dsc_tree_acceptance){rate, 1, 2}, 8, 65, &err),
                     DSC_EUSAGE);
    assert_null(plan);
    dsc_tree_fini(&t);
    assert_ok(dsc_tree_named(&t, "chain:3", &err), err);
    assert_int_equal(dsc_tree_expect(&t, &(dsc_tree_acceptance){rate, 2, 1}, NULL, &expected, &err),
                     DSC_EUSAGE); // depth 3
    dsc_tree_fini(&t);
    assert_ok(dsc_tree_plan_new(&plan, &(dsc_tree_acceptance){rate, 1, 2}, 8, 2, &err), err);
    assert_int_equal(dsc_tree_plan_tree(plan, 8, 2, &t, &err), DSC_EUSAGE); // at most 7 nodes
    assert_true(isinf(dsc_tree_plan_expected(plan, 8, 2)));
    dsc_tree_plan_free(plan);
}

// --- the optimal tree ----------------------------------------------------------------------

enum { SMALL = 8 };

typedef struct search {
    dsc_tree t;
    int32_t parent[SMALL], rank[SMALL], level[SMALL];
    dsc_tree_acceptance dist;
    bool gaps;                         // children of any ranks, not only the first
    double best[SMALL + 1][SMALL + 1]; // by nodes and depth
} search;

// Adds every tree that extends s->t by further nodes to s->best.
static void grow(search *s)
{
    int n = s->t.nodes;
    double expected;
    assert_ok(dsc_tree_expect(&s->t, &s->dist, NULL, &expected, &err), err);
    for (int depth = s->t.depth; depth < SMALL; depth++)
        s->best[n][depth] = fmax(s->best[n][depth], expected);
    if (n == (s->gaps ? 5 : SMALL))
        return;
    int depth = s->t.depth;
    for (int parent = 0; parent < n; parent++)
        for (int rank = 0; rank < s->dist.ranks; rank++) {
            int children = 0;
            bool taken = false;
            for (int i = 1; i < n; i++) {
                children += s->t.parent[i] == parent;
                taken = taken || (s->t.parent[i] == parent && s->t.rank[i] == rank);
            }
            int level = s->t.level[parent] + 1;
            if (taken || (!s->gaps && rank != children) ||
                (s->dist.depths > 1 && level > s->dist.depths))
                continue;
            s->t.parent[n] = parent;
            s->t.rank[n] = rank;
            s->t.level[n] = level;
            s->t.nodes = n + 1;
            s->t.depth = level > depth ? level : depth;
            grow(s);
            s->t.nodes = n;
            s->t.depth = depth;
        }
}

static void against_every_tree(int depths, int ranks, uint64_t trial, bool gaps)
{
    double rate[SMALL * 4];
    search s = {.dist = {rate, depths, ranks}, .gaps = gaps};
    random_dist(rate, depths, ranks, trial, gaps);
    s.t = (dsc_tree){1, 0, s.parent, s.rank, s.level};
    s.parent[0] = s.rank[0] = -1;
    for (int n = 0; n <= SMALL; n++)
        for (int d = 0; d <= SMALL; d++)
            s.best[n][d] = -INFINITY;
    grow(&s);
    int depth = depths > 1 ? depths : SMALL - 1;
    dsc_tree_plan *plan;
    assert_ok(dsc_tree_plan_new(&plan, &s.dist, SMALL, depth, &err), err);
    for (int n = 1; n <= (gaps ? 5 : SMALL); n++)
        for (int d = 0; d <= depth; d++) {
            double found = dsc_tree_plan_expected(plan, n, d), expected;
            if (isinf(s.best[n][d])) {
                assert_true(isinf(found));
                continue;
            }
            assert_close(found, s.best[n][d], 1e-14);
            dsc_tree t;
            assert_ok(dsc_tree_plan_tree(plan, n, d, &t, &err), err);
            assert_tree(&t);
            assert_int_equal(t.nodes, n);
            assert_true(t.depth <= d);
            assert_ok(dsc_tree_expect(&t, &s.dist, NULL, &expected, &err), err);
            assert_close(expected, found, 1e-14);
            dsc_tree_fini(&t);
        }
    dsc_tree_plan_free(plan);
}

static void test_every_tree(void **state)
{
    (void)state;
    for (uint64_t trial = 0; trial < 12; trial++) {
        against_every_tree(1, 1 + (int)(trial % 4), trial, false);
        against_every_tree(2 + (int)(trial % 4), 2 + (int)(trial % 2), trial, false);
        against_every_tree(1, 3, trial, true);
    }
}

// Sequoia's recursion as printed in the paper: every state, no limits but the range.
enum { DIRECT = 40, LEVELS = 6, CHILDREN = 10 };

static void test_direct(void **state)
{
    (void)state;
    // The first ten of the vector that Sequoia ships; note that it does not fall throughout.
    static const double rate[CHILDREN] = {.6342, .1079, .0570, .0225, .0195,
                                          .0150, .0045, .0030, .0120, .0045};
    static double T[LEVELS + 1][CHILDREN + 1][DIRECT + 1], best[LEVELS + 1][DIRECT + 1];
    for (int l = 0; l <= LEVELS; l++)
        for (int m = 0; m <= DIRECT; m++) {
            best[l][m] = -INFINITY;
            for (int b = 0; b <= CHILDREN; b++) {
                T[l][b][m] = b == 0 && m == 1 ? 1 : -INFINITY;
                for (int y = 1; l > 0 && b > 0 && y < m; y++)
                    T[l][b][m] =
                        fmax(T[l][b][m], T[l][b - 1][y] + rate[b - 1] * best[l - 1][m - y]);
                best[l][m] = fmax(best[l][m], T[l][b][m]);
            }
        }
    dsc_tree_plan *plan;
    assert_ok(
        dsc_tree_plan_new(&plan, &(dsc_tree_acceptance){rate, 1, CHILDREN}, DIRECT, LEVELS, &err),
        err);
    for (int l = 0; l <= LEVELS; l++)
        for (int m = 1; m <= DIRECT; m++) {
            double found = dsc_tree_plan_expected(plan, m, l);
            if (isinf(best[l][m]))
                assert_true(isinf(found));
            else
                assert_close(found, best[l][m], 1e-14);
        }
    // The choice of size and depth: the best over both.
    double target[DIRECT];
    for (int m = 0; m < DIRECT; m++)
        target[m] = 1 + 0.01 * m + (m >= 16 ? 0.2 : 0); // a staircase
    dsc_tree_cost cost = {.draft = 0.05, .target = target};
    dsc_tree_choice choice = dsc_tree_plan_best(plan, &cost);
    double top = 0;
    for (int l = 0; l <= LEVELS; l++)
        for (int m = 1; m <= DIRECT; m++)
            top = fmax(top, best[l][m] / (0.05 * l + target[m - 1]));
    assert_close(choice.speedup, top, 1e-14);
    assert_int_equal(choice.nodes, 16); // the last before the step
    assert_close(dsc_tree_speedup(choice.expected, choice.nodes, choice.depth, &cost), top, 1e-14);
    dsc_tree_plan_free(plan);
}

// One candidate: the best tree is a chain. Nothing accepted: the root alone.
static void test_degenerate(void **state)
{
    (void)state;
    static const double chain[] = {0.8}, nothing[] = {0, 0, 0}, sure[] = {1, 0},
                        tiny[] = {5e-324, 0};
    double target[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    dsc_tree_cost cost = {.draft = 0.05, .target = target};
    dsc_tree_plan *plan;
    dsc_tree t;
    assert_ok(dsc_tree_plan_new(&plan, &(dsc_tree_acceptance){chain, 1, 1}, 8, 7, &err), err);
    assert_close(dsc_tree_plan_expected(plan, 8, 7), (1 - pow(0.8, 8)) / 0.2, 1e-14);
    assert_true(isinf(dsc_tree_plan_expected(plan, 8, 6)));
    dsc_tree_plan_free(plan);
    assert_ok(dsc_tree_plan_new(&plan, &(dsc_tree_acceptance){nothing, 1, 3}, 8, 7, &err), err);
    dsc_tree_choice choice = dsc_tree_plan_best(plan, &cost);
    assert_int_equal(choice.nodes, 1);
    assert_int_equal(choice.depth, 0);
    assert_close(choice.speedup, 1, 0);
    assert_ok(dsc_tree_plan_tree(plan, 5, 2, &t, &err), err); // worthless, but it exists
    assert_int_equal(t.nodes, 5);
    assert_tree(&t);
    dsc_tree_fini(&t);
    dsc_tree_plan_free(plan);
    assert_ok(dsc_tree_plan_new(&plan, &(dsc_tree_acceptance){sure, 1, 2}, 8, 7, &err), err);
    assert_close(dsc_tree_plan_expected(plan, 8, 7), 8, 0);
    dsc_tree_plan_free(plan);
    assert_ok(dsc_tree_plan_new(&plan, &(dsc_tree_acceptance){tiny, 1, 2}, 1, 3, &err), err);
    assert_ok(dsc_tree_plan_tree(plan, 1, 3, &t, &err), err);
    assert_int_equal(t.nodes, 1);
    assert_int_equal(t.depth, 0);
    dsc_tree_fini(&t);
    dsc_tree_plan_free(plan);
}

SUITE(tree)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),       cmocka_unit_test(test_published_paths),
        cmocka_unit_test(test_eagle_chains), cmocka_unit_test(test_walks),
        cmocka_unit_test(test_parse),        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_every_tree),   cmocka_unit_test(test_direct),
        cmocka_unit_test(test_degenerate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

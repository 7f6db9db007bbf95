// SPDX-License-Identifier: Apache-2.0
// P4: the optimal tree of a budget of 128 nodes and a depth of 10, with the positional acceptances
// that Sequoia ships (its first ten, and a tail of the same shape up to 32); bar 10 ms, the whole
// of it: all sizes and depths, the choice by cost, and the tree.
//
// Usage: bench_tree [ROUNDS]; CSV on stdout, processor time, the best of the rounds.
#include "tests/bench/bench.h"
#include "theory/tree.h"

#include <stdlib.h>

static void bench(int budget, int depth, int depths, int rounds)
{
    enum { RANKS = 32 };
    static const double first[] = {.6342, .1079, .0570, .0225, .0195,
                                   .0150, .0045, .0030, .0120, .0045};
    double *rate, *target, best_s = 1e9;
    dsc_error e;
    must(dsc_alloc(&rate, (size_t)(depths * RANKS), sizeof *rate, &e), &e);
    must(dsc_alloc(&target, (size_t)budget, sizeof *target, &e), &e);
    for (int i = 0; i < depths * RANKS; i++)
        rate[i] = i % RANKS < 10 ? first[i % RANKS] : 0.03 / (i % RANKS);
    for (int m = 0; m < budget; m++)
        target[m] = 1 + 0.002 * m;
    dsc_tree_cost cost = {.draft = 0.02, .target = target};
    dsc_tree_choice choice = {0};
    for (int round = 0; round < rounds; round++) {
        dsc_tree_plan *plan;
        dsc_tree tree;
        double start = cpu_s();
        must(dsc_tree_plan_new(&plan, &(dsc_tree_acceptance){rate, depths, RANKS}, budget, depth,
                               &e),
             &e);
        choice = dsc_tree_plan_best(plan, &cost);
        must(dsc_tree_plan_tree(plan, choice.nodes, choice.depth, &tree, &e), &e);
        double seconds = cpu_s() - start;
        best_s = seconds < best_s ? seconds : best_s;
        dsc_tree_fini(&tree);
        dsc_tree_plan_free(plan);
    }
    printf("%d,%d,%d,%d,%.3f,%d,%d,%.6f,%.6f\n", budget, depth, RANKS, depths, best_s * 1e3,
           choice.nodes, choice.depth, choice.expected, choice.speedup);
    free(rate);
    free(target);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 20;
    puts("budget,depth,ranks,rows,ms,nodes,tree_depth,expected_tokens,speedup");
    bench(128, 10, 1, rounds); // P4
    bench(128, 10, 10, rounds);
    bench(768, 18, 1, rounds > 2 ? 2 : rounds);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Fuzzes draft trees and acceptance rates. Input: a byte (bit 0: rates instead of a tree, bit 1: as
// an option's text instead of a file), the text.
#include "sim/draft/tree_file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

FUZZ_FORMAT(tree, .head = 1, .parts = 1, .change = {fuzz_change_table})

static void check_tree(const dsc_tree *t)
{
    fuzz_require(t->nodes >= 1 && t->nodes <= DSC_TREE_NODES && t->parent[0] == -1, "a root", NULL);
    for (int i = 1; i < t->nodes; i++) {
        fuzz_require(t->parent[i] >= 0 && t->parent[i] < i, "parents come first", NULL);
        fuzz_require(t->level[i] == t->level[t->parent[i]] + 1 && t->level[i] <= t->depth,
                     "levels follow the path", NULL);
        fuzz_require(t->rank[i] >= 0 && t->rank[i] < DSC_TREE_RANKS, "ranks", NULL);
    }
    double rate[DSC_TREE_RANKS], expected;
    for (int k = 0; k < DSC_TREE_RANKS; k++)
        rate[k] = 1. / DSC_TREE_RANKS;
    const dsc_tree_acceptance dist = {rate, 1, DSC_TREE_RANKS};
    dsc_error err = {0};
    int rc = dsc_tree_expect(t, &dist, NULL, &expected, &err);
    fuzz_require(rc == DSC_OK && expected >= 1 && expected <= t->nodes, "an expectation", &err);
}

// The best tree for the rates, of at most 12 nodes and 3 levels.
static void check_rates(const dsc_tree_acceptance *rates)
{
    const int depth = rates->depths > 1 && rates->depths < 3 ? rates->depths : 3;
    dsc_tree_plan *plan;
    dsc_tree t = {0};
    dsc_error err = {0};
    for (int i = 0; i < rates->depths * rates->ranks; i++)
        fuzz_require(rates->rate[i] >= 0 && rates->rate[i] <= 1, "rates are from 0 to 1", NULL);
    int rc = dsc_tree_plan_new(&plan, rates, 12, depth, &err);
    fuzz_require(rc == DSC_OK, "there is a plan", &err);
    for (int nodes = 1; nodes <= 12; nodes++) {
        const double expected = dsc_tree_plan_expected(plan, nodes, depth);
        rc = dsc_tree_plan_tree(plan, nodes, depth, &t, &err);
        fuzz_require((rc == DSC_OK) == (expected > -INFINITY), "a tree where one exists", &err);
        if (!rc)
            check_tree(&t);
        dsc_tree_fini(&t);
    }
    dsc_tree_plan_free(plan);
}

FUZZ_TARGET(tree)
{
    fuzz_bytes in = {data, size};
    const uint8_t choice = fuzz_byte(&in);
    char *text = strndup((const char *)in.data, in.size);
    if (!text)
        exit(99);
    const char *name = choice & 2 ? text : fuzz_file("tree.txt", in.data, in.size);
    dsc_error err = {0};
    int rc = 0;
    if (choice & 2 && strpbrk(text, choice & 1 ? "abcdfghijklmnopqrstuvwxyz_" : "/."))
        ; // the name of a file
    else if (choice & 1) {
        dsc_tree_acceptance rates;
        double *rate;
        rc = dsc_tree_acceptance_load(&rates, &rate, name, &err);
        if (!rc)
            check_rates(&rates);
        free(rate);
    } else {
        dsc_tree t;
        rc = dsc_tree_load(&t, name, &err);
        if (!rc)
            check_tree(&t);
        dsc_tree_fini(&t);
    }
    if (rc)
        fuzz_refused(rc, &err);
    free(text);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Expected tokens of a tree; theory/tree.h. The target's token below an accepted node is at most
// one of the candidates there, so a node is accepted with the product of the acceptance rates on
// its path, and the expected length of the accepted path is the sum over nodes (Sequoia, Chen et
// al. 2024; for a chain 1 + a_1 + a_1 a_2 + ..., Leviathan et al. 2023, Eq. (1)).
#include "theory/tree.h"

#include <math.h>
#include <stdlib.h>

int dsc_tree_acceptance_check(const dsc_tree_acceptance *dist, dsc_error *err)
{
    if (!dist || !dist->rate)
        return dsc_fail(err, DSC_EUSAGE, "the acceptance rates of the tree are NULL");
    if (dist->depths < 1 || dist->depths > DSC_TREE_DEPTH || dist->ranks < 1 ||
        dist->ranks > DSC_TREE_RANKS)
        return dsc_fail(err, DSC_EUSAGE,
                        "acceptance rates of %d ranks at %d depths: 1 to %d ranks and 1 to %d "
                        "depths are expected",
                        dist->ranks, dist->depths, DSC_TREE_RANKS, DSC_TREE_DEPTH);
    for (int d = 0; d < dist->depths; d++) {
        double sum = 0;
        for (int r = 0; r < dist->ranks; r++) {
            double rate = dist->rate[d * dist->ranks + r];
            if (!(rate >= 0 && rate <= 1))
                return dsc_fail(err, DSC_EUSAGE, "acceptance rate %g of rank %d is not in [0, 1]",
                                rate, r);
            sum += rate;
        }
        if (sum > 1 + 1e-9)
            return dsc_fail(err, DSC_EUSAGE,
                            "the acceptance rates of siblings sum to %g; at most 1 is possible",
                            sum);
    }
    return DSC_OK;
}

int dsc_tree_new(dsc_tree *t, size_t nodes, dsc_error *err)
{
    if (!t || nodes < 1 || nodes > DSC_TREE_NODES)
        return dsc_fail(err, DSC_EUSAGE, "dsc_tree_new: %s",
                        t ? "a tree has 1 to 1024 nodes" : "the tree is NULL");
    *t = (dsc_tree){.nodes = (int)nodes};
    int rc = dsc_new(&t->parent, nodes, err);
    if (!rc)
        rc = dsc_new(&t->rank, nodes, err);
    if (!rc)
        rc = dsc_new(&t->level, nodes, err);
    if (rc)
        dsc_tree_fini(t);
    else
        t->parent[0] = t->rank[0] = -1;
    return rc;
}

void dsc_tree_fini(dsc_tree *t)
{
    if (!t)
        return;
    free(t->parent);
    free(t->rank);
    free(t->level);
    *t = (dsc_tree){0};
}

int dsc_tree_expect(const dsc_tree *t, const dsc_tree_acceptance *dist, double *probability,
                    double *expected, dsc_error *err)
{
    double *product = probability;
    if (!t || !t->parent || !expected)
        return dsc_fail(err, DSC_EUSAGE, "dsc_tree_expect: %s",
                        expected ? "the tree is NULL or has no nodes" : "`expected` is NULL");
    int rc = dsc_tree_acceptance_check(dist, err);
    if (!rc && dist->depths > 1 && t->depth > dist->depths)
        rc = dsc_fail(err, DSC_EUSAGE,
                      "the tree has depth %d, but acceptance rates are given for %d depths",
                      t->depth, dist->depths);
    if (!rc && !product)
        rc = dsc_new(&product, (size_t)t->nodes, err);
    if (rc)
        return rc;
    *expected = product[0] = 1;
    for (int i = 1; i < t->nodes && !rc; i++) {
        int row = dist->depths > 1 ? t->level[i] - 1 : 0;
        if (t->rank[i] >= dist->ranks) {
            rc = dsc_fail(err, DSC_EUSAGE,
                          "the tree has a child of rank %d, but acceptance rates are given for "
                          "ranks 0 to %d",
                          t->rank[i], dist->ranks - 1);
            break;
        }
        product[i] = product[t->parent[i]] * dist->rate[row * dist->ranks + t->rank[i]];
        *expected += product[i];
    }
    if (!probability)
        free(product);
    return rc;
}

double dsc_tree_speedup(double expected, int nodes, int depth, const dsc_tree_cost *cost)
{
    if (!cost || !cost->target || nodes < 1 || depth < 0)
        return (double)NAN;
    return expected * cost->target[0] / (depth * cost->draft + cost->target[nodes - 1]);
}

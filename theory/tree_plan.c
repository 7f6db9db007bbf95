// SPDX-License-Identifier: Apache-2.0
// The best tree, by Sequoia's dynamic program (Chen et al. 2024, arXiv 2402.12374). For a subtree
// of m nodes with l levels below its root, whose children are the b best candidates,
//
//   T[l][b][m] = max over s of T[l][b-1][m-s] + rate[b] max over b' of T[l-1][b'][s],
//   T[l][0][1] = 1,
//
// where the last child takes s nodes. Restricting children to the first b candidates loses nothing
// when acceptance rates fall with rank; candidates are also tried in that order. One level is a
// table over (b, m). Only its maximum over b is stored, and a tree is read off by filling the
// tables again.
#include "theory/tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct dsc_tree_plan {
    double *rate;      // [depths][ranks] of the distribution, limited to the ranks that can be used
    int depths, ranks; //
    int budget, depth; //
    double *best;      // [levels][budget + 1] max over b of T[l][b][m], see level_of
    int cap[DSC_TREE_DEPTH + 1]; // nodes that fit into this number of levels, at most budget
};

// The maxima for subtrees with `left` levels below their root in a tree of `depth` levels. With one
// row in the distribution they do not depend on the depth.
static double *level_of(const dsc_tree_plan *p, int depth, int left)
{
    int level = p->depths > 1 ? depth * (depth + 1) / 2 + left : left;
    return p->best + (size_t)level * (size_t)(p->budget + 1);
}

static const double *rates_of(const dsc_tree_plan *p, int depth, int left)
{
    return p->rate + (p->depths > 1 ? (size_t)(depth - left) * (size_t)p->ranks : 0);
}

// Fills table[ranks + 1][budget + 1] with T[left][b][m], -INFINITY where there is no such subtree.
static void fill_table(const dsc_tree_plan *p, int depth, int left, double *table)
{
    size_t width = (size_t)p->budget + 1;
    for (size_t i = 0; i < (size_t)(p->ranks + 1) * width; i++)
        table[i] = -INFINITY;
    table[1] = 1;
    if (!left)
        return;
    const double *below = level_of(p, depth, left - 1), *rate = rates_of(p, depth, left);
    int cap = p->cap[left - 1];
    for (int b = 1; b <= p->ranks; b++) {
        const double *before = table + (size_t)(b - 1) * width;
        double *now = table + (size_t)b * width;
        int most = 1 + (b - 1) * cap; // nodes that `before` can have; at least b
        most = most < p->budget ? most : p->budget;
        for (int s = 1; s <= cap && b + s <= p->budget; s++) {
            double gain = rate[b - 1] * below[s];
            int end = most + s < p->budget ? most : p->budget - s;
            for (int m = b; m <= end; m++)
                now[m + s] = now[m + s] > before[m] + gain ? now[m + s] : before[m] + gain;
        }
    }
}

static void fill_best(const dsc_tree_plan *p, const double *table, double *best)
{
    size_t width = (size_t)p->budget + 1;
    memcpy(best, table, width * sizeof *best);
    for (int b = 1; b <= p->ranks; b++)
        for (size_t m = 1; m < width; m++)
            best[m] = fmax(best[m], table[(size_t)b * width + m]);
}

static int check_plan(const dsc_tree_acceptance *dist, int budget, int depth, dsc_error *err)
{
    int rc = dsc_tree_acceptance_check(dist, err);
    if (!rc && (budget < 1 || budget > DSC_TREE_NODES))
        rc = dsc_fail(err, DSC_EUSAGE, "%d nodes are outside the range of a tree, 1 to %d", budget,
                      DSC_TREE_NODES);
    if (!rc && (depth < 0 || depth > DSC_TREE_DEPTH))
        rc = dsc_fail(err, DSC_EUSAGE, "depth %d is outside the range of a tree, 0 to %d", depth,
                      DSC_TREE_DEPTH);
    if (!rc && dist->depths > 1 && depth > dist->depths)
        rc = dsc_fail(err, DSC_EUSAGE,
                      "the tree has depth %d, but acceptance rates are given for %d depths", depth,
                      dist->depths);
    return rc;
}

static int copy_dist(dsc_tree_plan *p, const dsc_tree_acceptance *dist, dsc_error *err)
{
    p->depths = dist->depths;
    p->ranks = dist->ranks < p->budget ? dist->ranks : p->budget - 1;
    int rc = dsc_new(&p->rate, (size_t)(p->depths * p->ranks), err);
    for (int d = 0; !rc && d < p->depths; d++)
        for (int r = 0; r < p->ranks; r++)
            p->rate[d * p->ranks + r] = dist->rate[d * dist->ranks + r];
    p->cap[0] = 1;
    for (int l = 1; l <= p->depth; l++) {
        int64_t cap = 1 + (int64_t)p->ranks * p->cap[l - 1];
        p->cap[l] = cap < p->budget ? (int)cap : p->budget;
    }
    return rc;
}

static int new_table(const dsc_tree_plan *p, double **table, dsc_error *err)
{
    return dsc_new(table, (size_t)(p->ranks + 1) * (size_t)(p->budget + 1), err);
}

int dsc_tree_plan_new(dsc_tree_plan **out, const dsc_tree_acceptance *dist, int budget, int depth,
                      dsc_error *err)
{
    dsc_tree_plan *p = NULL;
    double *table = NULL;
    if (!out)
        return dsc_fail(err, DSC_EUSAGE, "dsc_tree_plan_new: `out` is NULL");
    *out = NULL;
    int rc = check_plan(dist, budget, depth, err);
    if (!rc)
        rc = dsc_new(&p, 1, err);
    if (rc)
        return rc;
    p->budget = budget;
    p->depth = depth;
    int levels = dist->depths > 1 ? (depth + 1) * (depth + 2) / 2 : depth + 1;
    rc = copy_dist(p, dist, err);
    if (!rc)
        rc = dsc_new(&p->best, (size_t)levels * (size_t)(budget + 1), err);
    if (!rc)
        rc = new_table(p, &table, err);
    for (int d = dist->depths > 1 ? 0 : depth; !rc && d <= depth; d++)
        for (int left = 0; left <= d; left++) {
            fill_table(p, d, left, table);
            fill_best(p, table, level_of(p, d, left));
        }
    free(table);
    if (rc)
        dsc_tree_plan_free(p);
    else
        *out = p;
    return rc;
}

void dsc_tree_plan_free(dsc_tree_plan *p)
{
    if (!p)
        return;
    free(p->rate);
    free(p->best);
    free(p);
}

double dsc_tree_plan_expected(const dsc_tree_plan *p, int nodes, int depth)
{
    if (!p || nodes < 1 || nodes > p->budget || depth < 0 || depth > p->depth)
        return (double)NAN;
    return level_of(p, depth, depth)[nodes];
}

// Appends the children of node i, whose subtree has `size` nodes, to the tree, and writes the sizes
// of their subtrees to size_of.
static void split(const dsc_tree_plan *p, const double *table, int depth, int left, int i,
                  dsc_tree *t, int *size_of)
{
    const double *below = level_of(p, depth, left - 1), *rate = rates_of(p, depth, left);
    size_t width = (size_t)p->budget + 1;
    int children = 0, size = size_of[i];
    for (int b = 1; b <= p->ranks; b++)
        if (table[(size_t)b * width + (size_t)size] >
            table[(size_t)children * width + (size_t)size])
            children = b;
    for (int b = children; b >= 1; b--) {
        const double *before = table + (size_t)(b - 1) * width;
        int best = 0;
        double most = -INFINITY;
        for (int s = 1; s <= p->cap[left - 1] && s < size; s++)
            if (before[size - s] + rate[b - 1] * below[s] > most) {
                most = before[size - s] + rate[b - 1] * below[s];
                best = s;
            }
        int node = t->nodes + b - 1;
        size_of[node] = best;
        t->parent[node] = i;
        t->rank[node] = b - 1;
        t->level[node] = t->depth = t->level[i] + 1;
        size -= best;
    }
    t->nodes += children;
}

int dsc_tree_plan_tree(const dsc_tree_plan *p, int nodes, int depth, dsc_tree *t, dsc_error *err)
{
    double *table = NULL;
    int *size = NULL;
    if (!p || !t)
        return dsc_fail(err, DSC_EUSAGE, "dsc_tree_plan_tree: the %s is NULL", t ? "plan" : "tree");
    *t = (dsc_tree){0};
    if (!isfinite(dsc_tree_plan_expected(p, nodes, depth)))
        return dsc_fail(err, DSC_EUSAGE, "no tree has %d nodes, depth %d and at most %d children",
                        nodes, depth, p->ranks);
    int rc = new_table(p, &table, err);
    if (!rc)
        rc = dsc_new(&size, (size_t)nodes, err);
    if (!rc)
        rc = dsc_tree_new(t, (size_t)nodes, err);
    if (!rc) {
        t->nodes = 1; // so far
        size[0] = nodes;
    }
    int i = 0;
    for (int left = depth; !rc && left > 0 && t->nodes < nodes; left--) {
        fill_table(p, depth, left, table);
        for (int end = t->nodes; i < end; i++)
            if (size[i] > 1)
                split(p, table, depth, left, i, t, size);
    }
    free(table);
    free(size);
    if (rc)
        dsc_tree_fini(t);
    return rc;
}

dsc_tree_choice dsc_tree_plan_best(const dsc_tree_plan *p, const dsc_tree_cost *cost)
{
    dsc_tree_choice best = {.speedup = -INFINITY};
    if (!p || !cost || !cost->target)
        return (dsc_tree_choice){.expected = (double)NAN, .speedup = (double)NAN};
    for (int depth = 0; depth <= p->depth; depth++)
        for (int nodes = 1; nodes <= p->cap[depth]; nodes++) {
            double expected = dsc_tree_plan_expected(p, nodes, depth);
            double speedup = dsc_tree_speedup(expected, nodes, depth, cost);
            if (speedup > best.speedup)
                best = (dsc_tree_choice){nodes, depth, expected, speedup};
        }
    return best;
}

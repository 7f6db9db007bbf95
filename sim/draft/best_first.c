// SPDX-License-Identifier: Apache-2.0
// The best-first search of best_first.h: a heap contains, for every path taken so far, its next
// sibling and its first child; its maximum is the most probable path that is left.
#include "sim/draft/best_first.h"

// The heap's order: a larger probability first, then the earlier parent, which was found first,
// then the smaller rank.
static bool before(const dsc_best_first_node *a, const dsc_best_first_node *b)
{
    if (a->probability > b->probability || a->probability < b->probability)
        return a->probability > b->probability;
    return a->parent != b->parent ? a->parent < b->parent : a->rank < b->rank;
}

static void swap(dsc_best_first_node *a, dsc_best_first_node *b)
{
    const dsc_best_first_node x = *a;
    *a = *b;
    *b = x;
}

static void push(dsc_best_first_node *heap, size_t *count, dsc_best_first_node x)
{
    size_t i = (*count)++;
    heap[i] = x;
    for (; i > 0 && before(&heap[i], &heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&heap[i], &heap[(i - 1) / 2]);
}

static dsc_best_first_node pop(dsc_best_first_node *heap, size_t *count)
{
    const dsc_best_first_node top = heap[0];
    heap[0] = heap[--*count];
    for (size_t i = 0, child; (child = 2 * i + 1) < *count; i = child) {
        if (child + 1 < *count && before(&heap[child + 1], &heap[child]))
            child++;
        if (!before(&heap[child], &heap[i]))
            break;
        swap(&heap[child], &heap[i]);
    }
    return top;
}

size_t dsc_best_first(const dsc_best_first_input *in, size_t budget, dsc_best_first_node *node,
                      dsc_best_first_node *heap)
{
    size_t count = 0, n = 0;
    if (in->levels && in->ranks)
        push(heap, &count, (dsc_best_first_node){in->probability[0], -1, 0, 0});
    while (count && n < budget) {
        const dsc_best_first_node x = pop(heap, &count);
        const size_t level = (size_t)x.level, at = level * in->ranks + (size_t)x.rank;
        const double stem = x.parent < 0 ? 1 : node[x.parent].probability;
        if (!(x.probability > 0))
            break;
        node[n] = x;
        if ((size_t)x.rank + 1 < in->ranks)
            push(heap, &count,
                 (dsc_best_first_node){stem * in->probability[at + 1], x.parent, x.level,
                                       x.rank + 1});
        if (level + 1 < in->levels && !in->ends[at])
            push(heap, &count,
                 (dsc_best_first_node){x.probability * in->probability[(level + 1) * in->ranks],
                                       (int32_t)n, x.level + 1, 0});
        n++;
    }
    return n;
}

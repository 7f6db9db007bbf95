// SPDX-License-Identifier: Apache-2.0
// Selection of the first tokens by Hoare's algorithm (1961), with weights;
// theory/rows/first_tokens.h.
#include "theory/rows/first_tokens.h"

// Moves the median of three tokens to the end.
static void choose_pivot(dsc_logit *l, size_t n)
{
    dsc_logit *a = &l[0], *b = &l[n / 2], *c = &l[n - 1];
    if (dsc_logit_before(a, b) == dsc_logit_before(b, c))
        dsc_logit_swap(b, c);
    else if (dsc_logit_before(b, a) == dsc_logit_before(a, c))
        dsc_logit_swap(a, c);
}

size_t dsc_first_tokens(dsc_logit *l, size_t n, size_t count, double enough)
{
    size_t low = 0, high = n; // tokens before `low` belong to them, from `high` on they do not
    double weight = 0;        // weight of the tokens before `low`
    while (low < high && low < count && weight < enough) {
        size_t middle = low;
        double more = 0;
        choose_pivot(l + low, high - low);
        dsc_logit *pivot = &l[high - 1];
        for (size_t i = low; i + 1 < high; i++)
            if (dsc_logit_before(&l[i], pivot)) {
                more += l[i].weight;
                dsc_logit_swap(&l[i], &l[middle++]);
            }
        dsc_logit_swap(pivot, &l[middle]);
        if (middle >= count || weight + more >= enough)
            high = middle;
        else {
            weight += more + l[middle].weight;
            low = middle + 1;
        }
    }
    return low;
}

// SPDX-License-Identifier: Apache-2.0
// Internal: selection of the first tokens in the order in which top-k and top-p keep them.
#ifndef DSC_THEORY_FIRST_TOKENS_H
#define DSC_THEORY_FIRST_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct dsc_logit {
    double value, weight; // the logit; its exponential in the distribution
    size_t token;
} dsc_logit;

static inline void dsc_logit_swap(dsc_logit *a, dsc_logit *b)
{
    const dsc_logit c = *a;
    *a = *b;
    *b = c;
}

// The order: most probable first, and the lower id first among equals.
static inline bool dsc_logit_before(const dsc_logit *a, const dsc_logit *b)
{
    return a->value != b->value ? a->value > b->value : a->token < b->token;
}

// Moves the first tokens of l[0, n) to the front and returns their number: at most `count`, and a
// token belongs to them while the weight of the earlier ones is below `enough`. O(n) on average,
// where sorting is O(n log n).
size_t dsc_first_tokens(dsc_logit *l, size_t n, size_t count, double enough);

#endif

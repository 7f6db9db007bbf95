// SPDX-License-Identifier: Apache-2.0
// Internal: the first of some tokens in the order that top-k and top-p keep them in.
#ifndef DSC_THEORY_FIRST_TOKENS_H
#define DSC_THEORY_FIRST_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct dsc_logit {
    double value, weight; // the logit; the exponential that it has in the distribution
    size_t token;
} dsc_logit;

static inline void dsc_logit_swap(dsc_logit *a, dsc_logit *b)
{
    const dsc_logit c = *a;
    *a = *b;
    *b = c;
}

// Most probable first; of equals the lower id.
static inline bool dsc_logit_before(const dsc_logit *a, const dsc_logit *b)
{
    return a->value != b->value ? a->value > b->value : a->token < b->token;
}

// Moves the first tokens of l[0, n) to the front and returns how many these are: at most `count`,
// and a token is one of them while the weight of those before it has not reached `enough`. O(n) as
// a rule, where sorting is n log n.
size_t dsc_first_tokens(dsc_logit *l, size_t n, size_t count, double enough);

#endif

// SPDX-License-Identifier: Apache-2.0
// Tokens in ascending order of target/draft, ties by ascending id: a radix sort, because a
// comparison sort of a whole vocabulary takes some hundred times as long as reading it.
#ifndef DSC_THEORY_RATIO_SORT_H
#define DSC_THEORY_RATIO_SORT_H

#include <stddef.h>
#include <stdint.h>

// Sorts the tokens with draft[x] > 0 and returns their number; the token of rank i is the lower
// half of order[i]. room[vocab] is scratch, as is order[] beyond that number. Probabilities are >=
// 0 and finite. O(vocab) unless many ratios differ by less than 2^-20 of themselves.
size_t dsc_ratio_sort(const double *draft, const double *target, size_t vocab, uint64_t *order,
                      uint64_t *room);

static inline int32_t dsc_ratio_token(uint64_t entry)
{
    return (int32_t)(entry & 0xffffffff);
}

#endif

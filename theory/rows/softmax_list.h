// SPDX-License-Identifier: Apache-2.0
// Internal: a list of some tokens of a row of logits, and the cuts of top-k and top-p in it. Two
// logits that enclose the cut approach each other by bisection; the tokens above the middle are
// counted and weighed in vectors, and nothing is moved.
#ifndef DSC_THEORY_SOFTMAX_LIST_H
#define DSC_THEORY_SOFTMAX_LIST_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { DSC_SOFTMAX_LIST = 1024 };

typedef struct dsc_softmax_list {
    size_t n; // DSC_SOFTMAX_LIST + 1: more tokens than fit
    double value[DSC_SOFTMAX_LIST], weight[DSC_SOFTMAX_LIST]; // logits, exponentials
    uint32_t token[DSC_SOFTMAX_LIST];                         // ascending
} dsc_softmax_list;

// Integers that are ordered as the floats are.
static inline int32_t dsc_key_of(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits < 0 ? bits ^ INT32_MAX : bits;
}

static inline float dsc_float_of(int32_t key)
{
    const int32_t bits = key < 0 ? key ^ INT32_MAX : key;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// A float between two, or the lower one if there is none: the middle of the numbers, or the middle
// of the representable floats if the former is not between them, as next to -inf.
static inline float dsc_middle_of(float low, float high)
{
    const float middle = low / 2 + high / 2;
    if (middle > low && middle < high)
        return middle;
    const int64_t from = dsc_key_of(low), to = dsc_key_of(high);
    return dsc_float_of((int32_t)(from + (to - from) / 2));
}

// The count-th largest of value[0, n), which are floats not above `high`; 1 <= count <= n.
float dsc_nth_largest(const double *value, size_t n, size_t count, float high);
// Takes the tokens of a list, whose logits are in [low, high], in order (most probable first, the
// lower id first among equals) until they have weight `enough`; returns the index of the last one.
// n >= 1.
size_t dsc_softmax_list_last(const dsc_softmax_list *l, double enough, float low, float high);

#endif

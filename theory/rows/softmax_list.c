// SPDX-License-Identifier: Apache-2.0
// The cuts of top-k and top-p in a list of tokens, by bisection; theory/rows/softmax_list.h.
#include "theory/rows/softmax_list.h"

#include "theory/rows/fast_exp.h"
#include "theory/rows/row_sum.h"

#include <math.h>

enum { LANES = DSC_ROW_LANES };

static inline size_t count_from(const double *value, size_t n, double at)
{
    int64_t count = 0;
#pragma omp simd reduction(+ : count)
    for (size_t i = 0; i < n; i++)
        count += value[i] >= at ? 1 : 0;
    return (size_t)count;
}

// Computed by lanes, because not all compilers vectorize minimum reductions.
static inline double least_from(const double *value, size_t n, double at)
{
    double lane[LANES], least = INFINITY;
    size_t i = 0;
    for (size_t j = 0; j < LANES; j++)
        lane[j] = INFINITY;
    for (; i + LANES <= n; i += LANES)
#pragma omp simd
        for (size_t j = 0; j < LANES; j++) {
            const double x = value[i + j] >= at ? value[i + j] : INFINITY;
            lane[j] = x < lane[j] ? x : lane[j];
        }
    for (; i < n; i++)
        least = value[i] >= at && value[i] < least ? value[i] : least;
    for (size_t j = 0; j < LANES; j++)
        least = lane[j] < least ? lane[j] : least;
    return least;
}

DSC_FOR_EVERY_PROCESSOR
static double nth_largest(const double *value, size_t n, size_t count, float high)
{
    float low = (float)least_from(value, n, -INFINITY);
    size_t from_low = n; // fewer than `count` are >= `high`
    while (from_low > count) {
        const float middle = dsc_middle_of(low, high);
        if (!(middle > low))
            break;
        const size_t c = count_from(value, n, (double)middle);
        if (c >= count) {
            low = middle;
            from_low = c;
        } else
            high = middle;
    }
    return least_from(value, n, (double)low);
}

float dsc_nth_largest(const double *value, size_t n, size_t count, float high)
{
    return (float)nth_largest(value, n, count, nextafterf(high, INFINITY));
}

DSC_FOR_EVERY_PROCESSOR
static double weigh_listed(const dsc_softmax_list *l, double at, size_t *count)
{
    double lane[LANES], many[LANES];
    size_t i = 0;
    dsc_clear_lanes(lane);
    dsc_clear_lanes(many);
    for (; i + LANES <= l->n; i += LANES)
#pragma omp simd
        for (size_t j = 0; j < LANES; j++) {
            const double in = l->value[i + j] >= at ? 1. : 0.;
            lane[j] += in * l->weight[i + j];
            many[j] += in;
        }
    for (size_t j = 0; i < l->n; i++, j++) {
        const double in = l->value[i] >= at ? 1. : 0.;
        lane[j] += in * l->weight[i];
        many[j] += in;
    }
    *count = (size_t)dsc_add_lanes(many);
    return dsc_add_lanes(lane);
}

typedef struct bracket {
    float low, high;  // the tokens >= `low` have enough weight, those >= `high` do not
    size_t above, in; // number of tokens >= `high`, and in [low, high)
    double weight;    // weight of the tokens >= `high`
} bracket;

// Narrows a bracket until few tokens or equal ones are left in it.
static void narrow(const dsc_softmax_list *l, double enough, bracket *b)
{
    enum { FEW = 8 };
    while (b->in > FEW) {
        const float middle = dsc_middle_of(b->low, b->high);
        size_t count;
        if (!(middle > b->low))
            break;
        const double weight = weigh_listed(l, (double)middle, &count);
        if (weight >= enough ||
            count - b->above == b->in) { // all of them, whatever the rounding of the sums
            b->low = middle;
            b->in = count - b->above;
        } else {
            b->high = middle;
            b->in -= count - b->above;
            b->above = count;
            b->weight = weight;
        }
    }
}

size_t dsc_softmax_list_last(const dsc_softmax_list *l, double enough, float low, float high)
{
    bracket b = {.low = low, .high = nextafterf(high, INFINITY), .in = l->n};
    uint32_t in[DSC_SOFTMAX_LIST];
    size_t n = 0, i;
    in[0] = 0;
    narrow(l, enough, &b);
    for (size_t x = 0; x < l->n; x++) {
        if (!(l->value[x] >= (double)b.low && l->value[x] < (double)b.high))
            continue;
        for (i = n++; i > 0 && l->value[in[i - 1]] < l->value[x]; i--)
            in[i] = in[i - 1];
        in[i] = (uint32_t)x;
    }
    for (i = 0; i + 1 < n; i++) {
        b.weight += l->weight[in[i]];
        if (b.weight >= enough)
            break;
    }
    return in[i];
}

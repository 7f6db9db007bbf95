// SPDX-License-Identifier: Apache-2.0
// The distribution of the best of several independent paths; theory/gbv.h.
#include "theory/gbv.h"

#include "theory/ratio_sort.h"
#include "theory/rows/fast_exp.h"
#include "theory/rows/row_sum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

dsc_gbv_prefix dsc_gbv_root(void)
{
    return (dsc_gbv_prefix){0, 1};
}

// (b^K - a^K) / (b - a), 0 <= a <= b <= 1.
static double difference_of_powers(double a, double b, int paths)
{
    double sum = 1, power = 1; // over the first i terms; b^i
    for (int i = 1; i < paths; i++) {
        power *= b;
        sum = sum * a + power;
    }
    return sum;
}

// fmin is a call into the library, for every token of a vocabulary.
static inline double at_most_one(double x)
{
    return x < 1 ? x : 1;
}

// `all`: difference_of_powers(prefix.before, 1, paths).
static double probability(dsc_gbv_prefix prefix, double lower, double draft, int paths, double all)
{
    const double from = at_most_one(prefix.before + prefix.here * lower);
    const double to = at_most_one(from + prefix.here * draft);
    return draft * difference_of_powers(from, to, paths) / all;
}

double dsc_gbv_probability(dsc_gbv_prefix prefix, double lower, double draft, int paths)
{
    if (!(lower >= 0 && draft >= 0 && lower <= 1 && draft <= 1) || paths < 1 ||
        paths > DSC_GBV_PATHS)
        return (double)NAN;
    return probability(prefix, lower, draft, paths, difference_of_powers(prefix.before, 1, paths));
}

dsc_gbv_prefix dsc_gbv_next(dsc_gbv_prefix prefix, double lower, double draft)
{
    const double before = prefix.before + prefix.here * lower, here = prefix.here * draft;
    return (dsc_gbv_prefix){before / (before + here), here / (before + here)};
}

bool dsc_gbv_is_before(const double *draft, const double *target, int32_t a, int32_t b)
{
    const double of_a = target[a] / draft[a], of_b = target[b] / draft[b];
    return of_a < of_b || (of_a == of_b && a < b);
}

// The draft probability of the tokens whose ratio is at most, or less than, `ratio`. A token
// without draft probability adds 0.
DSC_FOR_EVERY_PROCESSOR
static double mass_up_to(const double *draft, const double *target, size_t n, double ratio)
{
    double lane[DSC_ROW_LANES];
    size_t i = 0;
    dsc_clear_lanes(lane);
    for (; i + DSC_ROW_LANES <= n; i += DSC_ROW_LANES)
        for (size_t j = 0; j < DSC_ROW_LANES; j++)
            lane[j] += target[i + j] / draft[i + j] <= ratio ? draft[i + j] : 0;
    for (; i < n; i++)
        lane[0] += target[i] / draft[i] <= ratio ? draft[i] : 0;
    return dsc_add_lanes(lane);
}

DSC_FOR_EVERY_PROCESSOR
static double mass_below(const double *draft, const double *target, size_t n, double ratio)
{
    double lane[DSC_ROW_LANES];
    size_t i = 0;
    dsc_clear_lanes(lane);
    for (; i + DSC_ROW_LANES <= n; i += DSC_ROW_LANES)
        for (size_t j = 0; j < DSC_ROW_LANES; j++)
            lane[j] += target[i + j] / draft[i + j] < ratio ? draft[i + j] : 0;
    for (; i < n; i++)
        lane[0] += target[i] / draft[i] < ratio ? draft[i] : 0;
    return dsc_add_lanes(lane);
}

double dsc_gbv_lower(const double *draft, const double *target, size_t vocab, int32_t token)
{
    if (!draft || !target || token < 0 || (size_t)token >= vocab || !(draft[token] > 0))
        return (double)NAN;
    const size_t at = (size_t)token;
    const double ratio = target[at] / draft[at];
    return mass_up_to(draft, target, at, ratio) +
           mass_below(draft + at, target + at, vocab - at, ratio);
}

// --- all tokens ----------------------------------------------------------------------------------

void dsc_gbv_order_fini(dsc_gbv_order *order)
{
    if (!order)
        return;
    free(order->token);
    *order = (dsc_gbv_order){0};
}

enum { BLOCK = 64 };

// probability() of BLOCK tokens: chosen[] from draft[] and lower[].
DSC_FOR_EVERY_PROCESSOR
static void probabilities(dsc_gbv_prefix prefix, const double *lower, const double *draft,
                          int paths, double all, double *chosen)
{
    double from[BLOCK], to[BLOCK], sum[BLOCK], power[BLOCK];
    for (int j = 0; j < BLOCK; j++) {
        from[j] = at_most_one(prefix.before + prefix.here * at_most_one(lower[j]));
        to[j] = at_most_one(from[j] + prefix.here * draft[j]);
        sum[j] = power[j] = 1;
    }
    for (int i = 1; i < paths; i++)
        for (int j = 0; j < BLOCK; j++) {
            power[j] *= to[j];
            sum[j] = sum[j] * from[j] + power[j];
        }
    for (int j = 0; j < BLOCK; j++)
        chosen[j] = draft[j] * sum[j] / all;
}

int dsc_gbv_dist(dsc_gbv_order *order, dsc_gbv_prefix prefix, const double *draft,
                 const double *target, size_t vocab, int paths, double *dist, dsc_error *err)
{
    double lower = 0;
    if (!order || !draft || !target || !dist)
        return dsc_fail(err, DSC_EUSAGE,
                        "dsc_gbv_dist: order, draft, target and dist must not be NULL");
    if (paths < 1 || paths > DSC_GBV_PATHS)
        return dsc_fail(err, DSC_EUSAGE, "number of paths %d is not from 1 to %d", paths,
                        DSC_GBV_PATHS);
    int rc = dsc_resize(&order->token, &order->capacity, 2 * vocab, err);
    if (rc)
        return rc;
    const size_t n = dsc_ratio_sort(draft, target, vocab, order->token, order->token + vocab);
    const double all = difference_of_powers(prefix.before, 1, paths);
    memset(dist, 0, vocab * sizeof *dist);
    for (size_t i = 0; i < n; i += BLOCK) {
        double before[BLOCK] = {0}, here[BLOCK] = {0}, chosen[BLOCK];
        const size_t tokens = n - i < BLOCK ? n - i : BLOCK;
        for (size_t j = 0; j < tokens; j++) {
            here[j] = draft[dsc_ratio_token(order->token[i + j])];
            before[j] = lower;
            lower += here[j];
        }
        probabilities(prefix, before, here, paths, all, chosen);
        for (size_t j = 0; j < tokens; j++)
            dist[dsc_ratio_token(order->token[i + j])] = chosen[j];
    }
    return DSC_OK;
}

// --- replay --------------------------------------------------------------------------------------

// Where the draft never goes, nothing that follows is accepted.
void dsc_gbv_replay(const dsc_path_token *token, int length, int paths, double *reach)
{
    dsc_gbv_prefix prefix = dsc_gbv_root();
    double product = 1, least = 1;
    for (int i = 0; i < length; i++) {
        const dsc_path_token *t = &token[i];
        const double lower = fmin(t->lower, 1);
        product =
            fmin(product * dsc_gbv_probability(prefix, lower, t->draft, paths) / t->target, 1e300);
        least = fmin(least, product);
        reach[i] = least;
        if (t->draft > 0)
            prefix = dsc_gbv_next(prefix, lower, t->draft);
    }
}

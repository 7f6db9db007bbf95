// SPDX-License-Identifier: Apache-2.0
// The distribution of the best of several independent paths; theory/gbv.h.
#include "theory/gbv.h"

#include "theory/ratio_sort.h"

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

double dsc_gbv_lower(const double *draft, const double *target, size_t vocab, int32_t token)
{
    double sum = 0;
    if (!draft || !target || token < 0 || (size_t)token >= vocab || !(draft[token] > 0))
        return (double)NAN;
    const double ratio = target[token] / draft[token];
    for (size_t x = 0; x < vocab; x++) { // dsc_gbv_is_before, with one division for each token
        const double here = target[x] / draft[x];
        const bool before = here < ratio || (here == ratio && x < (size_t)token);
        sum += draft[x] > 0 && before ? draft[x] : 0;
    }
    return sum;
}

// --- all tokens ----------------------------------------------------------------------------------

void dsc_gbv_order_fini(dsc_gbv_order *order)
{
    if (!order)
        return;
    free(order->token);
    *order = (dsc_gbv_order){0};
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
    for (size_t i = 0; i < n; i++) {
        const int32_t x = dsc_ratio_token(order->token[i]);
        dist[x] = probability(prefix, at_most_one(lower), draft[x], paths, all);
        lower += draft[x];
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

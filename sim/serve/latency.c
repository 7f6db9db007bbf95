// SPDX-License-Identifier: Apache-2.0
// Histogram of times: the bin of a time is its exponent and the first ten bits of its fraction.
#include "sim/serve/latency.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    FRACTION_BITS = 10,
    LEAST_EXPONENT = -30,
    EXPONENTS = 60,
    BINS = EXPONENTS << FRACTION_BITS,
    EXPONENT_BIAS = 1023
};

static int64_t bin_of(double seconds)
{
    uint64_t bits;
    memcpy(&bits, &seconds, sizeof bits);
    int64_t bin = (int64_t)(bits >> (52 - FRACTION_BITS)) -
                  ((int64_t)(EXPONENT_BIAS + LEAST_EXPONENT) << FRACTION_BITS);
    if (bin < 0)
        return 0;
    return bin < BINS ? bin : BINS - 1;
}

// The middle of a bin.
static double middle_of(int64_t bin)
{
    const double fraction = (double)(bin & ((1 << FRACTION_BITS) - 1)) + 0.5;
    return ldexp(1 + ldexp(fraction, -FRACTION_BITS), (int)(bin >> FRACTION_BITS) + LEAST_EXPONENT);
}

int dsc_latency_init(dsc_latency *x, dsc_error *err)
{
    *x = (dsc_latency){.least = INFINITY, .most = -INFINITY};
    return dsc_new(&x->bin, BINS, err);
}

void dsc_latency_fini(dsc_latency *x)
{
    free(x->bin);
    *x = (dsc_latency){0};
}

void dsc_latency_add(dsc_latency *x, double seconds, int64_t weight)
{
    x->bin[bin_of(seconds)] += weight;
    x->count += weight;
    x->sum += (double)weight * seconds;
    x->least = seconds < x->least ? seconds : x->least;
    x->most = seconds > x->most ? seconds : x->most;
}

double dsc_latency_mean(const dsc_latency *x)
{
    return x->count ? x->sum / (double)x->count : NAN;
}

double dsc_latency_quantile(const dsc_latency *x, double q)
{
    int64_t below = 0, bin = 0;
    if (!x->count || !(q > 0 && q <= 1))
        return NAN;
    const double rank = ceil(q * (double)x->count);
    for (; bin < BINS - 1 && (double)(below + x->bin[bin]) < rank; bin++)
        below += x->bin[bin];
    return fmin(fmax(middle_of(bin), x->least), x->most);
}

int64_t dsc_latency_within(const dsc_latency *x, double seconds)
{
    int64_t count = 0;
    if (!(seconds >= 0))
        return 0;
    for (int64_t bin = bin_of(seconds); bin >= 0; bin--)
        count += x->bin[bin];
    return count;
}

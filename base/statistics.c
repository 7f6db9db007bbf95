// SPDX-License-Identifier: GPL-3.0-or-later
#include "base/statistics.h"

#include "base/rng.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>

dsc_summary dsc_summarise(double *x, size_t n)
{
    if (!n)
        return (dsc_summary){NAN, NAN, NAN, NAN, NAN};
    gsl_sort(x, 1, n);
    return (dsc_summary){
        .mean = gsl_stats_mean(x, 1, n),
        .min = x[0],
        .median = gsl_stats_median_from_sorted_data(x, 1, n),
        .p90 = gsl_stats_quantile_from_sorted_data(x, 1, n, 0.9),
        .max = x[n - 1],
    };
}

// Poisson(1) by inversion of 32 uniform bits: floor(2^32 * Pr(weight <= w)) for w = 0..11; beyond
// is rarer than one bit pattern in 2^32.
static int poisson_weight(uint32_t bits)
{
    static const uint32_t cumulative[] = {1580030168u, 3160060337u, 3950075421u, 4213413783u,
                                          4279248373u, 4292415291u, 4294609777u, 4294923276u,
                                          4294962463u, 4294966817u, 4294967252u, 4294967292u};
    int w = 0;
    while (w < 12 && bits >= cumulative[w])
        w++;
    return w;
}

int dsc_bootstrap_init(dsc_bootstrap *b, int resamples, uint64_t seed, dsc_error *err)
{
    void *top, *bottom;
    *b = (dsc_bootstrap){.resamples = resamples & ~3, .seed = seed};
    int rc = dsc_alloc(&top, (size_t)b->resamples, sizeof *b->top, err);
    b->top = top;
    if (rc)
        return rc;
    rc = dsc_alloc(&bottom, (size_t)b->resamples, sizeof *b->bottom, err);
    b->bottom = bottom;
    return rc;
}

void dsc_bootstrap_fini(dsc_bootstrap *b)
{
    free(b->top);
    free(b->bottom);
    *b = (dsc_bootstrap){0};
}

void dsc_bootstrap_add(dsc_bootstrap *b, int64_t request, int64_t top, int64_t bottom)
{
    b->requests++;
    for (int r = 0; r < b->resamples; r += 4) {
        uint32_t bits[4];
        dsc_rng_words(b->seed, (uint64_t)request, (uint32_t)r, DSC_RNG_BOOTSTRAP, bits);
        for (int j = 0; j < 4; j++) {
            int w = poisson_weight(bits[j]);
            b->top[r + j] += w * top;
            b->bottom[r + j] += w * bottom;
        }
    }
}

int dsc_bootstrap_interval(const dsc_bootstrap *b, double *lo, double *hi, dsc_error *err)
{
    void *mem;
    size_t n = 0;
    *lo = *hi = NAN;
    if (b->requests < 2)
        return DSC_OK;
    int rc = dsc_alloc(&mem, (size_t)b->resamples, sizeof(double), err);
    if (rc)
        return rc;
    double *ratio = mem;
    for (int r = 0; r < b->resamples; r++)
        if (b->bottom[r]) // a resample may leave out every request of a tiny trace
            ratio[n++] = (double)b->top[r] / (double)b->bottom[r];
    if (n) {
        gsl_sort(ratio, 1, n);
        *lo = gsl_stats_quantile_from_sorted_data(ratio, 1, n, 0.025);
        *hi = gsl_stats_quantile_from_sorted_data(ratio, 1, n, 0.975);
    }
    free(ratio);
    return DSC_OK;
}

// SPDX-License-Identifier: GPL-3.0-or-later
#include "base/statistics.h"

#include "base/rng.h"

#include <gsl/gsl_fit.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdbool.h>
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

// --- a robust line -----------------------------------------------------------------------------

typedef enum line_kind { LINE, LEVEL, THROUGH_ORIGIN } line_kind;

static void weighted_line(line_kind kind, const double *x, const double *y, const double *w,
                          size_t n, dsc_line *l)
{
    double c00, c01, c11, sum;
    l->intercept = l->slope = 0;
    if (kind == LEVEL)
        l->intercept = gsl_stats_wmean(w, 1, y, 1, n);
    else if (kind == THROUGH_ORIGIN)
        gsl_fit_wmul(x, 1, w, 1, y, 1, n, &l->slope, &c11, &sum);
    else
        gsl_fit_wlinear(x, 1, w, 1, y, 1, n, &l->intercept, &l->slope, &c00, &c01, &c11, &sum);
}

static double residual_scale(const dsc_line *l, const double *x, const double *y, double *room,
                             size_t n)
{
    for (size_t i = 0; i < n; i++)
        room[i] = fabs(y[i] - l->intercept - l->slope * x[i]);
    gsl_sort(room, 1, n);
    return 1.4826 * gsl_stats_median_from_sorted_data(room, 1, n);
}

// Weights from 1 iteration to the next; 1 for a residual of 0.
static void reweight(const dsc_line *l, bool redescends, const double *x, const double *y,
                     double *w, size_t n)
{
    double limit = (redescends ? 4.685 : 1.345) * l->scale;
    for (size_t i = 0; i < n; i++) {
        double r = fabs(y[i] - l->intercept - l->slope * x[i]);
        double u = r > 0 ? r / limit : 0; // limit 0: the line goes through most points
        w[i] = !redescends ? fmin(1, 1 / u) : u < 1 ? (1 - u * u) * (1 - u * u) : 0;
    }
}

static void iterate(line_kind kind, const double *x, const double *y, double *w, double *room,
                    size_t n, dsc_line *l)
{
    enum { MOST = 50 };
    for (size_t i = 0; i < n; i++)
        w[i] = 1;
    weighted_line(kind, x, y, w, n, l);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < MOST; i++) {
            dsc_line old = *l;
            l->scale = residual_scale(l, x, y, room, n);
            reweight(l, pass == 1, x, y, w, n);
            weighted_line(kind, x, y, w, n, l);
            if (fabs(l->intercept - old.intercept) <= 1e-12 * fabs(old.intercept) &&
                fabs(l->slope - old.slope) <= 1e-12 * fabs(old.slope))
                break;
        }
    l->scale = residual_scale(l, x, y, room, n);
}

static int fit(line_kind kind, const double *x, const double *y, size_t n, dsc_line *out,
               dsc_error *err)
{
    void *mem;
    int rc = dsc_alloc(&mem, 2 * n, sizeof(double), err);
    if (rc)
        return rc;
    double *w = mem, *room = w + n;
    iterate(kind, x, y, w, room, n, out);
    if (kind == LINE && !(out->slope >= 0)) // or unknown: only points of one x have weight
        iterate(LEVEL, x, y, w, room, n, out);
    else if (kind == LINE && out->intercept < 0)
        iterate(THROUGH_ORIGIN, x, y, w, room, n, out);
    free(mem);
    return DSC_OK;
}

int dsc_fit_line(const double *x, const double *y, size_t n, dsc_line *out, dsc_error *err)
{
    double least, most;
    gsl_stats_minmax(&least, &most, x, 1, n);
    return fit(least < most ? LINE : LEVEL, x, y, n, out, err);
}

int dsc_fit_line_through_origin(const double *x, const double *y, size_t n, dsc_line *out,
                                dsc_error *err)
{
    return fit(gsl_stats_max(x, 1, n) > 0 ? THROUGH_ORIGIN : LEVEL, x, y, n, out, err);
}

// --- bootstrap ---------------------------------------------------------------------------------

// Poisson(1) by inversion of 32 uniform bits: floor(2^32 * Pr(weight <= w)) for w = 0..11; beyond
// is rarer than one bit pattern in 2^32.
int dsc_poisson_weight(uint32_t bits)
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
            int w = dsc_poisson_weight(bits[j]);
            b->top[r + j] += w * top;
            b->bottom[r + j] += w * bottom;
        }
    }
}

void dsc_percentile_interval(double *x, size_t n, double *lo, double *hi)
{
    *lo = *hi = NAN;
    if (!n)
        return;
    gsl_sort(x, 1, n);
    *lo = gsl_stats_quantile_from_sorted_data(x, 1, n, 0.025);
    *hi = gsl_stats_quantile_from_sorted_data(x, 1, n, 0.975);
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
    dsc_percentile_interval(ratio, n, lo, hi);
    free(ratio);
    return DSC_OK;
}

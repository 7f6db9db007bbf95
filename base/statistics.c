// SPDX-License-Identifier: GPL-3.0-or-later
// Statistics over requests with GSL; base/statistics.h. Robust fits are iteratively reweighted
// least squares; the Poisson bootstrap keeps integer sums for each resample.
#include "base/statistics.h"

#include "base/rng.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_multifit.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_sort_vector.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

dsc_summary dsc_summarize(double *x, size_t n)
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

// --- robust least squares ----------------------------------------------------------------------

typedef struct fitting {
    gsl_matrix_const_view x;
    gsl_vector_const_view y;
    gsl_vector *weight, *residual, *sorted, *found, *before;
    gsl_matrix *covariance;
    gsl_multifit_linear_workspace *room;
} fitting;

static void fitting_free(fitting *f)
{
    gsl_vector *const all[] = {f->weight, f->residual, f->sorted, f->found, f->before};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i])
            gsl_vector_free(all[i]);
    if (f->covariance)
        gsl_matrix_free(f->covariance);
    if (f->room)
        gsl_multifit_linear_free(f->room);
}

static int fitting_new(fitting *f, size_t n, size_t columns, dsc_error *err)
{
    void *probe; // GSL ends the program when memory is short, so check first
    int rc = dsc_alloc(&probe, n, (columns + 5) * sizeof(double), err);
    free(probe);
    if (rc)
        return rc;
    f->weight = gsl_vector_alloc(n);
    f->residual = gsl_vector_alloc(n);
    f->sorted = gsl_vector_alloc(n);
    f->found = gsl_vector_alloc(columns);
    f->before = gsl_vector_alloc(columns);
    f->covariance = gsl_matrix_alloc(columns, columns);
    f->room = gsl_multifit_linear_alloc(n, columns);
    return DSC_OK;
}

// Weighted least squares. Returns the scale of the residuals and leaves the residuals in
// f->residual.
static double solve(fitting *f)
{
    double sum;
    gsl_multifit_wlinear(&f->x.matrix, f->weight, &f->y.vector, f->found, f->covariance, &sum,
                         f->room);
    gsl_multifit_linear_residuals(&f->x.matrix, &f->y.vector, f->found, f->residual);
    for (size_t i = 0; i < f->residual->size; i++)
        f->sorted->data[i] = fabs(f->residual->data[i]);
    gsl_sort_vector(f->sorted);
    return 1.4826 * gsl_stats_median_from_sorted_data(f->sorted->data, 1, f->sorted->size);
}

// The weight of a residual for the next iteration; 1 for a residual of 0.
static void reweight(fitting *f, bool redescends, double scale)
{
    double limit = (redescends ? 4.685 : 1.345) * scale;
    for (size_t i = 0; i < f->weight->size; i++) {
        double r = fabs(f->residual->data[i]);
        double u = r > 0 ? r / limit : 0; // limit 0: the line meets most points exactly
        double inside = u < 1 ? 1 - u * u : 0;
        f->weight->data[i] = redescends ? inside * inside : fmin(1, 1 / u);
    }
}

static bool settled(const fitting *f)
{
    for (size_t c = 0; c < f->found->size; c++) {
        double old = f->before->data[c];
        if (!(fabs(f->found->data[c] - old) <= 1e-12 * fabs(old)))
            return false;
    }
    return true;
}

int dsc_fit_robust(const double *x, size_t columns, const double *y, size_t n, double *coefficient,
                   double *scale, dsc_error *err)
{
    enum { MOST = 50 };
    fitting f = {.x = gsl_matrix_const_view_array(x, n, columns),
                 .y = gsl_vector_const_view_array(y, n)};
    int rc = fitting_new(&f, n, columns, err);
    if (rc)
        return rc;
    gsl_vector_set_all(f.weight, 1);
    *scale = solve(&f);
    for (int redescends = 0; redescends < 2; redescends++)
        for (int i = 0; i < MOST; i++) {
            gsl_vector_memcpy(f.before, f.found);
            reweight(&f, redescends, *scale);
            *scale = solve(&f);
            if (settled(&f))
                break;
        }
    for (size_t c = 0; c < columns; c++)
        coefficient[c] = f.found->data[c];
    fitting_free(&f);
    return DSC_OK;
}

// Fits y = level + x slope with one or both of the terms.
static int fit_line(bool level, bool slope, const double *x, const double *y, size_t n,
                    dsc_line *out, dsc_error *err)
{
    double found[2], *rows;
    size_t columns = (size_t)level + slope;
    int rc = dsc_new(&rows, n * columns, err);
    if (rc)
        return rc;
    double *to = rows;
    for (size_t i = 0; i < n; i++) {
        if (level)
            *to++ = 1;
        if (slope)
            *to++ = x[i];
    }
    rc = dsc_fit_robust(rows, columns, y, n, found, &out->scale, err);
    free(rows);
    out->intercept = level ? found[0] : 0;
    out->slope = slope ? found[columns - 1] : 0;
    return rc;
}

int dsc_fit_line(const double *x, const double *y, size_t n, dsc_line *out, dsc_error *err)
{
    double least, most;
    gsl_stats_minmax(&least, &most, x, 1, n);
    int rc = fit_line(true, least < most, x, y, n, out, err);
    if (!rc && out->slope < 0)
        rc = fit_line(true, false, x, y, n, out, err);
    else if (!rc && out->intercept < 0)
        rc = fit_line(false, true, x, y, n, out, err);
    return rc;
}

int dsc_fit_line_through_origin(const double *x, const double *y, size_t n, dsc_line *out,
                                dsc_error *err)
{
    return fit_line(false, true, x, y, n, out, err);
}

// --- bootstrap ---------------------------------------------------------------------------------

double dsc_normal_quantile(double q)
{
    return gsl_cdf_ugaussian_Pinv(q);
}

double dsc_error_limit(double z, size_t n, size_t comparisons)
{
    const double tail = gsl_cdf_ugaussian_Q(z) / (double)comparisons;
    return n < 2 ? (double)INFINITY : gsl_cdf_tdist_Qinv(tail, (double)(n - 1));
}

// Poisson(1) by inversion of 32 uniform bits: floor(2^32 * Pr(weight <= w)) for w = 0..11; larger
// weights are rarer than one bit pattern in 2^32.
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
    *b = (dsc_bootstrap){.resamples = resamples & ~3, .seed = seed};
    int rc = dsc_new(&b->top, (size_t)b->resamples, err);
    return rc ? rc : dsc_new(&b->bottom, (size_t)b->resamples, err);
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
    double *ratio;
    size_t n = 0;
    *lo = *hi = NAN;
    if (b->requests < 2)
        return DSC_OK;
    int rc = dsc_new(&ratio, (size_t)b->resamples, err);
    if (rc)
        return rc;
    for (int r = 0; r < b->resamples; r++)
        if (b->bottom[r]) // a resample may leave out every request of a tiny trace
            ratio[n++] = (double)b->top[r] / (double)b->bottom[r];
    dsc_percentile_interval(ratio, n, lo, hi);
    free(ratio);
    return DSC_OK;
}

// SPDX-License-Identifier: Apache-2.0
// Differences of predicted and measured ratios and distributions, with standard errors from the
// Poisson bootstrap over requests.
#include "sim/tune/compare.h"

#include "base/rng.h"
#include "base/statistics.h"

#include <math.h>
#include <stdlib.h>

bool dsc_compare_equal(double predicted, double measured)
{
    const double scale = fmax(fabs(predicted), fabs(measured));
    return fabs(predicted - measured) <= DSC_COMPARE_EQUAL * scale;
}

// Weights of all requests in resamples r .. r + 3: [4][requests].
static void draw_weights(const dsc_resampling *how, int r, double *weight)
{
    for (size_t i = 0; i < how->requests; i++) {
        uint32_t bits[4];
        dsc_rng_words(how->seed, (uint64_t)how->request[i], (uint32_t)r, DSC_RNG_BOOTSTRAP, bits);
        for (size_t j = 0; j < 4; j++)
            weight[j * how->requests + i] = dsc_poisson_weight(bits[j]);
    }
}

static void judge(dsc_comparison *c, double variance)
{
    // Rounding differences of equal sums are not variance.
    const double scale = DSC_COMPARE_EQUAL * fmax(fabs(c->predicted), fabs(c->measured));
    c->se = sqrt(variance);
    if (c->se <= scale)
        c->se = 0;
    if (fabs(c->error) <= scale)
        c->error = 0;
    c->z = c->se > 0 ? c->error / c->se : c->error == 0 ? 0 : copysign(INFINITY, c->error);
}

int dsc_compare_ratios(const dsc_resampling *how, const dsc_ratio *predicted,
                       const dsc_ratio *measured, dsc_comparison *out, dsc_error *err)
{
    double sum = 0, squares = 0, n = 0, *weight;
    *out =
        (dsc_comparison){.predicted = dsc_ratio_value(predicted, how->request, how->requests, NULL),
                         .measured = dsc_ratio_value(measured, how->request, how->requests, NULL),
                         .se = NAN,
                         .z = NAN};
    out->error = out->predicted - out->measured;
    if (how->requests < 2 || isnan(out->error))
        return DSC_OK;
    int rc = dsc_new(&weight, 4 * how->requests, err);
    if (rc)
        return rc;
    for (int r = 0; r < how->resamples; r += 4) {
        draw_weights(how, r, weight);
        for (size_t j = 0; j < 4; j++) {
            const double *w = weight + j * how->requests;
            double x = dsc_ratio_value(predicted, how->request, how->requests, w) -
                       dsc_ratio_value(measured, how->request, how->requests, w);
            if (isnan(x)) // a resample of few requests may be empty
                continue;
            x -= out->error; // small numbers, so the sums below do not cancel
            sum += x;
            squares += x * x;
            n++;
        }
    }
    free(weight);
    judge(out, n > 1 ? (squares - sum * sum / n) / (n - 1) : (double)NAN);
    return DSC_OK;
}

// --- distributions -------------------------------------------------------------------------------

// Differences of the cumulative shares, [length], with `weight` (NULL: 1 each). false: no counts.
static bool differences(const dsc_resampling *how, const double *predicted, const double *measured,
                        size_t length, const double *weight, double *room, double *out)
{
    double *p = room, *m = room + length, all_p = 0, all_m = 0;
    for (size_t x = 0; x < 2 * length; x++)
        room[x] = 0;
    for (size_t i = 0; i < how->requests; i++) {
        const double w = weight ? weight[i] : 1;
        const size_t at = (size_t)how->request[i] * length;
        for (size_t x = 0; w > 0 && x < length; x++) {
            p[x] += w * predicted[at + x];
            m[x] += w * measured[at + x];
        }
    }
    for (size_t x = 0; x < length; x++) {
        p[x] = all_p += p[x];
        m[x] = all_m += m[x];
    }
    for (size_t x = 0; x < length; x++)
        out[x] = p[x] / all_p - m[x] / all_m;
    return all_p > 0 && all_m > 0;
}

static double largest(const double *x, const double *center, size_t length)
{
    double most = 0;
    for (size_t i = 0; i < length; i++)
        most = fmax(most, fabs(x[i] - (center ? center[i] : 0)));
    return most;
}

int dsc_compare_dists(const dsc_resampling *how, const double *predicted, const double *measured,
                      size_t length, dsc_comparison *out, dsc_error *err)
{
    double squares = 0, n = 0, *weight;
    *out = (dsc_comparison){NAN, 0, NAN, NAN, NAN};
    int rc = dsc_new(&weight, 4 * how->requests + 4 * length, err);
    if (rc)
        return rc;
    double *room = weight + 4 * how->requests, *all = room + 2 * length, *one = all + length;
    if (differences(how, predicted, measured, length, NULL, room, all))
        out->predicted = out->error = largest(all, NULL, length);
    for (int r = 0; r < how->resamples && how->requests > 1 && !isnan(out->error); r += 4) {
        draw_weights(how, r, weight);
        for (size_t j = 0; j < 4; j++) {
            if (!differences(how, predicted, measured, length, weight + j * how->requests, room,
                             one))
                continue;
            const double d = largest(one, all, length);
            squares += d * d;
            n++;
        }
    }
    free(weight);
    if (n > 1) {
        out->measured = 1; // the scale of a share, for the bound on relative errors
        judge(out, squares / n);
        out->measured = 0;
    }
    return DSC_OK;
}

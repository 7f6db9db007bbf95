// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/width_law.h"

#include <complex.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// X(k) = sum of x(j) exp(-2 pi i j k / n), in place, n a power of 2 (Cooley and Tukey 1965).
static void transform(double complex *x, size_t n)
{
    for (size_t i = 1, j = 0; i < n; i++) { // j: the bits of i in reverse
        size_t bit = n >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j ^= bit;
        if (i < j) {
            double complex t = x[i];
            x[i] = x[j];
            x[j] = t;
        }
    }
    for (size_t half = 1; half < n; half *= 2)
        for (size_t k = 0; k < half; k++) {
            double complex turn = cexp(-I * M_PI * (double)k / (double)half);
            for (size_t i = k; i < n; i += 2 * half) {
                double complex a = x[i], b = turn * x[i + half];
                x[i] = a + b;
                x[i + half] = a - b;
            }
        }
}

static double complex power(double complex x, int64_t n)
{
    double complex y = 1;
    for (; n; n >>= 1, x *= x)
        y = n & 1 ? y * x : y;
    return y;
}

// The law of one becomes that of the sum of `batch`, which has `sums` values.
static int convolve(dsc_width_law *law, size_t sums, int64_t batch, dsc_error *err)
{
    size_t n = 1;
    while (n < sums)
        n *= 2;
    void *mem;
    int rc = dsc_alloc(&mem, n, sizeof(double complex), err);
    if (rc)
        return rc;
    double complex *x = mem;
    for (size_t i = 0; i < law->count; i++)
        x[i] = law->chance[i];
    transform(x, n);
    for (size_t k = 0; k < n; k++)
        x[k] = conj(power(x[k], batch)) / (double)n; // conjugate: so that forward is back
    transform(x, n);
    for (size_t i = 0; i < sums; i++)
        law->chance[i] = fmax(creal(x[i]), 0);
    law->count = sums;
    free(x);
    return DSC_OK;
}

// Leaves out both ends, whose chances are rounding, and makes the rest a law.
static void cut_ends(dsc_width_law *law)
{
    const double most = 1e-10;
    double below = 0, above = 0, sum = 0;
    size_t first = 0, end = law->count;
    while (first + 1 < end && below + law->chance[first] < most)
        below += law->chance[first++];
    while (first + 1 < end && above + law->chance[end - 1] < most)
        above += law->chance[--end];
    for (size_t i = first; i < end; i++)
        sum += law->chance[i];
    for (size_t i = first; i < end; i++)
        law->chance[i - first] = law->chance[i] / sum;
    law->least += (int64_t)first;
    law->count = end - first;
}

int dsc_width_law_init(dsc_width_law *out, const int64_t *width, int64_t length, int64_t batch,
                       dsc_error *err)
{
    int64_t first = 0, total = 0;
    void *mem;
    *out = (dsc_width_law){0};
    while (length > 1 && !width[length - 1])
        length--;
    while (first + 1 < length && !width[first])
        first++;
    int64_t span = length - first;
    if (span - 1 > (DSC_WIDTH_LAW_MOST - 1) / batch)
        return dsc_fail(err, DSC_EUSAGE,
                        "a batch of %" PRId64 " passes that differ by up to %" PRId64
                        " tokens: their sum has more than %d values",
                        batch, span - 1, DSC_WIDTH_LAW_MOST);
    size_t sums = (size_t)(batch * (span - 1) + 1);
    int rc = dsc_alloc(&mem, sums, sizeof *out->chance, err);
    if (rc)
        return rc;
    *out = (dsc_width_law){.chance = mem, .count = (size_t)span, .least = batch * (first + 1)};
    for (int64_t m = first; m < length; m++)
        total += width[m];
    for (int64_t m = first; m < length; m++)
        out->chance[m - first] = (double)width[m] / (double)total;
    if (batch == 1 || span == 1)
        return DSC_OK;
    rc = convolve(out, sums, batch, err);
    if (rc)
        dsc_width_law_fini(out);
    else
        cut_ends(out);
    return rc;
}

void dsc_width_law_fini(dsc_width_law *law)
{
    free(law->chance);
    *law = (dsc_width_law){0};
}

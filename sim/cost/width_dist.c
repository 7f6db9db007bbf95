// SPDX-License-Identifier: Apache-2.0
// Convolves a histogram of widths with itself: by squaring, which is fast for the few hundred
// values that the sum of a batch has in practice, else by a power of its Fourier transform.
#include "sim/cost/width_dist.h"

#include <complex.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SQUARED_MOST = 4096 }; // values of a sum from which on the transform is faster

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

// Turns the distribution of one width into that of the sum of `batch`, which has `sums` values.
static int convolve_by_transform(dsc_width_dist *dist, size_t sums, int64_t batch, dsc_error *err)
{
    size_t n = 1;
    while (n < sums)
        n *= 2;
    double complex *x;
    int rc = dsc_new(&x, n, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < dist->count; i++)
        x[i] = dist->chance[i];
    transform(x, n);
    for (size_t k = 0; k < n; k++)
        x[k] =
            conj(power(x[k], batch)) / (double)n; // conjugate, so that a forward transform inverts
    transform(x, n);
    for (size_t i = 0; i < sums; i++)
        dist->chance[i] = fmax(creal(x[i]), 0);
    dist->count = sums;
    free(x);
    return DSC_OK;
}

// --- squaring ------------------------------------------------------------------------------------

// Sums are computed side by side, and each adds its products in the order of a plain loop, so the
// vectors do not change the result. Arrays have BLOCK zeros before and after them, which lanes that
// have no product read.
typedef double lanes __attribute__((vector_size(32), aligned(sizeof(double)), may_alias));
enum { LANES = 4, BLOCK = 4 * LANES };

// The distribution of the sum of some widths: chance[i] of offset + i.
typedef struct partial_sum {
    double *chance;
    size_t count;
    int64_t offset;
} partial_sum;

typedef struct block {
    lanes a, b, c, d;
} block;

__attribute__((always_inline)) static inline block load_block(const double *x)
{
    const lanes *v = (const lanes *)x;
    return (block){v[0], v[1], v[2], v[3]};
}

__attribute__((always_inline)) static inline block add_products(block sum, double factor,
                                                                const double *x)
{
    const block y = load_block(x);
    return (block){sum.a + factor * y.a, sum.b + factor * y.b, sum.c + factor * y.c,
                   sum.d + factor * y.d};
}

// Adds the products a[at + d] a[at - d + lane], d = 0, 1, ...: twice above the diagonal, once on
// it, and not below it.
__attribute__((always_inline)) static inline block add_diagonal(block sum, const double *a)
{
    static const double times[2 * BLOCK] = {[BLOCK] = 1, 2, 2, 2, 2, 2, 2, 2,
                                            2,           2, 2, 2, 2, 2, 2, 2};
    for (int d = 0; d < BLOCK / 2; d++) {
        const block t = load_block(times + BLOCK - 2 * d), x = load_block(a - d);
        sum.a += t.a * a[d] * x.a;
        sum.b += t.b * a[d] * x.b;
        sum.c += t.c * a[d] * x.c;
        sum.d += t.d * a[d] * x.d;
    }
    return sum;
}

// out[0, 2 n - 1) = the distribution of a sum of two that have a[0, n).
#ifdef HAVE_TARGET_CLONES
__attribute__((target_clones("avx2", "default")))
#endif
static void
square_chances(const double *restrict a, size_t n, double *restrict out)
{
    for (size_t x = 0; x < 2 * n - 1; x += BLOCK) {
        block sum = {{0}, {0}, {0}, {0}};
        for (size_t i = x < n ? 0 : x - n + 1; i < x / 2; i++)
            sum = add_products(sum, 2 * a[i], a + x - i);
        sum = add_diagonal(sum, a + x / 2);
        memcpy(out + x, &sum, sizeof sum);
    }
}

// out[0, n + m - 1) = the distribution of a sum of one with a[0, n) and one with b[0, m).
#ifdef HAVE_TARGET_CLONES
__attribute__((target_clones("avx2", "default")))
#endif
static void
multiply_chances(const double *restrict a, size_t n, const double *restrict b, size_t m,
                 double *restrict out)
{
    for (size_t x = 0; x < n + m - 1; x += BLOCK) {
        const size_t end = x + BLOCK < m ? x + BLOCK : m;
        block sum = {{0}, {0}, {0}, {0}};
        for (size_t j = x < n ? 0 : x - n + 1; j < end; j++)
            sum = add_products(sum, b[j], a + x - j);
        memcpy(out + x, &sum, sizeof sum);
    }
}

// Cuts both ends, of probabilities so small that they do not matter after all squarings.
static void cut_partial_sum(partial_sum *s)
{
    const double most = 1e-14;
    size_t first = 0;
    while (first + 1 < s->count && s->chance[first] < most)
        first++;
    while (first + 1 < s->count && s->chance[s->count - 1] < most)
        s->count--;
    s->count -= first;
    memmove(s->chance, s->chance + first, s->count * sizeof *s->chance);
    memset(s->chance + s->count, 0, BLOCK * sizeof *s->chance);
    s->offset += (int64_t)first;
}

// As convolve_by_transform, by the binary digits of `batch`.
static int convolve_by_squaring(dsc_width_dist *dist, size_t sums, int64_t batch, dsc_error *err)
{
    const size_t n = dist->count, each = sums + 3 * BLOCK; // the last block may be longer
    double *memory, *one = dist->chance;
    int rc = dsc_new(&memory, 2 * each, err);
    if (rc)
        return rc;
    double *room = memory + each + BLOCK;
    partial_sum s = {memory + BLOCK, n, 0};
    memcpy(s.chance, one, n * sizeof *one);
    for (int bit = 62 - __builtin_clzll((unsigned long long)batch); bit >= 0; bit--) {
        square_chances(s.chance, s.count, room);
        partial_sum next = {room, 2 * s.count - 1, 2 * s.offset};
        room = s.chance;
        s = next;
        if (batch >> bit & 1) {
            memset(s.chance + s.count, 0, BLOCK * sizeof *s.chance);
            multiply_chances(s.chance, s.count, one, n, room);
            next = (partial_sum){room, s.count + n - 1, s.offset};
            room = s.chance;
            s = next;
        }
        cut_partial_sum(&s);
    }
    memcpy(dist->chance, s.chance, s.count * sizeof *s.chance);
    dist->count = s.count;
    dist->least += s.offset * dist->step;
    free(memory);
    return DSC_OK;
}

// Cuts both ends, whose probabilities are rounding errors, and normalizes the rest.
static void cut_ends(dsc_width_dist *dist)
{
    const double most = 1e-10;
    double below = 0, above = 0, sum = 0;
    size_t first = 0, end = dist->count;
    while (first + 1 < end && below + dist->chance[first] < most)
        below += dist->chance[first++];
    while (first + 1 < end && above + dist->chance[end - 1] < most)
        above += dist->chance[--end];
    for (size_t i = first; i < end; i++)
        sum += dist->chance[i];
    for (size_t i = first; i < end; i++)
        dist->chance[i - first] = dist->chance[i] / sum;
    dist->least += (int64_t)first * dist->step;
    dist->count = end - first;
}

// The greatest common divisor of the differences of widths in first .. length - 1 that occur.
static int64_t step_of(const int64_t *width, int64_t first, int64_t length)
{
    int64_t step = 0;
    for (int64_t m = first + 1; m < length; m++)
        for (int64_t a = width[m] ? m - first : 0; a;) {
            const int64_t rest = step % a;
            step = a;
            a = rest;
        }
    return step ? step : 1;
}

int dsc_width_dist_init(dsc_width_dist *out, const int64_t *width, int64_t length, int64_t batch,
                        dsc_error *err)
{
    int64_t first = 0, total = 0;
    *out = (dsc_width_dist){0};
    while (length > 1 && !width[length - 1])
        length--;
    while (first + 1 < length && !width[first])
        first++;
    const int64_t step = step_of(width, first, length), span = (length - 1 - first) / step + 1;
    if (span - 1 > (DSC_WIDTH_DIST_MOST - 1) / batch)
        return dsc_fail(err, DSC_EUSAGE,
                        "a batch of %" PRId64 " passes that differ by up to %" PRId64
                        " tokens: their sum has more than %d values",
                        batch, length - 1 - first, DSC_WIDTH_DIST_MOST);
    size_t sums = (size_t)(batch * (span - 1) + 1);
    int rc = dsc_new(&out->chance, sums, err);
    if (rc)
        return rc;
    out->count = (size_t)span;
    out->least = batch * (first + 1);
    out->step = step;
    for (int64_t m = first; m < length; m += step)
        total += width[m];
    for (int64_t i = 0; i < span; i++)
        out->chance[i] = (double)width[first + i * step] / (double)total;
    if (batch == 1 || span == 1)
        return DSC_OK;
    rc = sums <= SQUARED_MOST ? convolve_by_squaring(out, sums, batch, err)
                              : convolve_by_transform(out, sums, batch, err);
    if (rc)
        dsc_width_dist_fini(out);
    else
        cut_ends(out);
    return rc;
}

void dsc_width_dist_fini(dsc_width_dist *dist)
{
    free(dist->chance);
    *dist = (dsc_width_dist){0};
}

// SPDX-License-Identifier: Apache-2.0
// The loops of live/device/cpu_kernel.h in portable C, 4 floats at a time, and conversions of the
// 16-bit floating-point formats (IEEE 754 binary16 and bfloat16).
#include "live/device/cpu_kernel.h"

#include <math.h>
#include <string.h>

#define TARGET
#define OP __attribute__((always_inline)) static inline
#define LANES 4
#define TILE_ROWS 2
#define TILE_TOKENS 3

typedef float vec __attribute__((vector_size(4 * LANES)));

float live_from_bf16(uint16_t bits)
{
    uint32_t u = (uint32_t)bits << 16; // the upper half of a binary32
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

// binary16 has 1 sign bit, 5 exponent bits and 10 fraction bits. Shifted into place, the exponent
// is too small by 112, which a product with 2^112 corrects exactly, also for subnormal numbers; the
// largest exponent stands for infinity or NaN.
float live_from_f16(uint16_t bits)
{
    uint32_t u = (uint32_t)(bits & 0x7fff) << 13, sign = (uint32_t)(bits & 0x8000) << 16;
    float x;
    memcpy(&x, &u, sizeof x);
    x *= 0x1p112f;
    memcpy(&u, &x, sizeof u);
    u |= sign | ((bits & 0x7c00) == 0x7c00 ? 0x7f800000 : 0);
    memcpy(&x, &u, sizeof x);
    return x;
}

uint16_t live_to_bf16(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    if (isnan(x))
        return (uint16_t)(u >> 16 | 0x40); // keeps a nonzero fraction after truncation
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

uint16_t live_to_f16(float x)
{
    uint32_t u, sign;
    memcpy(&u, &x, sizeof u);
    sign = u >> 16 & 0x8000;
    u &= 0x7fffffff;
    if (u > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (u >> 13 & 0x3ff));
    if (u >= 0x477ff000) // 65520: half-way to 2^16, and what is above
        return (uint16_t)(sign | 0x7c00);
    if (u < 0x38800000) { // below 2^-14: multiples of 2^-24, which adding 2^-1 rounds to
        float magnitude;
        memcpy(&magnitude, &u, sizeof magnitude);
        magnitude += 0.5f;
        memcpy(&u, &magnitude, sizeof u);
        return (uint16_t)(sign | (u - 0x3f000000));
    }
    return (uint16_t)(sign | ((u - 0x38000000 + 0xfff + (u >> 13 & 1)) >> 13));
}

OP vec load_bf16(const uint16_t *x)
{
    return (vec){live_from_bf16(x[0]), live_from_bf16(x[1]), live_from_bf16(x[2]),
                 live_from_bf16(x[3])};
}

OP vec load_bf16_odd(const uint16_t *x)
{
    int32_t both __attribute__((vector_size(4 * LANES)));
    memcpy(&both, x, sizeof both);
    return (vec)(both & (int32_t)0xffff0000);
}

OP vec load_f16(const uint16_t *x)
{
    return (vec){live_from_f16(x[0]), live_from_f16(x[1]), live_from_f16(x[2]),
                 live_from_f16(x[3])};
}

OP vec fma3(vec x, vec y, vec z)
{
    return x * y + z;
}

OP void add_product(vec *sum, vec x, vec y)
{
    *sum = x * y + *sum;
}

OP void hold(vec *x)
{
    (void)x;
}

OP vec largest(vec x, vec y)
{
    __typeof__(x > y) more = x > y;
    return (vec)(((__typeof__(more))x & more) | ((__typeof__(more))y & ~more));
}

OP void totals_of(float *out, vec a, vec b, vec c, vec d)
{
    out[0] = (a[0] + a[2]) + (a[1] + a[3]), out[1] = (b[0] + b[2]) + (b[1] + b[3]);
    out[2] = (c[0] + c[2]) + (c[1] + c[3]), out[3] = (d[0] + d[2]) + (d[1] + d[3]);
}

OP float largest_of(vec x)
{
    float a = x[0] > x[1] ? x[0] : x[1], b = x[2] > x[3] ? x[2] : x[3];
    return a > b ? a : b;
}

#include "live/device/cpu_kernel_loops.h"

static bool supported(void)
{
    return true;
}

const live_cpu_kernel live_cpu_kernel_c = {"c",      supported, pack, products, mix,   exponentials,
                                           multiply, silu,      gelu, widen,    total, {1, 1}};

const live_cpu_kernel *const live_cpu_kernels[] = {
#ifdef LIVE_X86
    &live_cpu_kernel_avx512,
    &live_cpu_kernel_avx2,
#endif
    &live_cpu_kernel_c,
    NULL,
};

const live_cpu_kernel *live_cpu_kernel_choose(void)
{
    const live_cpu_kernel *const *k = live_cpu_kernels;
    while (!(*k)->supported())
        k++;
    return *k;
}

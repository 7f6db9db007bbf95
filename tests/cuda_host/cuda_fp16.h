// SPDX-License-Identifier: Apache-2.0
#ifndef DSC_TESTS_CUDA_FP16_H
#define DSC_TESTS_CUDA_FP16_H

#include "cuda_runtime.h"

struct __half {
    unsigned short bits;
};

static inline __half __ushort_as_half(unsigned short x)
{
    return {x};
}

static inline float __half2float(__half x)
{
    const int exponent = x.bits >> 10 & 31, fraction = x.bits & 1023;
    const float sign = x.bits >> 15 ? -1.0f : 1.0f;
    if (exponent == 31)
        return fraction ? NAN : sign * INFINITY;
    return sign * (exponent ? std::ldexp(1024.0f + (float)fraction, exponent - 25)
                            : std::ldexp((float)fraction, -24));
}

static inline __half __float2half_rn(float x)
{
    const unsigned short sign = std::signbit(x) ? 0x8000 : 0;
    if (x != x)
        return {0x7fff};
    int exponent = -13; // of zero and of subnormal numbers
    if (x != 0.0f)
        std::frexp(x, &exponent); // |x| in [2^(exponent - 1), 2^exponent)
    exponent = std::max(exponent, -13);
    // In units of the last place, to the nearest even one; a carry moves into the exponent.
    const float units = std::nearbyint(std::ldexp(std::fabs(x), 11 - exponent));
    if (!(units < 4096.0f) || exponent > 17)
        return {(unsigned short)(sign | 0x7c00)};
    const int bits = (int)units + (exponent + 13) * 1024;
    return {(unsigned short)(sign | std::min(bits, 0x7c00))};
}

#endif

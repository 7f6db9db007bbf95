// SPDX-License-Identifier: Apache-2.0
// Internal: an exponential that compilers vectorize.
#ifndef DSC_THEORY_FAST_EXP_H
#define DSC_THEORY_FAST_EXP_H

#include <stdint.h>
#include <string.h>

// e^x for x in (-640, 640), relative error at most 4e-16. x = n ln 2 + r, |r| <= ln 2 / 2 (Cody and
// Waite 1980: ln 2 in two parts, n times the first exact). The Taylor polynomial of degree 12 is
// within 2e-16 of e^r; n is read from the last bits of x / ln 2 + 3 2^51.
static inline double dsc_fast_exp_within(double x)
{
    const double shift = 0x1.8p52, high = 0x1.62e42fee00000p-1, low = 0x1.a39ef35793c76p-33;
    int64_t bits;
    double scale;
    double shifted = x * 0x1.71547652b82fep0 + shift, n = shifted - shift;
    double r = x - n * high - n * low, q = r * r, p = 1. / 479001600, o = 1. / 39916800;
    p = p * q + 1. / 3628800;
    o = o * q + 1. / 362880;
    p = p * q + 1. / 40320;
    o = o * q + 1. / 5040;
    p = p * q + 1. / 720;
    o = o * q + 1. / 120;
    p = p * q + 1. / 24;
    o = o * q + 1. / 6;
    p = p * q + 1. / 2 + r * o;
    p = 1 + (r + q * p); // the sums that round most come last
    memcpy(&bits, &shifted, sizeof bits);
    bits = (int64_t)(((uint64_t)bits + 1023) << 52);
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
}

// e^x for any x. An x beyond +-640 is replaced by +-640, and e^-640 is negligible against 1. The
// bound is applied to the bits, because compilers turn a choice between a number and a constant
// into a branch.
static inline double dsc_fast_exp(double x)
{
    const int64_t sign = INT64_MIN, bound = 0x4084000000000000; // 640
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int64_t size = bits & ~sign;
    bits = (bits & sign) | (size < bound ? size : bound);
    memcpy(&x, &bits, sizeof x);
    return dsc_fast_exp_within(x);
}

// e^x for x <= 0; 0 for x <= -640 and for a NaN.
static inline double dsc_fast_exp_below(double x)
{
    const int64_t bound = 0x4084000000000000; // 640
    int64_t size, bits;
    double e = dsc_fast_exp(x);
    memcpy(&size, &x, sizeof size);
    memcpy(&bits, &e, sizeof bits);
    bits &= (size & INT64_MAX) < bound ? -1 : 0;
    memcpy(&e, &bits, sizeof e);
    return e;
}

// e^x for a float in [-87, 0], relative error at most 8.6e-8 (half a unit of the last place is at
// most 6e-8): as above, with the Taylor polynomial of degree 7, within 6e-9.
static inline float dsc_fast_expf(float x)
{
    const float shift = 0x1.8p23f, high = 0x1.62e4p-1f, low = 0x1.7f7d1cp-20f;
    uint32_t bits;
    float scale;
    float shifted = x * 0x1.715476p0f + shift, n = shifted - shift;
    float r = x - n * high - n * low, p = 1.f / 5040;
    p = p * r + 1.f / 720;
    p = p * r + 1.f / 120;
    p = p * r + 1.f / 24;
    p = p * r + 1.f / 6;
    p = p * r + 1.f / 2;
    p = 1 + (r + r * r * p);
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 127) << 23;
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
}

// For functions whose loops gain from wider registers than the build's minimum. They must be
// static, because clang makes a global symbol of each clone. Where the compiler supports x86-64-v3,
// its AVX2 clone has fused multiply-adds, as AVX-512 has; an exponential consists mostly of those
// and takes three fifths of the time.
#if defined(HAVE_TARGET_CLONES) && !defined(__clang__) && __GNUC__ >= 12
#define DSC_FOR_EVERY_PROCESSOR                                                                    \
    __attribute__((target_clones("avx512f", "arch=x86-64-v3", "default")))
#elif defined(HAVE_TARGET_CLONES)
#define DSC_FOR_EVERY_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define DSC_FOR_EVERY_PROCESSOR
#endif

#endif

// SPDX-License-Identifier: Apache-2.0
// The loops of live/device/cpu_kernel.h with AVX-512, 16 floats at a time. This file defines the
// operations that the vector extensions of C lack; cpu_kernel_loops.h contains the loops.
#include "live/device/cpu_kernel.h"

#ifdef LIVE_X86

#include <immintrin.h>
#include <math.h>
#include <string.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma,f16c")))
#define OP TARGET __attribute__((always_inline)) static inline
#define LANES 16
#define TILE_ROWS 4
#define TILE_TOKENS 6

typedef float vec __attribute__((vector_size(4 * LANES)));

OP vec load_bf16(const uint16_t *x)
{
    __m512i bits = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)x));
    return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
}

OP vec load_bf16_odd(const uint16_t *x)
{
    return _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(0xaaaaaaaa, x));
}

OP vec load_f16(const uint16_t *x)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)x));
}

OP vec fma3(vec x, vec y, vec z)
{
    return _mm512_fmadd_ps(x, y, z);
}

// In place, because compilers otherwise copy the sum where registers are scarce.
OP void add_product(vec *sum, vec x, vec y)
{
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(*sum) : "v"(x), "v"(y));
}

OP void hold(vec *x)
{
    __asm__("" : "+v"(*x));
}

OP vec largest(vec x, vec y)
{
    return _mm512_max_ps(x, y);
}

// Four sums at once, each in the order of a single one: upper half to lower half.
OP void totals_of(float *out, vec a, vec b, vec c, vec d)
{
    vec ab = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
    vec cd = _mm512_add_ps(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xee));
    vec s = _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
    s = _mm512_add_ps(s, _mm512_permute_ps(s, 0x4e));
    s = _mm512_add_ps(s, _mm512_permute_ps(s, 0xb1));
    _mm_storeu_ps(out, _mm512_castps512_ps128(_mm512_maskz_compress_ps(0x1111, s)));
}

OP float largest_of(vec x)
{
    return _mm512_reduce_max_ps(x);
}

#include "live/device/cpu_kernel_loops.h"

static bool supported(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("fma");
}

const live_cpu_kernel live_cpu_kernel_avx512 = {"avx512", supported,    pack,     products,
                                                mix,      exponentials, multiply, silu,
                                                gelu,     widen,        total,    {3, 4}};

#else
typedef int live_no_avx512; // a file must not be empty
#endif

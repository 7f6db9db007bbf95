// SPDX-License-Identifier: Apache-2.0
// The loops of live/device/cpu_kernel.h with AVX2 and FMA, 8 floats at a time. This file defines
// the operations that the vector extensions of C lack; cpu_kernel_loops.h contains the loops.
#include "live/device/cpu_kernel.h"

#ifdef LIVE_X86

#include <immintrin.h>
#include <math.h>
#include <string.h>

#define TARGET __attribute__((target("avx2,fma,f16c")))
#define OP TARGET __attribute__((always_inline)) static inline
#define LANES 8
#define TILE_ROWS 4
#define TILE_TOKENS 3

typedef float vec __attribute__((vector_size(4 * LANES)));

OP vec load_bf16(const uint16_t *x)
{
    __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)x));
    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
}

// The mask stays in memory, because compilers otherwise keep it in a register that sums need.
OP vec load_bf16_odd(const uint16_t *x)
{
    static const int32_t upper[LANES] = {-65536, -65536, -65536, -65536,
                                         -65536, -65536, -65536, -65536};
    vec both;
    memcpy(&both, x, sizeof both);
    __asm__("vandps %1, %0, %0" : "+x"(both) : "m"(upper));
    return both;
}

OP vec load_f16(const uint16_t *x)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)x));
}

OP vec fma3(vec x, vec y, vec z)
{
    return _mm256_fmadd_ps(x, y, z);
}

// In place, because compilers otherwise copy the sum where registers are scarce.
OP void add_product(vec *sum, vec x, vec y)
{
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(*sum) : "x"(x), "x"(y));
}

OP void hold(vec *x)
{
    __asm__("" : "+x"(*x));
}

OP vec largest(vec x, vec y)
{
    return _mm256_max_ps(x, y);
}

// Four sums at once, each in the order of a single one: upper half to lower half.
OP void totals_of(float *out, vec a, vec b, vec c, vec d)
{
    vec ab = _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
    vec cd = _mm256_add_ps(_mm256_permute2f128_ps(c, d, 0x20), _mm256_permute2f128_ps(c, d, 0x31));
    vec s = _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
    s = _mm256_add_ps(s, _mm256_movehdup_ps(s)); // a, -, c, -, b, -, d, -
    _mm_storeu_ps(out, _mm_blend_ps(_mm256_castps256_ps128(s),
                                    _mm_moveldup_ps(_mm256_extractf128_ps(s, 1)), 10));
}

OP float largest_of(vec x)
{
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

#include "live/device/cpu_kernel_loops.h"

static bool supported(void)
{
    // No processor with AVX2 lacks F16C, and compilers accept its name only since recently.
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

const live_cpu_kernel live_cpu_kernel_avx2 = {"avx2", supported,    pack,     products,
                                              mix,    exponentials, multiply, silu,
                                              gelu,   widen,        total,    {1, 1}};

#else
typedef int live_no_avx2; // a file must not be empty
#endif

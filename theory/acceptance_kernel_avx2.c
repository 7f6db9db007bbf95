// SPDX-License-Identifier: Apache-2.0
// The loops over all tokens, 8 and 16 at a time; theory/acceptance_kernel.h.
#include "theory/acceptance_kernel.h"

#ifdef DSC_ROWS_X86

#include "theory/acceptance_kernel_x86.h"

#define AVX2 __attribute__((target("avx2")))

enum { LANES = 8, BLOCK = DSC_ROWS_BLOCK };

AVX2 static inline __m256i slots_of(__m256 ratio, __m256i first)
{
    const __m256i sink = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
    const __m256i top = _mm256_set1_epi32(DSC_SLOTS - DSC_SINKS);
    __m256i slot =
        _mm256_srai_epi32(_mm256_sub_epi32(_mm256_castps_si256(ratio), first), DSC_CELL_SHIFT);
    slot = _mm256_add_epi32(slot, _mm256_set1_epi32(DSC_SINKS));
    return _mm256_min_epi32(_mm256_max_epi32(slot, sink), _mm256_add_epi32(top, sink));
}

// The masses of 4 tokens, in order.
AVX2 static inline void store_pairs(__m128 draft, __m128 target, dsc_mass *out)
{
    __m256d d = _mm256_cvtps_pd(draft), t = _mm256_cvtps_pd(target);
    __m256d even = _mm256_unpacklo_pd(d, t), odd = _mm256_unpackhi_pd(d, t);
    _mm_store_pd(&out[0].draft, _mm256_castpd256_pd128(even));
    _mm_store_pd(&out[1].draft, _mm256_castpd256_pd128(odd));
    _mm_store_pd(&out[2].draft, _mm256_extractf128_pd(even, 1));
    _mm_store_pd(&out[3].draft, _mm256_extractf128_pd(odd, 1));
}

// Slots and masses of 8 tokens; whether any mass is not zero.
AVX2 static inline int prepare(const float *draft, const float *target, __m256i first,
                               __m256i *worst, uint16_t *slot, dsc_mass *mass)
{
    const __m256i sign = _mm256_set1_epi32(INT32_MIN);
    __m256i d = _mm256_loadu_si256((const __m256i *)draft);
    __m256i t = _mm256_loadu_si256((const __m256i *)target);
    *worst = _mm256_max_epu32(*worst, _mm256_max_epu32(d, t));
    d = _mm256_andnot_si256(sign, d);
    t = _mm256_andnot_si256(sign, t);
    __m256 df = _mm256_castsi256_ps(d), tf = _mm256_castsi256_ps(t);
    __m256i s = slots_of(_mm256_div_ps(tf, df), first);
    _mm_storeu_si128((__m128i *)slot,
                     _mm_packus_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1)));
    store_pairs(_mm256_castps256_ps128(df), _mm256_castps256_ps128(tf), mass);
    store_pairs(_mm256_extractf128_ps(df, 1), _mm256_extractf128_ps(tf, 1), mass + 4);
    __m256i any = _mm256_or_si256(d, t);
    return !_mm256_testz_si256(any, any);
}

AVX2 static uint32_t largest(__m256i x)
{
    uint32_t lane[LANES], most = 0;
    _mm256_storeu_si256((__m256i *)lane, x);
    for (int j = 0; j < LANES; j++)
        most = most > lane[j] ? most : lane[j];
    return most;
}

AVX2 static uint32_t histogram(const float *draft, const float *target, size_t n, int32_t first,
                               dsc_mass *sum, uint16_t *slot, const void *const *ahead)
{
    __m256i lowest = _mm256_set1_epi32(first), worst = _mm256_setzero_si256();
    _Alignas(64) dsc_mass mass[BLOCK];
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        int any = 0;
        for (size_t j = 0; j < BLOCK; j += LANES)
            any |= prepare(draft + i + j, target + i + j, lowest, &worst, slot + i + j, mass + j);
        if (any)
            dsc_rows_scatter(mass, slot + i, sum, i, ahead);
    }
    uint32_t rest = dsc_rows_histogram_c(draft, target, i, n, first, sum, slot);
    uint32_t most = largest(worst);
    return most > rest ? most : rest;
}

enum { FEW = 12 }; // comparisons that are cheaper than a table

AVX2 static size_t select_tokens(const uint16_t *slot, size_t n, const uint16_t *wanted,
                                 size_t count, uint32_t *found)
{
    size_t i = 0, out = 0;
    __m256i want[FEW];
    for (size_t w = 0; w < count && count <= FEW; w++)
        want[w] = _mm256_set1_epi16((short)wanted[w]);
    for (; i + 16 <= n && count <= FEW; i += 16) {
        __m256i s = _mm256_loadu_si256((const __m256i *)(slot + i));
        __m256i equal = _mm256_setzero_si256();
        for (size_t w = 0; w < count; w++)
            equal = _mm256_or_si256(equal, _mm256_cmpeq_epi16(s, want[w]));
        uint32_t hit = (uint32_t)_mm256_movemask_epi8(equal) & 0x55555555; // a bit per token
        for (; hit; hit &= hit - 1)
            found[out++] = (uint32_t)i + (uint32_t)__builtin_ctz(hit) / 2;
    }
    return out + dsc_rows_select_c(slot, i, n, wanted, count, found + out);
}

static int supported(void)
{
    return __builtin_cpu_supports("avx2");
}

const dsc_rows_kernel dsc_rows_kernel_avx2 = {"avx2", supported, histogram, select_tokens};

#else
typedef int dsc_rows_no_avx2; // a file must not be empty
#endif

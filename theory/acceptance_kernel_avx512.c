// SPDX-License-Identifier: Apache-2.0
// The loops over all tokens, 16 and 32 at a time; theory/acceptance_kernel.h.
#include "theory/acceptance_kernel.h"

#ifdef DSC_ROWS_X86

#include "theory/acceptance_kernel_x86.h"

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

enum { LANES = 16, BLOCK = DSC_ROWS_BLOCK };

AVX512 static inline __m512i slots_of(__m512 ratio, __m512i first, __m512i sink)
{
    const __m512i top = _mm512_set1_epi32(DSC_SLOTS - DSC_SINKS);
    __m512i slot =
        _mm512_srai_epi32(_mm512_sub_epi32(_mm512_castps_si512(ratio), first), DSC_CELL_SHIFT);
    slot = _mm512_add_epi32(slot, _mm512_set1_epi32(DSC_SINKS));
    return _mm512_min_epi32(_mm512_max_epi32(slot, sink), _mm512_add_epi32(top, sink));
}

// The masses of 8 tokens, in order.
AVX512 static inline void store_pairs(__m256 draft, __m256 target, dsc_mass *out)
{
    const __m512i low = _mm512_set_epi64(11, 3, 10, 2, 9, 1, 8, 0);
    const __m512i high = _mm512_set_epi64(15, 7, 14, 6, 13, 5, 12, 4);
    __m512d d = _mm512_cvtps_pd(draft), t = _mm512_cvtps_pd(target);
    _mm512_store_pd(&out[0].draft, _mm512_permutex2var_pd(d, low, t));
    _mm512_store_pd(&out[4].draft, _mm512_permutex2var_pd(d, high, t));
}

// Slots and masses of 16 tokens; whether any mass is not zero.
AVX512 static inline int prepare(const float *draft, const float *target, __m512i first,
                                 __m512i *worst, uint16_t *slot, dsc_mass *mass)
{
    const __m512i sink = _mm512_set_epi32(7, 6, 5, 4, 3, 2, 1, 0, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i sign = _mm512_set1_epi32(INT32_MIN);
    __m512i d = _mm512_loadu_si512(draft), t = _mm512_loadu_si512(target);
    *worst = _mm512_max_epu32(*worst, _mm512_max_epu32(d, t));
    d = _mm512_andnot_si512(sign, d);
    t = _mm512_andnot_si512(sign, t);
    __m512 df = _mm512_castsi512_ps(d), tf = _mm512_castsi512_ps(t);
    __m512i s = slots_of(_mm512_div_ps(tf, df), first, sink);
    _mm256_storeu_si256((__m256i *)slot, _mm512_cvtepi32_epi16(s));
    store_pairs(_mm512_castps512_ps256(df), _mm512_castps512_ps256(tf), mass);
    store_pairs(_mm512_extractf32x8_ps(df, 1), _mm512_extractf32x8_ps(tf, 1), mass + 8);
    return _mm512_test_epi32_mask(_mm512_or_si512(d, t), _mm512_set1_epi32(-1));
}

AVX512 static uint32_t histogram(const float *draft, const float *target, size_t n, int32_t first,
                                 dsc_mass *sum, uint16_t *slot, const void *const *ahead)
{
    __m512i lowest = _mm512_set1_epi32(first), worst = _mm512_setzero_si512();
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
    uint32_t most = _mm512_reduce_max_epu32(worst);
    return most > rest ? most : rest;
}

// More slots than are worth comparing one by one: a bit for all slots that are equal modulo 1024,
// in 64 words of 16 bits that two registers hold; what passes is looked up.
AVX512 static size_t select_many(const uint16_t *slot, size_t n, const uint16_t *wanted,
                                 size_t count, uint32_t *found)
{
    _Alignas(64) uint16_t sieve[64] = {0};
    unsigned char is_wanted[DSC_SLOTS] = {0};
    size_t i = 0, out = 0;
    for (size_t w = 0; w < count; w++) {
        sieve[wanted[w] / 16 % 64] |= (uint16_t)(1 << wanted[w] % 16);
        is_wanted[wanted[w]] = 1;
    }
    const __m512i words[2] = {_mm512_load_si512(sieve), _mm512_load_si512(sieve + 32)};
    const __m512i one = _mm512_set1_epi16(1), low = _mm512_set1_epi16(15);
    for (; i + 32 <= n; i += 32) {
        __m512i s = _mm512_loadu_si512(slot + i);
        __m512i word = _mm512_permutex2var_epi16(words[0], _mm512_srli_epi16(s, 4), words[1]);
        __m512i bit = _mm512_sllv_epi16(one, _mm512_and_si512(s, low));
        uint32_t hit = _mm512_test_epi16_mask(word, bit);
        for (; hit; hit &= hit - 1) {
            size_t x = i + (size_t)__builtin_ctz(hit);
            found[out] = (uint32_t)x;
            out += is_wanted[slot[x]];
        }
    }
    return out + dsc_rows_select_c(slot, i, n, wanted, count, found + out);
}

enum { FEW = 16 }; // comparisons that are cheaper than a table

AVX512 static size_t select_tokens(const uint16_t *slot, size_t n, const uint16_t *wanted,
                                   size_t count, uint32_t *found)
{
    if (count > FEW)
        return select_many(slot, n, wanted, count, found);
    size_t i = 0, out = 0;
    __m512i want[FEW];
    for (size_t w = 0; w < count; w++)
        want[w] = _mm512_set1_epi16((short)wanted[w]);
    for (; i + 32 <= n; i += 32) {
        __m512i s = _mm512_loadu_si512(slot + i);
        uint32_t hit = 0;
        for (size_t w = 0; w < count; w++)
            hit |= _mm512_cmpeq_epi16_mask(s, want[w]);
        for (; hit; hit &= hit - 1)
            found[out++] = (uint32_t)i + (uint32_t)__builtin_ctz(hit);
    }
    return out + dsc_rows_select_c(slot, i, n, wanted, count, found + out);
}

static int supported(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

const dsc_rows_kernel dsc_rows_kernel_avx512 = {"avx512", supported, histogram, select_tokens};

#else
typedef int dsc_rows_no_avx512; // a file must not be empty
#endif

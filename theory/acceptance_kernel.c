// SPDX-License-Identifier: Apache-2.0
// The kernels that fill the histogram of ratios (theory/acceptance_kernel.h), for AVX2 and for
// AVX-512, and the choice among them.
//
// Tokens go in blocks: slots and masses are computed in vectors into the first-level cache, then
// added one by one. Between the two the memory would be idle; what is read later is fetched during
// the additions. The loops over a block are plain C that both instruction sets are compiled from;
// `most` takes one operand per token, because clang vectorizes no other reduction.
#include "theory/acceptance_kernel.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>
#include <string.h>

#define AVX2 __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define INLINE static inline __attribute__((always_inline))

enum { BLOCK = 128, LINE = 16 }; // tokens

// Slots and masses of a block of tokens; raises *worst to the largest bit pattern. Returns whether
// any mass is not zero.
INLINE bool prepare(const float *draft, const float *target, int32_t first, uint16_t *slot,
                    dsc_mass *mass, uint32_t *worst)
{
    const int32_t top = DSC_SLOTS - DSC_SINKS;
    uint32_t any = 0, most = *worst;
#pragma omp simd reduction(max : most) reduction(| : any)
    for (int j = 0; j < BLOCK; j++) {
        const int32_t sink = j % DSC_SINKS;
        uint32_t d, t;
        int32_t bits;
        float draft_mass, target_mass; // an array of both would not be vectorized
        memcpy(&d, draft + j, sizeof d);
        memcpy(&t, target + j, sizeof t);
        const uint32_t larger = d > t ? d : t;
        most = most > larger ? most : larger;
        d &= INT32_MAX; // the sign
        t &= INT32_MAX;
        any |= d | t;
        memcpy(&draft_mass, &d, sizeof d);
        memcpy(&target_mass, &t, sizeof t);
        const float ratio = target_mass / draft_mass;
        memcpy(&bits, &ratio, sizeof bits);
        int32_t s = ((bits - first) >> DSC_CELL_SHIFT) + DSC_SINKS;
        s = s > sink ? s : sink;
        slot[j] = (uint16_t)(s < top + sink ? s : top + sink);
    }
#pragma omp simd
    for (int j = 0; j < BLOCK; j++) {
        mass[j].draft = (double)__builtin_fabsf(draft[j]);
        mass[j].target = (double)__builtin_fabsf(target[j]);
    }
    *worst = most;
    return any;
}

// sum[slot[j]] += mass[j] for a block, in order. ahead[] may lie past the end of the rows: a
// prefetch never faults.
INLINE void scatter(const dsc_mass *mass, const uint16_t *slot, dsc_mass *sum,
                    const char *const ahead[2])
{
    for (size_t line = 0; line < BLOCK; line += LINE) {
        _mm_prefetch(ahead[0] + line * sizeof(float), _MM_HINT_T0);
        _mm_prefetch(ahead[1] + line * sizeof(float), _MM_HINT_T0);
#pragma GCC unroll 16
        for (size_t j = line; j < line + LINE; j++) {
            double *to = &sum[slot[j]].draft;
            _mm_store_pd(to, _mm_add_pd(_mm_load_pd(to), _mm_load_pd(&mass[j].draft)));
        }
    }
}

INLINE uint32_t histogram(const float *draft, const float *target, size_t n, int32_t first,
                          dsc_mass *sum, uint16_t *slot, const void *const *ahead)
{
    _Alignas(64) dsc_mass mass[BLOCK];
    uint32_t worst = 0;
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        const uintptr_t on = i * sizeof(float);
        const char *const later[2] = {(const char *)((uintptr_t)ahead[0] + on),
                                      (const char *)((uintptr_t)ahead[1] + on)};
        if (prepare(draft + i, target + i, first, slot + i, mass, &worst))
            scatter(mass, slot + i, sum, later);
    }
    const uint32_t rest = dsc_rows_histogram_c(draft, target, i, n, first, sum, slot);
    return worst > rest ? worst : rest;
}

AVX2 static uint32_t histogram_avx2(const float *draft, const float *target, size_t n,
                                    int32_t first, dsc_mass *sum, uint16_t *slot,
                                    const void *const *ahead)
{
    return histogram(draft, target, n, first, sum, slot, ahead);
}

AVX512 static uint32_t histogram_avx512(const float *draft, const float *target, size_t n,
                                        int32_t first, dsc_mass *sum, uint16_t *slot,
                                        const void *const *ahead)
{
    return histogram(draft, target, n, first, sum, slot, ahead);
}

// --- the tokens of some slots --------------------------------------------------------------------

enum { FEW_AVX2 = 12, FEW_AVX512 = 16 }; // comparisons that are cheaper than a table

AVX2 static size_t select_avx2(const uint16_t *slot, size_t n, const uint16_t *wanted, size_t count,
                               uint32_t *found)
{
    size_t i = 0, out = 0;
    __m256i want[FEW_AVX2];
    for (size_t w = 0; w < count && count <= FEW_AVX2; w++)
        want[w] = _mm256_set1_epi16((short)wanted[w]);
    for (; i + 16 <= n && count <= FEW_AVX2; i += 16) {
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

AVX512 static size_t select_avx512(const uint16_t *slot, size_t n, const uint16_t *wanted,
                                   size_t count, uint32_t *found)
{
    if (count > FEW_AVX512)
        return select_many(slot, n, wanted, count, found);
    size_t i = 0, out = 0;
    __m512i want[FEW_AVX512];
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

static int has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}

static int has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

static const dsc_rows_kernel avx2 = {"avx2", has_avx2, histogram_avx2, select_avx2};
static const dsc_rows_kernel avx512 = {"avx512", has_avx512, histogram_avx512, select_avx512};

#endif

const dsc_rows_kernel *const dsc_rows_kernels[] = {
#if defined(__x86_64__) && defined(__GNUC__)
    &avx512, &avx2,
#endif
    &dsc_rows_kernel_c, NULL};

const dsc_rows_kernel *dsc_rows_kernel_best(void)
{
    const dsc_rows_kernel *const *kernel = dsc_rows_kernels;
    while (!(*kernel)->supported())
        kernel++;
    return *kernel;
}

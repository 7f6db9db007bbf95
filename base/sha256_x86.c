// SPDX-License-Identifier: Apache-2.0
// SHA-256 with the SHA extensions, and with AVX2 and BMI2; base/sha256_kernel.h.
#include "base/sha256_kernel.h"

#ifdef DSC_SHA256_X86

#include <cpuid.h>
#include <immintrin.h>
#include <string.h>

#define SHA __attribute__((target("sha,sse4.1")))
#define AVX2 __attribute__((target("avx2,bmi,bmi2")))

// --- SHA extensions ----------------------------------------------------------------------------
// An instruction does two rounds on the state as {A, B, E, F} and {C, D, G, H}, the first named the
// highest. Intel, "New Instructions Supporting the Secure Hash Algorithm", 2013.

static bool has_sha(void) // leaf 7, EBX bit 29: not every compiler has a name for it
{
    unsigned a, b = 0, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b >> 29 & 1 &&
           __builtin_cpu_supports("sse4.1");
}

// w[t .. t + 3] of the schedule from the 16 words before, four to a register.
SHA static inline __m128i extend(__m128i w16, __m128i w12, __m128i w8, __m128i w4)
{
    __m128i w = _mm_sha256msg1_epu32(w16, w12);
    w = _mm_add_epi32(w, _mm_alignr_epi8(w4, w8, 4)); // w[t - 7] and so on
    return _mm_sha256msg2_epu32(w, w4);
}

SHA static void compress_sha(uint32_t state[8], const uint8_t *p, size_t blocks)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    const __m128i *constants = (const __m128i *)dsc_sha256_constants;
    __m128i dcba = _mm_loadu_si128((const __m128i *)state);
    __m128i hgfe = _mm_loadu_si128((const __m128i *)(state + 4));
    __m128i abef = _mm_shuffle_epi32(_mm_unpacklo_epi64(hgfe, dcba), 0xb1);
    __m128i cdgh = _mm_shuffle_epi32(_mm_unpackhi_epi64(hgfe, dcba), 0xb1);
    for (; blocks; blocks--, p += 64) {
        const __m128i abef_before = abef, cdgh_before = cdgh;
        __m128i w[4];
        for (int i = 0; i < 4; i++)
            w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)p + i), swap);
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) { // four rounds
            __m128i key = _mm_add_epi32(w[i % 4], _mm_loadu_si128(constants + i));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, key);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(key, 0x0e));
            w[i % 4] = extend(w[i % 4], w[(i + 1) % 4], w[(i + 2) % 4], w[(i + 3) % 4]);
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    __m128i feba = _mm_shuffle_epi32(abef, 0x1b), hgdc = _mm_shuffle_epi32(cdgh, 0x1b);
    _mm_storeu_si128((__m128i *)state, _mm_unpacklo_epi64(feba, hgdc));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_unpackhi_epi64(feba, hgdc));
}

const dsc_sha256_kernel dsc_sha256_kernel_sha = {"sha", has_sha, compress_sha};

// --- AVX2 and BMI2 -----------------------------------------------------------------------------
// The message schedule does not depend on the state: it is made for eight blocks at once, one to a
// lane. The rounds are scalar, with rotations that need no copy.

enum { LANES = 8 };

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2");
}

AVX2 static inline __m256i rotate8(__m256i x, int n)
{
    return _mm256_or_si256(_mm256_srli_epi32(x, n), _mm256_slli_epi32(x, 32 - n));
}

AVX2 static inline __m256i sigma8(__m256i x, int n, int m, int shift)
{
    return _mm256_xor_si256(_mm256_xor_si256(rotate8(x, n), rotate8(x, m)),
                            _mm256_srli_epi32(x, shift));
}

static inline int word_at(const uint8_t *p)
{
    int word;
    memcpy(&word, p, sizeof word);
    return word;
}

// The words at p + at[lane]. An instruction that gathers them would be slower: microcode makes it
// so, where processors must not guess what it loads.
AVX2 static inline __m256i words_at(const uint8_t *p, const size_t at[LANES])
{
    return _mm256_set_epi32(word_at(p + at[7]), word_at(p + at[6]), word_at(p + at[5]),
                            word_at(p + at[4]), word_at(p + at[3]), word_at(p + at[2]),
                            word_at(p + at[1]), word_at(p + at[0]));
}

// key[t] = w[t] + K[t] of the first LANES blocks at p, or of as many as there are.
AVX2 static inline void schedule(__m256i key[64], const uint8_t *p, size_t blocks)
{
    const __m256i swap = _mm256_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203,
                                           0x0c0d0e0f08090a0b, 0x0405060700010203);
    size_t at[LANES];
    __m256i w[64];
    for (size_t l = 0; l < LANES; l++)
        at[l] = 64 * (l < blocks ? l : blocks - 1);
    for (int t = 0; t < 16; t++)
        w[t] = _mm256_shuffle_epi8(words_at(p + 4 * t, at), swap);
    for (int t = 16; t < 64; t++)
        w[t] = _mm256_add_epi32(_mm256_add_epi32(w[t - 16], sigma8(w[t - 15], 7, 18, 3)),
                                _mm256_add_epi32(w[t - 7], sigma8(w[t - 2], 17, 19, 10)));
    for (int t = 0; t < 64; t++)
        key[t] = _mm256_add_epi32(w[t], _mm256_set1_epi32((int)dsc_sha256_constants[t]));
}

// Instead of moving all eight words, the next step renames them. a ^ b of one step is b ^ c of the
// next, and the majority of a, b, c is b ^ ((a ^ b) & (b ^ c)).
#define ROTATE(x, n) ((x) >> (n) | (x) << (32 - (n)))
#define STEP(a, b, c, d, e, f, g, h, ab, bc, key)                                                  \
    do {                                                                                           \
        h += (key) + (ROTATE(e, 6) ^ ROTATE(e, 11) ^ ROTATE(e, 25)) + ((e & f) ^ (~e & g));        \
        d += h;                                                                                    \
        ab = a ^ b;                                                                                \
        h += (ROTATE(a, 2) ^ ROTATE(a, 13) ^ ROTATE(a, 22)) + (b ^ (ab & bc));                     \
    } while (0)

// The rounds of one block; keys are LANES words apart.
AVX2 static inline void rounds(uint32_t state[8], const uint32_t *key)
{
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7], ab, bc = b ^ c;
    for (int t = 0; t < 64; t += 8, key += 8 * LANES) {
        STEP(a, b, c, d, e, f, g, h, ab, bc, key[0]);
        STEP(h, a, b, c, d, e, f, g, bc, ab, key[LANES]);
        STEP(g, h, a, b, c, d, e, f, ab, bc, key[2 * LANES]);
        STEP(f, g, h, a, b, c, d, e, bc, ab, key[3 * LANES]);
        STEP(e, f, g, h, a, b, c, d, ab, bc, key[4 * LANES]);
        STEP(d, e, f, g, h, a, b, c, bc, ab, key[5 * LANES]);
        STEP(c, d, e, f, g, h, a, b, ab, bc, key[6 * LANES]);
        STEP(b, c, d, e, f, g, h, a, bc, ab, key[7 * LANES]);
    }
    const uint32_t add[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; i++)
        state[i] += add[i];
}

AVX2 static void compress_avx2(uint32_t state[8], const uint8_t *p, size_t blocks)
{
    union {
        __m256i at[64];
        uint32_t word[64 * LANES];
    } key;
    for (size_t n; blocks; blocks -= n, p += 64 * n) {
        n = blocks < LANES ? blocks : LANES;
        schedule(key.at, p, n);
        for (size_t l = 0; l < n; l++)
            rounds(state, key.word + l);
    }
}

const dsc_sha256_kernel dsc_sha256_kernel_avx2 = {"avx2", has_avx2, compress_avx2};

#endif

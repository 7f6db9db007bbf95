// SPDX-License-Identifier: Apache-2.0
// SHA-256 of eight messages at once, one per lane of a vector; base/sha256_kernel.h. One message is
// a chain of dependent steps; eight keep the processor busy. The same source is compiled for AVX2
// and for AVX-512, which rotates, and combines three operands, in one instruction.
#include "base/sha256_kernel.h"

#ifdef DSC_SHA256_X86

#include <immintrin.h>
#include <string.h>

enum { LANES = DSC_SHA256_LANES };

typedef uint32_t lanes __attribute__((vector_size(4 * LANES)));

#define AVX2 __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx2,avx512f,avx512vl")))
#define INLINE static inline __attribute__((always_inline))

#define ROTATE(x, n) ((x) >> (n) | (x) << (32 - (n)))

// Transposes eight by eight words: pairs, fours, halves.
AVX2 INLINE void transpose(__m256i x[LANES])
{
    __m256i pair[LANES], four[LANES];
    for (int i = 0; i < LANES; i += 2) {
        pair[i] = _mm256_unpacklo_epi32(x[i], x[i + 1]);
        pair[i + 1] = _mm256_unpackhi_epi32(x[i], x[i + 1]);
    }
    for (int i = 0; i < LANES; i += 4)
        for (int k = 0; k < 2; k++) {
            four[i + 2 * k] = _mm256_unpacklo_epi64(pair[i + k], pair[i + k + 2]);
            four[i + 2 * k + 1] = _mm256_unpackhi_epi64(pair[i + k], pair[i + k + 2]);
        }
    for (int i = 0; i < LANES / 2; i++) {
        x[i] = _mm256_permute2x128_si256(four[i], four[i + 4], 0x20);
        x[i + 4] = _mm256_permute2x128_si256(four[i], four[i + 4], 0x31);
    }
}

// Loads word t of one block of each message into w[t].
AVX2 INLINE void load(lanes w[16], const uint8_t *const bytes[LANES], size_t block)
{
    const __m256i swap = _mm256_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203,
                                           0x0c0d0e0f08090a0b, 0x0405060700010203);
    for (int half = 0; half < 2; half++) {
        __m256i x[LANES];
        for (int l = 0; l < LANES; l++) {
            const uint8_t *p = bytes[l] + 64 * block + 32 * half;
            x[l] = _mm256_shuffle_epi8(_mm256_loadu_si256((const __m256i *)(const void *)p), swap);
        }
        transpose(x);
        for (int t = 0; t < LANES; t++)
            w[8 * half + t] = (lanes)x[t];
    }
}

// FIPS 180-4, section 6.2.2: 16 rounds, on a state whose words are renamed instead of moved. The
// schedule lives in a ring of 16 words.
AVX2 INLINE void rounds(lanes s[8], lanes w[16], const uint32_t constants[16], bool extend)
{
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) {
        if (extend) {
            lanes x = w[(i + 1) % 16], y = w[(i + 14) % 16];
            w[i] += (ROTATE(x, 7) ^ ROTATE(x, 18) ^ x >> 3) + w[(i + 9) % 16] +
                    (ROTATE(y, 17) ^ ROTATE(y, 19) ^ y >> 10);
        }
        lanes a = s[-i & 7], b = s[(1 - i) & 7], c = s[(2 - i) & 7];
        lanes e = s[(4 - i) & 7], f = s[(5 - i) & 7], g = s[(6 - i) & 7];
        lanes t1 = s[(7 - i) & 7] + w[i] + constants[i] + (((f ^ g) & e) ^ g) +
                   (ROTATE(e, 6) ^ ROTATE(e, 11) ^ ROTATE(e, 25));
        s[(3 - i) & 7] += t1;
        s[(7 - i) & 7] =
            t1 + (ROTATE(a, 2) ^ ROTATE(a, 13) ^ ROTATE(a, 22)) + (((a | b) & c) | (a & b));
    }
}

AVX2 INLINE void compress(uint32_t state[LANES][8], const uint8_t *const bytes[LANES],
                          size_t blocks)
{
    __m256i x[8];
    lanes s[8], w[16];
    for (int l = 0; l < LANES; l++)
        x[l] = _mm256_loadu_si256((const __m256i *)(const void *)state[l]);
    transpose(x);
    for (int i = 0; i < 8; i++)
        s[i] = (lanes)x[i];
    for (size_t b = 0; b < blocks; b++) {
        lanes now[8];
        memcpy(now, s, sizeof s);
        load(w, bytes, b);
        rounds(now, w, dsc_sha256_constants, false);
        for (int t = 16; t < 64; t += 16)
            rounds(now, w, dsc_sha256_constants + t, true);
        for (int i = 0; i < 8; i++)
            s[i] += now[i];
    }
    for (int i = 0; i < 8; i++)
        x[i] = (__m256i)s[i];
    transpose(x);
    for (int l = 0; l < LANES; l++)
        _mm256_storeu_si256((__m256i *)(void *)state[l], x[l]);
}

AVX2 static void compress_avx2(uint32_t state[LANES][8], const uint8_t *const bytes[LANES],
                               size_t blocks)
{
    compress(state, bytes, blocks);
}

AVX512 static void compress_avx512(uint32_t state[LANES][8], const uint8_t *const bytes[LANES],
                                   size_t blocks)
{
    compress(state, bytes, blocks);
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
}

const dsc_sha256_lanes dsc_sha256_lanes_avx2 = {"avx2", has_avx2, compress_avx2};
const dsc_sha256_lanes dsc_sha256_lanes_avx512 = {"avx512", has_avx512, compress_avx512};

#endif

// SPDX-License-Identifier: Apache-2.0
// SHA-256 of one message with the SHA extensions of x86-64; base/sha256_kernel.h.
#include "base/sha256_kernel.h"

#ifdef DSC_SHA256_X86

#include <cpuid.h>
#include <immintrin.h>

#define SHA __attribute__((target("sha,sse4.1")))

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

#endif

// SPDX-License-Identifier: Apache-2.0
// mma.m16n8k16 of the emulated device: every lane collects the other lanes' parts of A and B and
// computes its four sums, in ascending order of k.
#ifndef DSC_TESTS_MMA_H
#define DSC_TESTS_MMA_H

#include "cuda_bf16.h"
#include "cuda_fp16.h"

namespace emulated
{
static inline float low_half(uint32_t x, __nv_bfloat16)
{
    return __bfloat162float({(unsigned short)(x & 0xffff)});
}
static inline float low_half(uint32_t x, __half)
{
    return __half2float({(unsigned short)(x & 0xffff)});
}

// Lane 4 g + t: a0 has columns 2 t and 2 t + 1 of row g of A, a1 of row g + 8, a2 and a3 the same
// eight columns on; b0 and b1 the same columns of row g of B; c[0], c[1] row g, columns 2 t and 2 t
// + 1 of the sums, c[2], c[3] row g + 8.
template <typename T>
static inline void multiply(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                            uint32_t b0, uint32_t b1, T type)
{
    uint64_t rows[2][32], columns[32]; // row g and row g + 8 of A, B
    offers(rows[0], a0 | (uint64_t)a2 << 32);
    offers(rows[1], a1 | (uint64_t)a3 << 32);
    offers(columns, b0 | (uint64_t)b1 << 32);
    const int g = current % 32 / 4, t = current % 4;
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 16; k++) {
            const int lane = k % 8 / 2, shift = k / 8 * 32 + k % 2 * 16;
            const float x = low_half((uint32_t)(rows[i / 2][4 * g + lane] >> shift), type);
            const float y =
                low_half((uint32_t)(columns[4 * (2 * t + i % 2) + lane] >> shift), type);
            c[i] = std::fma(x, y, c[i]);
        }
}
} // namespace emulated

#endif

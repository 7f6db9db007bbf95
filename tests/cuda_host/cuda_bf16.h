// SPDX-License-Identifier: Apache-2.0
#ifndef DSC_TESTS_CUDA_BF16_H
#define DSC_TESTS_CUDA_BF16_H

#include "cuda_runtime.h"

struct __nv_bfloat16 {
    unsigned short bits;
};

static inline float __bfloat162float(__nv_bfloat16 x)
{
    return __uint_as_float((unsigned)x.bits << 16);
}

static inline __nv_bfloat16 __float2bfloat16_rn(float x)
{
    unsigned u;
    memcpy(&u, &x, sizeof u);
    if (x != x)
        return {0x7fff};
    return {(unsigned short)((u + 0x7fff + (u >> 16 & 1)) >> 16)};
}

#endif

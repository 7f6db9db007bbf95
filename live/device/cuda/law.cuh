// SPDX-License-Identifier: Apache-2.0
// Rows of logits as laws: what summarize.cu and cut.cu share.
#ifndef DSC_LIVE_CUDA_LAW_CUH
#define DSC_LIVE_CUDA_LAW_CUH

#include "live/device/cuda/cuda.cuh"

extern "C" {
#include "theory/rows/softmax.h"
}

enum {
    LAW_BLOCK = DSC_SOFTMAX_BLOCK,
    LAW_LANES = 16, // threads of a block of tokens, half a warp
    LAW_EACH = LAW_BLOCK / LAW_LANES,
    LAW_THREADS = 256,
    LAW_BLOCKS = LAW_THREADS / LAW_LANES, // of tokens, of a block of threads
    LAW_CHUNK = LAW_BLOCKS * LAW_BLOCK,   // its tokens
};

typedef struct law_row {
    const float *x; // [vocab]
    float most;
    double by; // 1 / temperature
} law_row;

// false: the row is left out.
static __device__ __forceinline__ bool law_of(law_row *r, int64_t row, const int32_t *token,
                                              const float *logits, int64_t vocab,
                                              const cuda_law *law)
{
    const int32_t best = token[row];
    r->x = logits + row * vocab;
    r->most = best < 0 ? NAN : r->x[best];
    r->by = law->by;
    return fabsf(r->most) < INFINITY;
}

static __device__ __forceinline__ double law_weight(const law_row *r, float x)
{
    const double depth = ((double)x - (double)r->most) * r->by;
    return depth > -DSC_SOFTMAX_LEAST ? exp(depth) : 0.0;
}

// A thread's tokens of block b: number i of it is token i LAW_LANES + lane there, so that a warp
// reads two stretches of 64 bytes at once. Beyond the vocabulary: `other`.
static __device__ __forceinline__ void law_load(float (&v)[LAW_EACH], const float *x, int64_t b,
                                                int64_t vocab, float other)
{
    const int64_t first = b * LAW_BLOCK + threadIdx.x % LAW_LANES;
#pragma unroll
    for (int i = 0; i < LAW_EACH; i++)
        v[i] = first + i * LAW_LANES < vocab ? x[first + i * LAW_LANES] : other;
}

// The largest of a block of tokens, to all of its threads.
static __device__ __forceinline__ float law_peak(const float (&v)[LAW_EACH])
{
    float most = v[0];
#pragma unroll
    for (int i = 1; i < LAW_EACH; i++)
        most = fmaxf(most, v[i]);
#pragma unroll
    for (int step = LAW_LANES / 2; step > 0; step /= 2)
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
    return most;
}

#endif

// SPDX-License-Identifier: Apache-2.0
// Rows of logits as distributions, for summarize.cu and cut.cu.
#ifndef DSC_LIVE_CUDA_DIST_CUH
#define DSC_LIVE_CUDA_DIST_CUH

#include "live/device/cuda/cuda.cuh"

extern "C" {
#include "theory/rows/softmax.h"
}

enum {
    DIST_BLOCK = DSC_SOFTMAX_BLOCK,
    DIST_LANES = 16, // threads of a block of tokens, half a warp
    DIST_EACH = DIST_BLOCK / DIST_LANES,
    DIST_THREADS = 256,
    DIST_BLOCKS = DIST_THREADS / DIST_LANES, // blocks of tokens per block of threads
    DIST_CHUNK = DIST_BLOCKS * DIST_BLOCK,   // tokens per block of threads
};

typedef struct dist_row {
    const float *x; // [vocab]
    float most;
    double by; // 1 / temperature
} dist_row;

// Returns false for a row that is left out.
static __device__ __forceinline__ bool dist_of(dist_row *r, int64_t row, const int32_t *token,
                                               const float *logits, int64_t vocab,
                                               const cuda_dist *dist)
{
    const int32_t best = token[row];
    r->x = logits + row * vocab;
    r->most = best < 0 ? NAN : r->x[best];
    r->by = dist->by;
    return fabsf(r->most) < INFINITY;
}

static __device__ __forceinline__ double dist_weight(const dist_row *r, float x)
{
    const double depth = ((double)x - (double)r->most) * r->by;
    return depth > -DSC_SOFTMAX_LEAST ? exp(depth) : 0.0;
}

// Loads a thread's tokens of block b: number i is token i DIST_LANES + lane of the block, so a warp
// reads two stretches of 64 bytes at once. Tokens beyond the vocabulary get `other`.
static __device__ __forceinline__ void dist_load(float (&v)[DIST_EACH], const float *x, int64_t b,
                                                 int64_t vocab, float other)
{
    const int64_t first = b * DIST_BLOCK + threadIdx.x % DIST_LANES;
#pragma unroll
    for (int i = 0; i < DIST_EACH; i++)
        v[i] = first + i * DIST_LANES < vocab ? x[first + i * DIST_LANES] : other;
}

// Maximum over a block of tokens, in all of its threads.
static __device__ __forceinline__ float dist_max(const float (&v)[DIST_EACH])
{
    float most = v[0];
#pragma unroll
    for (int i = 1; i < DIST_EACH; i++)
        most = fmaxf(most, v[i]);
#pragma unroll
    for (int step = DIST_LANES / 2; step > 0; step /= 2)
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
    return most;
}

#endif

// SPDX-License-Identifier: Apache-2.0
// Finds the most probable token of each row of logits and its lead over the second.
#include "live/device/cuda/cuda.cuh"

#include <limits.h>

// The largest number, its first index, and the largest of all others.
typedef struct leader {
    float best, second;
    int32_t index;
    int32_t nan; // one of the numbers is NaN
} leader;

static __device__ __forceinline__ leader join(leader a, leader b)
{
    const bool swap = b.best > a.best || (b.best == a.best && b.index < a.index);
    leader r = swap ? b : a;
    r.second = fmaxf(r.second, swap ? a.best : b.best);
    r.nan = a.nan | b.nan;
    return r;
}

static __device__ __forceinline__ leader join_warp(leader a)
{
#pragma unroll
    for (int step = CUDA_LANES / 2; step > 0; step /= 2) {
        leader b;
        b.best = __shfl_xor_sync(0xffffffffu, a.best, step);
        b.second = __shfl_xor_sync(0xffffffffu, a.second, step);
        b.index = __shfl_xor_sync(0xffffffffu, a.index, step);
        b.nan = __shfl_xor_sync(0xffffffffu, a.nan, step);
        a = join(a, b);
    }
    return a;
}

// A block per row of logits, which it reads once: 4 vocab bytes. One multiprocessor reads a row of
// 128 k in some microseconds; the pass that computed it read the output matrix, 8 k times as much.
static __global__ void select_kernel(int32_t *token, float *margin, const float *logits,
                                     int64_t vocab)
{
    cuda_wait_previous();
    __shared__ leader part[CUDA_LANES];
    const float *x = logits + blockIdx.x * vocab;
    const int lane = threadIdx.x % CUDA_LANES, warp = threadIdx.x / CUDA_LANES;
    const int warps = blockDim.x / CUDA_LANES;
    const leader none = {-INFINITY, -INFINITY, INT_MAX, 0};
    leader a = none;
#pragma unroll 8
    for (int64_t i = threadIdx.x; i < vocab; i += blockDim.x) {
        const float v = x[i];
        a.nan |= isnan(v) ? 1 : 0;
        if (v > a.best || a.index == INT_MAX) {
            a.second = a.best;
            a.best = v;
            a.index = (int32_t)i;
        } else if (v > a.second) {
            a.second = v;
        }
    }
    a = join_warp(a);
    if (lane == 0)
        part[warp] = a;
    __syncthreads();
    if (warp != 0)
        return;
    a = join_warp(lane < warps ? part[lane] : none);
    if (lane == 0) {
        token[blockIdx.x] = a.nan ? -1 : a.index;
        margin[blockIdx.x] = a.nan                            ? NAN
                             : a.best > a.second && vocab > 1 ? a.best - a.second
                                                              : 0.0f;
    }
}

int cuda_select(live_backend *b, int32_t *token, float *margin, const float *logits, int64_t rows,
                int64_t vocab, dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    const int failed = cuda_use(c, err);
    if (failed || rows == 0)
        return failed;
    return cuda_launch(c, "select", select_kernel, dim3((unsigned)rows), cuda_threads(vocab, 8),
                       err, token, margin, logits, vocab);
}

// SPDX-License-Identifier: Apache-2.0
// Random weights, and the moves that compact the cache to the accepted tokens.
#include "live/device/cuda/cuda.cuh"

extern "C" {
#include "base/rng.h"
}

#include <Random123/philox.h>

// A thread per Philox counter, four numbers each, with the bits of the CPU backend: number i is
// word i % 4 of counter (stream, i / 4, DSC_RNG_WEIGHTS) under the key `seed`. Its upper 24 bits
// count steps of 2^-23 from -1; the result is multiplied by the limit, rounded to nearest, and
// converted to the dtype.
template <typename T>
static __global__ void fill_kernel(T *out, int64_t count, uint64_t seed, uint64_t stream,
                                   float limit)
{
    cuda_wait_previous();
    const int64_t block = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (block * 4 >= count)
        return;
    const philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
    const philox4x32_ctr_t counter = {
        {(uint32_t)stream, (uint32_t)(stream >> 32), (uint32_t)block, DSC_RNG_WEIGHTS}};
    const philox4x32_ctr_t word = philox4x32(counter, key);
    for (int e = 0; e < 4 && block * 4 + e < count; e++) {
        const int32_t step = (int32_t)(word.v[e] >> 8) - (1 << 23);
        out[block * 4 + e] = cuda_round<T>(__fmul_rn((float)step * 0x1p-23f, limit));
    }
}

int cuda_fill(live_backend *b, void *p, dsc_dtype dtype, int64_t count, uint64_t seed,
              uint64_t stream, double limit, dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    const int failed = cuda_use_idle(c, err);
    if (failed || count == 0)
        return failed;
    if (count > (int64_t)UINT32_MAX * 4)
        return dsc_fail(err, DSC_EUSAGE, "fill: %lld random numbers exceed the limit of 2^34",
                        (long long)count);
    const dim3 grid((unsigned)cuda_blocks(cuda_blocks(count, 4), 256));
    switch (dtype) {
    case DSC_F32:
        return cuda_launch(c, "fill", fill_kernel<float>, grid, 256, err, (float *)p, count, seed,
                           stream, (float)limit);
    case DSC_F16:
        return cuda_launch(c, "fill", fill_kernel<__half>, grid, 256, err, (__half *)p, count, seed,
                           stream, (float)limit);
    case DSC_BF16:
        return cuda_launch(c, "fill", fill_kernel<__nv_bfloat16>, grid, 256, err,
                           (__nv_bfloat16 *)p, count, seed, stream, (float)limit);
    default:
        return dsc_fail(err, DSC_EUSAGE, "fill: %s is not F32, BF16 or F16", dsc_dtype_name(dtype));
    }
}

// Limits of a kernel's parameters (4 KB), so that nothing is uploaded for a move.
static const int64_t MOVE_LAYERS = 96, MOVE_TOKENS = 512;
typedef struct move_job {
    void *array[2 * MOVE_LAYERS]; // KV cache of some layers: a key and a value array each
    int32_t from[MOVE_TOKENS];
    int32_t to, count;
    int64_t words; // of a token
} move_job;
static_assert(sizeof(move_job) <= 4000, "parameters of a kernel");

// A block per (32-bit words of a token, array). A thread moves its word of all tokens in ascending
// order: to + i <= from[i] < from[i + 1], so nothing is overwritten before it is read.
template <typename W> static __global__ void move_kernel(move_job j)
{
    cuda_wait_previous();
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= j.words)
        return;
    W *array = (W *)j.array[blockIdx.y];
    for (int t = 0; t < j.count; t++)
        array[(int64_t)(j.to + t) * j.words + i] = array[(int64_t)j.from[t] * j.words + i];
}

int cuda_move(live_backend *b, const live_cache *cache, const int32_t *from, int64_t count,
              int64_t to, dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    int failed = cuda_use_idle(c, err);
    while (count > 0 && *from == to) { // already there
        from++;
        count--;
        to++;
    }
    const size_t bytes = (size_t)cache->width * dsc_dtype_bytes(cache->dtype);
    for (int64_t first = 0; first < count && !failed; first += MOVE_TOKENS)
        for (int64_t layer = 0; layer < cache->layers && !failed; layer += MOVE_LAYERS) {
            move_job j = {};
            const int64_t layers =
                cache->layers - layer < MOVE_LAYERS ? cache->layers - layer : MOVE_LAYERS;
            for (int64_t l = 0; l < layers; l++) {
                j.array[2 * l] = cache->k[layer + l];
                j.array[2 * l + 1] = cache->v[layer + l];
            }
            j.count = (int32_t)(count - first < MOVE_TOKENS ? count - first : MOVE_TOKENS);
            for (int32_t t = 0; t < j.count; t++)
                j.from[t] = from[first + t];
            j.to = (int32_t)(to + first);
            const bool pairs = bytes % 4 == 0; // an odd width of 16-bit numbers has none
            j.words = (int64_t)(bytes / (pairs ? 4 : 2));
            const dim3 grid((unsigned)cuda_blocks(j.words, 128), (unsigned)(2 * layers));
            failed = cuda_launch(c, "move", pairs ? move_kernel<uint32_t> : move_kernel<uint16_t>,
                                 grid, 128, err, j);
        }
    return failed;
}

// SPDX-License-Identifier: Apache-2.0
// Products of one to four rows of activations with a weight matrix: a matrix-vector product, bound
// by reading the weights once.
//
// A block keeps all activations in shared memory, normed and rounded to the weights' dtype while
// they are loaded, and iterates over its rows of weights. There are no more blocks than the device
// holds at once, so that activations are read from the L2 cache a few hundred times instead of once
// per eight rows of weights, and weights stream without a break between waves of blocks.
//
// A warp takes two rows of weights at a time (gate and up of the same column for a gated product)
// and reads 4 x 16 bytes of each per lane before it uses any: each lane has eight loads of 16 bytes
// in flight. A vector of activations serves both rows. Bound: n * k weights over the bandwidth.
// Some 4 to 7 instructions per weight are issued for 1 to 4 rows; at 4 rows that is 60 % of what
// the multiprocessors issue while the memory delivers, so more rows belong to tensor.cu.
#include "live/device/cuda/weights.cuh"

enum {
    SKINNY_ROWS = 4,    // maximum
    SKINNY_WARPS = 16,  // warps of a block
    SKINNY_VECTORS = 4, // vectors of 16 bytes that a lane reads of a row of weights at once
    SKINNY_PAIR = 2,    // rows of weights per warp
    SKINNY_GROUP = SKINNY_VECTORS * CUDA_LANES, // vectors of a row that a warp reads at once
};

// Blocks that a multiprocessor holds at once.
template <typename T> static constexpr int skinny_resident(int64_t rows)
{
    return rows == 1 && sizeof(T) == 2 ? 2 : 1;
}

// Numbers in 16 bytes.
template <typename T> static constexpr int skinny_each = 16 / (int)sizeof(T);

// Vectors of a row of k numbers, including trailing zeros, so that groups are complete.
template <typename T> static __host__ __device__ int64_t skinny_padded(int64_t k)
{
    return (k / skinny_each<T> + SKINNY_GROUP - 1) / SKINNY_GROUP * SKINNY_GROUP;
}

static __device__ __forceinline__ uint4 skinny_pack(const float (&v)[4], float)
{
    return {__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]),
            __float_as_uint(v[3])};
}
template <typename T> static __device__ __forceinline__ uint4 skinny_pack(const float (&v)[8], T)
{
    uint4 w;
    T *t = (T *)&w;
#pragma unroll
    for (int i = 0; i < 8; i++)
        t[i] = cuda_round<T>(v[i]);
    return w;
}

// The mean of a row of k numbers if the norm is centered, and 1 / the root mean square of the
// differences from it; computed by the whole block.
static __device__ float2 skinny_moments(const weights_job &j, const float4 *row)
{
    const int64_t quarters = j.k / 4;
    float mean = 0.0f, square = 0.0f;
    if (j.centered) {
        float sum = 0.0f;
        for (int64_t i = threadIdx.x; i < quarters; i += blockDim.x)
            sum += (row[i].x + row[i].y) + (row[i].z + row[i].w);
        mean = cuda_block_sum(sum) / (float)j.k;
    }
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < quarters; i += blockDim.x) {
        const float4 x = row[i];
        square = fmaf(x.x - mean, x.x - mean, square);
        square = fmaf(x.y - mean, x.y - mean, square);
        square = fmaf(x.z - mean, x.z - mean, square);
        square = fmaf(x.w - mean, x.w - mean, square);
    }
    return make_float2(mean, 1.0f / sqrtf(cuda_block_sum(square) / (float)j.k + j.epsilon));
}

// Vector v of a row of F32 activations, normed, in the weights' dtype.
template <typename T>
static __device__ __forceinline__ uint4 skinny_vector(const weights_job &j, const float4 *row,
                                                      float2 moments, int64_t v)
{
    constexpr int each = skinny_each<T>;
    float x[each];
#pragma unroll
    for (int q = 0; q < each / 4; q++) {
        const float4 part = row[v * (each / 4) + q];
        x[4 * q] = part.x, x[4 * q + 1] = part.y, x[4 * q + 2] = part.z, x[4 * q + 3] = part.w;
    }
    if (j.norm)
#pragma unroll
        for (int i = 0; i < each; i++) {
            x[i] = (x[i] - moments.x) * moments.y * j.norm[v * each + i];
            x[i] = j.norm_bias ? x[i] + j.norm_bias[v * each + i] : x[i];
        }
    return skinny_pack(x, T());
}

// Loads the input into shared memory, in the weights' dtype, with zeros after each row.
template <typename T> static __device__ void skinny_stage(const weights_job &j, uint4 *shared)
{
    const int64_t padded = skinny_padded<T>(j.k), vectors = j.k / skinny_each<T>;
    for (int64_t r = 0; r < j.rows; r++, shared += padded) {
        const uint4 *stored = (const uint4 *)j.in + r * vectors;
        const float4 *row = (const float4 *)j.in + r * (j.k / 4);
        const float2 moments = j.norm ? skinny_moments(j, row) : make_float2(0.0f, 1.0f);
#pragma unroll 2
        for (int64_t v = threadIdx.x; v < padded; v += blockDim.x)
            shared[v] = v >= vectors            ? uint4{}
                        : j.in_dtype != DSC_F32 ? stored[v]
                                                : skinny_vector<T>(j, row, moments, v);
    }
    __syncthreads();
}

// The two rows of w of pair p; a missing second one is the first again.
static __device__ __forceinline__ void skinny_pair(const weights_job &j, int64_t p, int64_t &first,
                                                   int64_t &second)
{
    first = j.gated ? p : 2 * p;
    second = j.gated ? j.n / 2 + p : 2 * p + 1;
    second = second < j.n ? second : first;
}

// sum[e][r] = row e of the pair . row r of the activations, in every lane. A lane adds its vectors
// in two chains, of even and of odd index, then lanes are added by halves: the order depends on k
// only. Beyond the end of a row its last vector is read again and multiplied by zeros.
template <typename T, int ROWS>
static __device__ __forceinline__ void skinny_sums(float (&sum)[SKINNY_PAIR][ROWS],
                                                   const uint4 *const (&row)[SKINNY_PAIR],
                                                   const uint4 *shared, int vectors, int padded)
{
    constexpr int each = skinny_each<T>;
    float chain[SKINNY_PAIR][ROWS][2] = {};
    for (int base = threadIdx.x % CUDA_LANES; base < padded; base += SKINNY_GROUP) {
        uint4 raw[SKINNY_PAIR][SKINNY_VECTORS];
#pragma unroll
        for (int i = 0; i < SKINNY_VECTORS; i++) {
            const int at = base + i * CUDA_LANES;
#pragma unroll
            for (int e = 0; e < SKINNY_PAIR; e++)
                raw[e][i] = weights_load(row[e] + (at < vectors ? at : vectors - 1));
        }
#pragma unroll
        for (int i = 0; i < SKINNY_VECTORS; i++) {
            float w[SKINNY_PAIR][each];
#pragma unroll
            for (int e = 0; e < SKINNY_PAIR; e++)
                cuda_unpack(w[e], raw[e][i], T());
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                float x[each];
                cuda_unpack(x, shared[r * padded + base + i * CUDA_LANES], T());
#pragma unroll
                for (int n = 0; n < each; n++)
#pragma unroll
                    for (int e = 0; e < SKINNY_PAIR; e++)
                        chain[e][r][i % 2] = fmaf(w[e][n], x[n], chain[e][r][i % 2]);
            }
        }
    }
#pragma unroll
    for (int e = 0; e < SKINNY_PAIR; e++)
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            sum[e][r] = cuda_warp_sum(chain[e][r][0] + chain[e][r][1]);
}

template <typename T, int ROWS>
static __global__ void __launch_bounds__(SKINNY_WARPS *CUDA_LANES, skinny_resident<T>(ROWS))
    skinny_kernel(weights_job j)
{
    const int lane = threadIdx.x % CUDA_LANES;
    const int64_t step = (int64_t)gridDim.x * SKINNY_WARPS;
    const int64_t pairs = (j.n + 1) / 2;
    const int vectors = (int)(j.k / skinny_each<T>), padded = (int)skinny_padded<T>(j.k);
    // Neighbors are in different blocks, so that all blocks have work if pairs are few or the last
    // ones.
    int64_t p = (int64_t)(threadIdx.x / CUDA_LANES) * gridDim.x + blockIdx.x, first, second;
    if (p < pairs) {
        skinny_pair(j, p, first, second);
        for (int64_t at = lane * 128; at < j.prefetch; at += CUDA_LANES * 128) {
            weights_prefetch((const char *)((const T *)j.w + first * j.k) + at);
            weights_prefetch((const char *)((const T *)j.w + second * j.k) + at);
        }
    }
    cuda_wait_previous();
    uint4 *const shared = (uint4 *)cuda_dynamic_shared();
    skinny_stage<T>(j, shared);
    for (; p < pairs; p += step) {
        float sum[SKINNY_PAIR][ROWS];
        skinny_pair(j, p, first, second);
        const uint4 *const row[SKINNY_PAIR] = {
            weights_fixed((const uint4 *)j.w + first * vectors),
            weights_fixed((const uint4 *)j.w + second * vectors)};
        skinny_sums<T, ROWS>(sum, row, shared, vectors, padded);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            if (lane == 2 * r)
                weights_put(j, r, first, sum[0][r], sum[1][r]);
            if (lane == 2 * r + 1 && !j.gated && second != first)
                weights_put(j, r, second, sum[1][r], 0.0f);
        }
    }
}

template <typename T>
static int skinny_rows(live_cuda *c, const weights_job *job, bool *done, dsc_error *err)
{
    static void (*const kernels[SKINNY_ROWS])(weights_job) = {
        skinny_kernel<T, 1>, skinny_kernel<T, 2>, skinny_kernel<T, 3>, skinny_kernel<T, 4>};
    weights_job j = *job;
    const size_t bytes = (size_t)(j.rows * skinny_padded<T>(j.k)) * sizeof(uint4);
    if (j.k % skinny_each<T> || (uintptr_t)j.w % sizeof(uint4) || (uintptr_t)j.in % sizeof(uint4) ||
        bytes > c->shared_bytes)
        return DSC_OK;
    *done = true;
    // The number of blocks that run at once: two of 16 warps if registers and shared memory allow
    // it.
    const int64_t resident = 2 * bytes + 2048 <= c->shared_bytes ? skinny_resident<T>(j.rows) : 1;
    const int64_t pairs = (j.n + 1) / 2;
    const int64_t blocks = pairs < resident * c->processors ? pairs : resident * c->processors;
    const int64_t places = blocks * SKINNY_WARPS, row = j.k * (int64_t)sizeof(T);
    const int64_t warps = pairs < places ? pairs : places; // warps with a pair
    const int64_t fair = c->prefetch_bytes / (warps * SKINNY_PAIR);
    j.prefetch = fair < row ? fair : row;
    return cuda_launch_shared(c, "product", kernels[j.rows - 1], blocks, SKINNY_WARPS * CUDA_LANES,
                              bytes, err, j);
}

int cuda_skinny(live_cuda *c, const weights_job *j, dsc_dtype dtype, bool *done, dsc_error *err)
{
    *done = false;
    if (j->rows > SKINNY_ROWS)
        return DSC_OK;
    return dtype == DSC_F32   ? skinny_rows<float>(c, j, done, err)
           : dtype == DSC_F16 ? skinny_rows<__half>(c, j, done, err)
                              : skinny_rows<__nv_bfloat16>(c, j, done, err);
}

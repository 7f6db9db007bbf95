// SPDX-License-Identifier: Apache-2.0
// What the product kernels share: reading weights, which are used once, and activations, which are
// reused; and storing a finished sum.
#ifndef DSC_LIVE_CUDA_WEIGHTS_CUH
#define DSC_LIVE_CUDA_WEIGHTS_CUH

#include "live/device/cuda/cuda.cuh"

// A product for a kernel: out = act(in w^T + bias), or out += in w^T + bias. `gated`: w has the
// gates in its first n / 2 rows and the ups in the others, and out is n / 2 wide.
typedef struct weights_job {
    void *out;
    const void *w, *in;
    const float *bias;             // [n] or NULL
    const float *norm, *norm_bias; // [k]: norm of the rows of `in` (skinny.cu only), or NULL
    float epsilon;
    dsc_dtype in_dtype, out_dtype;
    live_activation activation;
    bool activate, gated, add, centered;
    int64_t rows, n, k;
    int64_t prefetch; // bytes of a row of weights that a warp prefetches first
} weights_job;

static __device__ __forceinline__ float weights_activated(float x, live_activation kind)
{
    if (kind == LIVE_GELU)
        return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
    if (kind == LIVE_GELU_TANH || kind == LIVE_GELU_TANH_GATE) // sqrt(2 / pi)
        return 0.5f * x * (1.0f + tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x)));
    return x / (1.0f + expf(-x));
}

// Stores the sum of row `row` of the input with row `col` of w; `up` is the sum with row n / 2 +
// col if the product is gated.
static __device__ __forceinline__ void weights_put(const weights_job &j, int64_t row, int64_t col,
                                                   float sum, float up)
{
    const int64_t width = j.gated ? j.n / 2 : j.n;
    if (j.bias) {
        sum += j.bias[col];
        up += j.gated ? j.bias[width + col] : 0.0f;
    }
    if (j.activate)
        sum = weights_activated(sum, j.activation) * (j.gated ? up : 1.0f);
    const int64_t at = row * width + col;
    cuda_store(j.out, j.out_dtype, at, j.add ? ((const float *)j.out)[at] + sum : sum);
}

// 16 bytes of weights, each of which is read once: past the L1 cache, and first to be evicted from
// the L2 cache, which is to keep activations. Nothing writes weights while passes run, so they may
// be read before cuda_wait_previous.
static __device__ __forceinline__ uint4 weights_load(const void *p)
{
#ifdef __CUDACC__
    uint4 v;
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p), "l"(policy));
    return v;
#else
    return *(const uint4 *)p;
#endif
}

// Prefetches the 128 bytes around p, an address of weights, into the L2 cache.
static __device__ __forceinline__ void weights_prefetch(const void *p)
{
#ifdef __CUDACC__
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
#else
    (void)*(const volatile char *)p; // so that a sanitizer detects an address beyond the weights
#endif
}

// Keeps the compiler from recomputing the address at each use.
static __device__ __forceinline__ const uint4 *weights_fixed(const uint4 *p)
{
#ifdef __CUDACC__
    asm volatile("" : "+l"(p));
#endif
    return p;
}

// Products of few rows (skinny.cu). Returns DSC_OK and sets *done if the kernel supports their
// shape.
int cuda_skinny(live_cuda *c, const weights_job *j, dsc_dtype dtype, bool *done, dsc_error *err);
// Products of 16-bit weights with up to CUDA_TENSOR_ROWS rows on the tensor cores (tensor.cu). `in`
// has the weights' dtype.
enum { CUDA_TENSOR_ROWS = 64 };
int cuda_tensor(live_cuda *c, const weights_job *j, dsc_dtype dtype, bool *done, dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// Products of activations with weights: out[rows][n] = in[rows][k] times w[n][k] transposed.
//
// Activations are rounded to the weights' dtype whatever the number of rows, so that all roads make
// the same products; sums are F32. A few rows go through a kernel of our own that reads the weights
// once at the speed of the memory and does all the rest on the way; more rows go to cuBLAS, which
// has the tensor cores. An invariant backend always multiplies CUDA_INVARIANT_ROWS rows, those that
// are missing being zeros: the same shape is the same cuBLAS kernel, and none of them mixes rows.
#include "live/cuda/cuda.cuh"

enum {
    SKINNY_ROWS = 4, // up to so many rows by the kernel here; `check_ops --bench` shows both
    SKINNY_WARPS = 8,
};

// What a warp will read first, before the kernel in front of this one has ended.
static __device__ __forceinline__ void prefetch_row(const void *row, int64_t bytes)
{
#if defined(__CUDA_ARCH__)
    const int lane = threadIdx.x % CUDA_LANES;
    for (int64_t at = lane * 128; at < bytes && at < 8192; at += CUDA_LANES * 128)
        asm volatile("prefetch.global.L2 [%0];" ::"l"((const char *)row + at));
#else
    (void)row, (void)bytes;
#endif
}

// A warp per EACH rows of w, SKINNY_WARPS warps a block; ROWS activations rows at once. A lane
// reads 8 weights in one load (VECTOR: k is a multiple of 8), four such loads on the way. The
// activations come from the L1 cache. Reads n * k weights once: the bound is their bytes over the
// bandwidth.
template <typename T, int ROWS, int EACH, bool VECTOR>
static __global__ void __launch_bounds__(SKINNY_WARPS *CUDA_LANES)
    skinny_kernel(float *out, const T *w, const float *bias, const float *in, int64_t n, int64_t k,
                  bool add)
{
    const int lane = threadIdx.x % CUDA_LANES;
    const int64_t first = ((int64_t)blockIdx.x * SKINNY_WARPS + threadIdx.x / CUDA_LANES) * EACH;
    if (first < n)
        prefetch_row(w + first * k, k * (int64_t)sizeof(T));
    cuda_wait_previous();
    if (first >= n) // a whole warp
        return;
    float sum[EACH][ROWS] = {};
    const T *row[EACH];
#pragma unroll
    for (int e = 0; e < EACH; e++) // a row that is not there is read as the last one
        row[e] = w + (first + e < n ? first + e : n - 1) * k;
    if (VECTOR) {
#pragma unroll 4
        for (int64_t i = lane * 8; i < k; i += CUDA_LANES * 8) {
            float x[EACH][8];
#pragma unroll
            for (int e = 0; e < EACH; e++)
                cuda_load8(x[e], row[e] + i);
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                float y[8];
                cuda_load8(y, in + r * k + i);
#pragma unroll
                for (int c = 0; c < 8; c++) {
                    const float rounded = cuda_float(cuda_round<T>(y[c]));
#pragma unroll
                    for (int e = 0; e < EACH; e++)
                        sum[e][r] = fmaf(x[e][c], rounded, sum[e][r]);
                }
            }
        }
    } else {
        for (int64_t i = lane; i < k; i += CUDA_LANES)
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                const float rounded = cuda_float(cuda_round<T>(in[r * k + i]));
#pragma unroll
                for (int e = 0; e < EACH; e++)
                    sum[e][r] = fmaf(cuda_float(row[e][i]), rounded, sum[e][r]);
            }
    }
#pragma unroll
    for (int e = 0; e < EACH; e++)
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            float y = cuda_warp_sum(sum[e][r]);
            if (lane != 0 || first + e >= n)
                continue;
            float *o = out + r * n + first + e;
            if (bias)
                y += bias[first + e];
            *o = add ? *o + y : y;
        }
}

template <typename T, int ROWS>
static int skinny_rows(live_cuda *c, float *out, const live_matrix *w, const float *bias,
                       const float *in, bool add, dsc_error *err)
{
    constexpr int each = ROWS > 1 ? 2 : 1; // halves what is read of the activations
    const bool vector = w->cols % 8 == 0 && (uintptr_t)w->data % 16 == 0 && (uintptr_t)in % 16 == 0;
    void (*kernel)(float *, const T *, const float *, const float *, int64_t, int64_t, bool) =
        vector ? skinny_kernel<T, ROWS, each, true> : skinny_kernel<T, ROWS, each, false>;
    return cuda_launch(
        c, "matmul", kernel, dim3((unsigned)cuda_blocks(w->rows, SKINNY_WARPS * each)),
        SKINNY_WARPS * CUDA_LANES, err, out, (const T *)w->data, bias, in, w->rows, w->cols, add);
}

template <typename T>
static int skinny(live_cuda *c, float *out, const live_matrix *w, const float *bias,
                  const float *in, int64_t rows, bool add, dsc_error *err)
{
    switch (rows) {
    case 1: return skinny_rows<T, 1>(c, out, w, bias, in, add, err);
    case 2: return skinny_rows<T, 2>(c, out, w, bias, in, add, err);
    case 3: return skinny_rows<T, 3>(c, out, w, bias, in, add, err);
    default: return skinny_rows<T, 4>(c, out, w, bias, in, add, err);
    }
}

// A thread per number: rounds `count` numbers and puts zeros behind them, up to `padded`.
template <typename T>
static __global__ void convert_kernel(T *out, const float *in, int64_t count, int64_t padded)
{
    cuda_wait_previous();
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < padded)
        out[i] = cuda_round<T>(i < count ? in[i] : 0.0f);
}

// `in` in the weights' dtype, `padded` rows of it, in scratch memory.
static int convert(live_cuda *c, const live_matrix *w, const float *in, int64_t rows,
                   int64_t padded, void **out, dsc_error *err)
{
    const int64_t count = rows * w->cols, all = padded * w->cols;
    int failed =
        cuda_scratch(c, CUDA_ACTIVATIONS, (size_t)all * dsc_dtype_bytes(w->dtype), out, err);
    if (failed)
        return failed;
    const dim3 grid((unsigned)cuda_blocks(all, 256));
    if (w->dtype == DSC_F32)
        return cuda_launch(c, "convert", convert_kernel<float>, grid, 256, err, (float *)*out, in,
                           count, all);
    if (w->dtype == DSC_F16)
        return cuda_launch(c, "convert", convert_kernel<__half>, grid, 256, err, (__half *)*out, in,
                           count, all);
    return cuda_launch(c, "convert", convert_kernel<__nv_bfloat16>, grid, 256, err,
                       (__nv_bfloat16 *)*out, in, count, all);
}

// A thread per number: out = (more or nothing) + bias + (out when `add`).
static __global__ void epilogue_kernel(float *out, const float *more, const float *bias, bool add,
                                       int64_t count, int64_t n)
{
    cuda_wait_previous();
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    float y = more ? more[i] : 0.0f;
    if (bias)
        y += bias[i % n];
    out[i] = add ? out[i] + y : y;
}

static int epilogue(live_cuda *c, float *out, const float *more, const float *bias, bool add,
                    int64_t rows, int64_t n, dsc_error *err)
{
    return cuda_launch(c, "matmul: epilogue", epilogue_kernel,
                       dim3((unsigned)cuda_blocks(rows * n, 256)), 256, err, out, more, bias, add,
                       rows * n, n);
}

static int invariant(live_cuda *c, float *out, const live_matrix *w, const float *bias,
                     const float *in, int64_t rows, bool add, dsc_error *err)
{
    const int64_t each = CUDA_INVARIANT_ROWS;
    void *products = NULL;
    int failed =
        cuda_scratch(c, CUDA_PRODUCTS, (size_t)(each * w->rows) * sizeof(float), &products, err);
    for (int64_t first = 0; first < rows && !failed; first += each) {
        const int64_t now = rows - first < each ? rows - first : each;
        void *converted = NULL;
        failed = convert(c, w, in + first * w->cols, now, each, &converted, err);
        if (!failed)
            failed = cuda_gemm(c, (float *)products, w, converted, each, 0.0f, err);
        if (!failed)
            failed = epilogue(c, out + first * w->rows, (const float *)products, bias, add, now,
                              w->rows, err);
    }
    return failed;
}

int cuda_matmul(live_backend *b, float *out, const live_matrix *w, const float *bias,
                const float *in, int64_t rows, bool add, dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    int failed = cuda_use(c, err);
    if (failed || rows == 0 || w->rows == 0)
        return failed;
    if (b->invariant)
        return invariant(c, out, w, bias, in, rows, add, err);
    if (rows <= SKINNY_ROWS)
        return w->dtype == DSC_F32   ? skinny<float>(c, out, w, bias, in, rows, add, err)
               : w->dtype == DSC_F16 ? skinny<__half>(c, out, w, bias, in, rows, add, err)
                                     : skinny<__nv_bfloat16>(c, out, w, bias, in, rows, add, err);
    void *converted = (void *)in;
    if (w->dtype != DSC_F32)
        failed = convert(c, w, in, rows, rows, &converted, err);
    if (!failed && bias)
        failed = epilogue(c, out, NULL, bias, add, rows, w->rows, err);
    return failed ? failed : cuda_gemm(c, out, w, converted, rows, add || bias ? 1.0f : 0.0f, err);
}

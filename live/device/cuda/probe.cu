// SPDX-License-Identifier: Apache-2.0
// Measures the device: bandwidth of reading and speed of large products. Each is the best of some
// repetitions, timed by two events of the stream.
#include "live/device/cuda/cuda.cuh"

enum { PROBE_REPEATS = 7, PROBE_THREADS = 512 };

// Sums 16-byte words with a stride of the whole grid, with four loads in flight per thread. The sum
// is stored under a condition that the array is not expected to meet, so that the compiler keeps
// the loads.
static __global__ void __launch_bounds__(PROBE_THREADS)
    read_kernel(uint32_t *out, const uint4 *in, int64_t words)
{
    cuda_wait_previous();
    uint32_t sum = 0;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
#pragma unroll 4
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < words; i += step) {
        const uint4 w = in[i];
        sum += (w.x ^ w.y) + (w.z ^ w.w);
    }
    if (sum == 0x5eed5eedu) // an arbitrary value
        *out = sum;
}

// The shortest of several times, in seconds, that the stream needs for `work`.
template <typename F> static int least_time(live_cuda *c, double *seconds, F work, dsc_error *err)
{
    cudaEvent_t begin = NULL, end = NULL;
    int failed = cuda_check(c, cudaEventCreate(&begin), "cudaEventCreate", err);
    if (!failed)
        failed = cuda_check(c, cudaEventCreate(&end), "cudaEventCreate", err);
    *seconds = 1e30;
    for (int i = 0; i < PROBE_REPEATS + 1 && !failed; i++) { // the first one warms up
        float ms = 0.0f;
        failed = cuda_check(c, cudaEventRecord(begin, c->stream), "cudaEventRecord", err);
        c->follows = false;
        if (!failed)
            failed = work();
        if (!failed)
            failed = cuda_check(c, cudaEventRecord(end, c->stream), "cudaEventRecord", err);
        if (!failed)
            failed = cuda_check(c, cudaEventSynchronize(end), "cudaEventSynchronize", err);
        if (!failed)
            failed =
                cuda_check(c, cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime", err);
        if (!failed && i > 0 && ms * 1e-3 < *seconds)
            *seconds = ms * 1e-3;
    }
    if (begin)
        cudaEventDestroy(begin);
    if (end)
        cudaEventDestroy(end);
    return failed;
}

// Twenty times the capacity of any L2 cache, or half of the free memory.
static int probe_read(live_backend *b, double free_bytes, double *bytes_s, dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    const double wanted = free_bytes / 2 < 4e9 ? free_bytes / 2 : 4e9;
    const size_t bytes = (size_t)wanted / 4096 * 4096;
    void *array = NULL, *out = NULL;
    double seconds = 0;
    int failed = b->type->memory.alloc(b, &array, bytes, err);
    if (!failed)
        failed = b->type->memory.alloc(b, &out, sizeof(uint32_t), err);
    if (!failed)
        failed = cuda_fill(b, array, DSC_F32, (int64_t)(bytes / sizeof(float)), 1, 1, 1.0, err);
    if (!failed)
        failed = least_time(
            c, &seconds,
            [&]() {
                return cuda_launch(c, "read", read_kernel, dim3((unsigned)c->processors * 4),
                                   PROBE_THREADS, err, (uint32_t *)out, (const uint4 *)array,
                                   (int64_t)(bytes / sizeof(uint4)));
            },
            err);
    b->type->memory.free(b, array);
    b->type->memory.free(b, out);
    *bytes_s = failed ? 0 : (double)bytes / seconds;
    return failed;
}

// Square matrices of random numbers (zeros need less power and run faster).
static int probe_products(live_backend *b, dsc_dtype dtype, double free_bytes, double *flops_s,
                          dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    int64_t n = dtype == DSC_F32 ? 4096 : 8192;
    while (n > 256 && 12.0 * (double)n * (double)n > free_bytes / 2)
        n /= 2;
    live_matrix w = {NULL, dtype, n, n};
    void *in = NULL, *out = NULL;
    double seconds = 0;
    const size_t bytes = (size_t)(n * n) * dsc_dtype_bytes(dtype);
    int failed = b->type->memory.alloc(b, &w.data, bytes, err);
    if (!failed)
        failed = b->type->memory.alloc(b, &in, bytes, err);
    if (!failed)
        failed = b->type->memory.alloc(b, &out, (size_t)(n * n) * sizeof(float), err);
    if (!failed)
        failed = cuda_fill(b, w.data, dtype, n * n, 1, 2, 1.0, err);
    if (!failed)
        failed = cuda_fill(b, in, dtype, n * n, 1, 3, 1.0, err);
    if (!failed)
        failed = least_time(
            c, &seconds, [&]() { return cuda_gemm(c, (float *)out, &w, in, n, 0.0f, err); }, err);
    b->type->memory.free(b, w.data);
    b->type->memory.free(b, in);
    b->type->memory.free(b, out);
    *flops_s = failed ? 0 : 2.0 * (double)n * (double)n * (double)n / seconds;
    return failed;
}

int cuda_probe(live_backend *b, dsc_dtype dtype, live_probe *out, dsc_error *err)
{
    double free_bytes = 0, total_bytes = 0;
    int failed = b->type->memory.available(b, &free_bytes, &total_bytes, err);
    if (!failed)
        failed = probe_read(b, free_bytes, &out->read_bytes_s, err);
    return failed ? failed : probe_products(b, dtype, free_bytes, &out->flops_s, err);
}

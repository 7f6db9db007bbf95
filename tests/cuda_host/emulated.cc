// SPDX-License-Identifier: Apache-2.0
// The CUDA backend compiled for the host. Linked before the engine, it replaces the real one. See
// cuda_runtime.h in this folder.
#include "cuda_runtime.h"

#include "mma.h"
#include "settings.cc"

#include <cmath>

using std::isnan;
using std::min;

#define CUDA_FOLDER ""

#include "live/device/cuda/attend.cu"
#include "live/device/cuda/backend_cuda.cu"
#include "live/device/cuda/blas.cu"
#include "live/device/cuda/cut.cu"
#include "live/device/cuda/device.cu"
#include "live/device/cuda/overlap.cu"
#include "live/device/cuda/memory.cu"
#include "live/device/cuda/probe.cu"
#include "live/device/cuda/product.cu"
#include "live/device/cuda/rotate.cu"
#include "live/device/cuda/rows.cu"
#include "live/device/cuda/select.cu"
#include "live/device/cuda/skinny.cu"
#include "live/device/cuda/summarize.cu"
#include "live/device/cuda/tensor.cu"

// Requests scratch memory as an operation does.
extern "C" int emulated_scratch(live_backend *b, int use, size_t bytes, dsc_error *err)
{
    void *p = nullptr;
    return cuda_scratch(cuda_of(b), (cuda_scratch_use)use, bytes, &p, err);
}

// Each block: out[b][i] = count - 1 - i, by way of dynamic shared memory.
static __global__ void reverse_kernel(float *out, int count)
{
    float *const all = (float *)cuda_dynamic_shared();
    cuda_wait_previous();
    for (int i = threadIdx.x; i < count; i += blockDim.x)
        all[i] = (float)i;
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += blockDim.x)
        out[blockIdx.x * (unsigned)count + i] = all[count - 1 - i];
}

extern "C" int emulated_reverse(live_backend *b, float *out, int count, int64_t blocks,
                                dsc_error *err)
{
    return cuda_launch_shared(cuda_of(b), "reverse", reverse_kernel, blocks, 64,
                              (size_t)count * sizeof(float), err, out, count);
}

// One warp calls tensor_multiply once with the registers of emulated_multiply.
template <typename T> static __global__ void multiply_kernel(uint32_t (*registers)[10])
{
    uint32_t *const r = registers[threadIdx.x];
    float c[4];
    cuda_wait_previous();
    memcpy(c, r + 6, sizeof c);
    tensor_multiply(c, r[0], r[1], r[2], r[3], r[4], r[5], T());
    memcpy(r + 6, c, sizeof c);
}

extern "C" int emulated_multiply(live_backend *b, uint32_t (*registers)[10], dsc_dtype dtype,
                                 dsc_error *err)
{
    return cuda_launch(cuda_of(b), "multiply",
                       dtype == DSC_F16 ? multiply_kernel<__half> : multiply_kernel<__nv_bfloat16>,
                       1, CUDA_LANES, err, registers);
}

// Replaces dlopen and dlsym for cuBLAS (cublas_v2.h); a test can make the library missing.
#undef live_library_open
extern "C" int live_library_open(const live_library *library, const live_symbol *symbol,
                                 size_t symbols, dsc_error *err);
extern "C" int emulated_library_open(const live_library *library, const live_symbol *symbol,
                                     size_t symbols, dsc_error *err)
{
    static const struct {
        const char *name;
        void *function;
    } known[] = {
        {"cublasCreate", (void *)cublasCreate},
        {"cublasDestroy", (void *)cublasDestroy},
        {"cublasSetStream", (void *)cublasSetStream},
        {"cublasSetWorkspace", (void *)cublasSetWorkspace},
        {"cublasSetMathMode", (void *)cublasSetMathMode},
        {"cublasGetStatusString", (void *)cublasGetStatusString},
        {"cublasGemmEx", (void *)cublasGemmEx},
    };
    live_library none = *library;
    none.file = "libcublas.so.none";
    if (emulated_no_blas)
        return live_library_open(&none, symbol, symbols, err);
    for (size_t i = 0; i < symbols; i++)
        for (const auto &k : known)
            if (!strcmp(k.name, symbol[i].name))
                memcpy(symbol[i].pointer, &k.function, sizeof k.function);
    return DSC_OK;
}

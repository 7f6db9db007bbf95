// SPDX-License-Identifier: Apache-2.0
// Products of many rows by cuBLAS. The first product that needs the library loads it and creates
// its handle, because loading takes longer than most commands. That product is never in a captured
// pass, where creating a handle is not allowed, because every shape of a pass runs directly first.
#include "live/device/cuda/cuda.cuh"

extern "C" {
#include "live/device/library.h"
}

#include <limits.h>

#define TEXT_OF(...) #__VA_ARGS__
#define TEXT(...) TEXT_OF(__VA_ARGS__)

// One of the two cublasGemmEx overloads that the header declares in C++.
typedef cublasStatus_t gemm_function(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int,
                                     int, const void *, const void *, cudaDataType_t, int,
                                     const void *, cudaDataType_t, int, const void *, void *,
                                     cudaDataType_t, int, cublasComputeType_t, cublasGemmAlgo_t);
static_assert(sizeof(static_cast<gemm_function *>(cublasGemmEx)) != 0, "declared so");

// The functions that we call, with the types of the header.
struct cuda_blas {
    decltype(&cublasCreate) create;
    decltype(&cublasDestroy) destroy;
    decltype(&cublasSetStream) set_stream;
    decltype(&cublasSetWorkspace) set_workspace;
    decltype(&cublasSetMathMode) set_math_mode;
    decltype(&cublasGetStatusString) status;
    gemm_function *gemm;
    cublasHandle_t handle;
    void *workspace;
};

static int check(const live_cuda *c, const cuda_blas *b, cublasStatus_t e, const char *call,
                 dsc_error *err)
{
    if (e == CUBLAS_STATUS_SUCCESS)
        return DSC_OK;
    return dsc_fail(err, e == CUBLAS_STATUS_ALLOC_FAILED ? DSC_ENOMEM : DSC_EDEVICE, "%s: %s: %s",
                    c->base.device, call, b->status(e));
}

// The soname has the major version of the header. Functions are looked up by the names that the
// header's macros give them (cublasCreate is cublasCreate_v2).
static int load(cuda_blas *b, dsc_error *err)
{
    static const live_library cublas = {
        "cuBLAS", "libcublas.so." TEXT(CUBLAS_VER_MAJOR), CUDA_FOLDER,
        "install cuBLAS of CUDA " TEXT(CUBLAS_VER_MAJOR) " (NVIDIA's packages: libcublas-" TEXT(
            CUBLAS_VER_MAJOR) "-*)"};
    const live_symbol symbol[] = {
        {TEXT(cublasCreate), &b->create},
        {TEXT(cublasDestroy), &b->destroy},
        {TEXT(cublasSetStream), &b->set_stream},
        {TEXT(cublasSetWorkspace), &b->set_workspace},
        {TEXT(cublasSetMathMode), &b->set_math_mode},
        {TEXT(cublasGetStatusString), &b->status},
        {TEXT(cublasGemmEx), &b->gemm},
    };
    return live_library_open(&cublas, symbol, sizeof symbol / sizeof *symbol, err);
}

// Sets a workspace of our own, because one that cuBLAS allocates cannot be captured, and F32 sums
// of 16-bit products.
static int set_up(live_cuda *c, cuda_blas *b, dsc_error *err)
{
    const cublasMath_t math =
        (cublasMath_t)(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
    int failed = load(b, err);
    if (!failed)
        failed = check(c, b, b->create(&b->handle), "cublasCreate", err);
    if (!failed)
        failed = cuda_device_alloc(c, &b->workspace, CUDA_WORKSPACE, err);
    if (!failed) // before the workspace, which it resets
        failed = check(c, b, b->set_stream(b->handle, c->stream), "cublasSetStream", err);
    if (!failed)
        failed = check(c, b, b->set_workspace(b->handle, b->workspace, CUDA_WORKSPACE),
                       "cublasSetWorkspace", err);
    return failed ? failed
                  : check(c, b, b->set_math_mode(b->handle, math), "cublasSetMathMode", err);
}

void cuda_close_blas(live_cuda *c)
{
    if (c->blas && c->blas->handle)
        c->blas->destroy(c->blas->handle);
    if (c->blas)
        cudaFree(c->blas->workspace);
    free(c->blas);
    c->blas = NULL;
}

static int open_blas(live_cuda *c, dsc_error *err)
{
    if (c->blas)
        return DSC_OK;
    if (c->capturing)
        return dsc_fail(err, DSC_EUSAGE, "%s: the first product by cuBLAS is in a captured pass",
                        c->base.device);
    int failed = dsc_new(&c->blas, 1, err);
    if (!failed)
        failed = set_up(c, c->blas, err);
    if (failed)
        cuda_close_blas(c);
    return failed;
}

int cuda_gemm(live_cuda *c, float *out, const live_matrix *w, const void *in, int64_t rows,
              float beta, dsc_error *err)
{
    const cudaDataType_t type = w->dtype == DSC_F32   ? CUDA_R_32F
                                : w->dtype == DSC_F16 ? CUDA_R_16F
                                                      : CUDA_R_16BF;
    // Pedantic: F32 products are computed in F32, not in TF32.
    const cublasComputeType_t compute =
        w->dtype == DSC_F32 ? CUBLAS_COMPUTE_32F_PEDANTIC : CUBLAS_COMPUTE_32F;
    const float alpha = 1.0f;
    if (w->rows > INT_MAX || w->cols > INT_MAX || rows > INT_MAX)
        return dsc_fail(err, DSC_EUSAGE, "%s: a product of %lld x %lld x %lld; cuBLAS takes int",
                        c->base.device, (long long)rows, (long long)w->rows, (long long)w->cols);
    const int failed = open_blas(c, err);
    if (failed)
        return failed;
    const cuda_blas *const b = c->blas;
    c->follows = false;
    // cuBLAS is column-major: there, out is n x rows, w is k x n and in is k x rows.
    return check(c, b,
                 b->gemm(b->handle, CUBLAS_OP_T, CUBLAS_OP_N, (int)w->rows, (int)rows, (int)w->cols,
                         &alpha, w->data, type, (int)w->cols, in, type, (int)w->cols, &beta, out,
                         CUDA_R_32F, (int)w->rows, compute, CUBLAS_GEMM_DEFAULT),
                 "cublasGemmEx", err);
}

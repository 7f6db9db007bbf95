// SPDX-License-Identifier: Apache-2.0
#ifndef DSC_TESTS_CUBLAS_V2_H
#define DSC_TESTS_CUBLAS_V2_H

#include "cuda_bf16.h"
#include "cuda_fp16.h"

// cuBLAS with loops as products. Functions are found by their names, as in the real library.
#define CUBLAS_VER_MAJOR 13
#define live_library_open emulated_library_open

typedef int cublasStatus_t;
enum { CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_ALLOC_FAILED = 3, CUBLAS_STATUS_INVALID_VALUE = 7 };
enum cublasMath_t {
    CUBLAS_DEFAULT_MATH = 0,
    CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16,
};
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
enum cudaDataType_t { CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF };
enum cublasComputeType_t { CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_PEDANTIC };
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1 };
struct emulated_blas {
    cudaStream_t stream;
};
typedef emulated_blas *cublasHandle_t;

static inline cublasStatus_t cublasCreate(cublasHandle_t *h)
{
    emulated_handles++;
    *h = new emulated_blas{nullptr};
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasDestroy(cublasHandle_t h)
{
    delete h;
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasSetStream(cublasHandle_t h, cudaStream_t s)
{
    h->stream = s;
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasSetWorkspace(cublasHandle_t, void *, size_t)
{
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t)
{
    return CUBLAS_STATUS_SUCCESS;
}
static inline const char *cublasGetStatusString(cublasStatus_t)
{
    return "CUBLAS_STATUS_INVALID_VALUE";
}

static inline float emulated_number(const void *p, cudaDataType_t type, int64_t i)
{
    return type == CUDA_R_32F   ? ((const float *)p)[i]
           : type == CUDA_R_16F ? __half2float(((const __half *)p)[i])
                                : __bfloat162float(((const __nv_bfloat16 *)p)[i]);
}

// C (m x n, by columns) = alpha * A transposed * B + beta * C.
static inline cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t ta,
                                          cublasOperation_t tb, int m, int n, int k,
                                          const void *alpha, const void *a, cudaDataType_t ta_type,
                                          int lda, const void *b, cudaDataType_t tb_type, int ldb,
                                          const void *beta, void *c, cudaDataType_t tc_type,
                                          int ldc, cublasComputeType_t compute, cublasGemmAlgo_t)
{
    if (ta != CUBLAS_OP_T || tb != CUBLAS_OP_N || tc_type != CUDA_R_32F || ta_type != tb_type ||
        lda < k || ldb < k || ldc < m || m < 1 || n < 1 || k < 1 ||
        (compute == CUBLAS_COMPUTE_32F_PEDANTIC) != (ta_type == CUDA_R_32F))
        return CUBLAS_STATUS_INVALID_VALUE;
    const float al = *(const float *)alpha, be = *(const float *)beta;
    emulated_do(h->stream, [=]() {
        for (int64_t col = 0; col < n; col++)
            for (int64_t row = 0; row < m; row++) {
                float sum = 0.0f;
                for (int64_t i = 0; i < k; i++)
                    sum = std::fma(emulated_number(a, ta_type, row * lda + i),
                                   emulated_number(b, tb_type, col * ldb + i), sum);
                float *out = (float *)c + col * ldc + row;
                *out = al * sum + (be != 0.0f ? be * *out : 0.0f);
            }
    });
    return CUBLAS_STATUS_SUCCESS;
}

#endif

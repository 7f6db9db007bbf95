// SPDX-License-Identifier: Apache-2.0
// Internal: the inner loops of the CPU backend, written once (cpu_kernel_loops.h) over vectors of
// 4, 8 or 16 floats and chosen at run time. They compute in F32.
//
// The order of operations of a result depends on the width of the vectors and on nothing else, in
// particular not on the number of rows or tokens or on the position among them. The backend's
// guarantee that a token has the same bits when scored alone and in a tree rests on this.
#ifndef DSC_LIVE_CPU_KERNEL_H
#define DSC_LIVE_CPU_KERNEL_H

#include "traces/files/safetensors.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Memory to prefetch, in memory order: rows of `width` floats, `stride` apart. `next` may be NULL.
typedef struct live_ahead {
    const float *next;
    int64_t width, stride;
} live_ahead;

// out[token * out_stride + row] = weights[row] . token, for all of rows x tokens; strides in
// numbers.
typedef struct live_products {
    float *out;
    int64_t out_stride;
    const void *weights; // F32, BF16 or F16
    int64_t weight_stride, rows;
    const float *packed; // [tokens][cols] as `pack` leaves it
    int64_t tokens, cols;
    live_ahead ahead; // `next` NULL: the rows that follow these
} live_products;

// sum[query * sum_stride + d] += sum over i of weight[query * weight_stride + i] * value[i][d], i
// ascending.
typedef struct live_mixture {
    float *sum;
    int64_t sum_stride;
    const float *weight;
    int64_t weight_stride, queries;
    const float *value;
    int64_t value_stride, count, width;
    live_ahead ahead;
} live_mixture;

typedef struct live_cpu_kernel {
    const char *name;
    bool (*supported)(void); // by this processor
    // Packs in[tokens][cols], with rows in_stride apart, for `products` with weights of this dtype:
    // live_packed_size numbers.
    void (*pack)(float *to, const float *in, int64_t in_stride, int64_t tokens, int64_t cols,
                 dsc_dtype weights);
    void (*products)(const live_products *p, dsc_dtype dtype);
    void (*mix)(const live_mixture *m);
    // x[n] = e^(x * scale - largest x * scale), in error by 1e-7 of itself; returns their sum.
    // Below e^-87 of the largest they are that.
    float (*exponentials)(float *x, int64_t n, float scale);
    void (*multiply)(float *x, int64_t n, float by);
    // out[n] = x / (1 + e^-x) * factor; factor may be NULL.
    void (*silu)(float *out, const float *x, const float *factor, int64_t n);
    // out[n] = x (1 + erf(x / root 2)) / 2, or with the hyperbolic tangent in its place.
    void (*gelu)(float *out, const float *x, bool by_tanh, int64_t n);
    void (*widen)(float *out, const void *in, dsc_dtype dtype, int64_t n);
    float (*total)(const float *x, int64_t n); // reads memory at full speed; for live_probe
    // Products of fewer tokens with 16-bit weights take longer than products of this number of
    // tokens, which read the weights at full memory speed (tests/bench/README.md); for short and
    // for long rows.
    int64_t least_tokens[2];
} live_cpu_kernel;

extern const live_cpu_kernel live_cpu_kernel_c;
#if defined(__x86_64__) && defined(__GNUC__)
#define LIVE_X86 1
extern const live_cpu_kernel live_cpu_kernel_avx2, live_cpu_kernel_avx512;
#endif

static inline size_t live_packed_size(int64_t tokens, int64_t cols)
{
    enum { WIDEST = 32 };
    return (size_t)(tokens * ((cols + WIDEST - 1) / WIDEST * WIDEST));
}

// Fastest first; ends with NULL. Every processor supports the last one.
extern const live_cpu_kernel *const live_cpu_kernels[];
const live_cpu_kernel *live_cpu_kernel_choose(void);

// Converts one stored number; exact.
float live_from_bf16(uint16_t bits);
float live_from_f16(uint16_t bits);
// Converts to the nearest number, ties to even; overflow gives infinity.
uint16_t live_to_bf16(float x);
uint16_t live_to_f16(float x);

#endif

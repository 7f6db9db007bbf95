// SPDX-License-Identifier: Apache-2.0
// Products with weight matrices. Few rows: the weights are what has to be read, once for all of
// them (live/cpu_kernel.h). Many rows: OpenBLAS, which falls off a cliff for few.
#include "live/cpu.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

// out[rows][width] of which columns [first, first + n) come from sums[rows][n], which is spoilt.
static void put(float *out, int64_t width, const float *bias, float *sums, int64_t rows, int64_t n,
                bool add)
{
    for (int64_t i = 0; i < rows; i++, sums += n) {
        float *to = out + i * width;
        if (bias)
#pragma omp simd
            for (int64_t j = 0; j < n; j++)
                sums[j] += bias[j];
        if (add)
#pragma omp simd
            for (int64_t j = 0; j < n; j++)
                to[j] += sums[j];
        else
            memcpy(to, sums, (size_t)n * sizeof *to);
    }
}

// Weight rows that are used for all tokens while they are in a cache, and tokens whose results are
// kept before they are put.
enum { SKINNY_ROWS = 48, SKINNY_TOKENS = 48 };

static int skinny(cpu_backend *c, float *out, const live_matrix *w, const float *bias,
                  const float *in, int64_t rows, bool add, dsc_error *err)
{
    const int64_t blocks = (w->rows + SKINNY_ROWS - 1) / SKINNY_ROWS;
    const size_t row_bytes = (size_t)w->cols * dsc_dtype_bytes(w->dtype);
    const size_t group = live_packed_size(SKINNY_TOKENS, w->cols);
    int rc = live_cpu_scratch(&c->work, live_packed_size(rows, w->cols) * sizeof(float), err);
    if (rc)
        return rc;
    float *packed = c->work.data;
    for (int64_t row = 0, i = 0; row < rows; row += SKINNY_TOKENS, i++)
        c->kernel->pack(packed + (size_t)i * group, in + row * w->cols, w->cols,
                        rows - row < SKINNY_TOKENS ? rows - row : SKINNY_TOKENS, w->cols, w->dtype);
#pragma omp parallel for schedule(static)                                                          \
    num_threads(cpu_threads(&c->base, rows * w->rows * w->cols / 4))
    for (int64_t block = 0; block < blocks; block++) {
        float sums[SKINNY_TOKENS * SKINNY_ROWS];
        int64_t first = block * SKINNY_ROWS, n = w->rows - first;
        n = n < SKINNY_ROWS ? n : SKINNY_ROWS;
        for (int64_t row = 0, i = 0; row < rows; row += SKINNY_TOKENS, i++) {
            live_products p = {.out = sums,
                               .out_stride = n,
                               .weights = (const char *)w->data + (size_t)first * row_bytes,
                               .weight_stride = w->cols,
                               .rows = n,
                               .packed = packed + (size_t)i * group,
                               .tokens = rows - row < SKINNY_TOKENS ? rows - row : SKINNY_TOKENS,
                               .cols = w->cols};
            c->kernel->products(&p, w->dtype);
            put(out + row * w->rows + first, w->rows, bias ? bias + first : NULL, sums, p.tokens, n,
                add);
        }
    }
    return DSC_OK;
}

enum { WIDE_ROWS = 256, WIDE_COLS = 512 }; // 512 KiB when widened, half of a common L2 cache

// Columns [first, first + n) of out. OpenBLAS runs in the calling thread: blocks of weight rows are
// what threads share, and they are the same whatever the number of threads.
static void wide_block(const cpu_backend *c, float *out, const live_matrix *w, const float *in,
                       int64_t rows, int64_t first, int64_t n, float *widened)
{
    const size_t size = dsc_dtype_bytes(w->dtype);
    const char *weights = (const char *)w->data + (size_t)(first * w->cols) * size;
    int64_t step = w->dtype == DSC_F32 ? w->cols : WIDE_COLS;
    for (int64_t col = 0; col < w->cols; col += step) {
        int64_t cols = w->cols - col < step ? w->cols - col : step, stride = w->cols;
        const float *b = (const float *)weights + col;
        if (w->dtype != DSC_F32) {
            for (int64_t r = 0; r < n; r++)
                c->kernel->widen(widened + r * cols, weights + (size_t)(r * w->cols + col) * size,
                                 w->dtype, cols);
            b = widened, stride = cols;
        }
        live_openblas_multiply(&c->blas, out, in + col, w->cols, b, stride, rows, n, cols, col > 0);
    }
}

static int wide(cpu_backend *c, float *out, const live_matrix *w, const float *bias,
                const float *in, int64_t rows, bool add, dsc_error *err)
{
    const int64_t blocks = (w->rows + WIDE_ROWS - 1) / WIDE_ROWS;
    const size_t sums = (size_t)rows * WIDE_ROWS, each = sums + (size_t)WIDE_ROWS * WIDE_COLS;
    const int threads = c->base.threads;
    int rc = c->blas.sgemm ? DSC_OK : live_openblas_open(&c->blas, err);
    if (!rc)
        rc = live_cpu_scratch(&c->work, (size_t)threads * each * sizeof(float), err);
    if (rc)
        return rc;
#pragma omp parallel num_threads(threads)
    {
        float *mine = NULL;
#pragma omp for schedule(static)
        for (int t = 0; t < threads; t++)
            mine = (float *)c->work.data + (size_t)t * each;
#pragma omp for schedule(dynamic)
        for (int64_t block = 0; block < blocks; block++) {
            int64_t first = block * WIDE_ROWS, n = w->rows - first;
            n = n < WIDE_ROWS ? n : WIDE_ROWS;
            wide_block(c, mine, w, in, rows, first, n, mine + sums);
            put(out + first, w->rows, bias ? bias + first : NULL, mine, rows, n, add);
        }
    }
    return DSC_OK;
}

int live_cpu_matmul(live_backend *b, float *out, const live_matrix *w, const float *bias,
                    const float *in, int64_t rows, bool add, dsc_error *err)
{
    if (w->dtype != DSC_F32 && w->dtype != DSC_BF16 && w->dtype != DSC_F16)
        return dsc_fail(err, DSC_EUSAGE, "matmul: weights in %s instead of F32, BF16 or F16",
                        dsc_dtype_name(w->dtype));
    if (!rows || !w->rows)
        return DSC_OK;
    if (rows < LIVE_BLAS_ROWS || b->invariant || rows > INT_MAX || w->cols > INT_MAX || !w->cols)
        return skinny(cpu_of(b), out, w, bias, in, rows, add, err);
    return wide(cpu_of(b), out, w, bias, in, rows, add, err);
}

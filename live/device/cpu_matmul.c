// SPDX-License-Identifier: Apache-2.0
// Products with weight matrices. For few rows the cost is reading the weights, which are read once
// for all rows (live/device/cpu_kernel.h). Many rows go to OpenBLAS, which is slow for few.
#include "live/device/cpu.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

// Writes columns [first, first + n) of out[rows][width] from sums[rows][n], which is overwritten.
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
// buffered before they are written.
enum { SKINNY_ROWS = 48, SKINNY_TOKENS = 48 };

// A matrix of fewer bytes is multiplied by one thread: reading it takes about as long as starting
// and joining a few threads. The limit is independent of the number of tokens, so that a pass over
// fewer tokens never runs on fewer threads than a pass over more.
enum { SHARED_BYTES = 1 << 18 };

// Number of columns from which on rows count as long (live_cpu_kernel.least_tokens).
enum { LONG_COLUMNS = 2048 };

// The work of one product that all threads share; each takes consecutive rows of the weights.
typedef struct skinny_job {
    const cpu_backend *c;
    float *out; // [rows][w->rows]
    const live_matrix *w;
    const float *bias, *packed;
    int64_t rows, tokens; // tokens: rows, or more if zeros are packed after them
    size_t group;         // floats of SKINNY_TOKENS packed tokens
    bool add;
} skinny_job;

// Weight rows [first, first + n), at most SKINNY_ROWS, for all tokens.
static void skinny_block(const skinny_job *j, int64_t first, int64_t n)
{
    const live_matrix *w = j->w;
    const size_t row_bytes = (size_t)w->cols * dsc_dtype_bytes(w->dtype);
    float sums[SKINNY_TOKENS * SKINNY_ROWS];
    for (int64_t row = 0, i = 0; row < j->rows; row += SKINNY_TOKENS, i++) {
        live_products p = {.out = sums,
                           .out_stride = n,
                           .weights = (const char *)w->data + (size_t)first * row_bytes,
                           .weight_stride = w->cols,
                           .rows = n,
                           .packed = j->packed + (size_t)i * j->group,
                           .tokens =
                               j->tokens - row < SKINNY_TOKENS ? j->tokens - row : SKINNY_TOKENS,
                           .cols = w->cols};
        j->c->kernel->products(&p, w->dtype);
        put(j->out + row * w->rows + first, w->rows, j->bias ? j->bias + first : NULL, sums,
            j->rows - row < p.tokens ? j->rows - row : p.tokens, n, j->add);
    }
}

// Copies in[rows][cols] and appends zeros, `tokens` rows in total.
static const float *with_zeros(float *to, const float *in, int64_t rows, int64_t tokens,
                               int64_t cols)
{
    memcpy(to, in, (size_t)(rows * cols) * sizeof *to);
    memset(to + rows * cols, 0, (size_t)((tokens - rows) * cols) * sizeof *to);
    return to;
}

static int skinny(cpu_backend *c, float *out, const live_matrix *w, const float *bias,
                  const float *in, int64_t rows, bool add, dsc_error *err)
{
    const size_t group = live_packed_size(SKINNY_TOKENS, w->cols);
    const int64_t bytes = w->rows * w->cols * (int64_t)dsc_dtype_bytes(w->dtype);
    const int threads = bytes < SHARED_BYTES ? 1 : c->base.threads;
    // Multiples of 4 rows, which the kernels process together.
    const int64_t share = ((w->rows + threads - 1) / threads + 3) / 4 * 4;
    const int64_t least = w->dtype == DSC_F32       ? 1
                          : w->cols >= LONG_COLUMNS ? c->kernel->least_tokens[1]
                                                    : c->kernel->least_tokens[0];
    const int64_t tokens = rows < least ? least : rows;
    const size_t room = live_packed_size(tokens, w->cols);
    int rc = live_cpu_scratch(
        &c->work, (room + (size_t)(tokens > rows ? tokens * w->cols : 0)) * sizeof(float), err);
    if (rc)
        return rc;
    float *packed = c->work.data;
    if (tokens > rows)
        in = with_zeros(packed + room, in, rows, tokens, w->cols);
    for (int64_t row = 0, i = 0; row < tokens; row += SKINNY_TOKENS, i++)
        c->kernel->pack(packed + (size_t)i * group, in + row * w->cols, w->cols,
                        tokens - row < SKINNY_TOKENS ? tokens - row : SKINNY_TOKENS, w->cols,
                        w->dtype);
    const skinny_job job = {c, out, w, bias, packed, rows, tokens, group, add};
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int t = 0; t < threads; t++) {
        const int64_t end = (t + 1) * share < w->rows ? (t + 1) * share : w->rows;
        for (int64_t first = t * share; first < end; first += SKINNY_ROWS)
            skinny_block(&job, first, end - first < SKINNY_ROWS ? end - first : SKINNY_ROWS);
    }
    return DSC_OK;
}

enum { WIDE_ROWS = 256, WIDE_COLS = 512 }; // 512 KiB when widened, half of a common L2 cache

// Columns [first, first + n) of out. OpenBLAS runs in the calling thread; threads share blocks of
// weight rows, which are the same for any number of threads.
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
        return dsc_fail(err, DSC_EUSAGE, "matmul: weights are %s instead of F32, BF16 or F16",
                        dsc_dtype_name(w->dtype));
    if (!rows || !w->rows)
        return DSC_OK;
    if (rows < LIVE_BLAS_ROWS || b->invariant || rows > INT_MAX || w->cols > INT_MAX || !w->cols)
        return skinny(cpu_of(b), out, w, bias, in, rows, add, err);
    return wide(cpu_of(b), out, w, bias, in, rows, add, err);
}

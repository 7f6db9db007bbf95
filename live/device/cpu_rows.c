// SPDX-License-Identifier: Apache-2.0
// Operations on rows of activations, row by row or number by number: embed, gather, scatter, norm,
// product, add, spread, select.
#include "live/device/cpu.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void widen_row(const cpu_backend *c, float *out, const live_matrix *table, int64_t row)
{
    const size_t bytes = (size_t)(row * table->cols) * dsc_dtype_bytes(table->dtype);
    c->kernel->widen(out, (const char *)table->data + bytes, table->dtype, table->cols);
}

// The rows of one batch of the pass. `work`: [cols].
static int embed_batch(const cpu_backend *c, const live_batch *batch, float *out, int64_t stride,
                       const live_matrix *table, const live_matrix *positions, float scale,
                       float *work, dsc_error *err)
{
    for (int64_t i = 0; i < batch->tokens * batch->sequences; i++) {
        int64_t token = batch->token[i], position = batch->position[i % batch->tokens] +
                                                    live_batch_shift(batch, i / batch->tokens);
        if (token < 0 || token >= table->rows)
            return dsc_fail(err, DSC_EUSAGE,
                            "token %" PRId64 " is not in the embedding of %" PRId64, token,
                            table->rows);
        float *row = out + i * stride;
        widen_row(c, row, table, token);
        for (int64_t j = 0; j < table->cols && scale != 1; j++)
            row[j] *= scale;
        if (!positions)
            continue;
        if (position < 0 || position >= positions->rows)
            return dsc_fail(err, DSC_EUSAGE,
                            "position %" PRId64 " is not among the %" PRId64
                            " learned positions of the model",
                            position, positions->rows);
        widen_row(c, work, positions, position);
        for (int64_t j = 0; j < table->cols; j++)
            row[j] += work[j];
    }
    return DSC_OK;
}

int live_cpu_embed(live_backend *b, float *out, int64_t stride, const live_matrix *table,
                   const live_matrix *positions, float scale, dsc_error *err)
{
    cpu_backend *c = cpu_of(b);
    int rc = live_cpu_scratch(&c->work, (size_t)table->cols * sizeof(float), err);
    for (const live_batch *batch = c->batch; batch && !rc; batch = batch->next) {
        rc = embed_batch(c, batch, out, stride, table, positions, scale, c->work.data, err);
        out += batch->tokens * batch->sequences * stride;
    }
    return rc;
}

static const int32_t *rows_in(const live_batch *batch, live_index list, int64_t *count)
{
    *count = list == LIVE_OUTPUTS ? batch->outputs : batch->tokens;
    return list == LIVE_OUTPUTS ? batch->output : list == LIVE_SLOTS ? batch->slot : batch->feature;
}

int live_cpu_gather(live_backend *b, float *out, int64_t out_stride, const float *in,
                    int64_t in_stride, int64_t width, live_index list, dsc_error *err)
{
    (void)err;
    int64_t count;
    const int32_t *row = rows_in(cpu_of(b)->batch, list, &count);
    for (int64_t i = 0; i < count; i++)
        memcpy(out + i * out_stride, in + row[i] * in_stride, (size_t)width * sizeof *out);
    return DSC_OK;
}

int live_cpu_scatter(live_backend *b, float *out, const float *in, int64_t width, live_index list,
                     dsc_error *err)
{
    (void)err;
    int64_t count;
    const int32_t *row = rows_in(cpu_of(b)->batch, list, &count);
    for (int64_t i = 0; i < count; i++)
        memcpy(out + row[i] * width, in + i * width, (size_t)width * sizeof *out);
    return DSC_OK;
}

// Sums in double with four accumulators, because an addition waits for the previous one.
static double sum_of(const float *x, int64_t n)
{
    double a = 0, b = 0, c = 0, d = 0;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        a += x[i], b += x[i + 1], c += x[i + 2], d += x[i + 3];
    for (; i < n; i++)
        a += x[i];
    return (a + b) + (c + d);
}

static double squares_of(const float *x, double mean, int64_t n)
{
    double a = 0, b = 0, c = 0, d = 0;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        double p = x[i] - mean, q = x[i + 1] - mean, r = x[i + 2] - mean, s = x[i + 3] - mean;
        a += p * p, b += q * q, c += r * r, d += s * s;
    }
    for (; i < n; i++)
        a += (x[i] - mean) * (x[i] - mean);
    return (a + b) + (c + d);
}

int live_cpu_norm(live_backend *b, float *out, const float *in, const live_norming *n, int64_t rows,
                  int64_t width, dsc_error *err)
{
    const float *weight = n->weight, *bias = n->bias;
    (void)err;
#pragma omp parallel for schedule(static) num_threads(cpu_threads(b, rows *width))
    for (int64_t i = 0; i < rows; i++) {
        const float *x = in + i * width;
        double mean = n->kind == LIVE_LAYER_NORM ? sum_of(x, width) / (double)width : 0;
        double by = 1 / sqrt(squares_of(x, mean, width) / (double)width + n->epsilon);
        for (int64_t j = 0; j < width; j++)
            out[i * width + j] = (float)((x[j] - mean) * by) * weight[j] + (bias ? bias[j] : 0);
    }
    return DSC_OK;
}

int live_cpu_activate(live_backend *b, float *out, const float *in, live_activation kind,
                      int64_t rows, int64_t width, dsc_error *err)
{
    (void)err;
    enum { BLOCK = 1024 };
    const live_cpu_kernel *kernel = cpu_of(b)->kernel;
    const int64_t blocks = (width + BLOCK - 1) / BLOCK;
#pragma omp parallel for collapse(2) schedule(static) num_threads(cpu_threads(b, 8 * rows * width))
    for (int64_t i = 0; i < rows; i++)
        for (int64_t block = 0; block < blocks; block++) {
            int64_t from = block * BLOCK, n = width - from < BLOCK ? width - from : BLOCK;
            const float *x = in + i * width * (live_is_gated(kind) ? 2 : 1) + from;
            float *y = out + i * width + from;
            if (kind == LIVE_SILU_GATE || kind == LIVE_SILU)
                kernel->silu(y, x, kind == LIVE_SILU ? NULL : x + width, n);
            else
                kernel->gelu(y, x, kind != LIVE_GELU, n);
            for (int64_t j = 0; j < n && kind == LIVE_GELU_TANH_GATE; j++)
                y[j] *= x[width + j];
        }
    return DSC_OK;
}

int live_cpu_product(live_backend *b, void *out, const void *in, int64_t rows,
                     const live_product *p, dsc_error *err)
{
    const int64_t gates = p->activate && live_is_gated(p->activation) ? 2 : 1;
    if (p->in_dtype != DSC_F32 || p->out_dtype != DSC_F32)
        return dsc_fail(err, DSC_EUSAGE, "product: activations are %s; the CPU requires F32",
                        dsc_dtype_name(p->in_dtype != DSC_F32 ? p->in_dtype : p->out_dtype));
    if (p->activate && p->add)
        return dsc_fail(err, DSC_EUSAGE, "product: `activate` and `add` cannot be combined");
    int rc = DSC_OK;
    if (p->norm.weight) {
        rc = live_cpu_norm(b, p->normed, in, &p->norm, rows, p->w->cols, err);
        in = p->normed;
    }
    float *product = p->activate ? p->wide : out;
    if (!rc)
        rc = live_cpu_matmul(b, product, p->w, p->bias, in, rows, p->add, err);
    if (!rc && p->activate)
        rc = live_cpu_activate(b, out, product, p->activation, rows, p->w->rows / gates, err);
    return rc;
}

int live_cpu_add(live_backend *b, float *out, const float *in, int64_t count, dsc_error *err)
{
    (void)err;
#pragma omp parallel for schedule(static) num_threads(cpu_threads(b, count))
    for (int64_t i = 0; i < count; i++)
        out[i] += in[i];
    return DSC_OK;
}

int live_cpu_spread(live_backend *b, float *out, const float *in, const int32_t *column,
                    int64_t rows, int64_t in_width, int64_t width, dsc_error *err)
{
    (void)b;
    (void)err;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < width; j++)
            out[i * width + j] = column[j] < 0 ? -INFINITY : in[i * in_width + column[j]];
    return DSC_OK;
}

// The second is the largest of the others; it equals the first if two are equal.
static int32_t first_largest(const float *x, int64_t n, float *margin)
{
    float first = -INFINITY, second = -INFINITY;
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(x[i])) {
            *margin = NAN;
            return -1;
        }
        if (x[i] > second) {
            if (x[i] > first) {
                second = first;
                first = x[i];
                at = i;
            } else
                second = x[i];
        }
    }
    *margin = n > 1 && first > second ? first - second : 0;
    return (int32_t)at;
}

int live_cpu_select(live_backend *b, int32_t *token, float *margin, const float *logits,
                    int64_t rows, int64_t vocab, dsc_error *err)
{
    (void)err;
#pragma omp parallel for schedule(static) num_threads(cpu_threads(b, rows *vocab))
    for (int64_t i = 0; i < rows; i++)
        token[i] = first_largest(logits + i * vocab, vocab, &margin[i]);
    return DSC_OK;
}

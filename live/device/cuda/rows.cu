// SPDX-License-Identifier: Apache-2.0
// Operations on rows of activations: embed, gather, scatter, norm, add, spread. They move at most a
// few hundred kilobytes while a forward pass reads gigabytes of weights, so latency is their cost:
// each is one launch and avoids a second pass over global memory where possible.
#include "live/device/cuda/cuda.cuh"

// A block per row of the pass. Reads one row of the table (and of the positions) and writes one
// row. Row r of a batch is token r % tokens of its sequence.
static __global__ void embed_kernel(float *out, int64_t stride, const void *table,
                                    dsc_dtype table_dtype, const void *positions,
                                    dsc_dtype positions_dtype, int64_t width, float scale,
                                    cuda_pass pass)
{
    cuda_wait_previous();
    const int64_t row = blockIdx.x;
    const int64_t token = pass.token[row];
    const int64_t position = pass.position[row % pass.tokens] + cuda_shift(pass, row / pass.tokens);
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
        float x = scale * cuda_element(table, table_dtype, token * width + i);
        if (positions)
            x += cuda_element(positions, positions_dtype, position * width + i);
        out[row * stride + i] = x;
    }
}

int cuda_embed(live_backend *b, float *out, int64_t stride, const live_matrix *table,
               const live_matrix *positions, float scale, dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    const int64_t learned = positions ? positions->rows : 0;
    int failed = cuda_use(c, err);
    if (!failed)
        failed = cuda_check_tokens(c->batch, table->rows, learned, err);
    if (failed)
        return failed;
    if (c->current) { // a replay has checked the tokens before
        c->current->vocab = table->rows;
        c->current->learned = learned;
    }
    for (int i = 0; i < c->parts && !failed; i++) {
        const int64_t rows = c->pass[i].tokens * c->pass[i].sequences;
        failed = cuda_launch(
            c, "embed", embed_kernel, dim3((unsigned)rows), cuda_threads(table->cols, 4), err, out,
            stride, table->data, table->dtype, positions ? positions->data : NULL,
            positions ? positions->dtype : DSC_F32, table->cols, scale, c->pass[i]);
        out += rows * stride;
    }
    return failed;
}

// A block per row: out row to[r] = in row from[r]; a NULL list stands for r itself.
static __global__ void copy_rows_kernel(float *out, int64_t out_stride, const int32_t *to,
                                        const float *in, int64_t in_stride, const int32_t *from,
                                        int64_t width)
{
    cuda_wait_previous();
    const int64_t row = blockIdx.x;
    float *o = out + (to ? to[row] : row) * out_stride;
    const float *x = in + (from ? from[row] : row) * in_stride;
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x)
        o[i] = x[i];
}

// The list and its length; NULL if this pass has none.
static const int32_t *list_of(const live_cuda *c, live_index list, int64_t *count)
{
    const cuda_pass *pass = c->pass;
    *count = list == LIVE_OUTPUTS ? pass->outputs : pass->tokens;
    return list == LIVE_OUTPUTS ? pass->output : list == LIVE_SLOTS ? pass->slot : pass->feature;
}

int cuda_gather(live_backend *b, float *out, int64_t out_stride, const float *in, int64_t in_stride,
                int64_t width, live_index list, dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    int64_t count = 0;
    const int32_t *from = list_of(c, list, &count);
    const int failed = cuda_use(c, err);
    if (failed || count == 0)
        return failed;
    if (!from)
        return dsc_fail(err, DSC_EUSAGE, "%s: gather: the pass has no such list", b->device);
    return cuda_launch(c, "gather", copy_rows_kernel, dim3((unsigned)count), cuda_threads(width, 4),
                       err, out, out_stride, (const int32_t *)NULL, in, in_stride, from, width);
}

int cuda_scatter(live_backend *b, float *out, const float *in, int64_t width, live_index list,
                 dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    int64_t count = 0;
    const int32_t *to = list_of(c, list, &count);
    const int failed = cuda_use(c, err);
    if (failed || count == 0)
        return failed;
    if (!to)
        return dsc_fail(err, DSC_EUSAGE, "%s: scatter: the pass has no such list", b->device);
    return cuda_launch(c, "scatter", copy_rows_kernel, dim3((unsigned)count),
                       cuda_threads(width, 4), err, out, width, to, in, width,
                       (const int32_t *)NULL, width);
}

// A block per row, about 4 numbers per thread. The row is read from global memory once and then
// from the L1 cache. The layer norm's variance is computed from differences from the mean (two
// passes), because the one-pass formula cancels. `out` may be `in`: each number is read and written
// by one thread.
static __global__ void norm_kernel(void *out, dsc_dtype dtype, const float *in, const float *weight,
                                   const float *bias, bool centered, float epsilon, int64_t width)
{
    cuda_wait_previous();
    const float *x = in + blockIdx.x * width;
    float mean = 0.0f;
    if (centered) {
        float sum = 0.0f;
        for (int64_t i = threadIdx.x; i < width; i += blockDim.x)
            sum += x[i];
        mean = cuda_block_sum(sum) / (float)width;
    }
    float square = 0.0f;
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x)
        square = fmaf(x[i] - mean, x[i] - mean, square);
    const float scale = 1.0f / sqrtf(cuda_block_sum(square) / (float)width + epsilon);
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
        const float y = (x[i] - mean) * scale * weight[i];
        cuda_store(out, dtype, blockIdx.x * width + i, bias ? y + bias[i] : y);
    }
}

int cuda_norm_to(live_cuda *c, void *out, dsc_dtype dtype, const float *in, const live_norming *n,
                 int64_t rows, int64_t width, dsc_error *err)
{
    return rows == 0 ? DSC_OK
                     : cuda_launch(c, "norm", norm_kernel, rows, cuda_threads(width, 4), err, out,
                                   dtype, in, n->weight, n->bias, n->kind == LIVE_LAYER_NORM,
                                   (float)n->epsilon, width);
}

int cuda_norm(live_backend *b, float *out, const float *in, const live_norming *n, int64_t rows,
              int64_t width, dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    const int failed = cuda_use(c, err);
    return failed ? failed : cuda_norm_to(c, out, DSC_F32, in, n, rows, width, err);
}

// A thread per number.
static __global__ void add_kernel(float *out, const float *in, int64_t count)
{
    cuda_wait_previous();
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        out[i] += in[i];
}

int cuda_add(live_backend *b, float *out, const float *in, int64_t count, dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    const int failed = cuda_use(c, err);
    if (failed || count == 0)
        return failed;
    return cuda_launch(c, "add", add_kernel, dim3((unsigned)cuda_blocks(count, 256)), 256, err, out,
                       in, count);
}

// A thread per number of `out`.
static __global__ void spread_kernel(float *out, const float *in, const int32_t *column,
                                     int64_t in_width, int64_t width, int64_t count)
{
    cuda_wait_previous();
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    const int32_t at = column[i % width];
    out[i] = at < 0 ? -INFINITY : in[i / width * in_width + at];
}

int cuda_spread(live_backend *b, float *out, const float *in, const int32_t *column, int64_t rows,
                int64_t in_width, int64_t width, dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    const int64_t count = rows * width;
    const int failed = cuda_use(c, err);
    if (failed || count == 0)
        return failed;
    return cuda_launch(c, "spread", spread_kernel, dim3((unsigned)cuda_blocks(count, 256)), 256,
                       err, out, in, column, in_width, width, count);
}

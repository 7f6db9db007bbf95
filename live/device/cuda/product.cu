// SPDX-License-Identifier: Apache-2.0
// Products with weight matrices, with the norm before and the activation after them.
//
// Activations are rounded to the weights' dtype for any number of rows, so that all kernels compute
// the same products; sums are F32. Few rows go through kernels of our own that read the weights
// once at the speed of the memory (skinny.cu up to 4 rows, tensor.cu up to 64) and include norm and
// activation; more rows go to cuBLAS. An invariant backend always multiplies CUDA_INVARIANT_ROWS
// rows, filled up with zeros: equal shapes use the same cuBLAS kernel, and none of them mixes rows.
#include "live/device/cuda/weights.cuh"

static weights_job job_of(const live_product *p, void *out, const void *in, int64_t rows)
{
    weights_job j = {};
    j.out = out;
    j.w = p->w->data;
    j.in = in;
    j.bias = p->bias;
    j.norm = p->norm.weight;
    j.norm_bias = p->norm.bias;
    j.centered = p->norm.kind == LIVE_LAYER_NORM;
    j.epsilon = (float)p->norm.epsilon;
    j.in_dtype = p->in_dtype;
    j.out_dtype = p->out_dtype;
    j.activate = p->activate;
    j.activation = p->activation;
    j.gated = p->activate && live_is_gated(p->activation);
    j.add = p->add;
    j.rows = rows;
    j.n = p->w->rows;
    j.k = p->w->cols;
    return j;
}

// --- the input of other kernels ------------------------------------------------------------------

// A thread per number: rounds `count` numbers to `dtype` and writes zeros after them, up to
// `padded`.
static __global__ void convert_kernel(void *out, dsc_dtype dtype, const void *in,
                                      dsc_dtype in_dtype, int64_t count, int64_t padded)
{
    cuda_wait_previous();
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < padded)
        cuda_store(out, dtype, i, i < count ? cuda_element(in, in_dtype, i) : 0.0f);
}

// Converts `rows` rows of `in` to the weights' dtype in scratch memory, with zeros up to `padded`
// rows.
static int convert(live_cuda *c, const live_matrix *w, const void *in, dsc_dtype in_dtype,
                   int64_t rows, int64_t padded, const void **out, dsc_error *err)
{
    const int64_t all = padded * w->cols;
    void *room = NULL;
    const int failed =
        cuda_scratch(c, CUDA_ACTIVATIONS, (size_t)all * dsc_dtype_bytes(w->dtype), &room, err);
    *out = room;
    return failed ? failed
                  : cuda_launch(c, "convert", convert_kernel, cuda_blocks(all, 256), 256, err, room,
                                w->dtype, in, in_dtype, rows * w->cols, all);
}

// Returns the product's input, normed and in the weights' dtype: in place, or in *p's or scratch
// memory.
static int input_of(live_cuda *c, const live_product *p, const void **in, int64_t rows,
                    dsc_error *err)
{
    const dsc_dtype dtype = p->w->dtype;
    if (p->norm.weight) {
        const int failed =
            cuda_norm_to(c, p->normed, dtype, (const float *)*in, &p->norm, rows, p->w->cols, err);
        *in = p->normed;
        return failed;
    }
    return p->in_dtype == dtype ? DSC_OK : convert(c, p->w, *in, p->in_dtype, rows, rows, in, err);
}

// --- what follows other kernels ------------------------------------------------------------------

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
    return cuda_launch(c, "product: epilogue", epilogue_kernel, cuda_blocks(rows * n, 256), 256,
                       err, out, more, bias, add, rows * n, n);
}

// A thread per number of the result.
static __global__ void activate_kernel(void *out, dsc_dtype dtype, const float *in,
                                       live_activation kind, bool gated, int64_t count,
                                       int64_t width)
{
    cuda_wait_previous();
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    const float *x = in + (gated ? i / width * 2 * width + i % width : i);
    cuda_store(out, dtype, i, weights_activated(x[0], kind) * (gated ? x[width] : 1.0f));
}

// --- many rows -----------------------------------------------------------------------------------

// out = in w^T + bias (+ out) by cuBLAS; `in` has the weights' dtype.
static int multiply(live_cuda *c, float *out, const live_product *p, const void *in, int64_t rows,
                    dsc_error *err)
{
    int failed = DSC_OK;
    if (p->bias)
        failed = epilogue(c, out, NULL, p->bias, p->add, rows, p->w->rows, err);
    return failed ? failed
                  : cuda_gemm(c, out, p->w, in, rows, p->add || p->bias ? 1.0f : 0.0f, err);
}

// The same product with a fixed number of rows at a time; `in` has any dtype.
static int multiply_invariant(live_cuda *c, float *out, const live_product *p, const void *in,
                              dsc_dtype in_dtype, int64_t rows, dsc_error *err)
{
    const int64_t each = CUDA_INVARIANT_ROWS, n = p->w->rows, k = p->w->cols;
    void *products = NULL;
    int failed = cuda_scratch(c, CUDA_PRODUCTS, (size_t)(each * n) * sizeof(float), &products, err);
    for (int64_t first = 0; first < rows && !failed; first += each) {
        const int64_t now = rows - first < each ? rows - first : each;
        const void *part = (const char *)in + (size_t)(first * k) * dsc_dtype_bytes(in_dtype);
        failed = convert(c, p->w, part, in_dtype, now, each, &part, err);
        if (!failed)
            failed = cuda_gemm(c, (float *)products, p->w, part, each, 0.0f, err);
        if (!failed)
            failed =
                epilogue(c, out + first * n, (const float *)products, p->bias, p->add, now, n, err);
    }
    return failed;
}

static int many_rows(live_cuda *c, void *out, const live_product *p, const void *in, int64_t rows,
                     dsc_error *err)
{
    float *product = p->activate ? p->wide : (float *)out;
    dsc_dtype in_dtype = p->w->dtype;
    int failed = DSC_OK;
    if (c->base.invariant && !p->norm.weight)
        in_dtype = p->in_dtype; // rounded in pieces
    else
        failed = input_of(c, p, &in, rows, err);
    if (!failed)
        failed = c->base.invariant ? multiply_invariant(c, product, p, in, in_dtype, rows, err)
                                   : multiply(c, product, p, in, rows, err);
    if (failed || !p->activate)
        return failed;
    const bool gated = live_is_gated(p->activation);
    const int64_t width = gated ? p->w->rows / 2 : p->w->rows;
    return cuda_launch(c, "product: activate", activate_kernel, cuda_blocks(rows * width, 256), 256,
                       err, out, p->out_dtype, (const float *)product, p->activation, gated,
                       rows * width, width);
}

// --- which kernel --------------------------------------------------------------------------------

int cuda_product(live_backend *b, void *out, const void *in, int64_t rows, const live_product *p,
                 dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    const live_matrix *w = p->w;
    int failed = cuda_use(c, err);
    if (failed || rows == 0 || w->rows == 0)
        return failed;
    if (p->activate && p->add)
        return dsc_fail(err, DSC_EUSAGE, "product: `activate` and `add` cannot be combined");
    if (p->out_dtype != DSC_F32 && !p->activate)
        return dsc_fail(err, DSC_EUSAGE, "product: a result in %s needs an activation",
                        dsc_dtype_name(p->out_dtype));
    bool done = false;
    weights_job j = job_of(p, out, in, rows);
    if (!b->invariant && (p->in_dtype == DSC_F32 || (p->in_dtype == w->dtype && !p->norm.weight)))
        failed = cuda_skinny(c, &j, w->dtype, &done, err);
    if (failed || done)
        return failed;
    if (!b->invariant && rows <= CUDA_TENSOR_ROWS && w->dtype != DSC_F32 && w->cols % 8 == 0) {
        failed = input_of(c, p, &j.in, rows, err);
        j.norm = NULL;
        if (!failed)
            failed = cuda_tensor(c, &j, w->dtype, &done, err);
    }
    return failed || done ? failed : many_rows(c, out, p, in, rows, err);
}

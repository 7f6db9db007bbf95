// SPDX-License-Identifier: Apache-2.0
// Checks of products with weight matrices, with norm and activation. A device's single kernel is
// compared with the CPU's norm, product and activation in sequence, with the input rounded to the
// weights' dtype in between, as a device rounds it.
#include "tests/ops/check_ops.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static const dsc_dtype dtypes[] = {DSC_F32, DSC_F16, DSC_BF16};
enum { DTYPES = 3 };

// The form of a product apart from its matrix.
typedef struct form {
    bool bias, add, stored; // stored: activations in the cache's dtype of the device
    int norm;               // 0: none; 1: RMS; 2: layer; 3: layer with bias
    int activation;         // -1: none; else a live_activation
} form;

static const form forms[] = {
    {false, false, false, 0, -1},        {true, false, false, 0, -1},
    {false, true, true, 0, -1},          {true, true, false, 0, -1},
    {false, false, false, 1, -1},        {false, false, true, 1, LIVE_SILU_GATE},
    {true, false, true, 3, LIVE_GELU},   {true, false, false, 2, LIVE_GELU_TANH},
    {false, false, false, 0, LIVE_SILU}, {true, false, true, 1, LIVE_SILU_GATE},
    {true, true, true, 0, -1},           {false, false, true, 1, LIVE_GELU_TANH_GATE},
};
enum { FORMS = sizeof forms / sizeof *forms };

typedef struct scene {
    twin w, bias, norm, norm_bias, in, out, normed, wide;
    live_matrix m[2]; // on the CPU, on the device
    live_product p[2];
} scene;

static void scene_new(check *c, scene *s, dsc_dtype dtype, int64_t rows, int64_t n, int64_t k,
                      const form *f)
{
    const dsc_dtype stored = f->stored ? c->device->type->memory.cache_dtype(dtype) : DSC_F32;
    const bool gated = f->activation >= 0 && live_is_gated((live_activation)f->activation);
    s->w = check_twin(c, n * k, dtype, dtype);
    s->bias = check_twin(c, n, DSC_F32, DSC_F32);
    s->norm = check_twin(c, k, DSC_F32, DSC_F32);
    s->norm_bias = check_twin(c, k, DSC_F32, DSC_F32);
    s->in = check_twin(c, rows * k, DSC_F32, f->norm ? DSC_F32 : stored);
    s->out = check_twin(c, rows * (gated ? n / 2 : n) + 5, DSC_F32,
                        f->activation >= 0 ? stored : DSC_F32);
    s->normed = check_twin(c, rows * k, DSC_F32, DSC_F32);
    s->wide = check_twin(c, rows * n, DSC_F32, DSC_F32);
    check_twin_fill(c, &s->w, 0, n * k, dtype, 1);
    check_twin_fill(c, &s->bias, 0, n, DSC_F32, 1);
    check_twin_fill(c, &s->norm, 0, k, DSC_F32, 1);
    check_twin_fill(c, &s->norm_bias, 0, k, DSC_F32, 1);
    check_twin_fill(c, &s->in, 0, rows * k, f->norm ? DSC_F32 : dtype, 1);
    if (f->add)
        check_twin_fill(c, &s->out, 0, rows * n, DSC_F32, 1);
    for (int side = 0; side < 2; side++) {
        s->m[side] = (live_matrix){side ? s->w.device : s->w.cpu, dtype, n, k};
        s->p[side] = (live_product){
            .w = &s->m[side],
            .bias = !f->bias ? NULL
                    : side   ? s->bias.device
                             : s->bias.cpu,
            .norm = {.weight = !f->norm ? NULL
                               : side   ? s->norm.device
                                        : s->norm.cpu,
                     .bias = f->norm < 3 ? NULL
                             : side      ? s->norm_bias.device
                                         : s->norm_bias.cpu,
                     .kind = f->norm > 1 ? LIVE_LAYER_NORM : LIVE_RMS_NORM,
                     .epsilon = 1e-5},
            .activate = f->activation >= 0,
            .activation = f->activation >= 0 ? (live_activation)f->activation : LIVE_SILU,
            .add = f->add,
            .in_dtype = side ? s->in.device_dtype : DSC_F32,
            .out_dtype = side ? s->out.device_dtype : DSC_F32,
            .normed = side ? s->normed.device : s->normed.cpu,
            .wide = side ? s->wide.device : s->wide.cpu};
    }
}

static void scene_free(check *c, scene *s)
{
    check_twin_free(c, &s->w);
    check_twin_free(c, &s->bias);
    check_twin_free(c, &s->norm);
    check_twin_free(c, &s->norm_bias);
    check_twin_free(c, &s->in);
    check_twin_free(c, &s->out);
    check_twin_free(c, &s->normed);
    check_twin_free(c, &s->wide);
}

// The CPU's product of the normed input, rounded as the device rounds it.
static void expected(check *c, scene *s, dsc_dtype dtype, int64_t rows, int64_t k)
{
    const dsc_dtype kept = c->device->type->memory.cache_dtype(dtype);
    live_product p = s->p[0];
    void *in = s->in.cpu;
    if (p.norm.weight) {
        float *x = s->normed.cpu;
        check_call(c, c->cpu->type->pass.norm(c->cpu, x, in, &p.norm, rows, k, &c->error), "norm");
        for (int64_t i = 0; i < rows * k; i++)
            x[i] = check_rounded(x[i], kept);
        p.norm.weight = NULL;
        in = x;
    }
    check_call(c, c->cpu->type->pass.product(c->cpu, s->out.cpu, in, rows, &p, &c->error),
               "product");
}

static void product(check *c, dsc_dtype dtype, int64_t rows, int64_t n, int64_t k, const form *f)
{
    static const char *const norms[] = {"", ", RMS norm", ", layer norm", ", layer norm with bias"};
    static const char *const names[] = {"",       ", silu gate",     ", gelu", ", gelu tanh",
                                        ", silu", ", gelu tanh gate"};
    const dsc_dtype kept = c->device->type->memory.cache_dtype(dtype);
    check_pass p = check_pass_new(c, rows, 1, 0, 0, false, 9);
    scene s;
    scene_new(c, &s, dtype, rows, n, k, f);
    check_begin(c, &p.batch);
    expected(c, &s, dtype, rows, k);
    check_call(c,
               c->device->type->pass.product(c->device, s.out.device, s.in.device, rows, &s.p[1],
                                             &c->error),
               "product");
    check_end(c);
    // The order of the sums; one of k normed numbers that is rounded the other way, by a unit in
    // the last place; the rounding of the result.
    const double e = check_twin_error(c, &s.out);
    const double tolerance = 2e-5 + (f->norm ? 2 * check_half_unit(kept) / sqrt((double)k) : 0) +
                             check_half_unit(s.out.device_dtype);
    check_line(c, e <= tolerance, e, tolerance,
               "product %s, %" PRId64 " x %" PRId64 " x %" PRId64 "%s%s%s%s%s",
               dsc_dtype_name(dtype), rows, n, k, norms[f->norm], f->bias ? ", bias" : "",
               names[f->activation + 1], f->add ? ", add" : "",
               f->stored ? ", activations in the device's dtype" : "");
    scene_free(c, &s);
    check_pass_free(&p);
}

// F32 activations that the weights' dtype cannot represent: the product must match the CPU's.
static void rough_product(check *c, dsc_dtype dtype, int64_t rows)
{
    enum { N = 96, K = 256 };
    const form plain = {false, false, false, 0, -1};
    check_pass p = check_pass_new(c, rows, 1, 0, 0, false, 9);
    scene s;
    scene_new(c, &s, dtype, rows, N, K, &plain);
    check_twin_fill(c, &s.in, 0, s.in.count, DSC_F32, 1);
    check_begin(c, &p.batch);
    for (int side = 0; side < 2; side++) {
        live_backend *b = side ? c->device : c->cpu;
        check_call(c,
                   b->type->pass.product(b, side ? s.out.device : s.out.cpu,
                                         side ? s.in.device : s.in.cpu, rows, &s.p[side],
                                         &c->error),
                   "product");
    }
    check_end(c);
    const double e = check_twin_error(c, &s.out), tolerance = 2e-5 + 2 * check_half_unit(dtype);
    check_line(c, e <= tolerance, e, tolerance, "product %s, %" PRId64 " rows of F32 activations",
               dsc_dtype_name(dtype), rows);
    scene_free(c, &s);
    check_pass_free(&p);
}

void check_products(check *c)
{
    // Around the steps from one kernel to the next, and within tiles of 8, 16, 32 and 64 rows.
    const int64_t rows[] = {1, 2, 3, 4, 5, 8, 9, 16, 17, 33, 47, 64, 65, 130};
    // Rows of weights around tiles and columns around vectors, chunks and splits of k; 3 rows of
    // 8192 16-bit numbers are the 48 KB of shared memory that a kernel has without asking. The last
    // ones are for a device or a full run.
    const int64_t shapes[][2] = {{1, 1},      {6, 7},       {34, 40},    {35, 64},
                                 {67, 250},   {258, 136},   {100, 2056}, {10, 8192},
                                 {1026, 192}, {1024, 1024}, {4096, 4096}};
    enum { ROWS = sizeof rows / sizeof *rows, SHAPES = sizeof shapes / sizeof *shapes };
    for (int d = 0; d < DTYPES; d++)
        for (int s = 0; s < (c->quick ? SHAPES - 3 : SHAPES); s++)
            for (int r = 0; r < ROWS; r++) {
                const bool large = shapes[s][0] * shapes[s][1] * rows[r] > 1 << 22;
                for (int i = 0; i < (c->quick || large ? 1 : 3); i++) {
                    const form *f = &forms[(d + 3 * s + 5 * r + i) % FORMS];
                    if (f->activation < 0 || !live_is_gated((live_activation)f->activation) ||
                        shapes[s][0] % 2 == 0)
                        product(c, dtypes[d], rows[r], shapes[s][0], shapes[s][1], f);
                }
            }
    for (int d = 0; d < DTYPES; d++)
        for (int r = 0; r < ROWS; r += 4)
            rough_product(c, dtypes[d], rows[r]);
}

// SPDX-License-Identifier: Apache-2.0
// Measures the processor: how fast it reads memory, and how fast it multiplies matrices.
#include "live/device/clock.h"
#include "live/device/cpu.h"

#include <math.h>
#include <string.h>

enum { TRIES = 7 };

// Returns the best of a few measurements, because disturbances only make them slower.
static int probe_read(live_backend *b, double *bytes_s, dsc_error *err)
{
    enum { BLOCK = 1 << 18 }; // numbers
    double free_bytes, total_bytes, best_s = INFINITY;
    int rc = live_cpu_available(b, &free_bytes, &total_bytes, err);
    if (rc)
        return rc;
    int64_t blocks = 256; // 256 MiB
    while (blocks > 16 && (double)blocks * BLOCK * sizeof(float) > free_bytes / 4)
        blocks /= 2;
    void *p;
    rc = live_cpu_alloc(b, &p, (size_t)blocks * BLOCK * sizeof(float), err);
    if (rc)
        return rc;
    const float *x = memset(p, 0, (size_t)blocks * BLOCK * sizeof(float));
    float sum = 0;
    for (int i = 0; i < TRIES; i++) {
        double start = live_now_s();
#pragma omp parallel for schedule(static) num_threads(b->threads) reduction(+ : sum)
        for (int64_t block = 0; block < blocks; block++)
            sum += cpu_of(b)->kernel->total(x + block * BLOCK, BLOCK);
        double s = live_now_s() - start;
        best_s = s < best_s ? s : best_s;
    }
    live_cpu_free(b, p);
    if (!(sum == 0)) // the sum of the zeros, which also keeps the loop from being removed
        return dsc_fail(err, DSC_ECHECK, "probe: the sum of zeros is %g", (double)sum);
    *bytes_s = (double)blocks * BLOCK * sizeof(float) / best_s;
    return DSC_OK;
}

static int probe_products(live_backend *b, dsc_dtype dtype, double *flops_s, dsc_error *err)
{
    enum { ROWS = 512, COLS = 1024 };
    live_matrix w = {.dtype = dtype, .rows = COLS, .cols = COLS};
    void *in = NULL, *out = NULL;
    double best_s = INFINITY;
    int rc = live_cpu_alloc(b, &w.data, (size_t)COLS * COLS * dsc_dtype_bytes(dtype), err);
    if (!rc)
        rc = live_cpu_alloc(b, &in, (size_t)ROWS * COLS * sizeof(float), err);
    if (!rc)
        rc = live_cpu_alloc(b, &out, (size_t)ROWS * COLS * sizeof(float), err);
    if (!rc)
        rc = live_cpu_fill(b, w.data, dtype, (int64_t)COLS * COLS, 1, 0, 1, err);
    if (!rc)
        rc = live_cpu_fill(b, in, DSC_F32, (int64_t)ROWS * COLS, 1, 1, 1, err);
    for (int i = 0; i < TRIES && !rc; i++) {
        double start = live_now_s();
        rc = live_cpu_matmul(b, out, &w, NULL, in, ROWS, false, err);
        double s = live_now_s() - start;
        best_s = s < best_s ? s : best_s;
    }
    live_cpu_free(b, w.data);
    live_cpu_free(b, in);
    live_cpu_free(b, out);
    *flops_s = 2. * ROWS * COLS * COLS / best_s;
    return rc;
}

int live_cpu_probe(live_backend *b, dsc_dtype dtype, live_probe *out, dsc_error *err)
{
    int rc = probe_read(b, &out->read_bytes_s, err);
    return rc ? rc : probe_products(b, dtype, &out->flops_s, err);
}

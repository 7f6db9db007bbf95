// SPDX-License-Identifier: Apache-2.0
// A CPU backend for each kernel that this processor has, and numbers for its operations.
#ifndef DSC_TESTS_LIVE_OPS_FIXTURE_H
#define DSC_TESTS_LIVE_OPS_FIXTURE_H

#include "tests/close.h"

#include "base/rng.h"
#include "live/device/cpu.h"

#include <string.h>

enum { USE_TEST = 0x7e57 };

static const live_cpu_kernel *kernel; // of the test that runs
static live_backend *backend;

static inline double uniform(uint64_t stream, int64_t i)
{
    return 2 * dsc_rng_uniform(3, stream, (uint32_t)i, USE_TEST) - 1;
}

static inline float *numbers(int64_t n, uint64_t stream)
{
    dsc_error err;
    void *p;
    assert_ok(backend->type->memory.alloc(backend, &p, (size_t)n * sizeof(float), &err), err);
    for (int64_t i = 0; i < n; i++)
        ((float *)p)[i] = (float)uniform(stream, i);
    return p;
}

static inline float *poison(int64_t n)
{
    float *p = numbers(n, 0);
    for (int64_t i = 0; i < n; i++)
        p[i] = NAN;
    return p;
}

static inline void drop(void *p)
{
    backend->type->memory.free(backend, p);
}

static inline live_matrix matrix(int64_t rows, int64_t cols, dsc_dtype dtype, uint64_t stream)
{
    dsc_error err;
    live_matrix m = {.dtype = dtype, .rows = rows, .cols = cols};
    assert_ok(backend->type->memory.alloc(backend, &m.data,
                                          (size_t)(rows * cols) * dsc_dtype_bytes(dtype), &err),
              err);
    assert_ok(backend->type->memory.fill(backend, m.data, dtype, rows * cols, 5, stream, 1, &err),
              err);
    return m;
}

static inline double at(const live_matrix *m, int64_t i)
{
    const uint16_t *half = m->data;
    return m->dtype == DSC_F32    ? ((const float *)m->data)[i]
           : m->dtype == DSC_BF16 ? live_from_bf16(half[i])
                                  : live_from_f16(half[i]);
}

static inline void begin(const live_batch *batch)
{
    dsc_error err;
    bool replayed = true;
    assert_ok(backend->type->pass.begin(backend, (live_pass_key){0}, batch, &replayed, &err), err);
    assert_false(replayed);
}

static inline void end(void)
{
    dsc_error err;
    assert_ok(backend->type->pass.end(backend, &err), err);
    assert_ok(backend->type->pass.wait(backend, &err), err);
}

static inline void same_bits(const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], sizeof *a))
            fail_msg("number %lld: %.9g and %.9g", (long long)i, (double)a[i], (double)b[i]);
}

static inline int open_backend(void **state)
{
    dsc_error err;
    (void)state;
    if (live_backend_cpu(&backend, 2, false, &err))
        return -1;
    cpu_of(backend)->kernel = kernel;
    return 0;
}

static inline int close_backend(void **state)
{
    (void)state;
    backend->type->close(backend);
    return 0;
}

// The tests with every kernel; how many failed.
static inline int run_each(const struct CMUnitTest *tests, size_t count)
{
    int failed = 0;
    for (int k = 0; live_cpu_kernels[k]; k++)
        if (live_cpu_kernels[k]->supported()) {
            kernel = live_cpu_kernels[k];
            print_message("# %s\n", kernel->name);
            failed +=
                _cmocka_run_group_tests(kernel->name, tests, count, open_backend, close_backend);
        }
    kernel = live_cpu_kernel_choose();
    return failed;
}

#endif

// SPDX-License-Identifier: Apache-2.0
// The CUDA backend when a device lacks something, and the life of its graphs, on the emulated
// device: which errors are reported, which are recovered from, and which passes are replayed. The
// last test checks the register layouts of the tensor cores.
#include "tests/close.h"

#include "live/device/cpu_kernel.h"

#include "tests/cuda_host/emulated.h"

#include <string.h>

enum { WIDTH = 8, ACTIVATIONS = 0, OVERLAP = 4 }; // cuda_scratch_use

static const size_t MEGABYTE = (size_t)1 << 20;

static void settings(void)
{
    emulated_memory = 1024 * MEGABYTE;
    emulated_allocations = -1;
    emulated_devices = 1;
    emulated_driver = 13000;
    emulated_capability = 90;
    emulated_no_kernels = emulated_no_blas = emulated_busy = false;
    emulated_capture_errors = 0;
    emulated_launches = -1;
}

// --- opening -------------------------------------------------------------------------------------

static void refused(const char *device, const char *words)
{
    live_backend *b = NULL;
    dsc_error err = {0};
    const int rc = live_backend_open(&b, device, 1, false, &err);
    if (rc != DSC_EABSENT || b || !strstr(err.message, words))
        fail_msg("%s: status %d, \"%s\" is not in \"%s\"", device, rc, words, err.message);
    settings();
}

static void test_what_is_not_here_is_named(void **state)
{
    (void)state;
    emulated_driver = 0;
    refused("cuda", "no device: there is no driver");
    emulated_driver = 12040;
    refused("cuda", "CUDA 12.4 < 13.0");
    emulated_devices = 0;
    refused("cuda", "no CUDA-capable device");
    refused("cuda:7", "no such device; there is 1, from cuda:0");
    emulated_capability = 75;
    refused("cuda", "compute capability 7.5; at least 8.0 is needed");
    emulated_capability = 120;
    emulated_no_kernels = true;
    refused("cuda", "compute capability 12.0, but the kernels were built for 8.0, 9.0: configure");
    emulated_busy = true;
    refused("cuda", "busy or unavailable");
    assert_int_equal(emulated_used, 0);
}

// --- passes --------------------------------------------------------------------------------------

typedef struct bench {
    live_backend *b;
    float *out, *in; // [WIDTH] on the device
    int32_t zero[WIDTH];
    dsc_error err;
} bench;

static bench open_bench(void)
{
    bench t = {0};
    void *p;
    const float ones[WIDTH] = {1, 1, 1, 1, 1, 1, 1, 1};
    settings();
    assert_ok(live_backend_open(&t.b, "cuda", 1, false, &t.err), t.err);
    assert_ok(t.b->type->memory.alloc(t.b, &p, sizeof ones, &t.err), t.err);
    t.out = p;
    assert_ok(t.b->type->memory.alloc(t.b, &p, sizeof ones, &t.err), t.err);
    t.in = p;
    assert_ok(t.b->type->memory.upload(t.b, t.in, ones, sizeof ones, &t.err), t.err);
    return t;
}

static void close_bench(bench *t)
{
    t->b->type->memory.free(t->b, t->out);
    t->b->type->memory.free(t->b, t->in);
    t->b->type->close(t->b);
    assert_int_equal(emulated_used, 0);
}

// Runs a pass of one token that adds `in` to `out`, with scratch memory if `bytes` > 0. Returns the
// first failure; *replayed: the pass was replayed.
static int pass(bench *t, const void *owner, int use, size_t bytes, bool *replayed)
{
    const live_batch batch = {
        .tokens = 1, .sequences = 1, .token = t->zero, .position = t->zero, .slot = t->zero};
    int rc = t->b->type->pass.begin(t->b, (live_pass_key){owner, 0}, &batch, replayed, &t->err);
    if (!rc && !*replayed && bytes)
        rc = emulated_scratch(t->b, use, bytes, &t->err);
    if (!rc && !*replayed)
        rc = t->b->type->pass.add(t->b, t->out, t->in, WIDTH, &t->err);
    return rc ? rc : t->b->type->pass.end(t->b, &t->err);
}

static bool replayed(bench *t, const void *owner, int use, size_t bytes)
{
    bool is = false;
    assert_ok(pass(t, owner, use, bytes, &is), t->err);
    return is;
}

// The sum that the passes have computed.
static float sum(bench *t)
{
    float out[WIDTH];
    assert_ok(t->b->type->memory.download(t->b, out, t->out, sizeof out, &t->err), t->err);
    return out[WIDTH - 1];
}

static void test_the_graph_used_longest_ago_goes(void **state)
{
    enum { KEPT = 256 };
    static const char owner[KEPT + 1];
    (void)state;
    bench t = open_bench();
    for (int again = 0; again < 2; again++)
        for (int i = 0; i < KEPT; i++)
            assert_false(replayed(&t, owner + i, 0, 0));
    for (int i = 0; i < KEPT; i++)
        assert_true(replayed(&t, owner + i, 0, 0));
    assert_true(replayed(&t, owner, 0, 0));
    assert_false(replayed(&t, owner + KEPT, 0, 0)); // in the entry of the second one
    for (int i = 2; i < KEPT; i++)
        assert_true(replayed(&t, owner + i, 0, 0));
    assert_true(replayed(&t, owner, 0, 0));
    assert_false(replayed(&t, owner + 1, 0, 0));
    assert_true(sum(&t) == 4 * KEPT + 2);
    close_bench(&t);
}

static void test_scratch_that_grows_forgets_what_works_in_it(void **state)
{
    static const char one, other;
    (void)state;
    bench t = open_bench();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(replayed(&t, &one, ACTIVATIONS, 100), i == 2);
        assert_int_equal(replayed(&t, &other, 0, 0), i == 2);
    }
    // 16 MB at first; then twice as much, though a byte more would do.
    const size_t before = emulated_used;
    assert_ok(emulated_scratch(t.b, ACTIVATIONS, 16 * MEGABYTE, &t.err), t.err);
    assert_ok(emulated_scratch(t.b, OVERLAP, 64 * MEGABYTE, &t.err), t.err);
    assert_int_equal(emulated_used, before + 64 * MEGABYTE);
    assert_true(replayed(&t, &one, ACTIVATIONS, 100));
    assert_ok(emulated_scratch(t.b, ACTIVATIONS, 16 * MEGABYTE + 1, &t.err), t.err);
    assert_int_equal(emulated_used, before + 80 * MEGABYTE);
    assert_true(replayed(&t, &other, 0, 0));
    for (int i = 0; i < 3; i++)
        assert_int_equal(replayed(&t, &one, ACTIVATIONS, 100), i == 2);
    // Where memory is short it grows by what is needed, or not at all.
    emulated_memory = emulated_used + 10 * MEGABYTE;
    assert_ok(emulated_scratch(t.b, ACTIVATIONS, 40 * MEGABYTE, &t.err), t.err);
    assert_int_equal(emulated_used, before + 88 * MEGABYTE);
    assert_int_equal(emulated_scratch(t.b, ACTIVATIONS, 400 * MEGABYTE, &t.err), DSC_ENOMEM);
    assert_non_null(strstr(t.err.message, "cudaMalloc of 419430400 bytes: out of memory: "));
    assert_false(replayed(&t, &one, ACTIVATIONS, 100));
    close_bench(&t);
}

static void test_a_pass_that_fails_begins_again(void **state)
{
    static const char first, captured, ended;
    bool is = false;
    (void)state;
    bench t = open_bench();
    // It runs directly again, and is captured after it has ended.
    assert_int_equal(pass(&t, &first, ACTIVATIONS, 2048 * MEGABYTE, &is), DSC_ENOMEM);
    for (int i = 0; i < 3; i++)
        assert_int_equal(replayed(&t, &first, ACTIVATIONS, 100), i == 2);
    // A failure during the capture.
    assert_false(replayed(&t, &captured, 0, 0));
    assert_int_equal(pass(&t, &captured, ACTIVATIONS, 17 * MEGABYTE, &is), DSC_ENOMEM);
    assert_non_null(strstr(t.err.message, "captured"));
    for (int i = 0; i < 3; i++)
        assert_int_equal(replayed(&t, &captured, ACTIVATIONS, 17 * MEGABYTE), i == 2);
    // A failure at the end of the capture.
    assert_false(replayed(&t, &ended, 0, 0));
    emulated_capture_errors = 1;
    assert_int_equal(pass(&t, &ended, 0, 0, &is), DSC_EDEVICE);
    assert_non_null(strstr(t.err.message, "cudaStreamEndCapture: "));
    for (int i = 0; i < 3; i++)
        assert_int_equal(replayed(&t, &ended, 0, 0), i == 2);
    assert_true(sum(&t) == 11); // nothing of the passes that failed
    close_bench(&t);
}

// What a device does wrong is not mistaken for a device that is not there.
static void test_a_device_that_fails_is_not_absent(void **state)
{
    float out[WIDTH];
    static const char owner;
    (void)state;
    bench t = open_bench();
    assert_false(replayed(&t, &owner, 0, 0));
    emulated_launches = 0;
    assert_int_equal(t.b->type->memory.download(t.b, out, t.out, sizeof out, &t.err), DSC_EDEVICE);
    assert_string_equal(t.err.message, "cuda:0 emulated: cudaStreamSynchronize: an illegal memory "
                                       "access was encountered");
    emulated_launches = -1;
    close_bench(&t);
}

// --- switches ------------------------------------------------------------------------------------

// Counts of three passes of two kernels each.
typedef struct switched {
    int replays, overlaps, carved;
} switched;

static switched run_switched(const char *device, const char *name)
{
    static const char owner;
    bench t = {.zero = {0}};
    void *p;
    const switched before = {emulated_replays, emulated_overlaps, emulated_carved};
    settings();
    assert_ok(live_backend_open(&t.b, device, 1, false, &t.err), t.err);
    assert_string_equal(t.b->device, name);
    assert_ok(t.b->type->memory.alloc(t.b, &p, 2 * WIDTH * sizeof(float), &t.err), t.err);
    t.out = p;
    t.in = t.out + WIDTH;
    for (int i = 0; i < 3; i++) {
        const live_batch batch = {
            .tokens = 1, .sequences = 1, .token = t.zero, .position = t.zero, .slot = t.zero};
        bool is;
        assert_ok(t.b->type->pass.begin(t.b, (live_pass_key){&owner, 0}, &batch, &is, &t.err),
                  t.err);
        for (int k = 0; k < 2 && !is; k++)
            assert_ok(t.b->type->pass.add(t.b, t.out, t.in, WIDTH, &t.err), t.err);
        assert_ok(t.b->type->pass.end(t.b, &t.err), t.err);
    }
    t.b->type->memory.free(t.b, t.out);
    t.b->type->close(t.b);
    return (switched){emulated_replays - before.replays, emulated_overlaps - before.overlaps,
                      emulated_carved - before.carved};
}

static void test_switches_change_what_they_name(void **state)
{
    (void)state;
    const switched plain = run_switched("cuda", "cuda:0 emulated");
    assert_int_equal(plain.replays, 2); // the captured pass is launched as a graph, too
    assert_int_equal(plain.overlaps, 3);
    assert_int_equal(plain.carved, 0);
    const switched apart = run_switched("cuda:overlap=0", "cuda:0 emulated overlap=0");
    assert_int_equal(apart.overlaps, 0);
    assert_int_equal(apart.replays, 2);
    const switched direct = run_switched("cuda:0,graphs=0", "cuda:0 emulated graphs=0");
    assert_int_equal(direct.replays, 0);
    assert_int_equal(direct.overlaps, 3);
    const switched carved =
        run_switched("cuda:carveout=100,prefetch=0", "cuda:0 emulated prefetch=0 carveout=100");
    assert_int_equal(carved.carved, 1); // one kernel, which is launched six times
    assert_int_equal(carved.replays, 2);
}

// --- products ------------------------------------------------------------------------------------

static void test_cublas_is_loaded_by_a_product(void **state)
{
    enum { ROWS = 300 };
    void *in, *out;
    float first[WIDTH];
    (void)state;
    const int before = emulated_handles;
    bench t = open_bench();
    live_matrix w = {NULL, DSC_F32, WIDTH, WIDTH};
    assert_ok(t.b->type->memory.alloc(t.b, &w.data, WIDTH * WIDTH * sizeof(float), &t.err), t.err);
    assert_ok(t.b->type->memory.alloc(t.b, &in, ROWS * WIDTH * sizeof(float), &t.err), t.err);
    assert_ok(t.b->type->memory.alloc(t.b, &out, ROWS * WIDTH * sizeof(float), &t.err), t.err);
    for (int i = 0; i < WIDTH; i++)
        assert_ok(
            t.b->type->memory.copy(t.b, (float *)w.data + i * WIDTH, t.in, sizeof first, &t.err),
            t.err);
    assert_ok(t.b->type->memory.copy(t.b, in, t.in, sizeof first, &t.err), t.err);
    assert_ok(live_matmul(t.b, out, &w, NULL, in, 1, false, &t.err), t.err);
    assert_int_equal(emulated_handles, before);
    emulated_no_blas = true;
    for (int again = 0; again < 2; again++) {
        assert_int_equal(live_matmul(t.b, out, &w, NULL, in, ROWS, false, &t.err), DSC_EABSENT);
        assert_non_null(strstr(t.err.message, "cuBLAS cannot be loaded: libcublas.so.none"));
        assert_non_null(strstr(t.err.message, "LD_LIBRARY_PATH"));
        assert_non_null(strstr(t.err.message, "install cuBLAS of CUDA 13"));
    }
    emulated_no_blas = false;
    emulated_memory = emulated_used + MEGABYTE;
    assert_int_equal(live_matmul(t.b, out, &w, NULL, in, ROWS, false, &t.err), DSC_ENOMEM);
    emulated_memory = 1024 * MEGABYTE;
    for (int again = 0; again < 2; again++)
        assert_ok(live_matmul(t.b, out, &w, NULL, in, ROWS, false, &t.err), t.err);
    assert_int_equal(emulated_handles, before + 2); // one without a workspace, and one with
    assert_ok(t.b->type->memory.download(t.b, first, out, sizeof first, &t.err), t.err);
    assert_true(first[WIDTH - 1] == WIDTH);
    t.b->type->memory.free(t.b, w.data);
    t.b->type->memory.free(t.b, in);
    t.b->type->memory.free(t.b, out);
    close_bench(&t);
}

// --- launches ------------------------------------------------------------------------------------

static void test_a_launch_has_limits(void **state)
{
    // Without more ado; 48 KB, to which static memory is added; more; less again; all that a block
    // has but 1 KB for static memory.
    static const int counts[] = {100, (48 << 10) / 4, 20000, 300, (226 << 10) / 4};
    static float out[2 * (227 << 8)];
    void *p;
    (void)state;
    bench t = open_bench();
    assert_ok(t.b->type->memory.alloc(t.b, &p, sizeof out, &t.err), t.err);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const int n = counts[i];
        assert_ok(emulated_reverse(t.b, p, n, 2, &t.err), t.err);
        assert_ok(t.b->type->memory.download(t.b, out, p, sizeof out, &t.err), t.err);
        for (int k = 0; k < 2 * n; k++)
            assert_true(out[k] == (float)(n - 1 - k % n));
    }
    assert_int_equal(emulated_reverse(t.b, p, (226 << 8) + 1, 2, &t.err), DSC_EABSENT);
    assert_non_null(strstr(t.err.message, "231428 bytes of shared memory are needed; a block has "
                                          "231424 at most"));
    assert_int_equal(emulated_reverse(t.b, p, 1, ((int64_t)1 << 32) + 1, &t.err), DSC_EUSAGE);
    assert_non_null(strstr(t.err.message, "reverse: a grid of 4294967297 x 1 x 1 blocks"));
    // CUDA keeps one limit for both: the first backend's limit must hold after the second has set
    // its own.
    live_backend *other;
    assert_ok(live_backend_open(&other, "cuda", 1, false, &t.err), t.err);
    assert_ok(emulated_reverse(other, p, 15000, 2, &t.err), t.err);
    other->type->close(other);
    assert_ok(emulated_reverse(t.b, p, (226 << 10) / 4, 2, &t.err), t.err);
    t.b->type->memory.free(t.b, p);
    close_bench(&t);
}

// --- tensor cores --------------------------------------------------------------------------------

// Strides of lane % 4, of lane / 4 and of each bit of a value's number in a matrix that is stored
// by columns. mma.h and tensor.cu follow the PTX manual; these are an independent source, NVIDIA's
// CuTe: ALayout, BLayout and CLayout of SM80_16x8x16_F32BF16BF16F32_TN, which equal those of
// SM80_16x8x16_F32F16F16F32_TN, in include/cute/atom/mma_traits_sm80.hpp of NVIDIA/cutlass 4.7.0,
// commit 7107b05535f8. Values 2 i and 2 i + 1 of a and b are the low and the high half of register
// i.
typedef struct layout {
    int lane[2], value[3];
} layout;
static const layout layout_a = {{32, 1}, {16, 8, 128}}; // 16 rows, 16 columns
static const layout layout_b = {{16, 1}, {8, 64}};      // 8 rows, 16 columns
static const layout layout_c = {{32, 1}, {16, 8}};      // 16 rows, 8 columns

static int position(const layout *l, int lane, int value)
{
    return lane % 4 * l->lane[0] + lane / 4 * l->lane[1] + value % 2 * l->value[0] +
           value / 2 % 2 * l->value[1] + value / 4 * l->value[2];
}

// Compares the sums of tensor_multiply with those of loops; c begins as scale times distinct
// numbers. The numbers of a matrix are distinct integers of 8 bits, so all sums are exact in F32.
static void multiplies(bench *t, dsc_dtype dtype, float scale)
{
    uint16_t (*const convert)(float) = dtype == DSC_F16 ? live_to_f16 : live_to_bf16;
    float a[256], b[128], c[128], sums[4];
    uint32_t registers[32][10] = {{0}};
    void *p;
    for (int i = 0; i < 256; i++)
        a[i] = (float)((i + 1) * 37 % 257 - 128);
    for (int i = 0; i < 128; i++) {
        b[i] = (float)((i + 1) * 45 % 131 - 64);
        c[i] = scale * (float)((i + 1) * 77 % 131 - 64);
    }
    for (int lane = 0; lane < 32; lane++) {
        uint32_t *const r = registers[lane];
        for (int v = 0; v < 8; v++)
            r[v / 2] |= (uint32_t)convert(a[position(&layout_a, lane, v)]) << v % 2 * 16;
        for (int v = 0; v < 4; v++) {
            r[4 + v / 2] |= (uint32_t)convert(b[position(&layout_b, lane, v)]) << v % 2 * 16;
            sums[v] = c[position(&layout_c, lane, v)];
        }
        memcpy(r + 6, sums, sizeof sums);
    }
    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 8; n++)
            for (int k = 0; k < 16; k++)
                c[m + 16 * n] += a[m + 16 * k] * b[n + 8 * k];
    assert_ok(t->b->type->memory.alloc(t->b, &p, sizeof registers, &t->err), t->err);
    assert_ok(t->b->type->memory.upload(t->b, p, registers, sizeof registers, &t->err), t->err);
    assert_ok(emulated_multiply(t->b, p, dtype, &t->err), t->err);
    assert_ok(t->b->type->memory.download(t->b, registers, p, sizeof registers, &t->err), t->err);
    t->b->type->memory.free(t->b, p);
    for (int lane = 0; lane < 32; lane++) {
        memcpy(sums, registers[lane] + 6, sizeof sums);
        for (int v = 0; v < 4; v++)
            if (sums[v] != c[position(&layout_c, lane, v)])
                fail_msg("lane %d, c%d: %g, not %g", lane, v, sums[v],
                         c[position(&layout_c, lane, v)]);
    }
}

// The order in which products load k (tensor.cu) needs no such test: any order gives the same
// result if it is the same for a and b, and check_products fails if it is not.
static void test_registers_of_the_tensor_cores(void **state)
{
    (void)state;
    bench t = open_bench();
    for (int scale = 0; scale < 2; scale++) {
        multiplies(&t, DSC_BF16, (float)scale);
        multiplies(&t, DSC_F16, (float)scale);
    }
    close_bench(&t);
}

SUITE(backend)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_not_here_is_named),
        cmocka_unit_test(test_the_graph_used_longest_ago_goes),
        cmocka_unit_test(test_scratch_that_grows_forgets_what_works_in_it),
        cmocka_unit_test(test_a_pass_that_fails_begins_again),
        cmocka_unit_test(test_a_device_that_fails_is_not_absent),
        cmocka_unit_test(test_switches_change_what_they_name),
        cmocka_unit_test(test_cublas_is_loaded_by_a_product),
        cmocka_unit_test(test_a_launch_has_limits),
        cmocka_unit_test(test_registers_of_the_tensor_cores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

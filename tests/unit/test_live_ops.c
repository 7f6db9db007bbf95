// SPDX-License-Identifier: Apache-2.0
// The operations of the CPU backend but for attention (test_live_attend.c) against plain loops in
// double, with every kernel this processor has; and that a row gets the same bits with any others.
#include "tests/unit/live_ops_fixture.h"

// --- 16-bit floats -------------------------------------------------------------------------------

static double half_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double x = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return bits & 0x8000 ? -x : x;
}

// Converts every value and back, also by the kernel. A number between two values is rounded to the
// nearest, and from half-way to the even one.
static void test_half(void **state)
{
    (void)state;
    uint16_t bits[16];
    float wide[16];
    for (uint32_t u = 0; u < 0x10000; u++) {
        uint16_t h = (uint16_t)u;
        float x = live_from_f16(h), b = live_from_bf16(h);
        bits[u % 16] = h;
        if ((h & 0x7c00) == 0x7c00)
            assert_true(h & 0x3ff ? isnan(x) && isnan(live_from_f16(live_to_f16(x))) : isinf(x));
        else
            assert_true(x == half_value(h) && !signbit(x) == !(h & 0x8000));
        if (!isnan(x))
            assert_int_equal(live_to_f16(x), h);
        if (!isnan(b))
            assert_int_equal(live_to_bf16(b), h);
        else
            assert_true(isnan(live_from_bf16(live_to_bf16(b))));
        if ((h & 0x7fff) < 0x7bff) {
            float up = live_from_f16((uint16_t)(h + 1)), middle = (x + up) / 2;
            assert_int_equal(live_to_f16(middle), h + (h & 1));
            assert_int_equal(live_to_f16(nextafterf(middle, x)), h);
            assert_int_equal(live_to_f16(nextafterf(middle, up)), h + 1);
        }
        if (u % 16 == 15)
            for (int bf16 = 0; bf16 < 2; bf16++) {
                kernel->widen(wide, bits, bf16 ? DSC_BF16 : DSC_F16, 16);
                for (int i = 0; i < 16; i++) {
                    float want = bf16 ? live_from_bf16(bits[i]) : live_from_f16(bits[i]);
                    assert_true(isnan(want) ? isnan(wide[i]) : !memcmp(&want, &wide[i], 4));
                }
            }
    }
    assert_int_equal(live_to_f16(65519.f), 0x7bff);
    assert_int_equal(live_to_f16(65520.f), 0x7c00);
    assert_int_equal(live_to_f16(-1e30f), 0xfc00);
    assert_int_equal(live_to_f16(0x1p-25f), 0);
    assert_int_equal(live_to_f16(0x1.000002p-25f), 1);
    assert_int_equal(live_to_bf16(0x1.01p0f), 0x3f80); // half-way
    assert_int_equal(live_to_bf16(0x1.03p0f), 0x3f82);
    assert_int_equal(live_to_bf16(0x1.010002p0f), 0x3f81);
    assert_int_equal(live_to_bf16(3.4e38f), 0x7f80);
}

static void test_fill(void **state)
{
    (void)state;
    enum { COUNT = 200003 };
    dsc_error err;
    live_matrix f = {poison(COUNT), DSC_F32, 1, COUNT};
    double sum = 0, squares = 0;
    assert_ok(backend->type->memory.fill(backend, f.data, DSC_F32, COUNT, 7, 1ull << 40, .25, &err),
              err);
    for (int64_t i = 0; i < COUNT; i++) {
        uint32_t word[4];
        double x = at(&f, i);
        dsc_rng_words(7, 1ull << 40, (uint32_t)(i / 4), DSC_RNG_WEIGHTS, word);
        assert_true(x >= -.25 && x < .25);
        assert_true(x == .25 * ((double)(word[i % 4] >> 8) * 0x1p-23 - 1));
        sum += x;
        squares += x * x;
    }
    assert_close(sum / COUNT, 0, 5 * .25 / sqrt(3. * COUNT));
    assert_close(squares / COUNT, .0625 / 3, 1e-3);
    live_matrix b = matrix(1, 999, DSC_BF16, 4), h = matrix(1, 999, DSC_F16, 4),
                w = matrix(1, 999, DSC_F32, 4);
    for (int64_t i = 0; i < 999; i++) {
        assert_int_equal(((uint16_t *)b.data)[i], live_to_bf16((float)at(&w, i)));
        assert_int_equal(((uint16_t *)h.data)[i], live_to_f16((float)at(&w, i)));
    }
    assert_int_equal(backend->type->memory.fill(backend, f.data, DSC_F64, 1, 1, 1, 1, &err),
                     DSC_EUSAGE);
    assert_int_equal(backend->type->memory.fill(backend, f.data, DSC_F32, 1ll << 35, 1, 1, 1, &err),
                     DSC_EUSAGE);
    drop(f.data), drop(b.data), drop(h.data), drop(w.data);
}

static void test_memory(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 64, 4097, (1 << 20) - 64, 1 << 20, (5 << 20) + 3};
    dsc_error err;
    void *p;
    double free_bytes = 0, total_bytes = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_ok(backend->type->memory.alloc(backend, &p, sizes[i], &err), err);
        assert_int_equal((uintptr_t)p % 64, 0);
        for (size_t j = 0; j < sizes[i]; j++)
            assert_int_equal(((unsigned char *)p)[j], 0);
        memset(p, 0xff, sizes[i]);
        drop(p);
    }
    static const size_t absurd[] = {SIZE_MAX, SIZE_MAX - 64, SIZE_MAX / 2, (size_t)1 << 60};
    for (size_t i = 0; i < sizeof absurd / sizeof *absurd; i++) {
        assert_int_equal(backend->type->memory.alloc(backend, &p, absurd[i], &err), DSC_ENOMEM);
        assert_null(p);
    }
    drop(NULL);
    assert_ok(backend->type->memory.available(backend, &free_bytes, &total_bytes, &err), err);
    assert_true(free_bytes > 0 && total_bytes >= free_bytes);
}

enum { HUGE_PAGE = 2 << 20 };

// The end of the mapping that p lies in; 0 where the kernel was not advised to use huge pages there
// or gives no answer.
static uintptr_t advised_end(const void *p)
{
    char line[512];
    unsigned long from = 0, to = 0, a, b;
    uintptr_t end = 0;
    FILE *f = fopen("/proc/self/smaps", "re");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%lx-%lx ", &a, &b) == 2)
            from = a, to = b;
        if (from <= (uintptr_t)p && (uintptr_t)p < to && !strncmp(line, "VmFlags:", 8) &&
            strstr(line, " hg"))
            end = to;
    }
    if (f)
        fclose(f);
    return end;
}

// Whole huge pages are advised, for large blocks and for those that share one; a shared page stays
// until its last block is freed, in any order and after its backend too.
static void test_huge_pages(void **state)
{
    (void)state;
    static const size_t sizes[] = {1 << 20, 1100000, 3 << 20, (4 << 20) - 64};
    enum { BLOCKS = 7, BLOCK = 600000 };
    dsc_error err;
    unsigned char *block[BLOCKS];
    void *p;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_ok(backend->type->memory.alloc(backend, &p, sizes[i], &err), err);
        memset(p, 1, sizes[i]);
        const uintptr_t end = advised_end(p);
        if (end) { // else the kernel has none
            assert_int_equal(end % HUGE_PAGE, 0);
            assert_true(end >= (uintptr_t)p + sizes[i]);
        }
        drop(p);
    }
    live_backend *other;
    assert_ok(live_backend_cpu(&other, 1, false, &err), err);
    for (int i = 0; i < BLOCKS; i++) {
        assert_ok(other->type->memory.alloc(other, &block[i], BLOCK, &err), err);
        assert_int_equal((uintptr_t)block[i] % 64, 0);
        // Three go into a page, next to each other.
        assert_int_equal((uintptr_t)block[i] / HUGE_PAGE,
                         ((uintptr_t)block[i] + BLOCK - 1) / HUGE_PAGE);
        assert_int_equal((uintptr_t)block[i] / HUGE_PAGE == (uintptr_t)block[i / 3 * 3] / HUGE_PAGE,
                         1);
        for (int j = 0; j < BLOCK; j++)
            assert_int_equal(block[i][j], 0);
        memset(block[i], i + 1, BLOCK);
    }
    other->type->memory.free(other, block[1]), other->type->memory.free(other, block[6]);
    other->type->memory.free(other, block[0]);
    other->type->close(other);
    for (int i = 2; i < 6; i++) {
        assert_int_equal(block[i][0] == i + 1 && block[i][BLOCK - 1] == i + 1, 1);
        live_cpu_free(NULL, block[i]);
    }
}

// --- products ------------------------------------------------------------------------------------

// Each of `cols` additions may be wrong by 2^-24 of the sum so far, in either direction: that adds
// up to about root cols times as much of the sum of the magnitudes, at the most.
static void check_product(int64_t rows, int64_t outs, int64_t cols, dsc_dtype dtype, bool bias,
                          bool add)
{
    dsc_error err;
    live_matrix w = matrix(outs, cols, dtype, 1);
    float *in = numbers(rows * cols, 2), *b = numbers(outs, 3);
    float *out = add ? numbers(rows * outs, 4) : poison(rows * outs);
    assert_ok(live_matmul(backend, out, &w, bias ? b : NULL, in, rows, add, &err), err);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < outs; j++) {
            double want = (bias ? b[j] : 0) + (add ? (float)uniform(4, i * outs + j) : 0);
            double size = fabs(want);
            for (int64_t c = 0; c < cols; c++) {
                double x = at(&w, j * cols + c) * in[i * cols + c];
                want += x;
                size += fabs(x);
            }
            if (!(fabs(out[i * outs + j] - want) <= 0x1p-24 * (2 + sqrt((double)cols)) * size))
                fail_msg("%lld rows, %lld x %lld, %s: out[%lld][%lld] = %.9g, not %.9g",
                         (long long)rows, (long long)outs, (long long)cols, dsc_dtype_name(dtype),
                         (long long)i, (long long)j, (double)out[i * outs + j], want);
        }
    drop(w.data), drop(in), drop(b), drop(out);
}

static void test_matmul(void **state)
{
    (void)state;
    static const int64_t rows[] = {1,  2,  3,  4,  5,  6,  7,   15,  16,
                                   17, 47, 48, 49, 95, 97, 127, 128, 130};
    static const int64_t shapes[][2] = {{1, 1},   {1, 700}, {3, 12},   {4, 16},   {33, 17},
                                        {64, 31}, {65, 33}, {300, 48}, {17, 1031}};
    static const dsc_dtype dtypes[] = {DSC_F32, DSC_BF16, DSC_F16};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (size_t d = 0; d < 3; d++) {
                size_t kind = r + s + d; // all four kinds with every one of the three
                check_product(rows[r], shapes[s][0], shapes[s][1], dtypes[d], kind & 1, kind & 2);
            }
    dsc_error err;
    float one = 1, out = 1;
    live_matrix none = {&one, DSC_F32, 0, 1}, wrong = {&one, DSC_I8, 1, 1};
    assert_ok(live_matmul(backend, &out, &none, NULL, &one, 1, false, &err), err);
    assert_int_equal(live_matmul(backend, &out, &wrong, NULL, &one, 1, false, &err), DSC_EUSAGE);
}

// Row i of a product of few rows, or of any number when the backend is invariant, has the bits that
// it has alone; with any number of threads.
static void test_matmul_bits(void **state)
{
    (void)state;
    enum { MOST = LIVE_BLAS_ROWS + 3 };
    // The first is shared among threads in every dtype; the second is in several blocks of columns.
    static const int64_t shapes[][2] = {{701, 203}, {39, 1605}};
    static const dsc_dtype dtypes[] = {DSC_F32, DSC_BF16, DSC_F16};
    dsc_error err;
    for (size_t d = 0; d < 6; d++) {
        const int64_t outs = shapes[d / 3][0], cols = shapes[d / 3][1];
        live_matrix w = matrix(outs, cols, dtypes[d % 3], 1);
        float *in = numbers(MOST * cols, 2), *alone = poison(MOST * outs),
              *out = poison(MOST * outs);
        backend->threads = 1;
        for (int64_t i = 0; i < MOST; i++)
            assert_ok(
                live_matmul(backend, alone + i * outs, &w, NULL, in + i * cols, 1, false, &err),
                err);
        backend->threads = 3;
        for (int64_t rows = 1; rows < LIVE_BLAS_ROWS; rows += rows < 50 ? 1 : 11) {
            assert_ok(live_matmul(backend, out, &w, NULL, in, rows, false, &err), err);
            same_bits(out, alone, rows * outs);
        }
        backend->invariant = true;
        assert_ok(live_matmul(backend, out, &w, NULL, in, MOST, false, &err), err);
        same_bits(out, alone, MOST * outs);
        backend->invariant = false;
        // Through OpenBLAS: not the same bits, but the same with any number of threads.
        float *again = poison(MOST * outs);
        assert_ok(live_matmul(backend, out, &w, NULL, in, MOST, false, &err), err);
        backend->threads = 1;
        assert_ok(live_matmul(backend, again, &w, NULL, in, MOST, false, &err), err);
        same_bits(out, again, MOST * outs);
        backend->threads = 2;
        drop(w.data), drop(in), drop(alone), drop(out), drop(again);
    }
}

// --- rows ----------------------------------------------------------------------------------------

static void test_norm(void **state)
{
    (void)state;
    static const int64_t widths[] = {1, 3, 12, 64, 769};
    dsc_error err;
    for (size_t s = 0; s < sizeof widths / sizeof *widths; s++)
        for (int kind = 0; kind < 4; kind++) {
            int64_t n = widths[s], rows = 5;
            bool layer = kind & 1, in_place = kind & 2;
            float *in = numbers(rows * n, 1), *weight = numbers(n, 2), *bias = numbers(n, 3),
                  *out = in_place ? numbers(rows * n, 1) : poison(rows * n);
            const live_norming norm = {weight, layer ? bias : NULL,
                                       layer ? LIVE_LAYER_NORM : LIVE_RMS_NORM, 1e-5};
            assert_ok(
                backend->type->pass.norm(backend, out, in_place ? out : in, &norm, rows, n, &err),
                err);
            for (int64_t i = 0; i < rows; i++) {
                double mean = 0, square = 0;
                for (int64_t j = 0; j < n && layer; j++)
                    mean += in[i * n + j] / (double)n;
                for (int64_t j = 0; j < n; j++)
                    square += (in[i * n + j] - mean) * (in[i * n + j] - mean) / (double)n;
                for (int64_t j = 0; j < n; j++)
                    assert_close(out[i * n + j],
                                 (in[i * n + j] - mean) / sqrt(square + 1e-5) * weight[j] +
                                     (layer ? bias[j] : 0),
                                 1e-6);
            }
            drop(in), drop(weight), drop(bias), drop(out);
        }
}

static double activated(double x, live_activation kind)
{
    double s = 0.7978845608028654 * (x + 0.044715 * x * x * x);
    return kind == LIVE_GELU                                       ? x / 2 * (1 + erf(x / sqrt(2)))
           : kind == LIVE_GELU_TANH || kind == LIVE_GELU_TANH_GATE ? x / 2 * (1 + tanh(s))
                                                                   : x / (1 + exp(-x));
}

static void test_activate(void **state)
{
    (void)state;
    static const int64_t widths[] = {1, 12, 16, 2051};
    dsc_error err;
    for (size_t s = 0; s < sizeof widths / sizeof *widths; s++)
        for (int kind = LIVE_SILU_GATE; kind <= LIVE_GELU_TANH_GATE; kind++) {
            int64_t n = widths[s], rows = 3, stride = live_is_gated(kind) ? 2 * n : n;
            float *in = numbers(rows * stride, 1), *out = poison(rows * n);
            for (int64_t i = 0; i < rows * stride; i++)
                in[i] *= i % 5 ? 8 : 120; // also where an exponential would overflow
            assert_ok(live_cpu_activate(backend, out, in, kind, rows, n, &err), err);
            for (int64_t i = 0; i < rows * n; i++) {
                const float *row = in + i / n * stride;
                double want =
                    activated(row[i % n], kind) * (live_is_gated(kind) ? row[n + i % n] : 1);
                assert_close(out[i], want, 3e-7 * fabs(want) + 2e-6);
            }
            in[0] = NAN;
            assert_ok(live_cpu_activate(backend, out, in, kind, 1, n, &err), err);
            assert_true(isnan(out[0]));
            drop(in), drop(out);
        }
    float *a = numbers(600001, 1), *b = numbers(600001, 2);
    assert_ok(backend->type->pass.add(backend, a, b, 600001, &err), err);
    for (int64_t i = 0; i < 600001; i++)
        assert_true(a[i] == (float)uniform(1, i) + b[i]);
    drop(a), drop(b);
}

static void test_select(void **state)
{
    (void)state;
    dsc_error err;
    float rows[][5] = {{1, 3, 2, 3, 0},
                       {-5, -4, -8, -4.5f, -9},
                       {2, 1, 0, -1, NAN},
                       {-INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY},
                       {0, 1, 2, 3, 7}};
    int32_t token[5];
    float margin[5];
    memset(token, 0x55, sizeof token);
    assert_ok(backend->type->pass.select(backend, token, margin, rows[0], 5, 5, &err), err);
    assert_int_equal(token[0], 1);
    assert_true(margin[0] == 0);
    assert_int_equal(token[1], 1);
    assert_true(margin[1] == .5f);
    assert_int_equal(token[2], -1);
    assert_int_equal(token[3], 0);
    assert_true(margin[3] == 0);
    assert_int_equal(token[4], 4);
    assert_true(margin[4] == 4);
    assert_ok(backend->type->pass.select(backend, token, margin, rows[0], 5, 1, &err), err);
    assert_int_equal(token[1], 0);
    assert_true(margin[1] == 0);
}

// The exponentials of what top-k and top-p leave of a row, else 0; by comparing all with all.
static void weigh(const float *x, int n, const live_sampling *dist, float most, double *weight)
{
    double total = 0, e[300];
    for (int i = 0; i < n; i++) {
        int above = 0;
        for (int j = 0; j < n; j++)
            above += x[j] > x[i];
        const bool counted = !(dist->top_k > 0 && above >= dist->top_k);
        e[i] = counted ? exp(((double)x[i] - (double)most) / dist->temperature) : 0;
        total += e[i];
    }
    for (int i = 0; i < n; i++) {
        double before = 0;
        for (int j = 0; j < n; j++)
            before += x[j] > x[i] || (x[j] >= x[i] && j < i) ? e[j] : 0;
        weight[i] = before < dist->top_p * total ? e[i] : 0;
    }
}

static void check_summary(const float *x, int n, const live_sampling *dist, float most,
                          const live_kept *kept, const double *sum, const float *max_logit)
{
    double weight[300], expected[3] = {0};
    float largest[3] = {-INFINITY, -INFINITY, -INFINITY};
    weigh(x, n, dist, most, weight);
    for (int i = 0; i < n; i++) {
        const bool keeps = x[i] > kept->least || (x[i] >= kept->least && i <= kept->last);
        if (x[i] > -INFINITY)
            assert_int_equal(keeps, weight[i] > 0);
        expected[i / 128] += weight[i];
        largest[i / 128] = fmaxf(largest[i / 128], x[i]);
    }
    for (int b = 0; b < 3; b++) {
        assert_true(fabs(sum[b] - expected[b]) < 1e-12 * (expected[b] + 1));
        assert_memory_equal(&max_logit[b], &largest[b], sizeof *max_logit);
    }
}

static void test_summarize(void **state)
{
    (void)state;
    enum { VOCAB = 300, BLOCKS = 3, ROWS = 4 };
    const live_sampling dists[] = {{1, 0, 1},   {.5, 0, .9},   {2, 7, 1},
                                   {1, 40, .6}, {1, VOCAB, 1}, {.1, 1, 1}};
    dsc_error err;
    float *x = numbers(ROWS * VOCAB, 77), max_logit[ROWS * BLOCKS];
    double sum[ROWS * BLOCKS];
    int32_t token[ROWS];
    live_kept kept[ROWS];
    const live_summary s = {.sum = sum, .kept = kept, .max_logit = max_logit, .best = token};
    bool replayed;
    for (int i = 0; i < ROWS * VOCAB; i++)
        x[i] = i / VOCAB == 1 ? rintf(3 * x[i]) : 5 * x[i]; // one row of many equals
    x[2 * VOCAB + 5] = NAN;
    x[3 * VOCAB + 131] = -INFINITY;
    assert_ok(backend->type->pass.select(backend, token, max_logit, x, ROWS, VOCAB, &err), err);
    assert_int_equal(token[2], -1);
    for (size_t l = 0; l < sizeof dists / sizeof *dists; l++) {
        const live_batch batch = {.dist = &dists[l]};
        assert_ok(
            backend->type->pass.begin(backend, (live_pass_key){x, 0}, &batch, &replayed, &err),
            err);
        assert_ok(backend->type->pass.summarize(backend, &s, x, ROWS, VOCAB, &err), err);
        assert_ok(backend->type->pass.end(backend, &err), err);
        for (int r = 0; r < ROWS; r++)
            if (r != 2)
                check_summary(x + r * VOCAB, VOCAB, &dists[l], x[r * VOCAB + token[r]], &kept[r],
                              sum + r * BLOCKS, max_logit + r * BLOCKS);
        for (int b = 2 * BLOCKS; b < 3 * BLOCKS; b++)
            assert_true(!(sum[b] < 0 || sum[b] > 0) && !(max_logit[b] < 0 || max_logit[b] > 0));
        assert_true(kept[2].least <= -INFINITY && kept[2].last >= VOCAB - 1);
    }
    const live_batch batch = {0};
    assert_ok(backend->type->pass.begin(backend, (live_pass_key){x, 0}, &batch, &replayed, &err),
              err);
    assert_int_equal(backend->type->pass.summarize(backend, &s, x, ROWS, VOCAB, &err), DSC_EUSAGE);
    assert_ok(backend->type->pass.end(backend, &err), err);
    drop(x);
}

static void test_lists(void **state)
{
    (void)state;
    enum { TOKENS = 3, WIDTH = 17, VOCAB = 9 };
    static const int32_t token[] = {8, 0, 5, 1, 1, 7}, position[] = {2, 3, 3}, slot[] = {6, 2, 4},
                         output[] = {5, 0}, feature[] = {1, 1, 4}, beyond[] = {8, 9, 0, 0, 0, 0};
    dsc_error err;
    live_batch batch = {.tokens = TOKENS,
                        .sequences = 2,
                        .token = token,
                        .position = position,
                        .slot = slot,
                        .output = output,
                        .outputs = 2,
                        .feature = feature};
    for (int d = 0; d < 3; d++) {
        dsc_dtype dtype = d == 0 ? DSC_F32 : d == 1 ? DSC_BF16 : DSC_F16;
        live_matrix table = matrix(VOCAB, WIDTH, dtype, 1), places = matrix(4, WIDTH, dtype, 2);
        float *out = poison((int64_t)2 * TOKENS * 40);
        begin(&batch);
        for (int with = 0; with < 2; with++) {
            const float scale = with ? 0.5f : 2;
            assert_ok(backend->type->pass.embed(backend, out, 40, &table, with ? &places : NULL,
                                                scale, &err),
                      err);
            for (int i = 0; i < 2 * TOKENS; i++)
                for (int j = 0; j < 40; j++)
                    if (j >= WIDTH)
                        assert_true(isnan(out[i * 40 + j]));
                    else
                        assert_close(out[i * 40 + j],
                                     scale * at(&table, token[i] * WIDTH + j) +
                                         (with ? at(&places, position[i % TOKENS] * WIDTH + j) : 0),
                                     1e-7);
        }
        batch.token = beyond;
        assert_int_equal(backend->type->pass.embed(backend, out, 40, &table, NULL, 1, &err),
                         DSC_EUSAGE);
        batch.token = token;
        end();
        drop(table.data), drop(places.data), drop(out);
    }
    float *in = numbers(7 * 20, 3), *out = poison(7 * 20);
    begin(&batch);
    assert_ok(backend->type->pass.gather(backend, out, WIDTH, in, 20, WIDTH, LIVE_OUTPUTS, &err),
              err);
    same_bits(out, in + 5 * 20, WIDTH);
    same_bits(out + WIDTH, in, WIDTH);
    assert_ok(backend->type->pass.gather(backend, out, 20, in, 20, 20, LIVE_FEATURES, &err), err);
    same_bits(out + 2 * 20, in + 4 * 20, 20);
    assert_ok(backend->type->pass.scatter(backend, out, in, 20, LIVE_SLOTS, &err), err);
    for (int i = 0; i < 3; i++)
        same_bits(out + slot[i] * 20, in + i * 20, 20);
    end();
    drop(in), drop(out);
}

static void test_spread(void **state)
{
    (void)state;
    static const int32_t column[7] = {-1, 2, 0, -1, 1, -1, 3};
    float *in = numbers(3 * 4, 9), *out = poison(3 * 7);
    const live_batch batch = {0};
    dsc_error err;
    begin(&batch);
    assert_ok(backend->type->pass.spread(backend, out, in, column, 3, 4, 7, &err), err);
    end();
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 7; j++)
            if (column[j] < 0)
                assert_true(out[i * 7 + j] == -INFINITY);
            else
                same_bits(out + i * 7 + j, in + i * 4 + column[j], 1);
    drop(in), drop(out);
}

// --- kernels -------------------------------------------------------------------------------------

static void test_exponentials(void **state)
{
    (void)state;
    enum { COUNT = 4003 };
    float *x = numbers(COUNT, 1), *y = numbers(COUNT, 1);
    double sum = 0, most = -INFINITY;
    for (int i = 0; i < COUNT; i++) {
        y[i] = x[i] *= 43;
        most = fmax(most, x[i] * 1.f);
    }
    float got = kernel->exponentials(y, COUNT, 1);
    for (int i = 0; i < COUNT; i++) {
        double want = exp((double)(float)(x[i] - (float)most));
        if (!(fabs(y[i] / want - 1) <= 1.3e-7))
            fail_msg("e^%g: %.9g, not %.9g", (double)x[i] - most, (double)y[i], want);
        sum += y[i];
    }
    assert_close(got / sum, 1, 1e-6);
    kernel->multiply(x + 1, COUNT - 2, .3f);
    for (int i = 0; i < COUNT; i++) {
        float was = (float)uniform(1, i) * 43;
        assert_true(x[i] == (i > 0 && i < COUNT - 1 ? was * .3f : was));
    }
    float far[] = {-1000, 0, -200};
    assert_close(kernel->exponentials(far, 3, 1), 1, 0);
    assert_true(far[0] >= 0 && far[0] < 1e-37f && far[1] == 1);
    float bad[] = {1, NAN, 0};
    assert_true(isnan(kernel->exponentials(bad, 3, 1)));
    drop(x), drop(y);
}

// Columns that leave over less and more than a vector, of 4, 8 or 16.
static void check_kernels_agree(int64_t cols)
{
    enum { ROWS = 9, TOKENS = 7 };
    static const dsc_dtype dtypes[] = {DSC_F32, DSC_BF16, DSC_F16};
    float *in = numbers(TOKENS * cols, 2), got[TOKENS * ROWS], want[TOKENS * ROWS];
    float *packed = poison((int64_t)live_packed_size(TOKENS, cols));
    for (int d = 0; d < 3; d++) {
        live_matrix w = matrix(ROWS, cols, dtypes[d], 1);
        live_products p = {got, ROWS, w.data, cols, ROWS, packed, TOKENS, cols, {0}};
        kernel->pack(packed, in, cols, TOKENS, cols, dtypes[d]);
        kernel->products(&p, dtypes[d]);
        p.out = want;
        live_cpu_kernel_c.pack(packed, in, cols, TOKENS, cols, dtypes[d]);
        live_cpu_kernel_c.products(&p, dtypes[d]);
        for (int i = 0; i < TOKENS * ROWS; i++)
            assert_close(got[i], want[i], 1e-5);
        drop(w.data);
    }
    assert_close(kernel->total(in, TOKENS * cols), live_cpu_kernel_c.total(in, TOKENS * cols),
                 1e-4);
    drop(in), drop(packed);
}

// The best kernel, the one chosen, agrees with the portable one to within rounding.
static void test_kernels_agree(void **state)
{
    (void)state;
    check_kernels_agree(531);
    check_kernels_agree(523);
    check_kernels_agree(7);
}

static void test_open(void **state)
{
    (void)state;
    static const char *const words[] = {"gpu",
                                        "",
                                        "cuda:",
                                        "cuda:x",
                                        "cuda:-1",
                                        "cpu:0",
                                        "cuda:1x",
                                        "cuda:1,",
                                        "cuda:,1",
                                        "cuda:0,1",
                                        "cuda0",
                                        "cudagraphs=0",
                                        "cuda:graphs=2",
                                        "cuda:graphs=",
                                        "cuda:graph=0",
                                        "cuda:carveout=101",
                                        "cuda:overlap=0,overlap=0",
                                        "cuda:prefetch=0x",
                                        "cuda:99999999999"};
    dsc_error err;
    live_backend *b;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        assert_int_equal(live_backend_open(&b, words[i], 1, false, &err), DSC_EUSAGE);
        assert_null(b);
    }
    assert_int_equal(live_backend_open(&b, "cpu", 0, false, &err), DSC_EUSAGE);
    if (!live_cuda_devices()) {
        assert_int_equal(live_backend_open(&b, "cuda", 1, false, &err), DSC_EABSENT);
        assert_int_equal(live_backend_open(&b, "cuda:3", 1, false, &err), DSC_EABSENT);
        assert_int_equal(live_backend_open(&b, "cuda:graphs=0,0,prefetch=8,carveout=0,overlap=1", 1,
                                           false, &err),
                         DSC_EABSENT);
        assert_ok(live_backend_open(&b, "auto", 1, false, &err), err);
        assert_string_equal(b->device, "cpu");
        b->type->close(b);
    }
}

static void test_probe(void **state)
{
    (void)state;
    dsc_error err;
    live_probe p = {0};
    assert_ok(backend->type->probe(backend, DSC_BF16, &p, &err), err);
    assert_true(isfinite(p.read_bytes_s) && p.read_bytes_s > 1e6);
    assert_true(isfinite(p.flops_s) && p.flops_s > 1e6);
}

SUITE(live_ops)
{
    static const struct CMUnitTest each[] = {
        cmocka_unit_test(test_half),         cmocka_unit_test(test_fill),
        cmocka_unit_test(test_memory),       cmocka_unit_test(test_huge_pages),
        cmocka_unit_test(test_matmul),       cmocka_unit_test(test_matmul_bits),
        cmocka_unit_test(test_norm),         cmocka_unit_test(test_activate),
        cmocka_unit_test(test_select),       cmocka_unit_test(test_summarize),
        cmocka_unit_test(test_lists),        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_exponentials), cmocka_unit_test(test_kernels_agree),
    };
    static const struct CMUnitTest once[] = {
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_probe),
    };
    return run_each(each, sizeof each / sizeof *each) +
           cmocka_run_group_tests(once, open_backend, close_backend);
}

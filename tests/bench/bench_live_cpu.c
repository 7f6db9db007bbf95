// SPDX-License-Identifier: Apache-2.0
// P5 and P6: products of weight matrices with the activations of n tokens, as a pass that verifies
// n - 1 draft tokens computes them, against one token, against reading the matrices and, for the
// square one in F32, against OpenBLAS. Shapes are a square matrix of 4096 and the four matrices of
// a layer of real models with hidden sizes from 576 to 4096, each in enough copies to exceed the
// caches. The bars are those of README.md: one token at >= 80 % of the read bandwidth, t(6) / t(1)
// <= 1.15 with one thread, and no pass slower than a wider one.
//
// Usage: bench_live_cpu [ROUNDS [SHAPE]]; CSV on stdout. A round runs everything once; times are
// the best of the rounds, because disturbances only ever make them slower, and `over_one_median`
// is the median of the ratios within a round. `over_wider` is t(n) over the least time of any
// larger n. With one thread times are processor time, which other programs disturb less; with
// two, wall time.
#include "base/order.h"
#include "live/device/cpu.h"
#include "tests/bench/bench.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 4096, MOST = 64, WIDEST = 14336, COUNTS = 10, MOST_ROUNDS = 99, MATRICES = 4 };
enum { SET_BYTES = 128 << 20, MOST_COPIES = 128 };

static const int64_t counts[COUNTS] = {1, 2, 3, 4, 5, 6, 7, 8, 16, 64};

// Rows and columns of the matrices of a layer: query, key and value; output; gate and up; down.
typedef struct shape {
    const char *name;
    int64_t side[MATRICES][2];
} shape;

static const shape shapes[] = {
    {"square-4096", {{SIDE, SIDE}}},
    {"smollm2-135m-576", {{960, 576}, {576, 576}, {3072, 576}, {576, 1536}}},
    {"smollm2-360m-960", {{1600, 960}, {960, 960}, {5120, 960}, {960, 2560}}},
    {"qwen2.5-1.5b-1536", {{2048, 1536}, {1536, 1536}, {17920, 1536}, {1536, 8960}}},
    {"llama-3.2-1b-2048", {{3072, 2048}, {2048, 2048}, {16384, 2048}, {2048, 8192}}},
    {"llama-3-8b-4096", {{6144, 4096}, {4096, 4096}, {28672, 4096}, {4096, 14336}}},
};

static double now_s(int threads)
{
    return threads == 1 ? thread_s() : wall_s();
}

typedef struct bench {
    live_backend *backend;
    live_matrix set[MOST_COPIES * MATRICES];
    int matrices;
    double numbers; // in all of them
    float *in, *out, sum;
} bench;

typedef enum way { OURS, OPENBLAS, READ, WAYS } way;

static void read_all(bench *b, const live_matrix *w)
{
    enum { BLOCK = 1 << 16 }; // numbers
    const int64_t n = w->rows * w->cols * (int64_t)dsc_dtype_bytes(w->dtype) / 4;
    const float *x = w->data;
    float sum = 0;
#pragma omp parallel for schedule(static) num_threads(b->backend->threads) reduction(+ : sum)
    for (int64_t i = 0; i < n; i += BLOCK)
        sum += cpu_of(b->backend)->kernel->total(x + i, n - i < BLOCK ? n - i : BLOCK);
    b->sum += sum;
}

static void blas(bench *b, const live_matrix *w, int64_t tokens)
{
    const int rows = (int)w->rows, cols = (int)w->cols;
    if (tokens == 1)
        cblas_sgemv(CblasRowMajor, CblasNoTrans, rows, cols, 1, w->data, cols, b->in, 1, 0, b->out,
                    1);
    else
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)tokens, rows, cols, 1, b->in,
                    cols, w->data, cols, 0, b->out, rows);
}

// Seconds of the products with all matrices of the set, or of reading them.
static double once(bench *b, int64_t tokens, way how)
{
    const int threads = b->backend->threads;
    dsc_error e;
    double start = now_s(threads);
    for (int i = 0; i < b->matrices; i++) {
        const live_matrix *w = &b->set[i];
        if (how == READ)
            read_all(b, w);
        else if (how == OPENBLAS)
            blas(b, w, tokens);
        else
            must(live_matmul(b->backend, b->out, w, NULL, b->in, tokens, false, &e), &e);
    }
    return now_s(threads) - start;
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, dsc_by_real);
    return x[n / 2];
}

static void print_rows(const bench *b, const char *name, double s[WAYS][COUNTS][MOST_ROUNDS],
                       double middle[COUNTS])
{
    const live_backend *backend = b->backend;
    const dsc_dtype dtype = b->set[0].dtype;
    const double bytes = b->numbers * (double)dsc_dtype_bytes(dtype), read_s = s[READ][0][0];
    for (int n = 0; n < COUNTS; n++) {
        double t = s[OURS][n][0], wider_s = INFINITY;
        for (int m = n + 1; m < COUNTS; m++)
            wider_s = fmin(wider_s, s[OURS][m][0]);
        printf("%s,%s,%s,%d,%d,%.3f,%.3f,%.3f,%.3f,%.2f,%.2f,%.3f,%.1f,", name,
               cpu_of(b->backend)->kernel->name, dsc_dtype_name(dtype), backend->threads,
               (int)counts[n], t * 1e3, t / s[OURS][0][0], middle[n], t / wider_s, bytes / t / 1e9,
               bytes / read_s / 1e9, read_s / t, 2e-9 * (double)counts[n] * b->numbers / t);
        if (isfinite(s[OPENBLAS][n][0]))
            printf("%.3f,%.2f\n", s[OPENBLAS][n][0] * 1e3, s[OPENBLAS][n][0] / t);
        else
            puts(",");
    }
    fflush(stdout);
}

static void run(bench *b, const shape *of, int threads, int rounds)
{
    static double s[WAYS][COUNTS][MOST_ROUNDS], ratio[MOST_ROUNDS], middle[COUNTS];
    const bool with_blas = of == shapes && b->set[0].dtype == DSC_F32;
    b->backend->threads = threads;
    for (int r = 0; r < rounds; r++)
        for (int n = 0; n < COUNTS; n++) {
            s[OURS][n][r] = once(b, counts[n], OURS);
            if (!n)
                s[READ][0][r] = once(b, 1, READ);
            openblas_set_num_threads(threads);
            s[OPENBLAS][n][r] = with_blas ? once(b, counts[n], OPENBLAS) : NAN;
            openblas_set_num_threads(1);
        }
    for (int n = 0; n < COUNTS; n++) {
        for (int r = 0; r < rounds; r++)
            ratio[r] = s[OURS][n][r] / s[OURS][0][r];
        middle[n] = median(ratio, rounds);
    }
    for (int n = 0; n < COUNTS; n++) {
        median(s[OURS][n], rounds); // sorts
        median(s[OPENBLAS][n], rounds);
    }
    median(s[READ][0], rounds);
    print_rows(b, of->name, s, middle);
}

static void make_set(bench *b, const shape *of, dsc_dtype dtype)
{
    const int64_t size = (int64_t)dsc_dtype_bytes(dtype);
    int64_t numbers = 0;
    dsc_error e;
    b->matrices = 0;
    b->numbers = 0;
    for (int m = 0; m < MATRICES; m++)
        numbers += of->side[m][0] * of->side[m][1];
    for (int copy = 0; copy < MOST_COPIES && b->numbers * (double)size < SET_BYTES; copy++) {
        for (int m = 0; m < MATRICES && of->side[m][0]; m++) {
            live_matrix *w = &b->set[b->matrices++];
            *w = (live_matrix){NULL, dtype, of->side[m][0], of->side[m][1]};
            must(b->backend->type->memory.alloc(b->backend, &w->data,
                                                (size_t)(w->rows * w->cols * size), &e),
                 &e);
            must(b->backend->type->memory.fill(b->backend, w->data, dtype, w->rows * w->cols, 1,
                                               (uint64_t)b->matrices, 1, &e),
                 &e);
        }
        b->numbers += (double)numbers;
    }
}

static void print_head(void)
{
    char cpu[256];
    double load = NAN;
    processor(cpu, sizeof cpu);
    getloadavg(&load, 1);
    printf("# %s\n# CPU %s; load %.2f\n", BENCH_FLAGS, cpu, load);
    puts("shape,kernel,dtype,threads,tokens,ms,over_one,over_one_median,over_wider,GB_s,read_GB_s,"
         "share_of_read,GFLOP_s,openblas_ms,openblas_over_ours");
}

int main(int argc, char **argv)
{
    static const dsc_dtype dtypes[] = {DSC_F32, DSC_BF16, DSC_F16};
    static bench b;
    int rounds = argc > 1 ? atoi(argv[1]) : 9;
    dsc_error e;
    rounds = rounds < 1 ? 1 : rounds > MOST_ROUNDS ? MOST_ROUNDS : rounds;
    must(live_backend_cpu(&b.backend, 2, false, &e), &e);
    const live_backend_type *t = b.backend->type;
    must(t->memory.alloc(b.backend, &b.in, (size_t)MOST * WIDEST * sizeof(float), &e), &e);
    must(t->memory.alloc(b.backend, &b.out, (size_t)MOST * 2 * WIDEST * sizeof(float), &e), &e);
    must(t->memory.fill(b.backend, b.in, DSC_F32, MOST * WIDEST, 1, 0, 1, &e), &e);
    print_head();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (argc > 2 && strcmp(argv[2], shapes[i].name) != 0)
            continue;
        for (int d = 0; d < 3; d++) {
            b.backend->threads = 2;
            make_set(&b, &shapes[i], dtypes[d]);
            for (int threads = 1; threads <= 2; threads++)
                run(&b, &shapes[i], threads, rounds);
            for (int m = 0; m < b.matrices; m++)
                t->memory.free(b.backend, b.set[m].data);
        }
    }
    t->memory.free(b.backend, b.in);
    t->memory.free(b.backend, b.out);
    t->close(b.backend);
    return 0;
}

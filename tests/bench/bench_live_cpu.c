// SPDX-License-Identifier: Apache-2.0
// P5 and P6: products of a 4096 x 4096 weight matrix with the activations of n tokens, as a pass
// that verifies n - 1 drafted tokens makes them, against one token, against OpenBLAS (F32) and
// against merely reading the matrix. Matrices are taken in turn from a ring larger than the caches.
// The bars: t(6) / t(1) <= 1.15 with one thread; one token at >= 80 % of the read bandwidth.
//
// Usage: bench_live_cpu [ROUNDS]; CSV on stdout. A round goes through everything once; times are
// the best of the rounds, because what disturbs them only ever makes them slower, and
// `over_one_median` is the median of the ratios within a round. With one thread they are processor
// time, which others on the machine disturb less; with two, wall time.
#include "live/cpu.h"

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIDE = 4096, RING = 4, MOST = 64, COUNTS = 19, MOST_ROUNDS = 99 };

static const int64_t counts[COUNTS] = {1,  2,  3,  4,  5,  6,  7,  8,  9, 10,
                                       11, 12, 13, 14, 15, 16, 32, 48, 64};

static double now_s(int threads)
{
    struct timespec t;
    clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(int rc, const dsc_error *e)
{
    if (rc) {
        fprintf(stderr, "bench_live_cpu: %s\n", e->message);
        exit(dsc_exit_code(rc));
    }
}

typedef struct bench {
    live_backend *backend;
    live_matrix ring[RING];
    float *in, *out, sum;
    int64_t turn;
} bench;

typedef enum way { OURS, OPENBLAS, READ, WAYS } way;

static void read_all(bench *b, const live_matrix *w)
{
    enum { BLOCK = 1 << 16 }; // numbers
    const int64_t n = SIDE * SIDE * (int64_t)dsc_dtype_bytes(w->dtype) / 4;
    const float *x = w->data;
    float sum = 0;
#pragma omp parallel for schedule(static) num_threads(b->backend->threads) reduction(+ : sum)
    for (int64_t i = 0; i < n; i += BLOCK)
        sum += cpu_of(b->backend)->kernel->total(x + i, BLOCK);
    b->sum = sum;
}

// Seconds of one product, or of reading the matrix.
static double once(bench *b, int64_t tokens, way how)
{
    const live_matrix *w = &b->ring[b->turn++ % RING];
    const int threads = b->backend->threads;
    dsc_error e;
    double start = now_s(threads);
    if (how == READ)
        read_all(b, w);
    else if (how == OURS)
        must(live_matmul(b->backend, b->out, w, NULL, b->in, tokens, false, &e), &e);
    else if (tokens == 1)
        cblas_sgemv(CblasRowMajor, CblasNoTrans, SIDE, SIDE, 1, w->data, SIDE, b->in, 1, 0, b->out,
                    1);
    else
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)tokens, SIDE, SIDE, 1, b->in,
                    SIDE, w->data, SIDE, 0, b->out, SIDE);
    return now_s(threads) - start;
}

static int ascending(const void *pa, const void *pb)
{
    double a = *(const double *)pa, b = *(const double *)pb;
    return (a > b) - (a < b);
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, ascending);
    return x[n / 2];
}

static void run(bench *b, dsc_dtype dtype, int threads, int rounds)
{
    static double s[WAYS][COUNTS][MOST_ROUNDS], ratio[MOST_ROUNDS], one[MOST_ROUNDS];
    b->backend->threads = threads;
    for (int r = 0; r < rounds; r++)
        for (int n = 0; n < COUNTS; n++) {
            s[OURS][n][r] = once(b, counts[n], OURS);
            if (!n)
                s[READ][0][r] = once(b, 1, READ);
            openblas_set_num_threads(threads);
            s[OPENBLAS][n][r] = dtype == DSC_F32 ? once(b, counts[n], OPENBLAS) : NAN;
            openblas_set_num_threads(1);
        }
    median(s[READ][0], rounds);
    const double bytes = (double)SIDE * SIDE * (double)dsc_dtype_bytes(dtype);
    const double read_s = s[READ][0][0];
    memcpy(one, s[OURS][0], sizeof one);
    for (int n = 0; n < COUNTS; n++) {
        for (int r = 0; r < rounds; r++)
            ratio[r] = s[OURS][n][r] / one[r];
        double middle = median(ratio, rounds);
        median(s[OURS][n], rounds);
        median(s[OPENBLAS][n], rounds);
        double t = s[OURS][n][0];
        printf("%s,%s,%d,%d,%.3f,%.3f,%.3f,%.2f,%.2f,%.3f,%.1f,", cpu_of(b->backend)->kernel->name,
               dsc_dtype_name(dtype), threads, (int)counts[n], t * 1e3, t / s[OURS][0][0], middle,
               bytes / t / 1e9, bytes / read_s / 1e9, read_s / t,
               2e-9 * (double)counts[n] * SIDE * SIDE / t);
        if (dtype == DSC_F32)
            printf("%.3f,%.2f\n", s[OPENBLAS][n][0] * 1e3, s[OPENBLAS][n][0] / t);
        else
            puts(",");
    }
}

int main(int argc, char **argv)
{
    static const dsc_dtype dtypes[] = {DSC_F32, DSC_BF16, DSC_F16};
    int rounds = argc > 1 ? atoi(argv[1]) : 9;
    bench b = {0};
    dsc_error e;
    rounds = rounds < 1 ? 1 : rounds > MOST_ROUNDS ? MOST_ROUNDS : rounds;
    must(live_backend_cpu(&b.backend, 2, false, &e), &e);
    const live_backend_type *t = b.backend->type;
    must(t->alloc(b.backend, (void **)&b.in, MOST * SIDE * sizeof(float), &e), &e);
    must(t->alloc(b.backend, (void **)&b.out, MOST * SIDE * sizeof(float), &e), &e);
    must(t->fill(b.backend, b.in, DSC_F32, MOST * SIDE, 1, 0, 1, &e), &e);
    printf("# %s\n", BENCH_FLAGS);
    puts("kernel,dtype,threads,tokens,ms,over_one,over_one_median,GB_s,read_GB_s,share_of_read,"
         "GFLOP_s,openblas_ms,openblas_over_ours");
    for (int d = 0; d < 3; d++) {
        for (int i = 0; i < RING; i++) {
            live_matrix *w = &b.ring[i];
            *w = (live_matrix){NULL, dtypes[d], SIDE, SIDE};
            must(t->alloc(b.backend, &w->data, (size_t)SIDE * SIDE * dsc_dtype_bytes(w->dtype), &e),
                 &e);
            must(t->fill(b.backend, w->data, w->dtype, SIDE * SIDE, 1, 1 + (uint64_t)i, 1, &e), &e);
        }
        for (int threads = 1; threads <= 2; threads++)
            run(&b, dtypes[d], threads, rounds);
        for (int i = 0; i < RING; i++)
            t->free(b.backend, b.ring[i].data);
    }
    t->free(b.backend, b.in);
    t->free(b.backend, b.out);
    t->close(b.backend);
    return 0;
}

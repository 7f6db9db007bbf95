// SPDX-License-Identifier: Apache-2.0
// Times `trace reduce` at a position with dense fp32 rows, K = 8, and its parts, relative to
// reading both rows; then whole positions on one thread and on two.
//
// Usage: bench_reduce [ROUNDS]; prints CSV. The rows are those of bench_otm as log-probabilities,
// in a ring of pairs larger than the caches. Times are medians of processor time. For comparison,
// and in no total, it times `distributions` (facts, and distributions written to memory),
// `statistics` from such distributions with some of its parts, and `acceptance`
// (theory/acceptance.h). For threads it prints the best round, in wall
// time and as the mean of their processor times, which shows their effect on each other on a busy
// machine.
#include "base/order.h"
#include "tests/bench/bench.h"
#include "theory/acceptance.h"
#include "theory/otm_internal.h"
#include "theory/probs.h"
#include "theory/rows_curve.h"
#include "theory/sufficient.h"

#include <math.h>
#include <stdlib.h>

enum { RING = 48, K = 8, V = 151936, MOST = 4096 };
enum { READING, POSITION, DISTS, STATISTICS, PASS, LEVELS, FIT, SURVIVORS, ACCEPTANCE, PARTS };
static const char *const part_name[PARTS] = {
    "reading", "position", "distributions", "statistics", "of statistics: pass",
    "levels",  "fit",      "survivors",     "acceptance"};

static void *some(size_t n, size_t size)
{
    dsc_error e;
    void *p;
    must(dsc_alloc(&p, n, size, &e), &e);
    return p;
}

static void fill_ring(float *ring, double temperature)
{
    double *dist[2] = {some(V, sizeof(double)), some(V, sizeof(double))};
    for (size_t i = 0; i < RING; i++) {
        dsc_probs_zipf(V, 1.1 / temperature, .7 / temperature, i, dist[0], dist[1]);
        for (size_t x = 0; x < 2 * V; x++)
            ring[2 * i * V + x] = (float)log(dist[x / V][x % V]);
    }
    free(dist[0]);
    free(dist[1]);
}

// The buffers of a thread.
typedef struct bench {
    float *dist[2];
    dsc_sufficient_work *work;
    dsc_acceptance_work *acceptance;
    dsc_otm_sampler *sampler;
    dsc_rows_curve curve;
    dsc_otm_fit fit;
    dsc_race_work *race;
    float kseq[2 * K], specinfer[K + 1], otm[K * (K + 3) / 2];
} bench;

static bench *make_bench(void)
{
    dsc_error e;
    bench *b = some(1, sizeof *b);
    b->dist[0] = some(V, sizeof(float));
    b->dist[1] = some(V, sizeof(float));
    must(dsc_sufficient_work_new(&b->work, &e), &e);
    must(dsc_acceptance_work_new(&b->acceptance, &e), &e);
    must(dsc_otm_sampler_new(&b->sampler, &e), &e);
    must(dsc_rows_curve_init(&b->curve, &e), &e);
    must(dsc_race_work_new(&b->race, &e), &e);
    return b;
}

static void free_bench(bench *b)
{
    free(b->dist[0]);
    free(b->dist[1]);
    dsc_sufficient_work_free(b->work);
    dsc_acceptance_work_free(b->acceptance);
    dsc_otm_sampler_free(b->sampler);
    dsc_rows_curve_fini(&b->curve);
    free(b->race);
    free(b);
}

static const int32_t y = 1; // the output's token

// Facts, and distributions for the parts below.
static void read_rows(bench *b, const float *pair)
{
    for (int side = 0; side < 2; side++) {
        dsc_log_row row = {.logp = pair + side * V, .vocab = V, .y = y};
        for (size_t begin = 0; begin < V;)
            begin += dsc_log_row_block(&row, begin, b->dist[side] + begin);
    }
}

// Computes the facts and statistics of a position in one pass.
static void position(bench *b, const float *pair)
{
    dsc_error e;
    dsc_log_row row[2];
    dsc_row_source source[2];
    for (int side = 0; side < 2; side++) {
        row[side] = (dsc_log_row){.logp = pair + side * V, .vocab = V, .y = y};
        source[side] = (dsc_row_source){.log = &row[side]};
    }
    must(dsc_sufficient_of_sources(&source[0], &source[1], V, exp((double)pair[y]),
                                   exp((double)pair[V + y]), K, b->kseq, b->specinfer, b->otm,
                                   b->work, &e),
         &e);
}

static void statistics(bench *b)
{
    dsc_error e;
    const dsc_row_source source[2] = {{.dist = b->dist[0]}, {.dist = b->dist[1]}};
    must(dsc_sufficient_of_sources(&source[0], &source[1], V, (double)b->dist[0][y],
                                   (double)b->dist[1][y], K, b->kseq, b->specinfer, b->otm, b->work,
                                   &e),
         &e);
}

static float sum_of(const float *rows, size_t count)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t x = 0; x < count; x++)
        sum += rows[x];
    return sum;
}

// The parts of the optimal-transport statistics, on a curve whose cells were looked up before.
static void time_parts(bench *b, double *s)
{
    dsc_error e;
    const dsc_row_source source[2] = {{.dist = b->dist[0]}, {.dist = b->dist[1]}};
    double dist[K + 1], start = thread_s();
    must(dsc_rows_curve_set(&b->curve, &source[0], &source[1], V, &e), &e);
    s[PASS] = thread_s() - start;
    dsc_overlap *rows = &b->curve.base;
    const dsc_mass sum = {b->curve.cells.draft_sum, b->curve.cells.target_sum};
    s[LEVELS] = s[FIT] = s[SURVIVORS] = 0;
    for (int k = 1; k <= K; k++)
        must(dsc_otm_levels(&b->fit, rows, sum, k, &e), &e);
    for (int k = 1; k <= K; k++) {
        start = thread_s();
        must(dsc_otm_levels(&b->fit, rows, sum, k, &e), &e);
        double levels = thread_s();
        dsc_race_fit_float(&b->fit.race, k > 2, b->race);
        s[FIT] += thread_s() - levels;
        s[LEVELS] += levels - start;
        must(dsc_otm_sampler_build_float(b->sampler, rows, sum, k, k > 2, &e), &e);
        start = thread_s();
        dsc_otm_sampler_survivors(b->sampler, (double)b->dist[0][y], (double)b->dist[1][y], dist);
        s[SURVIVORS] += thread_s() - start;
    }
}

static void time_others(bench *b, double *s)
{
    dsc_error e;
    dsc_rule_acceptance out[K];
    double start = thread_s();
    must(dsc_acceptance_of_rows(b->dist[0], b->dist[1], V, K, out, b->acceptance, &e), &e);
    s[ACCEPTANCE] = thread_s() - start;
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, dsc_by_real);
    return x[n / 2];
}

static double measure_parts(bench *b, const float *ring, double temperature, int n)
{
    static double times[PARTS][MOST];
    double read_ms = 0;
    volatile float sink;
    for (int i = 0; i < n; i++) {
        const float *pair = ring + 2 * (size_t)(i % RING) * V;
        double s[PARTS], start = thread_s();
        sink = sum_of(ring + 2 * (size_t)((i + RING / 2) % RING) * V, 2 * V);
        (void)sink;
        s[READING] = thread_s() - start;
        start = thread_s();
        position(b, pair);
        s[POSITION] = thread_s() - start;
        pair = ring + 2 * (size_t)((i + RING / 4) % RING) * V; // which is in no cache
        start = thread_s();
        read_rows(b, pair);
        double middle = thread_s();
        statistics(b);
        s[DISTS] = middle - start;
        s[STATISTICS] = thread_s() - middle;
        time_parts(b, s);
        time_others(b, s);
        for (int p = 0; p < PARTS; p++)
            times[p][i] = s[p];
    }
    double position = 1e3 * median(times[POSITION], n);
    for (int p = 0; p < PARTS; p++) {
        double ms = 1e3 * median(times[p], n);
        read_ms = p == READING ? ms : read_ms;
        printf("%.1f,1,%s,%.3f,%.1f,%.2f,\"%s\"\n", temperature, part_name[p], ms, ms / read_ms,
               ms / position, BENCH_FLAGS);
    }
    return read_ms;
}

static void measure_threads(bench **b, const float *ring, double temperature, int threads,
                            int rounds, double read_ms)
{
    double least[2] = {INFINITY, INFINITY};
    for (int round = 0; round < rounds; round++) {
        double start = wall_s(), busy = 0;
#pragma omp parallel for schedule(static, 1) num_threads(threads) reduction(+ : busy)
        for (int t = 0; t < threads; t++) {
            double began = thread_s();
            for (int i = t; i < RING; i += threads)
                position(b[t], ring + 2 * (size_t)i * V);
            busy += thread_s() - began;
        }
        least[0] = fmin(least[0], wall_s() - start);
        least[1] = fmin(least[1], busy / threads);
    }
    static const char *const what[] = {"position by the clock", "position by their processor time"};
    for (int i = 0; i < 2; i++) {
        double ms = 1e3 * least[i] / RING;
        printf("%.1f,%d,%s,%.3f,%.1f,1,\"%s\"\n", temperature, threads, what[i], ms, ms / read_ms,
               BENCH_FLAGS);
    }
}

int main(int argc, char **argv)
{
    static const double temperature[] = {.6, .8, 1};
    int rounds = argc > 1 ? atoi(argv[1]) : 2;
    rounds = rounds < 1 ? 1 : rounds > MOST / RING ? MOST / RING : rounds;
    float *ring = some((size_t)2 * RING * V, sizeof *ring);
    bench *b[2] = {make_bench(), make_bench()};
    puts("temperature,threads,part,ms,over_reading,share,flags");
    for (size_t t = 0; t < 3; t++) {
        fill_ring(ring, temperature[t]);
        double read_ms = measure_parts(b[0], ring, temperature[t], rounds * RING);
        for (int threads = 1; threads <= 2; threads++)
            measure_threads(b, ring, temperature[t], threads, rounds, read_ms);
    }
    free(ring);
    free_bench(b[0]);
    free_bench(b[1]);
    return 0;
}

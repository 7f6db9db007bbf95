// SPDX-License-Identifier: Apache-2.0
// Times every acceptance quantity for k = 1..16 from fp32 rows (theory/acceptance.h), and compares
// it with reading the rows and with sorting the tokens, in one run.
//
// Usage: bench_accept [ROUNDS [VOCAB]]; prints CSV. The rows come from a ring of pairs larger than
// the caches. Times are interleaved; every ratio is the median over rounds of the ratio of a round.
#include "base/order.h"
#include "tests/bench/accept_baseline.h"
#include "tests/bench/bench.h"
#include "theory/acceptance_bounds.h"
#include "theory/probs.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { K = 16, RING_BYTES = 96 << 20, DISTS = 4, MOST_ROUNDS = 101, MOST_PATHS = 4 };

static void *memory(size_t n, size_t size)
{
    void *p = NULL;
    if (posix_memalign(&p, 64, n * size)) {
        fprintf(stderr, "bench_accept: out of memory\n");
        exit(1);
    }
    return p;
}

// `pairs` pairs of rows of `vocab` tokens each, draft and target in turn; DISTS of them differ.
typedef struct ring {
    size_t vocab, pairs;
    float *row;
} ring;

static const float *draft_of(const ring *r, size_t pair)
{
    return r->row + 2 * pair * r->vocab;
}

static const float *target_of(const ring *r, size_t pair)
{
    return draft_of(r, pair) + r->vocab;
}

// Fills the ring with softmaxes of logits that fall with the logarithm of the rank; a standard
// normal is added to the target's. Token ids are in random order.
static void make_ring(ring *r, size_t vocab, double temperature)
{
    *r = (ring){.vocab = vocab, .pairs = RING_BYTES / (2 * vocab * sizeof(float)) + 1};
    r->row = memory(2 * r->pairs * vocab, sizeof *r->row);
    double *draft = memory(vocab, sizeof *draft), *target = memory(vocab, sizeof *target);
    for (size_t pair = 0; pair < r->pairs; pair++) {
        float *to = r->row + 2 * pair * vocab;
        if (pair >= DISTS) {
            memcpy(to, draft_of(r, pair % DISTS), 2 * vocab * sizeof *to);
            continue;
        }
        dsc_probs_zipf(vocab, 1 / temperature, 1 / temperature, pair + 1, draft, target);
        for (size_t i = 0; i < vocab; i++) {
            size_t rank = i * 48271 % vocab;
            to[i] = (float)draft[rank];
            to[vocab + i] = (float)target[rank];
        }
    }
    free(draft);
    free(target);
}

static double time_read(const ring *r)
{
    double start = wall_s();
    volatile float sink = 0;
    for (size_t p = 0; p < r->pairs; p++)
        sink = sink + baseline_read(draft_of(r, p), r->vocab) +
               baseline_read(target_of(r, p), r->vocab);
    return (wall_s() - start) / (double)r->pairs;
}

// Seconds per pair; writes the quantities of the first DISTS pairs to out.
static double time_path(const ring *r, dsc_acceptance_work **work, int threads,
                        dsc_rule_acceptance out[DISTS][K])
{
    double start = wall_s();
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (size_t p = 0; p < r->pairs; p++) {
        dsc_rule_acceptance own[K];
        dsc_error e;
        must(dsc_acceptance_of_rows(draft_of(r, p), target_of(r, p), r->vocab, K, own,
                                    work[omp_get_thread_num()], &e),
             &e);
        if (p < DISTS)
            memcpy(out[p], own, sizeof own);
    }
    return (wall_s() - start) / (double)r->pairs;
}

// A loop in registers, run by every thread: what a second thread is worth on this machine now (two
// processors may share one core, and others may be at work).
static double time_registers(int threads)
{
    double start = wall_s();
#pragma omp parallel num_threads(threads)
    {
        uint64_t x[4] = {1, 2, 3, 4};
        for (int i = 0; i < 4000000; i++)
            for (int l = 0; l < 4; l++)
                x[l] ^= (x[l] << 7) + (uint64_t)i;
        volatile uint64_t sink = x[0] + x[1] + x[2] + x[3];
        (void)sink;
    }
    return (wall_s() - start) / threads;
}

static double time_sorted(const ring *r, baseline_work *w, bool quantities)
{
    double start = wall_s();
    for (size_t p = 0; p < DISTS; p++) {
        baseline_sort(w, draft_of(r, r->pairs - 1 - p), target_of(r, r->pairs - 1 - p), r->vocab);
        if (quantities)
            baseline_quantities(w, K);
    }
    return (wall_s() - start) / DISTS;
}

static double time_reference(const ring *r, dsc_rule_acceptance out[DISTS][K])
{
    dsc_error e;
    int k[K];
    double *row[2] = {memory(r->vocab, sizeof(double)), memory(r->vocab, sizeof(double))}, s = 0;
    for (int i = 0; i < K; i++)
        k[i] = i + 1;
    for (size_t p = 0; p < DISTS; p++) {
        dsc_curve c = {0};
        for (size_t i = 0; i < r->vocab; i++) {
            row[0][i] = draft_of(r, p)[i];
            row[1][i] = target_of(r, p)[i];
        }
        must(dsc_probs_check("draft", row[0], r->vocab, true, &e), &e);
        must(dsc_probs_check("target", row[1], r->vocab, true, &e), &e);
        double start = wall_s();
        must(dsc_curve_init(&c, row[0], row[1], r->vocab, &e), &e);
        dsc_acceptance_of_curve(&c, k, K, out[p]);
        s += wall_s() - start;
        dsc_curve_fini(&c);
    }
    free(row[0]);
    free(row[1]);
    return s / DISTS;
}

static double largest_error(dsc_rule_acceptance a[DISTS][K], dsc_rule_acceptance b[DISTS][K])
{
    double e = 0;
    for (int i = 0; i < DISTS * K; i++) {
        const dsc_rule_acceptance *x = &a[0][i], *y = &b[0][i];
        e = fmax(e, fmax(fabs(x->single - y->single), fabs(x->specinfer - y->specinfer)));
        e = fmax(e, fmax(fabs(x->kseq - y->kseq), fabs(x->otm - y->otm)));
    }
    return e;
}

// Median over rounds of top/bottom.
static double ratio(const double *top, const double *bottom, int rounds)
{
    double r[MOST_ROUNDS];
    for (int i = 0; i < rounds; i++)
        r[i] = top[i] / (bottom ? bottom[i] : 1);
    qsort(r, (size_t)rounds, sizeof *r, dsc_by_real);
    return rounds % 2 ? r[rounds / 2] : (r[rounds / 2 - 1] + r[rounds / 2]) / 2;
}

static void bench(size_t vocab, double temperature, int rounds)
{
    static double read[MOST_ROUNDS], one[MOST_PATHS][MOST_ROUNDS], two[MOST_PATHS][MOST_ROUNDS],
        sorted[2][MOST_ROUNDS], registers[2][MOST_ROUNDS];
    static dsc_rule_acceptance exact[DISTS][K], out[MOST_PATHS][DISTS][K];
    dsc_error e;
    dsc_acceptance_work *work[2];
    baseline_work baseline;
    ring r;
    make_ring(&r, vocab, temperature);
    must(baseline_init(&baseline, vocab, &e), &e);
    for (int t = 0; t < 2; t++)
        must(dsc_acceptance_work_new(&work[t], &e), &e);
    double reference = time_reference(&r, exact);
    for (int i = 0; i < rounds; i++) {
        read[i] = time_read(&r);
        for (int p = 0; dsc_rows_kernels[p]; p++) {
            if (!dsc_rows_kernels[p]->supported())
                continue;
            work[0]->kernel = work[1]->kernel = dsc_rows_kernels[p];
            one[p][i] = time_path(&r, work, 1, out[p]);
            two[p][i] = time_path(&r, work, 2, out[p]);
        }
        registers[0][i] = time_registers(1);
        registers[1][i] = time_registers(2);
        sorted[0][i] = time_sorted(&r, &baseline, false);
        sorted[1][i] = time_sorted(&r, &baseline, true);
    }
    for (int p = 0; dsc_rows_kernels[p]; p++)
        if (dsc_rows_kernels[p]->supported())
            printf("%zu,%g,%s,%.3f,%.3f,%.2f,%.2f,%.2f,%.0f,%.2f,%.2f,%.1e\n", vocab, temperature,
                   dsc_rows_kernels[p]->name, ratio(one[p], NULL, rounds) / (double)vocab * 1e9,
                   ratio(read, NULL, rounds) / (double)vocab * 1e9, ratio(one[p], read, rounds),
                   ratio(sorted[0], one[p], rounds), ratio(sorted[1], one[p], rounds),
                   reference / ratio(one[p], NULL, rounds), ratio(one[p], two[p], rounds),
                   ratio(registers[0], registers[1], rounds), largest_error(out[p], exact));
    fflush(stdout);
    for (int t = 0; t < 2; t++)
        dsc_acceptance_work_free(work[t]);
    baseline_fini(&baseline);
    free(r.row);
}

int main(int argc, char **argv)
{
    static const size_t vocabs[] = {32000, 50257, 128256, 151936};
    static const double temperatures[] = {.6, .8, 1};
    char cpu[128];
    int rounds = argc > 1 ? atoi(argv[1]) : 9;
    size_t only = argc > 2 ? (size_t)atoll(argv[2]) : 0;
    if (rounds < 1 || rounds > MOST_ROUNDS) {
        fprintf(stderr, "bench_accept: 1 to %d rounds\n", MOST_ROUNDS);
        return 2;
    }
    processor(cpu, sizeof cpu);
    printf("# cpu: %s; flags: %s; k = 1..%d\n", cpu, BENCH_FLAGS, K);
    puts("vocab,temperature,path,ns_per_token,read_ns_per_token,over_read,argsort_over,"
         "argsort_and_quantities_over,qsort_over,speedup_2_threads,registers_2_threads,max_error");
    for (size_t v = 0; v < sizeof vocabs / sizeof *vocabs; v++)
        for (size_t t = 0; t < sizeof temperatures / sizeof *temperatures; t++)
            if (!only || vocabs[v] == only)
                bench(vocabs[v], temperatures[t], rounds);
    return 0;
}

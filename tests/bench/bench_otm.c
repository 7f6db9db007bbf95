// SPDX-License-Identifier: Apache-2.0
// P8: the exact optimal-transport sampler, built for one position of two rows: time and gap, and
// the ratio to merely reading both rows, in one run on one thread.
//
// Usage: bench_otm [ROUNDS]; prints CSV. Rows are Zipf distributions (exponent 1.1) with normal
// noise of 0.7 on the target's logits, at three temperatures, in a ring of pairs that no cache
// holds.
#include "base/order.h"
#include "tests/bench/bench.h"
#include "theory/otm_sampler.h"
#include "theory/probs.h"

#include <math.h>
#include <stdlib.h>

enum { RING = 48 }; // pairs

static double *make_rows(size_t vocab, double temperature)
{
    dsc_error e;
    double *rows;
    must(dsc_alloc(&rows, 2 * RING * vocab, sizeof *rows, &e), &e);
    for (size_t i = 0; i < RING; i++)
        dsc_probs_zipf(vocab, 1.1 / temperature, .7 / temperature, i, rows + 2 * i * vocab,
                       rows + (2 * i + 1) * vocab);
    return rows;
}

static double read_rows(const double *rows, size_t count)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t x = 0; x < count; x++)
        sum += rows[x];
    return sum;
}

static void measure(dsc_otm_sampler *s, const double *rows, size_t vocab, double temperature, int k,
                    int rounds)
{
    enum { MOST = 4096 };
    static double build_s[MOST], read_s[MOST];
    double gap = 0;
    volatile double sink;
    dsc_error e;
    int n = rounds * RING < MOST ? rounds * RING : MOST;
    for (int i = 0; i < n; i++) {
        const double *draft = rows + 2 * (size_t)(i % RING) * vocab;
        const double *other = rows + 2 * (size_t)((i + RING / 2) % RING) * vocab;
        double start = wall_s();
        must(dsc_otm_sampler_build(s, draft, draft + vocab, vocab, k, &e), &e);
        double middle = wall_s();
        sink = read_rows(other, 2 * vocab);
        (void)sink;
        read_s[i] = wall_s() - middle;
        build_s[i] = middle - start;
        gap = fmax(gap, dsc_otm_sampler_gap(s));
    }
    qsort(build_s, (size_t)n, sizeof *build_s, dsc_by_real);
    qsort(read_s, (size_t)n, sizeof *read_s, dsc_by_real);
    printf("%zu,%.1f,%d,%.3f,%.3f,%.1f,%.1e,\"%s\"\n", vocab, temperature, k, 1e3 * build_s[n / 2],
           1e3 * build_s[n - 1 - n / 10], build_s[n / 2] / read_s[n / 2], gap, BENCH_FLAGS);
}

int main(int argc, char **argv)
{
    static const size_t vocab[] = {32000, 50257, 128256, 151936};
    static const double temperature[] = {.6, .8, 1};
    static const int drafts[] = {2, 8, 16};
    int rounds = argc > 1 ? atoi(argv[1]) : 4;
    dsc_error e;
    dsc_otm_sampler *s;
    must(dsc_otm_sampler_new(&s, &e), &e);
    puts("vocab,temperature,k,median_ms,p90_ms,ratio_to_reading,largest_gap,flags");
    for (size_t v = 0; v < 4; v++)
        for (size_t t = 0; t < 3; t++) {
            double *rows = make_rows(vocab[v], temperature[t]);
            for (size_t k = 0; k < 3; k++)
                measure(s, rows, vocab[v], temperature[t], drafts[k], rounds < 1 ? 1 : rounds);
            free(rows);
        }
    dsc_otm_sampler_free(s);
    return 0;
}

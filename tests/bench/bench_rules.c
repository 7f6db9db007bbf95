// SPDX-License-Identifier: Apache-2.0
// Times what rules cost at one position with whole rows of probabilities: the overlap of rejection
// sampling, the distribution of GBV, the prices of lossy rules and the bound of a reduced
// vocabulary, each compared with reading both rows, in one run.
//
// Usage: bench_rules [ROUNDS [VOCAB]]; prints CSV. The rows come from a ring of pairs larger than
// the caches. Every ratio is the median over rounds of the ratio of a round.
#include "base/order.h"
#include "tests/bench/bench.h"
#include "theory/gbv.h"
#include "theory/lossy.h"
#include "theory/probs.h"
#include "theory/rows/row_sum.h"
#include "theory/vocabulary.h"

#include <math.h>

enum { RING_BYTES = 96 << 20, MOST_ROUNDS = 101 };

// `pairs` pairs of rows of `vocab` tokens, draft and target in turn, with ids in random order.
typedef struct ring {
    size_t vocab, pairs;
    double *row, *room; // room[2 * vocab]
    bool *in;           // [vocab] every fourth token
    dsc_gbv_order order;
    volatile double sink;
} ring;

static void make_ring(ring *r, size_t vocab)
{
    *r = (ring){.vocab = vocab, .pairs = RING_BYTES / (2 * vocab * sizeof(double)) + 1};
    r->row = calloc(2 * r->pairs * vocab, sizeof *r->row);
    r->room = calloc(2 * vocab, sizeof *r->room);
    r->in = calloc(vocab, sizeof *r->in);
    if (!r->row || !r->room || !r->in)
        exit(1);
    for (size_t p = 0; p < r->pairs; p++) {
        dsc_probs_zipf(vocab, 1, 1, p + 1, r->room, r->room + vocab);
        for (size_t x = 0; x < 2 * vocab; x++)
            r->row[2 * p * vocab + x] = r->room[x / vocab * vocab + x % vocab * 48271 % vocab];
    }
    for (size_t x = 0; x < vocab; x++)
        r->in[x] = x % 4 == 0;
}

static double read_rows(ring *r, const double *draft, const double *target)
{
    return dsc_row_sum(draft, r->vocab) + dsc_row_sum(target, r->vocab);
}

static double rejection(ring *r, const double *draft, const double *target)
{
    double sum = 0;
    for (size_t x = 0; x < r->vocab; x++)
        sum += draft[x] < target[x] ? draft[x] : target[x];
    return sum;
}

static double gbv(ring *r, const double *draft, const double *target, int paths)
{
    dsc_error err;
    must(dsc_gbv_dist(&r->order, dsc_gbv_root(), draft, target, r->vocab, paths, r->room, &err),
         &err);
    return r->room[0];
}

static double gbv_2(ring *r, const double *draft, const double *target)
{
    return gbv(r, draft, target, 2);
}

static double gbv_8(ring *r, const double *draft, const double *target)
{
    return gbv(r, draft, target, 8);
}

static double gbv_lower(ring *r, const double *draft, const double *target)
{
    return dsc_gbv_lower(draft, target, r->vocab, 0);
}

static double ensemble(ring *r, const double *draft, const double *target)
{
    return dsc_ensemble_price(.9, draft, target, r->vocab).kl;
}

static double relaxed(ring *r, const double *draft, const double *target)
{
    const dsc_accepted_set set = dsc_relaxed_set(target, r->vocab, 10, .6);
    return dsc_accepted_set_price(set, draft, target, r->vocab).kl;
}

static double typical(ring *r, const double *draft, const double *target)
{
    const dsc_accepted_set set = dsc_typical_set(target, r->vocab, .09, .3);
    return dsc_accepted_set_price(set, draft, target, r->vocab).kl;
}

static double vocabulary(ring *r, const double *draft, const double *target)
{
    (void)draft;
    return dsc_vocabulary_limit(target, r->vocab, r->in);
}

static const struct {
    const char *name;
    double (*run)(ring *r, const double *draft, const double *target);
} paths[] = {{"read", read_rows},  {"rejection", rejection}, {"gbv_2", gbv_2},
             {"gbv_8", gbv_8},     {"gbv_lower", gbv_lower}, {"ensemble", ensemble},
             {"relaxed", relaxed}, {"typical", typical},     {"vocabulary", vocabulary}};
enum { PATHS = sizeof paths / sizeof *paths };

// Seconds per pair.
static double time_path(ring *r, int path)
{
    const double start = thread_s();
    for (size_t p = 0; p < r->pairs; p++) {
        const double *draft = r->row + 2 * p * r->vocab;
        r->sink = r->sink + paths[path].run(r, draft, draft + r->vocab);
    }
    return (thread_s() - start) / (double)r->pairs;
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, dsc_by_real);
    return x[n / 2];
}

int main(int argc, char **argv)
{
    static double seconds[PATHS][MOST_ROUNDS], over[PATHS][MOST_ROUNDS];
    char cpu[128];
    ring r;
    const int rounds = argc > 1 ? atoi(argv[1]) : 9;
    const long long vocab = argc > 2 ? atoll(argv[2]) : 151936;
    if (rounds < 1 || rounds > MOST_ROUNDS || vocab < 2) {
        fprintf(stderr, "bench_rules: 1 to %d rounds, 2 tokens or more\n", MOST_ROUNDS);
        return 2;
    }
    make_ring(&r, (size_t)vocab);
    for (int i = 0; i < rounds; i++)
        for (int p = 0; p < PATHS; p++) {
            seconds[p][i] = time_path(&r, p);
            over[p][i] = seconds[p][i] / seconds[0][i];
        }
    processor(cpu, sizeof cpu);
    printf("# cpu: %s; flags: %s\nvocab,path,us_per_position,over_read\n", cpu, BENCH_FLAGS);
    for (int p = 0; p < PATHS; p++)
        printf("%lld,%s,%.1f,%.2f\n", vocab, paths[p].name, 1e6 * median(seconds[p], rounds),
               median(over[p], rounds));
    dsc_gbv_order_fini(&r.order);
    free(r.row);
    free(r.room);
    free(r.in);
    return 0;
}

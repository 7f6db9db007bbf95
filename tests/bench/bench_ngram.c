// SPDX-License-Identifier: Apache-2.0
// Times next-token distributions of the back-off n-gram model on one core. The bar is 2 M
// distributions/s, where a distribution is read over the support of the longest context that
// occurred, each token with its probability. Contexts are those of the held-out sequences, in
// order.
//
//   bench_ngram [CORPUS [TOKENIZER [ROUNDS]]]
//
// CSV on stdout, processor time, the best of the rounds: corpus, order, the quantity measured, its
// number, seconds, millions per second, and the mean number of tokens in a distribution's support.
// Without arguments: the GSM8K training problems of the test data folder ($DSC_TEST_DATA, default
// ../shared/data beside the source), as bytes; exit 77 when it is absent.
#include "base/rng.h"
#include "sim/model/model_ngram.h"
#include "tests/bench/bench.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The work at each context. It returns a value that depends on everything read.
typedef double work(const dsc_language *l, const dsc_place *at, int32_t next, double *dist);

// Token and probability of everything in the support, in four sums: one would wait for its own
// additions (four cycles each), and that is no cost of the model.
static double support(const dsc_language *l, const dsc_place *at, int32_t next, double *dist)
{
    dsc_dist d;
    double sum[4] = {0};
    (void)next, (void)dist;
    l->type->dist(l, at, &d);
    const int32_t *token = d.level[0].token;
    const double *probability = d.level[0].probability;
    size_t n = d.level[0].count, whole = n - n % 4;
    for (size_t i = 0; i < whole; i += 4)
        for (size_t j = 0; j < 4; j++)
            sum[j] += probability[i + j] * token[i + j];
    for (size_t i = whole; i < n; i++)
        sum[0] += probability[i] * token[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// The same for a user who adds one after the other.
static double one_sum(const dsc_language *l, const dsc_place *at, int32_t next, double *dist)
{
    dsc_dist d;
    double sum = 0;
    (void)next, (void)dist;
    l->type->dist(l, at, &d);
    for (size_t i = 0; i < d.level[0].count; i++)
        sum += d.level[0].probability[i] * d.level[0].token[i];
    return sum;
}

static double single(const dsc_language *l, const dsc_place *at, int32_t next, double *dist)
{
    dsc_dist d;
    (void)dist;
    l->type->dist(l, at, &d);
    return dsc_dist_probability(&d, next);
}

static double sample(const dsc_language *l, const dsc_place *at, int32_t next, double *dist)
{
    dsc_dist d;
    (void)dist;
    l->type->dist(l, at, &d);
    return dsc_dist_sample(&d, dsc_rng_uniform(1, (uint64_t)next, (uint32_t)at->position, 0));
}

static double dense(const dsc_language *l, const dsc_place *at, int32_t next, double *dist)
{
    dsc_dist d;
    l->type->dist(l, at, &d);
    dsc_dist_fill(&d, dist);
    return dist[next];
}

static double greedy(const dsc_language *l, const dsc_place *at, int32_t next, double *dist)
{
    (void)next, (void)dist;
    return l->type->best(l, at);
}

static const struct {
    const char *name;
    work *work;
} works[] = {{"distribution over its support", support},
             {"the same in one sum", one_sum},
             {"one token", single},
             {"sample", sample},
             {"most probable token", greedy},
             {"distribution over the vocabulary", dense}};

static int64_t all_contexts(const dsc_language *l, const dsc_corpus *c, work *w, double *dist,
                            double *sink)
{
    int64_t n = 0;
    for (int64_t s = 9; s < c->count; s += 10) {
        dsc_token_view q = dsc_corpus_sequence(c, s);
        for (int64_t i = 1; i < q.count; i++, n++)
            *sink += w(l, &(dsc_place){q.id, (size_t)i, i, 0, 0}, q.id[i], dist);
    }
    return n;
}

static double mean_support(const dsc_language *l, const dsc_corpus *c)
{
    double total = 0;
    int64_t n = 0;
    for (int64_t s = 9; s < c->count; s += 10) {
        dsc_token_view q = dsc_corpus_sequence(c, s);
        for (int64_t i = 1; i < q.count; i++, n++) {
            dsc_dist d;
            l->type->dist(l, &(dsc_place){q.id, (size_t)i, i, 0, 0}, &d);
            total += (double)d.level[0].count;
        }
    }
    return total / (double)n;
}

static void bench(const char *path, const dsc_tokenizer *t, int order, int rounds)
{
    enum { LEAST_CONTEXTS = 1000000 };
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    dsc_corpus corpus = {0}, learnt = {0};
    dsc_language *l;
    dsc_error e;
    double sink = 0, start = cpu_s(), *dist;
    must(dsc_corpus_read(&corpus, path, t, &e), &e);
    must(dsc_corpus_read(&learnt, path, t, &e), &e);
    double read_s = (cpu_s() - start) / 2;
    int64_t tokens = corpus.start[corpus.count];
    start = cpu_s();
    must(dsc_ngram_learn(&l, &learnt, &(dsc_ngram_options){order, 0, 10}, &e), &e);
    double learn_s = cpu_s() - start, mean = mean_support(l, &corpus);
    must(dsc_alloc(&dist, (size_t)l->vocab_size, sizeof *dist, &e), &e);
    printf("%s,%d,read and tokenize,%lld,%.3f,%.3f,\n", name, order, (long long)tokens, read_s,
           (double)tokens / read_s / 1e6);
    printf("%s,%d,learn,%lld,%.3f,%.3f,\n", name, order, (long long)tokens, learn_s,
           (double)tokens / learn_s / 1e6);
    for (size_t w = 0; w < sizeof works / sizeof *works; w++) {
        double best_s = 1e9, per_s = 0;
        int64_t n = 0;
        for (int round = 0; round < rounds; round++) {
            int64_t least = works[w].work == dense ? LEAST_CONTEXTS / 100 : LEAST_CONTEXTS;
            start = cpu_s();
            for (n = 0; n < least;)
                n += all_contexts(l, &corpus, works[w].work, dist, &sink);
            double seconds = cpu_s() - start;
            if ((double)n / seconds > per_s) {
                per_s = (double)n / seconds;
                best_s = seconds;
            }
        }
        printf("%s,%d,%s,%lld,%.3f,%.3f,%.2f\n", name, order, works[w].name, (long long)n, best_s,
               per_s / 1e6, mean);
    }
    if (sink == 0.5) // never; keeps the work
        puts("");
    free(dist);
    l->type->free(l);
    dsc_corpus_fini(&corpus);
}

int main(int argc, char **argv)
{
    char path[1024];
    const char *data = getenv("DSC_TEST_DATA"), *source = getenv("top_srcdir");
    if (argc > 1)
        snprintf(path, sizeof path, "%s", argv[1]);
    else if (data)
        snprintf(path, sizeof path, "%s/gsm8k/train.jsonl", data);
    else
        snprintf(path, sizeof path, "%s/../shared/data/gsm8k/train.jsonl", source ? source : ".");
    if (access(path, R_OK)) {
        fprintf(stderr, "bench_ngram: %s: not here\n", path);
        return argc > 1 ? 1 : 77;
    }
    dsc_tokenizer *t;
    dsc_error e;
    must(dsc_tokenizer_load(&t, argc > 2 ? argv[2] : "bytes", &e), &e);
    puts("# " BENCH_FLAGS);
    puts("corpus,order,what,times,seconds,M_per_s,support");
    bench(path, t, 2, argc > 3 ? atoi(argv[3]) : 3);
    bench(path, t, 4, argc > 3 ? atoi(argv[3]) : 3);
    dsc_tokenizer_free(t);
    return fclose(stdout) ? 1 : 0;
}

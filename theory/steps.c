// SPDX-License-Identifier: Apache-2.0
// Monte Carlo simulation of steps; theory/steps.h.
//
// A step accepts m tokens with probability P(m). Of the 256 values of a byte, floor(256 P(m)) stand
// for m; the remaining values stand for the distribution of the parts that the floors cut off. That
// distribution is sampled in the same way with 16 bits, and its remainder with a double. So no
// probability is rounded, and nearly every step costs one byte and, for each m that has a value,
// one comparison in a vector. Values below a bound are counted; nothing is looked up.
//
// The bits come from eight xoshiro256++ generators side by side (Blackman and Vigna 2021), seeded
// by Philox for every block of steps.
#include "theory/steps.h"

#include "base/memory.h"
#include "base/rng.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { LANES = 8, CHUNK = 128, CHUNKS = 16, BYTES = CHUNK * LANES * 8 };

typedef int16_t two_bytes __attribute__((may_alias));

typedef struct generator {
    _Alignas(64) uint64_t state[4][LANES];
} generator;

static void seed_block(generator *g, uint64_t seed, uint64_t block)
{
    for (uint32_t lane = 0; lane < LANES; lane++)
        for (uint32_t half = 0; half < 2; half++) {
            uint32_t w[4];
            dsc_rng_words(seed, block, 2 * lane + half, DSC_RNG_STEPS, w);
            g->state[2 * half][lane] = (uint64_t)w[0] << 32 | w[1];
            g->state[2 * half + 1][lane] = (uint64_t)w[2] << 32 | w[3];
        }
}

// The operations on a chunk in vectors of a given width; the results are the same for all widths.
typedef struct kernels {
    void (*fill)(generator *g, uint64_t out[CHUNK * LANES]);
    // The number of elements, as signed integers, below each bound.
    void (*count_bytes)(const void *random, const int16_t *bound, int bounds, int64_t *below);
    void (*count_shorts)(const void *random, const int16_t *bound, int bounds, int64_t *below);
} kernels;

#define TURN(x, by) ((x) << (by) | (x) >> (64 - (by)))

// Counts in lanes, where each match adds -1, of BLOCK vectors at a time: at most BLOCK / 2 in a
// lane.
#define COUNT(vector, number)                                                                      \
    enum { BLOCK = 128, BLOCKS = BYTES / (BLOCK * (int)sizeof(vector)) };                          \
    for (int j = 0; j < bounds; j++)                                                               \
        for (int block = 0; block < BLOCKS; block++) {                                             \
            const vector *x = (const vector *)random + block * BLOCK;                              \
            const vector limit = (vector){0} + (number)bound[j];                                   \
            vector even = {0}, odd = {0};                                                          \
            for (int i = 0; i < BLOCK; i += 2) {                                                   \
                even += x[i] < limit;                                                              \
                odd += x[i + 1] < limit;                                                           \
            }                                                                                      \
            int sum = 0;                                                                           \
            for (size_t lane = 0; lane < sizeof(vector) / sizeof(number); lane++)                  \
                sum -= even[lane] + odd[lane];                                                     \
            below[j] += sum;                                                                       \
        }

#define KERNELS(name, width, target)                                                               \
    typedef uint64_t name##_words __attribute__((vector_size(width), may_alias));                  \
    typedef int8_t name##_8 __attribute__((vector_size(width), may_alias));                        \
    typedef int16_t name##_16 __attribute__((vector_size(width), may_alias));                      \
    target static void name##_fill(generator *g, uint64_t out[CHUNK * LANES])                      \
    {                                                                                              \
        for (size_t lane = 0; lane < LANES; lane += width / sizeof(uint64_t)) {                    \
            name##_words *s[4], a, b, c, d;                                                        \
            for (int k = 0; k < 4; k++)                                                            \
                s[k] = (name##_words *)&g->state[k][lane];                                         \
            a = *s[0], b = *s[1], c = *s[2], d = *s[3];                                            \
            for (int i = 0; i < CHUNK; i++) {                                                      \
                name##_words shifted = b << 17;                                                    \
                *(name##_words *)&out[(size_t)i * LANES + lane] = TURN(a + d, 23) + a;             \
                c ^= a;                                                                            \
                d ^= b;                                                                            \
                b ^= c;                                                                            \
                a ^= d;                                                                            \
                c ^= shifted;                                                                      \
                d = TURN(d, 45);                                                                   \
            }                                                                                      \
            *s[0] = a, *s[1] = b, *s[2] = c, *s[3] = d;                                            \
        }                                                                                          \
    }                                                                                              \
    target static void name##_count_bytes(const void *random, const int16_t *bound, int bounds,    \
                                          int64_t *below){COUNT(                                   \
        name##_8, int8_t)} target static void name##_count_shorts(const void *random,              \
                                                                  const int16_t *bound,            \
                                                                  int bounds, int64_t *below)      \
    {                                                                                              \
        COUNT(name##_16, int16_t)                                                                  \
    }                                                                                              \
    static const kernels name = {name##_fill, name##_count_bytes, name##_count_shorts};

KERNELS(plain, 16, )
#ifdef __x86_64__
KERNELS(avx2, 32, __attribute__((target("avx2"))))
KERNELS(avx512, 64, __attribute__((target("avx512bw,avx512vl,avx512dq"))))
#endif

// The operations in vectors of `width` bytes; 0: the widest here; NULL: this machine lacks them.
static const kernels *choose_kernels(int width)
{
#ifdef __x86_64__
    if ((!width || width == 64) && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        return &avx512;
    if ((!width || width == 32) && __builtin_cpu_supports("avx2"))
        return &avx2;
#endif
    return !width || width == 16 ? &plain : NULL;
}

// A distribution over 0 .. length, cut into values of `bits` bits and a remainder.
typedef struct cut {
    int bits;
    int16_t *bound; // [bounds] the value after those of token[j], minus half of all values
    int *token;     // [bounds]
    int bounds;
    bool whole; // no value is left over
} cut;

// p[length + 1] sums to 1; on return it is the distribution of the remainder.
static int cut_init(cut *c, int bits, double *p, int length, dsc_error *err)
{
    size_t n = (size_t)length + 1;
    int all = 1 << bits, values = 0;
    double left = 0;
    *c = (cut){.bits = bits};
    int rc = dsc_new(&c->bound, n, err);
    if (!rc)
        rc = dsc_new(&c->token, n, err);
    for (int m = 0; m <= length && !rc; m++) {
        double whole = fmin(floor(all * p[m]), all - values);
        values += (int)whole;
        p[m] = all * p[m] - whole;
        left += p[m];
        if (whole > 0) { // the greatest number is below no bound: the last one's is `whole`
            c->token[c->bounds] = m;
            c->bound[c->bounds++] = (int16_t)(values - all / 2 - (values == all));
        }
    }
    c->whole = values == all;
    for (int m = 0; m <= length && !rc; m++)
        p[m] = left > 0 ? p[m] / left : 0;
    return rc;
}

static void cut_fini(cut *c)
{
    free(c->bound);
    free(c->token);
}

// The state of a block.
typedef struct sampler {
    const kernels *kernels;
    cut first, second; // cuts of 8 and of 16 bits
    double *sum;       // [length + 1] sums of the remaining distribution
    int64_t *below;    // [length + 1]
    int length;
} sampler;

// Samples `rounds` steps from a cut and returns the number that it did not decide.
static int64_t draw(const sampler *s, const cut *c, generator *g, int64_t rounds,
                    int64_t *histogram)
{
    _Alignas(64) uint64_t random[CHUNK * LANES];
    int64_t decided = 0, in_chunk = BYTES * 8 / c->bits;
    for (int j = 0; j < c->bounds; j++)
        s->below[j] = 0;
    for (int64_t left = rounds; left > 0; left -= in_chunk) {
        s->kernels->fill(g, random);
        if (c->bits == 8) {
            for (int64_t i = left; i < in_chunk; i++)
                ((int8_t *)random)[i] = INT8_MAX; // below no bound: not counted
            s->kernels->count_bytes(random, c->bound, c->bounds, s->below);
        } else {
            for (int64_t i = left; i < in_chunk; i++)
                ((two_bytes *)random)[i] = INT16_MAX;
            s->kernels->count_shorts(random, c->bound, c->bounds, s->below);
        }
    }
    for (int j = 0; j < c->bounds; j++) {
        int64_t upto = c->whole && j + 1 == c->bounds ? rounds : s->below[j];
        histogram[c->token[j]] += upto - decided;
        decided = upto;
    }
    return rounds - decided;
}

static void run_block(const sampler *s, uint64_t seed, uint64_t block, int64_t rounds,
                      int64_t *histogram)
{
    generator g;
    seed_block(&g, seed, block);
    rounds = draw(s, &s->first, &g, rounds, histogram);
    rounds = draw(s, &s->second, &g, rounds, histogram);
    for (int64_t i = 0; i < rounds; i++) {
        double x =
            s->sum[s->length] * dsc_rng_uniform(seed, block, (uint32_t)i, DSC_RNG_STEPS_REST);
        int low = 0, high = s->length;
        while (low < high) { // the first m whose sum is above x
            int middle = (low + high) / 2;
            if (s->sum[middle] > x)
                high = middle;
            else
                low = middle + 1;
        }
        histogram[low]++;
    }
}

static int sampler_init(sampler *s, const kernels *k, const dsc_acceptance *dist, int length,
                        dsc_error *err)
{
    double reached = 1;
    *s = (sampler){.kernels = k, .length = length};
    int rc = dsc_new(&s->sum, (size_t)length + 1, err);
    if (!rc)
        rc = dsc_new(&s->below, (size_t)length + 1, err);
    for (int m = 0; m <= length && !rc; m++) {
        double go_on = m == length              ? 0
                       : dist->conditional_rate ? dist->conditional_rate[m]
                                                : dist->rate;
        s->sum[m] = reached * (1 - go_on);
        reached *= go_on;
    }
    if (!rc)
        rc = cut_init(&s->first, 8, s->sum, length, err);
    if (!rc)
        rc = cut_init(&s->second, 16, s->sum, length, err);
    for (int m = 1; m <= length && !rc; m++)
        s->sum[m] += s->sum[m - 1];
    return rc;
}

static void sampler_fini(sampler *s)
{
    cut_fini(&s->first);
    cut_fini(&s->second);
    free(s->sum);
    free(s->below);
}

int dsc_steps_sample(const dsc_acceptance *dist, int length, uint64_t seed, int64_t steps,
                     int64_t *histogram, dsc_error *err)
{
    return dsc_steps_sample_width(0, dist, length, seed, steps, histogram, err);
}

int dsc_steps_sample_width(int width, const dsc_acceptance *dist, int length, uint64_t seed,
                           int64_t steps, int64_t *histogram, dsc_error *err)
{
    enum { BLOCK = BYTES * CHUNKS };
    double *accepted;
    const kernels *k = choose_kernels(width);
    if (!k)
        return dsc_fail(err, DSC_EABSENT, "this processor has no vectors of %d bytes", width);
    if (steps < 0)
        return dsc_fail(err, DSC_EUSAGE, "the number of steps must be >= 0");
    int rc = dsc_new(&accepted, (size_t)(length < 0 ? 0 : length) + 1, err);
    if (rc)
        return rc;
    rc = dsc_block_accepted(dist, length, accepted, err); // refuses what is no distribution
    free(accepted);
    if (rc)
        return rc;
    sampler s;
    rc = sampler_init(&s, k, dist, length, err);
    for (int64_t first = 0, block = 0; first < steps && !rc; first += BLOCK, block++) {
        int64_t left = steps - first;
        run_block(&s, seed, (uint64_t)block, left < BLOCK ? left : BLOCK, histogram);
    }
    sampler_fini(&s);
    return rc;
}

dsc_steps_mean dsc_steps_summary(const int64_t *histogram, int length)
{
    double n = 0, sum = 0, squares = 0;
    for (int m = 0; m <= length; m++) {
        n += (double)histogram[m];
        sum += (double)histogram[m] * m;
    }
    double mean = sum / n;
    for (int m = 0; m <= length; m++)
        squares += (double)histogram[m] * (m - mean) * (m - mean);
    return (dsc_steps_mean){mean, n > 1 ? sqrt(squares / (n - 1) / n) : (double)NAN};
}

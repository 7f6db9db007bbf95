// SPDX-License-Identifier: Apache-2.0
// The Poisson bootstrap of many rows. Weights are sampled again for each tile of rows, which costs
// a few percent of the sums and saves a matrix of requests x resamples. Sums run over requests in
// their order, so tiles and threads do not change the result.
#include "sim/tune/bootstrap.h"

#include "base/rng.h"
#include "base/statistics.h"
#include "base/threads.h"

#include <math.h>
#include <stdlib.h>

// Rows of a tile; requests whose weights are in memory at a time; resamples summed side by side.
enum { TILE = 64, BLOCK = 16, LANES = 16 };

// Scratch of one thread.
typedef struct tile {
    double *weight;       // [BLOCK][resamples]
    double *top, *bottom; // [TILE][resamples]
    double *ratio;        // [resamples]
} tile;

static size_t tile_doubles(const dsc_resampling *how)
{
    return (size_t)how->resamples * (BLOCK + 2 * TILE + 1);
}

static tile tile_at(const dsc_resampling *how, double *memory)
{
    size_t n = (size_t)how->resamples;
    return (tile){memory, memory + BLOCK * n, memory + (BLOCK + TILE) * n,
                  memory + (BLOCK + 2 * TILE) * n};
}

static void draw_weights(const dsc_resampling *how, int64_t request, double *weight)
{
    for (int r = 0; r < how->resamples; r += 4) {
        uint32_t bits[4];
        dsc_rng_words(how->seed, (uint64_t)request, (uint32_t)r, DSC_RNG_BOOTSTRAP, bits);
        for (int j = 0; j < 4; j++)
            weight[r + j] = dsc_poisson_weight(bits[j]);
    }
}

// Adds a block of requests to the sums of `lanes` resamples, which stay in registers meanwhile.
__attribute__((always_inline)) static inline void add_lanes(double *restrict top,
                                                            double *restrict bottom,
                                                            const double *restrict weight, size_t n,
                                                            const double *x, const double *y,
                                                            size_t block, size_t lanes)
{
    double a[LANES], b[LANES];
    for (size_t j = 0; j < lanes; j++) {
        a[j] = top[j];
        b[j] = bottom[j];
    }
    for (size_t i = 0; i < block; i++)
        for (size_t j = 0; j < lanes; j++) {
            a[j] += weight[i * n + j] * x[i];
            b[j] += weight[i * n + j] * y[i];
        }
    for (size_t j = 0; j < lanes; j++) {
        top[j] = a[j];
        bottom[j] = b[j];
    }
}

// Adds a block of requests to the sums of a row in all n resamples, a multiple of 4.
#ifdef HAVE_TARGET_CLONES
__attribute__((target_clones("avx2", "default")))
#endif
static void
add_block(double *restrict top, double *restrict bottom, const double *restrict weight, size_t n,
          const double *x, const double *y, size_t block)
{
    size_t r = 0;
    for (; r + LANES <= n; r += LANES)
        add_lanes(top + r, bottom + r, weight + r, n, x, y, block, LANES);
    for (; r < n; r += 4)
        add_lanes(top + r, bottom + r, weight + r, n, x, y, block, 4);
}

// Sums of up to TILE rows in every resample.
static void sum_rows(const dsc_resampling *how, const dsc_ratio *row, size_t rows, const tile *t)
{
    size_t n = (size_t)how->resamples;
    for (size_t i = 0; i < rows * n; i++)
        t->top[i] = t->bottom[i] = 0;
    for (size_t first = 0; first < how->requests; first += BLOCK) {
        size_t left = how->requests - first, block = left < BLOCK ? left : BLOCK;
        for (size_t b = 0; b < block; b++)
            draw_weights(how, how->request[first + b], &t->weight[b * n]);
        for (size_t i = 0; i < rows; i++) {
            double x[BLOCK], y[BLOCK];
            for (size_t b = 0; b < block; b++) {
                x[b] = row[i].top[how->request[first + b]];
                y[b] = row[i].bottom[how->request[first + b]];
            }
            add_block(&t->top[i * n], &t->bottom[i * n], t->weight, n, x, y, block);
        }
    }
}

// A resample of a tiny trace may be empty: its ratio is NaN.
static double quotient(double a, double b)
{
    return b > 0 ? a / b : (double)NAN;
}

static void interval(const double *top, const double *bottom, const double *reference,
                     int resamples, double *room, double *low, double *high)
{
    size_t n = 0;
    for (int r = 0; r < resamples; r++) {
        double x = quotient(top[r], bottom[r]);
        if (reference)
            x = quotient(x, reference[r]);
        if (!isnan(x))
            room[n++] = x;
    }
    dsc_percentile_interval(room, n, low, high);
}

static void compare_tile(const dsc_resampling *how, const dsc_ratio *row, size_t rows,
                         const double *reference, const tile *t, dsc_ratio_interval *out)
{
    size_t n = (size_t)how->resamples;
    sum_rows(how, row, rows, t);
    for (size_t i = 0; i < rows; i++) {
        const double *top = &t->top[i * n], *bottom = &t->bottom[i * n];
        interval(top, bottom, NULL, how->resamples, t->ratio, &out[i].low, &out[i].high);
        interval(top, bottom, reference, how->resamples, t->ratio, &out[i].relative_low,
                 &out[i].relative_high);
    }
}

static void compare_rows(const dsc_resampling *how, const dsc_ratio *row, size_t rows,
                         const double *reference, double *memory, int threads,
                         dsc_ratio_interval *out)
{
    size_t tiles = (rows + TILE - 1) / TILE;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (size_t i = 0; i < tiles; i++) {
        size_t first = i * TILE, left = rows - first;
        tile t = tile_at(how, memory + (size_t)omp_get_thread_num() * tile_doubles(how));
        compare_tile(how, row + first, left < TILE ? left : TILE, reference, &t, out + first);
    }
}

int dsc_bootstrap_ratios(const dsc_resampling *how, const dsc_ratio *row, size_t rows,
                         const dsc_ratio *reference, dsc_ratio_interval *out, dsc_error *err)
{
    double *memory = NULL, *ratio;
    size_t tiles = (rows + TILE - 1) / TILE;
    int threads = tiles < (size_t)how->threads ? (int)tiles : how->threads;
    for (size_t i = 0; i < rows; i++)
        out[i] = (dsc_ratio_interval){NAN, NAN, NAN, NAN};
    if (how->requests < 2 || !rows)
        return DSC_OK;
    int rc = dsc_new(&ratio, (size_t)how->resamples, err);
    rc = rc ?: dsc_new(&memory, (size_t)threads * tile_doubles(how), err);
    if (!rc) {
        tile t = tile_at(how, memory);
        sum_rows(how, reference, 1, &t);
        for (int r = 0; r < how->resamples; r++)
            ratio[r] = quotient(t.top[r], t.bottom[r]);
        compare_rows(how, row, rows, ratio, memory, threads, out);
    }
    free(memory);
    free(ratio);
    return rc;
}

double dsc_ratio_value(const dsc_ratio *row, const int64_t *request, size_t requests,
                       const double *weight)
{
    double top = 0, bottom = 0;
    for (size_t i = 0; i < requests; i++) {
        const double w = weight ? weight[i] : 1;
        top += w * row->top[request[i]];
        bottom += w * row->bottom[request[i]];
    }
    return quotient(top, bottom);
}

// SPDX-License-Identifier: Apache-2.0
// The loops over all tokens; theory/ratio_cells.h. Tokens go in blocks: cells and masses are
// computed in vectors into the first-level cache, then added one by one. The additions leave the
// memory idle, so the rows' next tokens are prefetched meanwhile. All processors give the same
// bits: there is one division for each token, and additions keep the order of the tokens.
#include "theory/ratio_cells.h"

#include "theory/rows/fast_exp.h"

#include <math.h>
#include <string.h>

enum {
    BLOCK = 128,
    LINE = 16,                               // tokens of a cache line
    FIRST = (127 + DSC_LOWEST_OCTAVE) << 23, // bits of the least ratio above the bottom
};

typedef double pair __attribute__((vector_size(16), aligned(8), may_alias));

static inline uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// The cell of a token, of part i % DSC_SINKS at either end. 0/0, a token that neither distribution
// gives any mass, is a NaN and lands at the bottom or the top, with mass 0.
static inline int32_t cell_of(float ratio, int32_t part)
{
    const int32_t cell = (((int32_t)bits_of(ratio) - FIRST) >> DSC_CELL_SHIFT) + DSC_SINKS;
    const int32_t above = cell < part ? part : cell;
    return above > DSC_TOP + part ? DSC_TOP + part : above;
}

// The cells and masses of BLOCK tokens; returns the largest bit pattern.
DSC_FOR_EVERY_PROCESSOR
static uint32_t find_cells(const float *draft, const float *target, uint16_t *cell, dsc_mass *mass)
{
    static const int32_t part[LINE] = {0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7};
    uint32_t lane[LINE] = {0}, largest = 0;
    for (size_t i = 0; i < BLOCK; i += LINE)
#pragma omp simd
        for (size_t j = 0; j < LINE; j++) {
            const uint32_t d = bits_of(draft[i + j]), t = bits_of(target[i + j]);
            const float a = float_of(d & INT32_MAX), b = float_of(t & INT32_MAX);
            const uint32_t most = d > t ? d : t;
            cell[i + j] = (uint16_t)cell_of(b / a, part[j]);
            mass[i + j].draft = (double)a;
            mass[i + j].target = (double)b;
            lane[j] = lane[j] > most ? lane[j] : most;
        }
    for (size_t j = 0; j < LINE; j++)
        largest = largest > lane[j] ? largest : lane[j];
    return largest;
}

// sum[cell[i]] += mass[i] for i < LINE, in order.
static inline void add_masses(const dsc_mass *mass, const uint16_t *cell, dsc_mass *sum)
{
#pragma GCC unroll 16
    for (size_t i = 0; i < LINE; i++)
        *(pair *)&sum[cell[i]] += *(const pair *)&mass[i];
}

uint32_t dsc_ratio_histogram(const float *draft, const float *target, size_t n, dsc_mass *sum,
                             uint16_t *cell, const void *const *ahead)
{
    _Alignas(64) dsc_mass mass[BLOCK];
    uint32_t largest = 0;
    size_t first = 0;
    for (; first + BLOCK <= n; first += BLOCK) {
        const uint32_t most = find_cells(draft + first, target + first, cell + first, mass);
        largest = largest > most ? largest : most;
        for (size_t i = 0; i < BLOCK && most; i += LINE) {
            __builtin_prefetch((const char *)ahead[0] + (first + i) * sizeof *draft);
            __builtin_prefetch((const char *)ahead[1] + (first + i) * sizeof *target);
            add_masses(mass + i, cell + first + i, sum);
        }
    }
    for (size_t i = first; i < n; i++) {
        const uint32_t d = bits_of(draft[i]), t = bits_of(target[i]);
        const float a = float_of(d & INT32_MAX), b = float_of(t & INT32_MAX);
        cell[i] = (uint16_t)cell_of(b / a, (int32_t)(i % DSC_SINKS));
        sum[cell[i]].draft += (double)a;
        sum[cell[i]].target += (double)b;
        largest = largest > d ? largest : d;
        largest = largest > t ? largest : t;
    }
    return largest;
}

size_t dsc_ratio_select(const uint16_t *cell, size_t n, const uint16_t *wanted, size_t count,
                        uint32_t *found)
{
    uint8_t is_wanted[DSC_CELLS] = {0};
    size_t out = 0;
    for (size_t i = 0; i < count; i++)
        is_wanted[wanted[i]] = 1;
#pragma GCC unroll 4
    for (size_t i = 0; i < n; i++) {
        found[out] = (uint32_t)i;
        out += is_wanted[cell[i]];
    }
    return out;
}

double dsc_ratio_cell_edge(int c)
{
    const uint32_t bits = FIRST + ((uint32_t)(c - DSC_SINKS) << DSC_CELL_SHIFT);
    if (c == DSC_BOTTOM)
        return 0;
    return c > DSC_TOP ? INFINITY : ((double)float_of(bits) + (double)float_of(bits - 1)) / 2;
}

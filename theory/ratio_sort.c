// SPDX-License-Identifier: Apache-2.0
// Least-significant-digit radix sort of 32 bits of the ratio, its exponent and the leading 21 bits
// of the fraction; for numbers >= 0 bits are in the order of the numbers. The upper half of an
// entry is these bits and the lower half the token, so ties come out by ascending id. Runs of
// entries with equal bits are then put into the order of the exact ratios.
#include "theory/ratio_sort.h"

#include "theory/rows/fast_exp.h"

#include <stdbool.h>
#include <string.h>

enum { BITS = 11, VALUES = 1 << BITS, DIGITS = 3, FIRST = 32 }; // the lowest bit of the key
enum { BLOCK = 64 };

static uint64_t key_of(double ratio)
{
    uint64_t bits;
    memcpy(&bits, &ratio, sizeof bits);
    return bits << 1 >> 32; // without the sign
}

static size_t digit_of(uint64_t entry, int digit)
{
    return (size_t)(entry >> (FIRST + digit * BITS)) & (VALUES - 1);
}

// --- the key -------------------------------------------------------------------------------------

// The ratios of BLOCK tokens, side by side: what is divided by 0 is not used.
DSC_FOR_EVERY_PROCESSOR
static void divide_block(const double *draft, const double *target, double *ratio)
{
    for (int j = 0; j < BLOCK; j++)
        ratio[j] = target[j] / draft[j];
}

// Fills in the entries and counts their digits.
static size_t fill(const double *draft, const double *target, size_t vocab, uint64_t *entry,
                   uint32_t count[DIGITS][VALUES])
{
    double ratio[BLOCK];
    size_t n = 0;
    for (size_t x = 0; x < vocab; x++) {
        if (x % BLOCK == 0 && vocab - x >= BLOCK)
            divide_block(draft + x, target + x, ratio);
        else if (x % BLOCK == 0)
            for (size_t j = 0; x + j < vocab; j++)
                ratio[j] = target[x + j] / draft[x + j];
        if (!(draft[x] > 0))
            continue;
        const uint64_t e = key_of(ratio[x % BLOCK]) << FIRST | x;
        entry[n++] = e;
        for (int d = 0; d < DIGITS; d++)
            count[d][digit_of(e, d)]++;
    }
    return n;
}

// One stable pass, by digit; `count` becomes the places.
static void sort_digit(const uint64_t *from, uint64_t *to, size_t n, int digit, uint32_t *count)
{
    uint32_t sum = 0;
    for (size_t v = 0; v < VALUES; v++) {
        const uint32_t here = count[v];
        count[v] = sum;
        sum += here;
    }
    for (size_t i = 0; i < n; i++)
        to[count[digit_of(from[i], digit)]++] = from[i];
}

// --- runs of equal keys --------------------------------------------------------------------------

typedef struct rows {
    const double *draft, *target;
} rows;

static double ratio_of(rows r, uint64_t entry)
{
    const int32_t x = dsc_ratio_token(entry);
    return r.target[x] / r.draft[x];
}

static bool is_in_order(rows r, const uint64_t *entry, size_t n)
{
    double last = ratio_of(r, entry[0]);
    for (size_t i = 1; i < n; i++) {
        const double next = ratio_of(r, entry[i]);
        if (next < last)
            return false;
        last = next;
    }
    return true;
}

// A stable merge sort; room[n].
static void sort_run(rows r, uint64_t *entry, uint64_t *room, size_t n)
{
    const size_t half = n / 2;
    if (is_in_order(r, entry, n))
        return;
    sort_run(r, entry, room, half);
    sort_run(r, entry + half, room, n - half);
    memcpy(room, entry, half * sizeof *room);
    for (size_t to = 0, a = 0, b = half; a < half; to++) {
        const bool first = b == n || !(ratio_of(r, entry[b]) < ratio_of(r, room[a]));
        entry[to] = first ? room[a++] : entry[b++];
    }
}

size_t dsc_ratio_sort(const double *draft, const double *target, size_t vocab, uint64_t *order,
                      uint64_t *room)
{
    uint32_t count[DIGITS][VALUES] = {{0}};
    const rows r = {draft, target};
    const size_t n = fill(draft, target, vocab, room, count);
    sort_digit(room, order, n, 0, count[0]);
    sort_digit(order, room, n, 1, count[1]);
    sort_digit(room, order, n, 2, count[2]);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && order[end] >> FIRST == order[i] >> FIRST;)
            end++;
        if (end - i > 1)
            sort_run(r, order + i, room, end - i);
    }
    return n;
}

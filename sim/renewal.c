// SPDX-License-Identifier: Apache-2.0
#include "sim/renewal.h"

#include <stdbool.h>
#include <string.h>

enum { LANES = DSC_RENEWAL_LANES };

struct dsc_renewal_tile {
    int64_t limit[LANES]; // ascending; lanes that are not used repeat the last
    int64_t reach[LANES]; // the same, at most positions - 1
    double calls[LANES];
    double places[LANES];  // where they begin, summed
    double missing[LANES]; // draft tokens that there was no output left for
    double *begin;         // [2 longest + 2][LANES] from the base on, the latest call first
    double *at_least;      // [reach + 1][LANES]; element 0 is not used
    unsigned char *lane;   // [reach + 1] the first one that has so long drafts
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// A position with `left` output tokens from it on, fewer than some drafts have.
static void miss(dsc_renewal_tile *x, const double *begin, int64_t left)
{
    for (int l = 0; l < LANES; l++)
        if (left < x->limit[l])
            x->missing[l] += begin[l] * (double)(x->limit[l] - left);
}

// Rows of LANES numbers, each in a cache line.
static int rows_alloc(dsc_arena *arena, size_t rows, double **out, dsc_error *err)
{
    enum { LINE = LANES * sizeof(double) };
    void *p;
    int rc = dsc_arena_alloc(arena, &p, rows + 1, LINE, err);
    *out = rc ? NULL : (double *)(((uintptr_t)p + LINE - 1) / LINE * LINE);
    return rc;
}

static int tile_init(dsc_renewal_tile *x, const dsc_renewal *r, const int32_t *limit, size_t lanes,
                     dsc_arena *arena, dsc_error *err)
{
    for (size_t l = 0; l < LANES; l++) {
        x->limit[l] = limit[l < lanes ? l : lanes - 1];
        x->reach[l] = least(x->limit[l], r->positions - 1);
        x->calls[l] = 1; // the first
        x->places[l] = 0;
        x->missing[l] = 0;
    }
    size_t sums = (size_t)(x->reach[LANES - 1] + 1);
    int rc = rows_alloc(arena, 2 * (size_t)(r->longest + 1), &x->begin, err);
    if (!rc)
        rc = rows_alloc(arena, sums, &x->at_least, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < sums * LANES; i++)
        x->at_least[i] = 0;
    void *lane;
    rc = dsc_arena_alloc(arena, &lane, sums, 1, err);
    x->lane = lane;
    for (size_t i = 0, l = 0; i < sums && !rc; i++) {
        while (x->reach[l] < (int64_t)i)
            l++;
        x->lane[i] = (unsigned char)l;
    }
    if (rc)
        return rc;
    double *first = x->begin + r->base * LANES;
    for (int l = 0; l < LANES; l++)
        first[l] = 1;
    miss(x, first, r->positions);
    return DSC_OK;
}

int dsc_renewal_init(dsc_renewal *r, int64_t positions, const int32_t *limit, size_t lanes,
                     dsc_arena *arena, dsc_error *err)
{
    void *tile;
    *r = (dsc_renewal){.positions = positions,
                       .longest = least(limit[lanes - 1], positions - 1),
                       .lanes = lanes,
                       .tiles = (lanes + LANES - 1) / LANES};
    r->base = 2 * (size_t)r->longest + 1;
    int rc = dsc_arena_alloc(arena, &tile, r->tiles, sizeof *r->tile, err);
    r->tile = tile;
    for (size_t i = 0; i < r->tiles && !rc; i++) {
        size_t first = i * LANES;
        rc = tile_init(&r->tile[i], r, limit + first, lanes - first, arena, err);
    }
    return rc;
}

// Four lanes; memory is aligned as numbers are.
typedef double quad __attribute__((vector_size(32), aligned(sizeof(double)), may_alias));

// has[lane]: 1 for it and the lanes behind it, whose drafts are as long or longer.
static const double has[LANES][LANES] = {
    {1, 1, 1, 1, 1, 1, 1, 1}, {0, 1, 1, 1, 1, 1, 1, 1}, {0, 0, 1, 1, 1, 1, 1, 1},
    {0, 0, 0, 1, 1, 1, 1, 1}, {0, 0, 0, 0, 1, 1, 1, 1}, {0, 0, 0, 0, 0, 1, 1, 1},
    {0, 0, 0, 0, 0, 0, 1, 1}, {0, 0, 0, 0, 0, 0, 0, 1},
};

// What one draft token adds, its calls' begin and sum being given. `in`: to which lanes; NULL: all.
typedef struct pair {
    quad left, right;
} pair;

static inline __attribute__((always_inline)) void take(const double *begin, double *sum,
                                                       double reach, const double *in, pair *token)
{
    const quad *from = (const quad *)begin, *lanes = (const quad *)in;
    quad *to = (quad *)sum;
    quad a = reach * from[0], b = reach * from[1];
    if (in) {
        a *= lanes[0];
        b *= lanes[1];
    }
    token->left += a;
    token->right += b;
    to[0] += a;
    to[1] += b;
}

// Takes a token, and counts the calls that begin behind it, at `place`: element 0 of begin; element
// i is of the calls that began i tokens earlier. Products are added, not fused, so that all
// machines get the same sums.
#ifdef HAVE_TARGET_CLONES
__attribute__((target_clones("avx2", "default")))
#endif
static void
step_tile(dsc_renewal_tile *x, size_t base, const double *restrict reach, int64_t open,
          double place)
{
    const quad one = {1, 1, 1, 1};
    double *restrict begin = x->begin + base * LANES, *restrict sums = x->at_least;
    // Apart: one addition waits for the one before. Which token goes where is the same for all
    // lanes, so that a sum does not depend on its neighbours.
    pair odd = {{0}, {0}}, even = {{0}, {0}};
    int64_t i = 1, whole = least(open, x->reach[0]), end = least(open, x->reach[LANES - 1]);
    for (; i < whole; i += 2) {
        take(begin + i * LANES, sums + i * LANES, reach[i], NULL, &odd);
        take(begin + (i + 1) * LANES, sums + (i + 1) * LANES, reach[i + 1], NULL, &even);
    }
    for (; i < end; i += 2) {
        const double *in = has[x->lane[i]], *next = has[x->lane[i + 1]];
        take(begin + i * LANES, sums + i * LANES, reach[i], in, &odd);
        take(begin + (i + 1) * LANES, sums + (i + 1) * LANES, reach[i + 1], next, &even);
    }
    if (i <= end)
        take(begin + i * LANES, sums + i * LANES, reach[i], has[x->lane[i]], &odd);
    quad left = one - (odd.left + even.left), right = one - (odd.right + even.right);
    quad *next = (quad *)begin, *calls = (quad *)x->calls, *places = (quad *)x->places;
    next[0] = (quad)((left > 0) & (__typeof__(left > 0))left); // not below 0 by rounding
    next[1] = (quad)((right > 0) & (__typeof__(right > 0))right);
    calls[0] += next[0];
    calls[1] += next[1];
    places[0] += place * next[0];
    places[1] += place * next[1];
}

void dsc_renewal_step(dsc_renewal *r, const double *reach, int64_t open)
{
    size_t kept = (size_t)r->longest;
    bool full = r->base == 0;
    if (full)
        r->base = kept + 1;
    r->base--;
    r->at++;
    for (size_t i = 0; i < r->tiles; i++) {
        dsc_renewal_tile *x = &r->tile[i];
        double *begin = x->begin + r->base * LANES;
        if (full)
            memcpy(begin + LANES, x->begin, kept * LANES * sizeof *begin);
        step_tile(x, r->base, reach, open, (double)r->at);
        if (r->positions - r->at < x->limit[LANES - 1])
            miss(x, begin, r->positions - r->at);
    }
}

double dsc_renewal_calls(const dsc_renewal *r, size_t lane)
{
    return r->tile[lane / LANES].calls[lane % LANES];
}

double dsc_renewal_places(const dsc_renewal *r, size_t lane)
{
    return r->tile[lane / LANES].places[lane % LANES];
}

double dsc_renewal_tokens(const dsc_renewal *r, size_t lane)
{
    const dsc_renewal_tile *x = &r->tile[lane / LANES];
    size_t l = lane % LANES;
    return (double)x->limit[l] * x->calls[l] - x->missing[l];
}

double dsc_renewal_at_least(const dsc_renewal *r, size_t lane, int64_t i)
{
    const dsc_renewal_tile *x = &r->tile[lane / LANES];
    size_t l = lane % LANES;
    return i <= x->reach[l] ? x->at_least[(size_t)i * LANES + l] : 0;
}

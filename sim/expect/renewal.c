// SPDX-License-Identifier: Apache-2.0
// The renewal process of sim/expect/renewal.h for eight draft lengths at a time, in the widest
// vectors of the processor; every vector width gives the same sums.
#include "sim/expect/renewal.h"

#include <string.h>

// Multiply and add are not fused, so that all machines compute the same sums.
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

enum { LANES = DSC_RENEWAL_LANES };

struct dsc_renewal_tile {
    int64_t limit[LANES]; // ascending; lanes that are not used repeat the last
    int64_t reach[LANES]; // the same, at most positions - 1
    double calls[LANES];
    double places[LANES];  // where they begin, summed
    double missing[LANES]; // draft tokens beyond the end of the output
    // [2 longest + 2][LANES] from the base on, the latest call first; 0 where it began more tokens
    // ago than the lane's drafts are long, so that all lanes are added up to the longest's.
    double *begin;
    double *at_least; // [reach + 1][LANES]; element 0 is not used
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// Counts missing draft tokens at a position with `left` output tokens, fewer than some drafts have.
static void miss(dsc_renewal_tile *x, const double *begin, int64_t left)
{
    for (int l = 0; l < LANES; l++)
        if (left < x->limit[l])
            x->missing[l] += begin[l] * (double)(x->limit[l] - left);
}

// Clears, in each lane, the oldest call, which no draft can reach any more.
static inline void forget(dsc_renewal_tile *x, size_t base)
{
    for (int l = 0; l < LANES - 1; l++)
        x->begin[(base + (size_t)x->reach[l]) * LANES + (size_t)l] = 0;
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
    double *first = x->begin + r->base * LANES;
    for (int l = 0; l < LANES; l++)
        first[l] = 1;
    miss(x, first, r->positions);
    forget(x, r->base);
    return DSC_OK;
}

// A step of all tiles, in vectors of a given number of bytes; the sums do not depend on it.
//
// It takes a token and computes the calls that begin after it, at `place`: row 0 of begin. Row i
// has the calls that began i tokens earlier. Four partial sums per token hide the latency of
// additions. The order of the rows is the same for all lanes, so a sum depends neither on its
// neighbors nor on the vector width. Rounding must not make a probability negative.
typedef void step_function(dsc_renewal_tile *x, size_t tiles, size_t base, const double *reach,
                           int64_t open, double place);

#define TAKE(vector, i, into)                                                                      \
    do {                                                                                           \
        vector a_ = reach[i] * *(const vector *)(begin + (i)*LANES);                               \
        into += a_;                                                                                \
        *(vector *)(sums + (i)*LANES) += a_;                                                       \
    } while (0)

#define KERNEL(name, width, target)                                                                \
    typedef double name##_lanes                                                                    \
        __attribute__((vector_size(width), aligned(sizeof(double)), may_alias));                   \
    target static void name(dsc_renewal_tile *x, size_t tiles, size_t base, const double *reach,   \
                            int64_t open, double place)                                            \
    {                                                                                              \
        enum { WIDE = width / sizeof(double) };                                                    \
        const name##_lanes zero = {0}, one = zero + 1;                                             \
        for (; tiles--; x++) {                                                                     \
            for (size_t lane = 0; lane < LANES; lane += WIDE) {                                    \
                double *restrict begin = x->begin + base * LANES + lane;                           \
                double *restrict sums = x->at_least + lane;                                        \
                name##_lanes s0 = zero, s1 = zero, s2 = zero, s3 = zero;                           \
                int64_t i = 1, end = least(open, x->reach[lane + WIDE - 1]);                       \
                for (; i + 3 <= end; i += 4) {                                                     \
                    TAKE(name##_lanes, i, s0);                                                     \
                    TAKE(name##_lanes, i + 1, s1);                                                 \
                    TAKE(name##_lanes, i + 2, s2);                                                 \
                    TAKE(name##_lanes, i + 3, s3);                                                 \
                }                                                                                  \
                if (i <= end)                                                                      \
                    TAKE(name##_lanes, i, s0);                                                     \
                if (i + 1 <= end)                                                                  \
                    TAKE(name##_lanes, i + 1, s1);                                                 \
                if (i + 2 <= end)                                                                  \
                    TAKE(name##_lanes, i + 2, s2);                                                 \
                name##_lanes next = one - ((s0 + s1) + (s2 + s3));                                 \
                next = (name##_lanes)((next > 0) & (__typeof__(next > 0))next);                    \
                *(name##_lanes *)begin = next;                                                     \
                *(name##_lanes *)(x->calls + lane) += next;                                        \
                next *= place;                                                                     \
                *(name##_lanes *)(x->places + lane) += next;                                       \
            }                                                                                      \
            forget(x, base);                                                                       \
        }                                                                                          \
    }

KERNEL(plain, 16, )
#ifdef __x86_64__
KERNEL(avx2, 32, __attribute__((target("avx2"))))
KERNEL(avx512, 64, __attribute__((target("avx512f,avx512dq,avx512vl"))))
#endif

// The kernel for vectors of `width` bytes, 0: the widest; NULL: this processor lacks them.
static step_function *choose_kernel(int width)
{
#ifdef __x86_64__
    if ((!width || width == 64) && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return avx512;
    if ((!width || width == 32) && __builtin_cpu_supports("avx2"))
        return avx2;
#endif
    return !width || width == 16 ? plain : NULL;
}

int dsc_renewal_init(dsc_renewal *r, int width, int64_t positions, const int32_t *limit,
                     size_t lanes, dsc_arena *arena, dsc_error *err)
{
    step_function *step = choose_kernel(width);
    if (!step)
        return dsc_fail(err, DSC_EABSENT, "this processor has no vectors of %d bytes", width);
    *r = (dsc_renewal){.positions = positions,
                       .longest = least(limit[lanes - 1], positions - 1),
                       .lanes = lanes,
                       .tiles = (lanes + LANES - 1) / LANES,
                       .step = step};
    r->base = (size_t)r->longest + 1;
    int rc = dsc_arena_new(arena, &r->tile, r->tiles, err);
    for (size_t i = 0; i < r->tiles && !rc; i++) {
        size_t first = i * LANES;
        rc = tile_init(&r->tile[i], r, limit + first, lanes - first, arena, err);
    }
    return rc;
}

// Moves the rows that are still needed back to the top of their memory.
static void move_up(dsc_renewal *r)
{
    size_t kept = (size_t)r->longest;
    r->base = kept + 1;
    for (size_t i = 0; i < r->tiles; i++) {
        double *begin = r->tile[i].begin;
        memcpy(begin + r->base * LANES, begin, kept * LANES * sizeof *begin);
    }
}

void dsc_renewal_step(dsc_renewal *r, const double *reach, int64_t open)
{
    if (r->base == 0)
        move_up(r);
    r->base--;
    r->at++;
    r->step(r->tile, r->tiles, r->base, reach, open, (double)r->at);
    int64_t left = r->positions - r->at;
    for (size_t i = 0; i < r->tiles; i++)
        if (left < r->tile[i].limit[LANES - 1])
            miss(&r->tile[i], r->tile[i].begin + r->base * LANES, left);
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

double dsc_renewal_begins(const dsc_renewal *r, size_t lane, int64_t ago)
{
    const dsc_renewal_tile *x = &r->tile[lane / LANES];
    return x->begin[(r->base + (size_t)ago) * LANES + lane % LANES];
}

double dsc_renewal_at_least(const dsc_renewal *r, size_t lane, int64_t i)
{
    const dsc_renewal_tile *x = &r->tile[lane / LANES];
    size_t l = lane % LANES;
    return i <= x->reach[l] ? x->at_least[(size_t)i * LANES + l] : 0;
}

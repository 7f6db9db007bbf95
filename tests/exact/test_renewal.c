// SPDX-License-Identifier: Apache-2.0
// Expected calls in vectors, against the recurrence written out number by number: equal to the bit,
// whatever the vector width, the other lengths of the run, and the reach of drafts.
#include "tests/close.h"

#include "sim/expect/renewal.h"

#include <string.h>

enum { POSITIONS = 150, MOST = 200, LANES = 20 };

// reach[s][i]: a call that begins at s accepts i tokens or more. Those that began more than `open`
// tokens ago accept none.
typedef struct walk {
    int64_t positions, open;
    double reach[POSITIONS][MOST + 1];
} walk;

static double uniform(uint64_t *s)
{
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return (double)(*s >> 11) * 0x1p-53;
}

// Some tokens are certain, so that calls after them have probability 0.
static void make_walk(walk *w, int64_t positions, int64_t open, uint64_t seed)
{
    double accept[POSITIONS];
    w->positions = positions;
    w->open = open;
    for (int64_t t = 0; t < positions; t++)
        accept[t] = uniform(&seed) < .2 ? 1 : uniform(&seed);
    for (int64_t s = 0; s < positions; s++) {
        w->reach[s][0] = 1;
        for (int64_t i = 1; i <= MOST && s + i <= positions; i++)
            w->reach[s][i] = w->reach[s][i - 1] * accept[s + i - 1];
    }
}

typedef struct result {
    double calls, places, tokens, at_least[MOST + 1];
} result;

// One length alone; four sums, and products that nothing fuses with an addition.
static void one_by_one(const walk *w, int64_t limit, result *out)
{
    double begin[POSITIONS] = {1},
           missing = limit > w->positions ? (double)(limit - w->positions) : 0;
    memset(out, 0, sizeof *out);
    out->calls = 1;
    for (int64_t t = 0; t + 1 < w->positions; t++) {
        double sum[4] = {0};
        for (int64_t i = 1; i <= limit && i <= w->open && i <= t + 1; i++) {
            volatile double a = w->reach[t + 1 - i][i] * begin[t + 1 - i];
            sum[(i - 1) % 4] += a;
            out->at_least[i] += a;
        }
        double rest = 1 - ((sum[0] + sum[1]) + (sum[2] + sum[3]));
        begin[t + 1] = rest > 0 ? rest : 0;
        volatile double place = begin[t + 1] * (double)(t + 1);
        int64_t left = w->positions - t - 1;
        volatile double short_of = left < limit ? begin[t + 1] * (double)(limit - left) : 0;
        out->calls += begin[t + 1];
        out->places += place;
        missing += short_of;
    }
    volatile double all = (double)limit * out->calls;
    out->tokens = all - missing;
}

static void compare(const walk *w, const int32_t *limit, size_t lanes, int width)
{
    dsc_error err = {0};
    dsc_arena arena = {0};
    dsc_renewal r;
    assert_ok(dsc_renewal_init(&r, width, w->positions, limit, lanes, &arena, &err), err);
    for (int64_t t = 0; t + 1 < w->positions; t++) {
        double reach[MOST + 1];
        int64_t open = t + 1 < r.longest ? t + 1 : r.longest;
        open = open < w->open ? open : w->open;
        for (int64_t i = 1; i <= open; i++)
            reach[i] = w->reach[t + 1 - i][i];
        dsc_renewal_step(&r, reach, open);
    }
    for (size_t l = 0; l < lanes; l++) {
        result want;
        one_by_one(w, limit[l], &want);
        assert_true(dsc_renewal_calls(&r, l) == want.calls);
        assert_true(dsc_renewal_places(&r, l) == want.places);
        assert_true(dsc_renewal_tokens(&r, l) == want.tokens);
        for (int64_t i = 1; i <= r.longest; i++)
            assert_true(dsc_renewal_at_least(&r, l, i) == want.at_least[i]);
    }
    dsc_arena_fini(&arena);
}

// Lengths: one after the other, none, repeated, and longer than the output.
static void widths(void **state)
{
    static const int32_t every[LANES] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                         11, 12, 13, 14, 15, 16, 17, 18, 19, 20};
    static const int32_t some[LANES] = {0,  0,  1,  1,  1,  2,  5,   9,   9,   9,
                                        10, 30, 31, 32, 64, 64, 149, 150, 151, MOST};
    static const int32_t none[] = {0};
    static const int64_t positions[] = {1, 2, 3, 7, 40, POSITIONS}, open[] = {1, 6, 13, MOST};
    static walk w;
    int checked = 0;
    (void)state;
    for (int width = 16; width <= 64; width *= 2) {
        dsc_arena arena = {0};
        dsc_renewal r;
        dsc_error err = {0};
        int rc = dsc_renewal_init(&r, width, 2, none, 1, &arena, &err);
        dsc_arena_fini(&arena);
        if (rc == DSC_EABSENT)
            continue;
        assert_ok(rc, err);
        checked++;
        for (size_t p = 0; p < sizeof positions / sizeof *positions; p++)
            for (size_t o = 0; o < sizeof open / sizeof *open; o++) {
                make_walk(&w, positions[p], open[o], 10 * p + o);
                compare(&w, none, 1, width);
                compare(&w, every, 1, width);
                compare(&w, every + 2, 7, width);
                compare(&w, every, LANES, width);
                compare(&w, some, LANES, width);
            }
    }
    assert_true(checked > 0);
}

static void no_such_vectors(void **state)
{
    const int32_t limit = 1;
    dsc_arena arena = {0};
    dsc_renewal r;
    dsc_error err = {0};
    (void)state;
    assert_int_equal(dsc_renewal_init(&r, 24, 2, &limit, 1, &arena, &err), DSC_EABSENT);
    assert_non_null(strstr(err.message, "24 bytes"));
    dsc_arena_fini(&arena);
}

SUITE(renewal)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(widths), cmocka_unit_test(no_such_vectors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

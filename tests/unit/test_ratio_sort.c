// SPDX-License-Identifier: Apache-2.0
// The order of tokens by target/draft against a comparison sort: random rows, ties, ratios that
// differ in their last bits only, and the ends of the range.
#include "base/rng.h"
#include "tests/close.h"
#include "theory/ratio_sort.h"

#include <stdbool.h>
#include <stdlib.h>

enum { MOST = 5000, KINDS = 7 };

static double draft[MOST], target[MOST];

static int compare(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    const double of_x = target[x] / draft[x], of_y = target[y] / draft[y];
    return of_x != of_y ? (of_x < of_y ? -1 : 1) : (x > y) - (x < y);
}

static void make_rows(int kind, uint64_t seed, size_t n)
{
    for (size_t x = 0; x < n; x++) {
        const double u = dsc_rng_uniform(seed, x, 0, 1), v = dsc_rng_uniform(seed, x, 0, 2);
        draft[x] = 1;
        switch (kind) {
        case 0:
            draft[x] = u + 1e-9;
            target[x] = v;
            break;
        case 1: target[x] = (double)(x % 7); break;               // ties
        case 2: target[x] = 1 + floor(1000 * u) * 0x1p-50; break; // equal leading bits
        case 3: target[x] = u < .9 ? 0 : v; break;                // no target probability
        case 4:
            draft[x] = v < .5 ? 0 : u + .1;
            target[x] = v;
            break;                                                     // no draft probability
        case 5: target[x] = ldexp(u, -1000 - (int)(v * 74)); break;    // down to subnormal numbers
        default: draft[x] = ldexp(1, -(int)(v * 1074)); target[x] = u; // up to infinite ratios
        }
    }
}

static void check_order(size_t n)
{
    static uint64_t order[MOST], room[MOST];
    static int32_t wanted[MOST];
    size_t count = 0;
    for (size_t x = 0; x < n; x++)
        if (draft[x] > 0)
            wanted[count++] = (int32_t)x;
    qsort(wanted, count, sizeof *wanted, compare);
    assert_int_equal(dsc_ratio_sort(draft, target, n, order, room), count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(dsc_ratio_token(order[i]), wanted[i]);
}

static void equals_a_comparison_sort(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 3, 100, 2048, MOST};
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (uint64_t seed = 0; seed < 3; seed++) {
                make_rows(kind, seed, sizes[s]);
                check_order(sizes[s]);
            }
}

static void no_token_is_no_work(void **state)
{
    (void)state;
    uint64_t order[2], room[2];
    const double none[2] = {0, 0}, some[2] = {.5, .5};
    assert_int_equal(dsc_ratio_sort(none, some, 2, order, room), 0);
    assert_int_equal(dsc_ratio_sort(some, some, 0, order, room), 0);
}

SUITE(ratio_sort)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_a_comparison_sort),
        cmocka_unit_test(no_token_is_no_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
// An interrupted cost table contains what is complete: rounds over the whole grid or, in the first
// round, the grid of fewer tokens.
#include "tests/close.h"

#include "live/model/config.h"
#include "live/program/profile.h"

#include <string.h>

enum { REPEATS = 9, CELLS = 6, MIXED = 14, ROUNDS = 3 };

// With prefill tokens there are as many cells more as the grid has ends, times their number.
static int stop_after(void *user, int64_t done, int64_t total)
{
    assert_true(total == CELLS * ROUNDS || total == MIXED * ROUNDS);
    return done == *(const int64_t *)user;
}

static void what_is_complete_is_kept(void **state)
{
    static const int64_t tokens[] = {1, 2, 4}, context[] = {0, 8}, batch[] = {1};
    // Cells that were measured before the interruption; rows and repeats in the table.
    static const struct {
        int64_t cells, rows;
        const char *repeats;
    } cases[] = {{1, 0, "3,"},  {2, 2, "3,"},  {5, 4, "3,"},  {6, 6, "3,"},
                 {11, 6, "3,"}, {12, 6, "6,"}, {17, 6, "6,"}, {18, 6, "9,"}};
    live_config c = {0};
    live_backend *b;
    live_weights *w;
    dsc_error err = {0};
    char path[4096];
    (void)state;
    assert_ok(live_config_of_shape(
                  &c, source_path("live/demo/draft/config.json", path, sizeof path), &err),
              err);
    assert_ok(live_backend_open(&b, "cpu", 1, false, &err), err);
    assert_ok(live_weights_random(&w, &c, DSC_F32, 1, b, &err), err);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t cells = cases[i].cells;
        dsc_table t = {0};
        const live_profile_options o = {.target = w,
                                        .grid = {tokens, context, batch, 3, 2, 1, NULL, 0},
                                        .repeats = REPEATS,
                                        .progress = stop_after,
                                        .user = &cells};
        assert_int_equal(live_profile(&t, &o, &err),
                         cells < CELLS * ROUNDS ? DSC_EINTERRUPT : DSC_OK);
        assert_int_equal(t.rows, cases[i].rows);
        const char *repeats = dsc_table_get_comment(&t, "repeats");
        if (!repeats || strncmp(repeats, cases[i].repeats, 2) != 0)
            fail_msg("%d cells: %s", (int)cells, repeats ? repeats : "nothing");
        for (size_t r = 0; r < t.rows; r++) {
            const double low = dsc_table_real(&t, r, 4), high = dsc_table_real(&t, r, 5);
            assert_close(dsc_table_real(&t, r, 0), (double)tokens[r / 2], 0);
            assert_close(dsc_table_real(&t, r, 1), (double)context[r % 2], 0);
            assert_true(0 < low && low <= high);
            assert_true(dsc_table_real(&t, r, 3) >
                        0); // a slow round can move it outside the quartiles
        }
        dsc_table_fini(&t);
    }
    live_weights_free(w);
    b->type->close(b);
}

// Cells with prefill tokens follow the others, and a first round without all of them has none.
static void prefill_tokens_are_kept_together(void **state)
{
    static const int64_t tokens[] = {1, 2, 4}, context[] = {0, 8}, batch[] = {3},
                         chunk[] = {5, 130};
    static const int64_t cells[] = {5, 6, 13, 14, 27, 28, 42}, rows[] = {4, 6, 6, 14, 14, 14, 14};
    live_config c = {0};
    live_backend *b;
    live_weights *w;
    dsc_error err = {0};
    char path[4096];
    (void)state;
    assert_ok(live_config_of_shape(
                  &c, source_path("live/demo/draft/config.json", path, sizeof path), &err),
              err);
    assert_ok(live_backend_open(&b, "cpu", 1, false, &err), err);
    assert_ok(live_weights_random(&w, &c, DSC_F32, 1, b, &err), err);
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        int64_t stop = cells[i];
        dsc_table t = {0};
        const live_profile_options o = {.target = w,
                                        .draft = w,
                                        .grid = {tokens, context, batch, 3, 2, 1, chunk, 2},
                                        .repeats = REPEATS,
                                        .progress = stop_after,
                                        .user = &stop};
        assert_int_equal(live_profile(&t, &o, &err),
                         stop < MIXED * ROUNDS ? DSC_EINTERRUPT : DSC_OK);
        assert_int_equal(t.rows, rows[i]);
        const size_t target = (size_t)dsc_table_find(&t, "target_s"),
                     draft = (size_t)dsc_table_find(&t, "draft_s");
        for (size_t r = 0; r < t.rows; r++) {
            const size_t n = r < CELLS ? 0 : r - CELLS; // prefill tokens vary fastest
            assert_close(dsc_table_real(&t, r, 3), r < CELLS ? 0 : (double)chunk[n % 2], 0);
            assert_close(dsc_table_real(&t, r, 0),
                         (double)(r < CELLS ? tokens[r / 2] : tokens[n / 4 * 2]), 0);
            assert_close(dsc_table_real(&t, r, 1),
                         (double)(r < CELLS ? context[r % 2] : context[n / 2 % 2]), 0);
            assert_true(dsc_table_real(&t, r, target) > 0);
            assert_true(r < CELLS ? dsc_table_real(&t, r, draft) > 0
                                  : isnan(dsc_table_real(&t, r, draft)));
        }
        dsc_table_fini(&t);
    }
    live_weights_free(w);
    b->type->close(b);
}

// Bytes that a pass over one token without context reads, computed from the bound in column share.
static double bytes_of_pass(const live_config *c, live_backend *b)
{
    static const int64_t one[] = {1}, none[] = {0};
    live_weights *w;
    dsc_table t = {0};
    dsc_error err = {0};
    double read_gb_s;
    assert_ok(live_weights_random(&w, c, DSC_F32, 1, b, &err), err);
    const live_profile_options o = {
        .target = w, .grid = {one, none, one, 1, 1, 1, NULL, 0}, .repeats = 1};
    assert_ok(live_profile(&t, &o, &err), err);
    const char *measured = dsc_table_get_comment(&t, "target_measured");
    assert_int_equal(sscanf(measured, "cpu: reads %lf GB/s", &read_gb_s), 1);
    const double bound_s = dsc_table_real(&t, 0, 3) * dsc_table_real(&t, 0, 6);
    dsc_table_fini(&t);
    live_weights_free(w);
    return bound_s * read_gb_s * 1e9;
}

// The layers, the output matrix once, and the token's own key and value; the comment has four
// digits of the rate.
static void the_output_matrix_is_read_once(void **state)
{
    live_config c = {0};
    live_backend *b;
    dsc_error err = {0};
    char path[4096];
    (void)state;
    assert_ok(live_config_of_shape(
                  &c, source_path("live/demo/draft/config.json", path, sizeof path), &err),
              err);
    assert_ok(live_backend_open(&b, "cpu", 1, false, &err), err);
    const int64_t kv = c.kv_heads * c.head, q = c.heads * c.head;
    const int64_t layer = c.hidden * (q + 2 * kv) + q * c.hidden + 3 * c.hidden * c.feed_forward;
    const double numbers = (double)(c.layers * (layer + 2 * kv) + c.vocab * c.hidden);
    for (int tied = 0; tied < 2; tied++) {
        c.tied = tied;
        assert_close(bytes_of_pass(&c, b), 4 * numbers, 4 * numbers * 1e-3);
    }
    b->type->close(b);
}

SUITE(live_profile)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_complete_is_kept),
                                       cmocka_unit_test(prefill_tokens_are_kept_together),
                                       cmocka_unit_test(the_output_matrix_is_read_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

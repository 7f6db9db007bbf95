// SPDX-License-Identifier: Apache-2.0
// The figures of acceptance on every terminal: their numbers and findings; ranges become bands;
// hostile names stay text; a table that cannot be drawn is an error.
#include "tests/unit/plot_check.h"

#include <math.h>

enum { QUANTITIES = 4, HEAD = 2 };
static const char *const quantity[QUANTITIES] = {"rejection", "specinfer", "kseq", "otm"};

// A table as `draftscope theory accept` writes it, with the columns the figures read.
static void add_accept_columns(dsc_table *t, bool ranges)
{
    dsc_error err = {0};
    char name[32];
    assert_ok(dsc_table_add_column(t, "pair", DSC_CELL_TEXT, NULL, &err), err);
    assert_ok(dsc_table_add_column(t, "k", DSC_CELL_INT, NULL, &err), err);
    for (int q = 0; q < QUANTITIES; q++)
        assert_ok(dsc_table_add_column(t, quantity[q], DSC_CELL_REAL, NULL, &err), err);
    for (int i = 0; ranges && i < 2 * QUANTITIES; i++) {
        snprintf(name, sizeof name, "%s_%s", quantity[i / 2], i % 2 ? "high" : "low");
        assert_ok(dsc_table_add_column(t, name, DSC_CELL_REAL, NULL, &err), err);
    }
}

// Adds a row; if `width` > 0, with ranges of that width above the values.
static void add_accept(dsc_table *t, const char *pair, int64_t k, const double value[QUANTITIES],
                       double width)
{
    dsc_error err = {0};
    dsc_cell cell[HEAD + 3 * QUANTITIES] = {{.type = DSC_CELL_TEXT, .text = pair},
                                            {.type = DSC_CELL_INT, .i = k}};
    for (int q = 0; q < QUANTITIES; q++) {
        cell[HEAD + q] = (dsc_cell){.type = DSC_CELL_REAL, .r = width > 0 ? NAN : value[q]};
        cell[HEAD + QUANTITIES + 2 * q] = (dsc_cell){.type = DSC_CELL_REAL, .r = value[q]};
        cell[HEAD + QUANTITIES + 2 * q + 1] =
            (dsc_cell){.type = DSC_CELL_REAL, .r = value[q] + width};
    }
    assert_ok(dsc_table_add_row(t, cell, &err), err);
}

// Adds `pair` at k = 1 .. ks with growing acceptance.
static void add_pair(dsc_table *t, const char *pair, int64_t ks, double width)
{
    for (int64_t k = 1; k <= ks; k++) {
        double x = 0.6 * (1 - pow(0.5, (double)k));
        add_accept(t, pair, k, (double[]){0.3, x, 1.1 * x, 1.2 * x}, width);
    }
}

static const char *const figures[] = {"spectr-bernoulli", "spectr-uniform", "accept-vs-k"};
enum { FIGURES = 3 };

// The names of two pairs that figure f can read.
static const char *pair_name(int f, int i)
{
    static const char *const name[FIGURES][2] = {{"Ber(0.25) to Ber(0.5)", "Ber(0.25) to Ber(1)"},
                                                 {"U(32) to U(32/2)", "U(32) to U(32/4)"},
                                                 {"row 0", "request 2 position 17"}};
    return name[f][i];
}

// SpecTr's numbers for Ber(.25) to Ber(.75) appear in the script, the finding and the data.
static void test_numbers(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    const char *pair = "Ber(0.25) to Ber(0.75)";
    add_accept_columns(&t, false);
    add_accept(&t, pair, 1, (double[]){0.5, 0.5, 0.5, 0.5}, 0);
    add_accept(&t, pair, 2, (double[]){0.5, 0.625, 0.648268, 0.6875}, 0);
    add_accept(&t, pair, 4, (double[]){0.5, 0.789062, 0.829887, 0.933594}, 0);
    draw("spectr-bernoulli", &t, NULL, "svg", &d);
    assert_contains(&d.script, "$panel1 << EOD\n1 0.5 0.5 0.5 0.5\n2 0.6875 0.648268 0.625 0.5\n");
    assert_contains(&d.finding, "furthest from the optimum for Ber(0.25) to Ber(0.75) at K = 4: "
                                "0.8299 against 0.9336 (SpecInfer 0.7891, single draft 0.5000)");
    assert_int_equal(d.data.rows, 3);
    assert_close(dsc_table_real(&d.data, 2, (size_t)dsc_table_find(&d.data, "otm")), 0.933594, 0);
    assert_int_equal(dsc_table_find(&d.data, "otm_low"), -1);
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

static void test_uniform(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    add_accept_columns(&t, false);
    for (int64_t k = 1; k <= 3; k++)
        for (int r = 2; r <= 4; r += 2) {
            double a = 1 - pow(1 - 1.0 / r, (double)k);
            add_accept(&t, pair_name(1, r / 2 - 1), k, (double[]){1.0 / r, a, a, a}, 0);
        }
    draw("spectr-uniform", &t, NULL, "svg", &d);
    assert_contains(&d.script, "$panel1 << EOD\n1 0.5 0.25\n2 0.75 0.4375\n3 0.875 0.578125\nEOD");
    assert_contains(&d.finding, "r = 2 0.5000 to 0.8750, r = 4 0.2500 to 0.5781. k-Seq attains");
    dsc_drawing_fini(&d);
    add_accept(&t, "U(32) to U(32/4)", 4, (double[]){.25, .6, .6, .7}, 0);
    draw("spectr-uniform", &t, NULL, "svg", &d);
    assert_contains(&d.finding, "k-Seq differs from it by up to 0.1");
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

// Ranges in a table are drawn as bands, and the data contains their ends.
static void test_ranges(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    add_accept_columns(&t, true);
    add_pair(&t, "row 0", 3, 0);
    add_pair(&t, "row 1", 3, 0.05);
    draw("accept-vs-k", &t, NULL, "svg", &d);
    assert_contains(&d.script, "$panel2 using 1:6:7 with filledcurves");
    assert_null(strstr(d.script.data, "$panel1 using 1:6:7"));
    assert_contains(&d.script, "$panel2 << EOD\n1 ? ? ? ? 0.36 0.41 0.33 0.38 0.3 0.35 0.3 0.35\n");
    assert_contains(&d.finding, "the widest is 0.05 (OTM");
    assert_int_equal(d.data.rows, 6);
    int low = dsc_table_find(&d.data, "otm_low");
    assert_true(isnan(dsc_table_real(&d.data, 0, (size_t)low)));
    assert_close(dsc_table_real(&d.data, 3, (size_t)low), 0.36, 1e-12);
    dsc_drawing_fini(&d);
    draw("accept-vs-k", &t, &(dsc_figure_options){.width = 360}, "png", &d);
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

static void test_terminals(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    for (int f = 0; f < FIGURES; f++) {
        dsc_table t = {0};
        add_accept_columns(&t, f == 2);
        add_pair(&t, pair_name(f, 0), 16, 0);
        add_pair(&t, pair_name(f, 1), 16, f == 2 ? 0.1 : 0);
        check_terminals(figures[f], &t);
        dsc_table_fini(&t);
    }
}

static void test_hostile(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    for (size_t i = 0; i < HOSTILE; i++)
        for (int f = 0; f < FIGURES; f++) {
            dsc_table t = {0};
            char pair[256];
            snprintf(pair, sizeof pair, "%s%s", f == 2 ? "" : pair_name(f, 0), hostile[i]);
            add_accept_columns(&t, false);
            add_pair(&t, pair, 3, 0);
            check_hostile(figures[f], &t, &(dsc_figure_options){.title = hostile[i]});
            dsc_table_fini(&t);
        }
}

// Numbers that are no probabilities give a picture or an error.
static void test_extremes(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    for (size_t i = 0; i < EXTREMES; i++)
        for (int f = 0; f < FIGURES; f++) {
            dsc_table t = {0};
            const double v = extreme[i];
            add_accept_columns(&t, false);
            add_accept(&t, pair_name(f, 0), 1, (double[]){v, v, v, v}, 0);
            assert_int_equal(draws_or_says(figures[f], &t, "no finite acceptance"),
                             fabs(v) < 1e300);
            dsc_table_fini(&t);
        }
}

static void test_refusals(void **state)
{
    (void)state;
    dsc_table t = {0};
    char pair[32];
    refuse("accept-vs-k", &t, NULL, "needs a column 'pair'");
    add_accept_columns(&t, false);
    refuse("accept-vs-k", &t, NULL, "no rows");
    add_pair(&t, "row 0", 2, 0);
    refuse("spectr-bernoulli", &t, NULL, "theory accept --bernoulli");
    refuse("spectr-uniform", &t, NULL, "theory accept --uniform");
    dsc_figure_filter f = {"pair", "row 9"};
    refuse("accept-vs-k", &t, &(dsc_figure_options){.filter = &f, .filters = 1}, "no row is left");
    for (int i = 1; i < 9; i++) {
        snprintf(pair, sizeof pair, "row %d", i);
        add_pair(&t, pair, 2, 0);
    }
    refuse("accept-vs-k", &t, NULL, "at most 6: filter by pair (row 0, row 1, ...)");
    add_pair(&t, "row 0", 1, 0);
    refuse("accept-vs-k", &t, NULL, "two rows have the same pair and k (row 0, k = 1)");
    dsc_table_fini(&t);
}

SUITE(plots_accept)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),  cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_ranges),   cmocka_unit_test(test_terminals),
        cmocka_unit_test(test_hostile),  cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}

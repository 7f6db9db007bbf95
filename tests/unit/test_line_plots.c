// SPDX-License-Identifier: Apache-2.0
// Figures that draw many configurations: envelopes by method, panels by condition, colors and
// dashes for two parameters, and the intervals of a verdict. No number here was measured.
#include "tests/unit/plot_check.h"

// Under several conditions there is a panel for each, and the lines are the best of each method.
static void test_lengths_by_batch(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    add_named(&t, "method$ num_speculative_tokens n block_efficiency speedup batch");
    for (int b = 1; b <= 8; b += 7)
        for (int k = 1; k <= 2; k++)
            for (int n = 1; n <= 2; n++)
                add_row(&t, (double[]){k, n, 2, k + 0.25 * n - 0.125 * b, b},
                        (const char *[]){n + k == 4 ? "other" : "llma"});
    draw("length", &t, NULL, "svg", &d);
    check_script(&d.script);
    assert_contains(&d.script, "'batch size 1'");
    assert_contains(&d.script, "'batch size 8'");
    assert_contains(&d.script, "$panel1 << EOD\n1 1.375 ?\n2 2.125 2.375\nEOD");
    assert_contains(&d.script, "$panel2 << EOD\n1 0.5 ?\n2 1.25 1.5\nEOD");
    assert_string_equal(drawn_text(&d, 0, "best_with"), "n 2");
    assert_contains(&d.finding, "at batch size 1 best 2.375 at draft length 2 (other); at batch "
                                "size 8 best 1.5 at draft length 2 (other).");
    assert_int_equal(d.marks.rows, 6);
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

// Two parameters: the acceptance rate is the color, the ratio the dashes.
static void test_both_parameters(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    add_named(&t, "alpha ratio form$ window speedup best_window");
    for (int i = 0; i < 27; i++)
        add_row(&t, (double[]){0.25 * (1 + i / 3 % 3), 1 + i / 9, 1 + i % 3, 1 + 0.01 * i, 2},
                (const char *[]){"pearl"});
    draw("pearl-window", &t, NULL, "svg", &d);
    assert_contains(&d.script, "'alpha 0.75'");
    assert_contains(&d.script, "'ratio 3'");
    // alpha 0.25 at the three ratios: one color, solid and two patterns
    assert_contains(&d.script, "using 1:2 with linespoints lt 1 lc rgb '#450155' lw 2 pt 7 ps 0.5 "
                               "notitle");
    assert_contains(&d.script, "using 1:5 with linespoints lt 1 lc rgb '#450155' lw 2 pt 7 ps 0.5 "
                               "dt (10,3) notitle");
    assert_contains(&d.script, "using 1:8 with linespoints lt 1 lc rgb '#450155' lw 2 pt 7 ps 0.5 "
                               "dt (5,3) notitle");
    assert_int_equal(d.data.rows, 27);
    assert_int_equal(d.marks.rows, 27);
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

// The best configuration of each method on the selection set, by batch size; `none` is the
// reference, and the second row of a method is left out.
static void test_verdict(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    dsc_error err = {0};
    assert_ok(dsc_table_comment(&t, "objective", "speedup, higher is better", &err), err);
    add_named(&t, "batch rank method$ parameters$ test test_low test_high significant$");
    for (int b = 1; b <= 8; b += 7) {
        static const char *const text[][3] = {{"ngram", "k=4", "no"},
                                              {"ngram", "k=2", "no"},
                                              {"none", "", "yes"},
                                              {"llma", "", "no"}};
        for (int i = 0; i < 4; i++)
            add_row(&t, (double[]){b, i + 1, 2 - 0.125 * b - 0.25 * i, 1.5 - 0.125 * b, 2.5},
                    text[i]);
    }
    assert_true(dsc_figure_fits(dsc_figure_find("verdict"), &t));
    draw("verdict", &t, NULL, "svg", &d);
    check_script(&d.script);
    // row 0 is the heading of the first batch size
    assert_contains(&d.script, "$best << EOD\n1.875 1.375 2.5 1\n1 0.5 2.5 4\nEOD");
    assert_contains(&d.script, "$others << EOD\n1.125 1.375 2.5 2\n0.25 0.5 2.5 5\nEOD");
    assert_contains(&d.finding, "At batch size 1: ngram 1.88 (95 % 1.38 to 2.50). At batch size 8");
    assert_int_equal(d.data.rows, 4);
    assert_int_equal(d.marks.rows, 4);
    dsc_drawing_fini(&d);
    draw("verdict", &t, NULL, "dumb", &d);
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

// Bars begin at 0, side by side, and their values are found at their tops.
static void test_bars(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    dsc_error err = {0};
    static const int64_t counts[][3] = {{60, 30, 10}, {80, 15, 5}};
    add_named(&t, "method$ block_efficiency");
    assert_ok(dsc_table_add_column(&t, "accept_histogram", DSC_CELL_LIST, NULL, &err), err);
    for (int i = 0; i < 2; i++) {
        const dsc_cell cell[] = {dsc_cell_text(i ? "llma" : "ngram"),
                                 dsc_cell_real(i ? 1.25 : 1.5),
                                 {.type = DSC_CELL_LIST, .i = 3, .list = counts[i]}};
        assert_ok(dsc_table_add_row(&t, cell, &err), err);
    }
    draw("accept-histogram", &t, NULL, "svg", &d);
    check_script(&d.script);
    assert_contains(&d.script, "set yrange [0:83.33");
    assert_contains(&d.script, "$panel1 using ($1+-0.21):2:(0.3864) with boxes");
    assert_contains(&d.script, "$panel1 << EOD\n0 60 80\n1 30 15\n2 10 5\nEOD");
    assert_int_equal(d.marks.rows, 6);
    assert_string_equal(dsc_table_at(&d.marks, 0, 3)->text, "0: 60");
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

SUITE(line_plots)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths_by_batch),
        cmocka_unit_test(test_both_parameters),
        cmocka_unit_test(test_verdict),
        cmocka_unit_test(test_bars),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}

// SPDX-License-Identifier: Apache-2.0
// The figures of a validation: plotted numbers and verdicts equal those of the table, tolerances
// become bands and bars, and a table that cannot be drawn is an error that names the reason. The
// tables are made up; no number in them was measured.
#include "tests/unit/plot_check.h"

#include "plots/draw/join.h"

#include <math.h>

#define COLUMNS                                                                                    \
    "method$ rule$ parameters$ temperature quantity$ at predicted measured se tolerance$ verdict$"

static void add_check(dsc_table *t, const char *method, const char *rule, const char *parameters,
                      const char *quantity, double predicted, double measured, double se,
                      const char *tolerance, const char *verdict)
{
    if (!t->columns)
        add_named(t, COLUMNS);
    add_row(t, (double[]){strcmp(rule, "greedy") != 0, NAN, predicted, measured, se},
            (const char *[]){method, rule, parameters, quantity, tolerance, verdict});
}

// A draft-model of each length with an error of `percent` in its speedup; lengths above 3 fail.
static void add_chains(dsc_table *t, const char *rule, double percent)
{
    for (int l = 1; l <= 4; l++) {
        char parameters[64];
        double b = 1 + 0.5 * l, s = 1 + 0.25 * l;
        snprintf(parameters, sizeof parameters, "num-speculative-tokens=%d", l);
        add_check(t, "draft-model", rule, parameters, "block_efficiency", b, b + 0.02, 0.01,
                  "|z| <= 3", "pass");
        add_check(t, "draft-model", rule, parameters, "speedup", s * (1 + percent / 100), s, NAN,
                  "10 %", l > 3 ? "fail" : "pass");
        add_check(t, "draft-model", rule, parameters, "draft_s_per_call", 0.002, 0.001 * (l + 1),
                  NAN, "25 %", "pass");
        add_check(t, "draft-model", rule, parameters, "accept_share", 0.5, 0.5, NAN, "shown",
                  "shown");
    }
}

static void fill(dsc_table *t)
{
    add_chains(t, "greedy", 4);
    add_chains(t, "rejection", 20);
    add_check(t, "ngram", "greedy", "", "block_efficiency", 1.5, 1.5, 0, "|z| <= 3", "pass");
    add_check(t, "ngram", "greedy", "", "verify_s_per_call", 0.02, 0.03, NAN, "25 %", "fail");
    add_check(t, "lookahead", "greedy", "window=5", "speedup", NAN, 1.4, NAN, "10 %",
              "not predicted");
    add_check(t, "draft-model", "rejection", "all", "block_efficiency", 2.2, 2.25, 0.01,
              "1 % and |z| <= 3", "fail");
}

static const char *const figures[] = {"predicted-vs-measured", "error-by-method",
                                      "step-time-residuals"};
enum { FIGURES = sizeof figures / sizeof *figures };

// The row of the data with these texts; the test fails without one.
static size_t find(const dsc_drawing *d, const char *group, const char *label, const char *quantity)
{
    const dsc_table *t = &d->data;
    int g = dsc_table_find(t, "group"), c = dsc_table_find(t, "configuration");
    int q = dsc_table_find(t, "quantity");
    for (size_t i = 0; i < t->rows; i++)
        if (!strcmp(dsc_table_at(t, i, (size_t)g)->text, group) &&
            (!label || !strcmp(dsc_table_at(t, i, (size_t)c)->text, label)) &&
            !strcmp(dsc_table_at(t, i, (size_t)q)->text, quantity))
            return i;
    fail_msg("no %s of %s", quantity, group);
    return 0;
}

// --- numbers -------------------------------------------------------------------------------

static void test_predicted(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    fill(&t);
    draw("predicted-vs-measured", &t, NULL, "svg", &d);
    size_t row = find(&d, "draft-model, rejection",
                      "draft-model, rejection, num-speculative-tokens=2, temperature 1", "speedup");
    assert_close(drawn(&d, row, "predicted"), 1.8, 1e-12);
    assert_close(drawn(&d, row, "measured"), 1.5, 1e-12);
    assert_close(drawn(&d, row, "error_percent"), 20, 1e-9);
    assert_contains(&d.finding, "15 of 17 predictions within their tolerance; 1 measurement "
                                "without a prediction");
    // (4 % + 20 %) / 2, over four lengths each
    assert_contains(&d.finding, "Speedup: mean |error| 12 %, largest +20 %");
    assert_contains(&d.finding, "2 of 8 outside the tolerance");
    assert_contains(
        &d.finding,
        "speedup of draft-model, rejection, num-speculative-tokens=4, temperature 1, 2.4 predicted "
        "and 2 measured");
    assert_contains(&d.script, "band: ±10 %'");
    assert_contains(&d.script, "band: ±1 % (pooled); bars: ±3 standard errors");
    // the draft-model of length 2, with a bar of 3 standard errors on either side
    assert_contains(&d.script, "\n2 2.02 0 1.99 0.06\n");
    // the band of 10 % ends where measured = predicted / 1.1
    assert_contains(&d.script, " to 2.5,2.27272727273 to 2.5,2.5");
    assert_contains(&d.script,
                    "'num-speculative-tokens=4'"); // the points that fail are named, no others
    assert_null(strstr(d.script.data, "'num-speculative-tokens=3'"));
    dsc_drawing_fini(&d);
    draw("predicted-vs-measured", &t, &(dsc_figure_options){.column = "accept_share"}, "svg", &d);
    assert_contains(&d.finding, "8 predictions without a tolerance");
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

static void test_errors(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    fill(&t);
    add_check(&t, "pearl", "rejection", "num-speculative-tokens=4", "block_efficiency", 3, 2, NAN,
              "|z| <= 3", "fail");
    draw("error-by-method", &t, NULL, "svg", &d);
    // -100 * 0.02 / (b + 0.02) over b = 1.5, 2, 2.5, 3
    double mean = 0;
    for (int l = 1; l <= 4; l++)
        mean -= 100 * 0.02 / (1 + 0.5 * l + 0.02) / 4;
    char words[64];
    snprintf(words, sizeof words, "draft-model, greedy: mean %+.2g %%", mean);
    assert_contains(&d.script, words);
    assert_contains(&d.script, "'ngram: mean 0 %'");
    // pearl is the worst and comes first, ngram is the best and comes last
    const char *first = strstr(d.script.data, "'pearl: mean +50 %'");
    const char *last = strstr(d.script.data, "'ngram: mean 0 %'");
    assert_true(first && last && first < strstr(d.script.data, "'draft-model, greedy: mean"));
    assert_true(strstr(d.script.data, "'draft-model, rejection: mean") < last);
    assert_contains(&d.script, "error (%); band: ±1 (pooled)");
    assert_contains(&d.script, "error (%); band: ±10'");
    assert_contains(&d.script, "'pooled'");
    size_t row = find(&d, "draft-model, rejection", "draft-model, rejection, all, temperature 1",
                      "block_efficiency");
    assert_close(drawn(&d, row, "error_percent"), 100 * -0.05 / 2.25, 1e-9);
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

static void test_step_times(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    fill(&t);
    add_check(&t, "spectr", "kseq", "drafts=2 num-speculative-tokens=4", "draft_s_per_call", 0.002,
              0.002, NAN, "25 %", "pass");
    draw("step-time-residuals", &t, NULL, "svg", &d);
    size_t row = find(&d, "draft-model, greedy", NULL, "draft_s_per_call");
    assert_close(drawn(&d, row, "draft_length"), 1, 0);
    assert_close(drawn(&d, row + 3, "draft_length"), 4, 0);
    assert_close(drawn(&d, row, "residual_percent"), 0, 1e-9);
    assert_close(drawn(&d, row + 3, "residual_percent"), 150, 1e-9); // 0.005 s, not 0.002
    row = find(&d, "spectr", NULL, "draft_s_per_call");
    assert_close(drawn(&d, row, "draft_length"), 4, 0);
    row = find(&d, "ngram", NULL, "verify_s_per_call");
    assert_true(isnan(drawn(&d, row, "draft_length")));
    assert_close(drawn(&d, row, "residual_percent"), 50, 1e-9);
    assert_contains(&d.script, "('–' -1, '1' 0, '2' 1, '3' 2, '4' 3)");
    assert_contains(&d.finding,
                    "+150 % (draft-model, greedy, num-speculative-tokens=4, temperature 0)");
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

// With too many methods and rules, groups are by method alone, then the rest share one group.
static void test_many_methods(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    for (int i = 0; i < 6; i++) {
        char method[16];
        snprintf(method, sizeof method, "m%d", i);
        for (int j = 0; j < 2; j++)
            add_check(&t, method, j ? "otm" : "kseq", "num-speculative-tokens=1", "speedup", 1.1, 1,
                      NAN, "10 %", "pass");
    }
    draw("predicted-vs-measured", &t, NULL, "svg", &d);
    assert_int_equal(find(&d, "m5", NULL, "speedup"), 10);
    dsc_drawing_fini(&d);
    draw("error-by-method", &t, NULL, "svg", &d); // which has room for 24
    assert_int_equal(find(&d, "m5, otm", NULL, "speedup"), 11);
    dsc_drawing_fini(&d);
    for (int i = 6; i < 10; i++) {
        char method[16];
        snprintf(method, sizeof method, "m%d", i);
        add_check(&t, method, "otm", "num-speculative-tokens=1", "speedup", 1.1, 1, NAN, "10 %",
                  "pass");
    }
    draw("predicted-vs-measured", &t, NULL, "svg", &d);
    assert_int_equal(find(&d, "m6", NULL, "speedup"), 12);
    assert_int_equal(find(&d, "other methods", NULL, "speedup"), 13);
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

// --- pictures ------------------------------------------------------------------------------

static void test_terminals(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    fill(&t);
    for (int f = 0; f < FIGURES; f++)
        check_terminals(figures[f], &t);
    dsc_table_fini(&t);
}

static void test_hostile(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    for (size_t i = 0; i < HOSTILE; i++) {
        dsc_table t = {0};
        for (int j = 0; j < 4; j++)
            add_check(&t, hostile[i], hostile[(i + (size_t)j) % HOSTILE],
                      hostile[(i + 2) % HOSTILE], j % 2 ? "speedup" : "draft_s_per_call", 1.5, 1,
                      0.1, hostile[i], "fail");
        for (int f = 0; f < FIGURES; f++)
            check_hostile(figures[f], &t, &(dsc_figure_options){.title = hostile[i]});
        dsc_table_fini(&t);
    }
}

// Extreme numbers and sizes give a picture or an error.
static void test_extremes(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    static const char *const quantity[] = {"speedup", "speedup", "draft_s_per_call"};
    for (size_t i = 0; i < EXTREMES; i++)
        for (int f = 0; f < FIGURES; f++) {
            dsc_table t = {0};
            dsc_drawing d = {0};
            dsc_error err = {0};
            for (int j = 0; j < 2; j++)
                add_check(&t, "draft-model", "rejection", "num-speculative-tokens=1e400",
                          quantity[f], j ? extreme[i] : 2, j ? 2 : extreme[i], extreme[i],
                          j ? "10 %" : "|z| <= 1e308", "pass");
            int rc = dsc_figure_draw(dsc_figure_find(figures[f]), &t, NULL, "svg", &d, &err);
            if (rc && !strstr(err.message, "no configuration has") &&
                !strstr(err.message, "no prediction is greater") &&
                !strstr(err.message, "measurements are 0"))
                fail_msg("%s of %g: %s", figures[f], extreme[i], err.message);
            dsc_drawing_fini(&d);
            dsc_table_fini(&t);
        }
    dsc_table t = {0};
    fill(&t);
    for (int f = 0; f < FIGURES; f++)
        check_sizes(figures[f], &t);
    dsc_table_fini(&t);
}

static void test_refusals(void **state)
{
    (void)state;
    dsc_table bare = {0}, empty = {0}, t = {0};
    const dsc_figure_type *can[MOST_FIGURES];
    add_named(&bare, "method$ rule$ parameters$ predicted measured");
    add_named(&empty, COLUMNS);
    for (int f = 0; f < FIGURES; f++) {
        char says[96];
        snprintf(says, sizeof says, "%s needs a column 'quantity'", figures[f]);
        refuse(figures[f], &bare, NULL, says);
        refuse(figures[f], &empty, NULL, "no rows");
    }
    add_check(&t, "draft-model", "rejection", "num-speculative-tokens=1", "draft_acceptance_rate",
              0, 0, NAN, "shown", "shown");
    refuse("predicted-vs-measured", &t, NULL,
           "a measurement of block_efficiency, speedup (the table contains draft_acceptance_rate)");
    refuse("step-time-residuals", &t, &(dsc_figure_options){.column = "nope"},
           "measurement of nope");
    refuse("error-by-method", &t, NULL, "all measurements are 0");
    refuse("step-time-residuals", &t, &(dsc_figure_options){.column = "draft_acceptance_rate"},
           "no prediction is greater than 0");
    add_check(&t, "draft-model", "rejection", "num-speculative-tokens=1", "speedup", NAN, 2, NAN,
              "10 %", "not predicted");
    refuse("predicted-vs-measured", &t, NULL, "no configuration has a prediction");
    dsc_figure_filter nope = {"method", "pearl"};
    refuse("error-by-method", &t, &(dsc_figure_options){.filter = &nope, .filters = 1},
           "no row is left");
    assert_int_equal(drawable(&t, can), 1); // errors of the acceptance rate
    assert_string_equal(can[0]->name, "error-by-method");
    dsc_table_fini(&bare);
    dsc_table_fini(&empty);
    dsc_table_fini(&t);
}

SUITE(check_plots)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_predicted),  cmocka_unit_test(test_errors),
        cmocka_unit_test(test_step_times), cmocka_unit_test(test_many_methods),
        cmocka_unit_test(test_terminals),  cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_extremes),   cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}

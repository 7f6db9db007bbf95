// SPDX-License-Identifier: Apache-2.0
// The figures of a served model by load and over time: saturated loads are points that no line goes
// through, measured rows are points of their method, the largest loads and the crossovers are where
// the numbers say. No number here was measured.
#include "tests/unit/plot_check.h"
#include "tests/unit/plot_fixture.h"

static const char *text_of(const dsc_drawing *d, size_t row, const char *column)
{
    const int c = dsc_table_find(&d->data, column);
    assert_true(c >= 0 && row < d->data.rows);
    return dsc_table_at(&d->data, row, (size_t)c)->text;
}

// --- tables as draftscope serve writes them ------------------------------------------------------

static const char latency_columns[] =
    "method$ rule$ num_speculative_tokens speculation$ arrivals$ qps clients# saturated$ "
    "measured$ ttft_p50_s ttft_p99_s tpot_p50_s tpot_p99_s e2e_mean_s tokens_per_s goodput";

typedef struct load {
    const char *method, *arrivals, *saturated, *measured;
    double k, qps, clients, ttft, e2e, tokens_per_s;
} load;

static void add_load(dsc_table *t, const load *l)
{
    if (!t->columns)
        add_named(t, latency_columns);
    add_row(t,
            (double[]){l->k, l->qps, l->clients, l->ttft, 2 * l->ttft, .01 * l->ttft, .02 * l->ttft,
                       l->e2e, l->tokens_per_s, l->qps},
            (const char *[]){l->method, "greedy", strcmp(l->method, "none") ? "fixed" : "",
                             l->arrivals, l->saturated, l->measured});
}

// ngram is better at 1 and 2, worse at 4 and saturated at 8, where no speculation is not.
static void add_loads(dsc_table *t)
{
    static const double rate[] = {1, 2, 4, 8};
    static const double plain[] = {4, 4, 4, 8}, fast[] = {2, 3, 5, 40};
    for (int i = 0; i < 4; i++) {
        add_load(t, &(load){"none", "poisson:", "no", "", NAN, rate[i], 0, .5, plain[i], 100});
        add_load(t, &(load){"ngram", "poisson:", i == 3 ? "yes" : "no", "", 4, rate[i], 0, .25,
                            fast[i], 200});
    }
}

// --- load-latency and load-throughput ------------------------------------------------------------

static void test_saturated(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    add_loads(&t);
    draw("load-latency", &t, NULL, "svg", &d);
    check_script(&d.script);
    // the line ends at 4; its last load is a point of the second line
    assert_contains(&d.script, "$panel1 << EOD\n1 0.5 0.25\n2 0.5 0.25\n4 0.5 0.25\n8 0.5 ?\nEOD");
    assert_contains(&d.script, "$points1_2_1 << EOD\n8 0.25\nEOD");
    assert_contains(&d.script, "$points1_2_1 using 1:2 with points lt 1 lc rgb '#E69F00' lw 1.5 "
                               "pt 4");
    // (3 - 4) / 4 at 2 and (5 - 4) / 5 at 4: even at 2 + 2 * .25 / .45
    assert_contains(&d.script, "'ngram (3.11)'");
    assert_contains(&d.finding, "ngram: 0.25 at 1, 0.25 at 4, no steady state at 8, worse than no "
                                "speculation from 3.11 on");
    assert_int_equal(d.data.rows, 8);
    assert_string_equal(text_of(&d, 7, "kind"), "not steady");
    assert_string_equal(text_of(&d, 6, "kind"), "steady");
    dsc_drawing_fini(&d);
    draw("load-throughput", &t, NULL, "svg", &d);
    assert_contains(&d.script, "$points1_2_1 << EOD\n8 200\nEOD");
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

// A stable configuration is the best one even if a saturated one has the smaller value.
static void test_stable_first(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    for (int first = 0; first < 2; first++) {
        dsc_table t = {0};
        dsc_drawing d;
        for (int i = 0; i < 2; i++) {
            const bool saturated = i == first;
            add_load(&t, &(load){"ngram", "poisson:", saturated ? "yes" : "no", "",
                                 saturated ? 8 : 2, 1, 0, saturated ? 1 : 3, 1, 1});
        }
        draw("load-latency", &t, NULL, "svg", &d);
        assert_contains(&d.script, "$panel1 << EOD\n1 3\nEOD");
        assert_null(strstr(d.script.data, "$points"));
        dsc_drawing_fini(&d);
        dsc_table_fini(&t);
    }
}

static void test_all_saturated(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    for (int i = 1; i <= 2; i++)
        add_load(&t, &(load){"none", "poisson:", "yes", "", NAN, i, 0, i, i, 100});
    draw("load-latency", &t, NULL, "svg", &d);
    assert_contains(&d.script, "$panel1 << EOD\n1 ?\n2 ?\nEOD");
    assert_contains(&d.script, "$points1_1_1 << EOD\n1 1\n2 2\nEOD");
    assert_contains(&d.script, "set yrange [1:10]");
    assert_contains(&d.finding, "no load has a steady state");
    assert_int_equal(d.marks.rows, 8);
    assert_string_equal(dsc_table_at(&d.marks, 0, 3)->text, "1: 1, no steady state");
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

static void test_measured(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    add_loads(&t);
    add_load(&t, &(load){"ngram", "", "", "yes", NAN, 3, 0, .3, NAN, NAN});
    add_load(&t, &(load){"none", "", "", "yes", NAN, 4, 0, NAN, NAN, NAN}); // nothing to draw
    add_load(&t, &(load){"none", "", "", "yes", NAN, 9, 0, .3, NAN, NAN});  // beyond the last load
    draw("load-latency", &t, NULL, "svg", &d);
    check_script(&d.script);
    assert_contains(&d.script, "$points1_2_0 << EOD\n3 0.3\nEOD");
    assert_contains(&d.script, "$points4_2_0 << EOD\n3 0.006\nEOD");
    assert_null(strstr(d.script.data, "$points1_1_0"));
    assert_contains(&d.script, "$panel1 using 1:2 with lines ");
    assert_contains(&d.script, "filled points: measured; 1 measured load outside the");
    assert_contains(&d.finding, "Points: 2 measured loads.");
    assert_string_equal(text_of(&d, 8, "kind"), "measured");
    dsc_drawing_fini(&d);
    add_load(&t, &(load){"suffix", "", "", "yes", NAN, 3, 0, .3, NAN, NAN});
    refuse("load-latency", &t, NULL, "no predicted row has the method 'suffix'");
    dsc_table_fini(&t);
    add_load(&t, &(load){"suffix", "", "", "yes", NAN, 3, 0, .3, NAN, NAN});
    refuse("load-latency", &t, NULL, "add a table of draftscope serve");
    dsc_table_fini(&t);
}

// A rate of one process is not compared with that of another; clients are another axis.
static void test_loads(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    add_load(&t, &(load){"none", "poisson:1", "no", "", NAN, 1, 0, 1, 1, 1});
    add_load(&t, &(load){"none", "constant:1", "no", "", NAN, 1, 0, 1, 1, 1});
    refuse("load-latency", &t, NULL, "'poisson:1' and 'constant:1'");
    dsc_table_fini(&t);
    for (int i = 1; i <= 2; i++)
        add_load(&t, &(load){"none", "closed:", "no", "", NAN, NAN, i, 1, 1, 1});
    assert_true(dsc_figure_fits(dsc_figure_find("load-latency"), &t));
    draw("load-latency", &t, NULL, "svg", &d);
    assert_contains(&d.script, "clients of a closed loop");
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

// --- goodput -------------------------------------------------------------------------------------

static void add_goodput(dsc_table *t, const char *method, const char *policy, double qps,
                        double clients, double goodput, double served, const char *saturated)
{
    if (!t->columns)
        add_named(t, "method$ speculation$ arrivals$ qps clients# saturated$ requests_per_s "
                     "goodput");
    add_row(t, (double[]){qps, clients, served, goodput},
            (const char *[]){method, policy, "poisson:", saturated});
}

// 90 % are within the limits up to 2 (none) and 4 (ngram), where the table ends.
static void test_goodput(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    dsc_error err = {0};
    for (int i = 1; i <= 4; i *= 2) {
        add_goodput(&t, "none", "", i, 0, i < 4 ? i : 1, i, i < 4 ? "no" : "yes");
        add_goodput(&t, "ngram", "fixed", i, 0, .9 * i, i, "no");
        add_goodput(&t, "ngram", "adaptive", i, 0, .5 * i, i, "no");
    }
    assert_ok(dsc_table_comment(&t, "slo", "ttft=1", &err), err);
    assert_true(dsc_figure_fits(dsc_figure_find("goodput"), &t));
    draw("goodput", &t, NULL, "svg", &d);
    check_script(&d.script);
    assert_contains(&d.script, "'Goodput by load, SLO ttft=1'");
    assert_contains(&d.script, "'none (2)'");
    assert_contains(&d.script, "'ngram, fixed (\u2265 4)'");
    assert_contains(&d.script, "'ngram, adaptive'");
    assert_contains(&d.script, "$panel1 << EOD\n1 1 0.9 0.5\n2 2 1.8 1\n4 ? 3.6 2\nEOD");
    assert_contains(&d.script, "$panel2 << EOD\n1 100 90 50\n2 100 90 50\n4 ? 90 50\nEOD");
    assert_contains(&d.script, "$points1_1_2 << EOD\n2 2\nEOD");  // the ring of none
    assert_contains(&d.script, "$points1_1_1 << EOD\n4 1\nEOD");  // its saturated load
    assert_contains(&d.script, "$points2_2_2 << EOD\n4 90\nEOD"); // the ring of ngram
    assert_contains(&d.finding, "none: 90 % within the SLO up to a load of 2;");
    assert_contains(&d.finding, "less than 90 % within the SLO at every load");
    assert_int_equal(d.data.rows, 9);
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

// 100 % and 90 % at 1, 20 % and 60 % at 4: ngram is worse at first and better at the end. With the
// methods exchanged: 10 points above at 1, 40 below at 4, each over the larger share.
static void test_goodput_crossing(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    for (int exchanged = 0; exchanged < 2; exchanged++) {
        dsc_table t = {0};
        dsc_drawing d;
        const char *a = exchanged ? "ngram" : "none", *b = exchanged ? "none" : "ngram";
        add_goodput(&t, a, "", 1, 0, 1, 1, "no");
        add_goodput(&t, b, "", 1, 0, .9, 1, "no");
        add_goodput(&t, a, "", 4, 0, .8, 4, "no");
        add_goodput(&t, b, "", 4, 0, 2.4, 4, "no");
        draw("goodput", &t, NULL, "svg", &d);
        if (exchanged) // 1 + 3 * .1 / (.1 + 2 / 3)
            assert_contains(&d.finding, "fewer than without speculation from 1.39 on");
        else
            assert_null(strstr(d.finding.data, "fewer than without"));
        dsc_drawing_fini(&d);
        dsc_table_fini(&t);
    }
}

static void test_goodput_without_limits(void **state)
{
    (void)state;
    dsc_table t = {0};
    for (int i = 1; i <= 2; i++)
        add_goodput(&t, "none", "", i, 0, i, i, "no");
    assert_false(dsc_figure_fits(dsc_figure_find("goodput"), &t));
    refuse("goodput", &t, NULL, "--slo ttft=S,tpot=S");
    dsc_table_fini(&t);
}

// --- occupancy -----------------------------------------------------------------------------------

static void add_bin(dsc_table *t, const char *policy, double start, double running, double length)
{
    if (!t->columns)
        add_named(t, "method$ speculation$ arrivals$ qps start_s running waiting draft_length "
                     "accepted_length");
    add_row(t, (double[]){2, start, running, running / 2, length, length / 2},
            (const char *[]){"ngram", policy, "poisson:2"});
}

static void test_occupancy(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    for (int i = 0; i < 3; i++)
        add_bin(&t, "fixed", 2 * i, 4 + 2 * i, 5);
    draw("occupancy", &t, NULL, "svg", &d);
    check_script(&d.script);
    assert_contains(&d.script, "$panel1 << EOD\n0 4 2 ? ?\n2 6 3 ? ?\n4 8 4 ? ?\nEOD");
    assert_contains(&d.script, "$panel2 << EOD\n0 ? ? 5 2.5\n2 ? ? 5 2.5\n4 ? ? 5 2.5\nEOD");
    assert_contains(&d.finding, "At most 8 running, 4 waiting, 5 drafted.");
    dsc_drawing_fini(&d);
    // bins of another run lie elsewhere, and an idle one has no draft length
    add_bin(&t, "oracle", 0, 1, 2);
    add_bin(&t, "oracle", 8, 0, NAN);
    draw("occupancy", &t, NULL, "svg", &d);
    assert_contains(&d.script, "'fixed'");
    assert_contains(&d.script, "$panel4 << EOD\n0 ? ? 2 1\n2 ? ? ? ?\n4 ? ? ? ?\n8 ? ? ? ?\nEOD");
    assert_int_equal(d.data.rows, 5);
    dsc_drawing_fini(&d);
    for (int i = 0; i < 3; i++)
        add_bin(&t, (const char *[]){"a", "b", "c"}[i], 0, 1, 1);
    refuse("occupancy", &t, NULL, "shows at most 4: filter by speculation");
    dsc_table_fini(&t);
}

// --- load-published ------------------------------------------------------------------------------

static void add_published(dsc_table *t, const char *where, const char *quantity, double at,
                          double published, double predicted)
{
    if (!t->columns)
        add_named(t, "row$ case$ quantity$ at published predicted");
    add_row(t, (double[]){at, published, predicted}, (const char *[]){"serving", where, quantity});
}

// The prediction without speculation at 64 is fitted, so it is the published value; speculation
// falls below at 8 + 56 * 100 / (100 + 300).
static void test_published(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    add_published(&t, "A, none", "tokens_per_s", 8, 410, 400);
    add_published(&t, "A, none", "tokens_per_s_closed_form", 64, 900, 880);
    add_published(&t, "A, eagle3", "tokens_per_s", 8, 490, 500);
    add_published(&t, "A, eagle3", "tokens_per_s", 64, 610, 600);
    add_published(&t, "A, eagle3", "ttft_p50_ms", 64, 250, 125);
    add_published(&t, "A, eagle3", "e2e_p50_ms_roofline", 8, 2000, 1500);
    add_published(&t, "A", "crossover_roofline", NAN, 60, 70); // not of a number of clients
    draw("load-published", &t, NULL, "svg", &d);
    check_script(&d.script);
    assert_contains(&d.script, "$panel1 << EOD\n8 ? ? ? ?\n64 ? 0.125 ? ?\nEOD");
    assert_contains(&d.script, "$panel2 << EOD\n8 ? ? ? 1.5\n64 ? ? ? ?\nEOD");
    assert_contains(&d.script, "$panel3 << EOD\n8 400 500 ? ?\n64 900 600 ? ?\nEOD");
    assert_contains(&d.script, "$points1_2_0 << EOD\n64 0.25\nEOD");
    assert_contains(&d.script, "$points3_1_0 << EOD\n8 410\n64 900\nEOD");
    assert_contains(&d.script, "$points3_2_2 << EOD\n22 525\nEOD");
    assert_contains(&d.finding, "A: eagle3 falls below no speculation at 22 clients.");
    assert_int_equal(d.data.rows, 6);
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
    add_published(&t, "A", "crossover_roofline", NAN, 60, 70);
    refuse("load-published", &t, NULL, "validate serving --published");
    dsc_table_fini(&t);
}

// --- all of them ---------------------------------------------------------------------------------

static void fill_goodput(dsc_table *t, const char *word)
{
    for (int i = 1; i <= 2; i++)
        add_goodput(t, word, word, i, 0, 1, i, "no");
}

static void fill_occupancy(dsc_table *t, const char *word)
{
    for (int i = 0; i < 2; i++)
        add_bin(t, i ? word : "fixed", 0, 1, 1);
}

static void fill_latency(dsc_table *t, const char *word)
{
    add_load(t, &(load){word, word, "no", "", 4, 1, 0, 1, 1, 1});
    add_load(t, &(load){"none", word, "yes", "", NAN, 2, 0, 1, 1, 1});
}

static void fill_published(dsc_table *t, const char *word)
{
    char where[256];
    snprintf(where, sizeof where, "%s, %s", word, word);
    add_published(t, where, "tokens_per_s", 1, 1, 1);
}

// Texts cannot leave their quotes, and pictures in characters fit into a terminal.
static void test_hostile(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    static const struct {
        const char *figure;
        void (*fill)(dsc_table *t, const char *word);
    } drawing[] = {{"load-latency", fill_latency},
                   {"load-throughput", fill_latency},
                   {"goodput", fill_goodput},
                   {"occupancy", fill_occupancy},
                   {"load-published", fill_published}};
    for (size_t i = 0; i < sizeof drawing / sizeof *drawing; i++)
        for (size_t h = 0; h < HOSTILE; h += (size_t)few_or_many(4, 1)) {
            dsc_table t = {0};
            dsc_drawing d;
            dsc_error err = {0};
            drawing[i].fill(&t, hostile[h]);
            assert_ok(dsc_table_comment(&t, "slo", hostile[h], &err), err);
            draw(drawing[i].figure, &t, NULL, "svg", &d);
            check_script(&d.script);
            dsc_drawing_fini(&d);
            draw(drawing[i].figure, &t, NULL, "dumb", &d);
            check_dumb(&d.picture);
            dsc_drawing_fini(&d);
            dsc_table_fini(&t);
        }
    assert_int_equal(count_files("OWNED"), 0);
}

SUITE(load_plots)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_saturated),
        cmocka_unit_test(test_stable_first),
        cmocka_unit_test(test_all_saturated),
        cmocka_unit_test(test_measured),
        cmocka_unit_test(test_loads),
        cmocka_unit_test(test_goodput),
        cmocka_unit_test(test_goodput_crossing),
        cmocka_unit_test(test_goodput_without_limits),
        cmocka_unit_test(test_occupancy),
        cmocka_unit_test(test_published),
        cmocka_unit_test(test_hostile),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}

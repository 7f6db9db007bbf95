// SPDX-License-Identifier: Apache-2.0
// The figures of `draftscope theory` tables on every terminal: plotted numbers equal those of the
// table, the marked optimum is the largest; hostile text stays text; a table that cannot be drawn
// is an error that names the reason.
#include "tests/unit/plot_check.h"

#include <math.h>

// Rows of `theory speedup`: lengths 1 .. lengths at one acceptance rate and cost.
static void add_speedups(dsc_table *t, double alpha, double cost, int lengths)
{
    if (!t->columns)
        add_named(t, "alpha length# draft_cost target_slope accepted block_efficiency speedup");
    for (int l = 1; l <= lengths; l++) {
        double tokens = (1 - pow(alpha, l + 1)) / (1 - alpha);
        add_row(t, (double[]){alpha, l, cost, 0, tokens - 1, tokens, tokens / (1 + l * cost)},
                NULL);
    }
}

static void surface_table(dsc_table *t)
{
    for (int i = 0; i < 3; i++)
        add_speedups(t, (double[]){0.5, 0.8, 0.95}[i], 0.05, 12);
}

// Rows of `theory pearl`: windows 1 .. windows at one acceptance rate and ratio.
static void add_windows(dsc_table *t, const char *form, double alpha, double ratio, int windows)
{
    if (!t->columns)
        add_named(t, "alpha ratio form$ window# speedup tokens_per_iteration best_window# "
                     "best_speedup accepted accepted_as_printed");
    for (int g = 1; g <= windows; g++) {
        double tokens = 1 / (1 - alpha) / (1 + alpha / (1 - pow(alpha, g)));
        add_row(t,
                (double[]){alpha, ratio, g, tokens / fmax(g / ratio, 1), tokens, ratio, NAN,
                           alpha / (1 - alpha), 1 / (1 - alpha) + 1},
                &form);
    }
}

static void pearl_table(dsc_table *t)
{
    add_windows(t, "pearl", 0.8, 3, 8);
    add_windows(t, "pearl", 0.8, 5, 8);
    add_windows(t, "no-pre-verify", 0.8, 5, 8);
}

// A row of `theory pearl --published`.
static void add_published(dsc_table *t, const char *pair, const char *quantity, double window,
                          double predicted, double published)
{
    if (!t->columns)
        add_named(t, "table# pair$ quantity$ window# alpha ratio predicted published "
                     "error_percent tolerance_percent ok$");
    add_row(t,
            (double[]){5, window, 0.96, 2.6, predicted, published,
                       100 * (predicted / published - 1), NAN},
            (const char *[]){pair, quantity, "-"});
}

static void published_table(dsc_table *t)
{
    for (int i = 0; i < 2; i++)
        for (int g = 2; g < 7; g++)
            add_published(t, i ? "7B/70B" : "7B/34B", "tokens_per_s", g, 60 - 3 * abs(g - 3) + i,
                          58 - 3 * abs(g - 3 - i));
    add_published(t, "7B/34B", "speedup", 3, 2.38, 2.35);
}

typedef struct tree_node {
    int parent, depth, rank;
    double probability;
} tree_node;

// The table of `theory tree`; node i is row i.
static void add_tree(dsc_table *t, const tree_node *n, int nodes)
{
    dsc_error err = {0};
    if (!t->columns)
        add_named(t, "node# parent# depth# rank# path$ probability expected_tokens");
    assert_ok(dsc_table_comment(t, "speedup", "1.75", &err), err);
    for (int i = 0; i < nodes; i++)
        add_row(
            t,
            (double[]){i, n[i].parent, n[i].depth, n[i].rank, n[i].probability, n[i].probability},
            (const char *[]){"0"});
}

// 0 -> 1, 2; 1 -> 3, 4; 2 -> 5. Depth first: row 0 contains 0 1 3, row 1 node 4, row 2 contains
// 2 5.
static const tree_node small_tree[] = {{-1, 0, -1, 1},  {0, 1, 0, 0.6},    {0, 1, 1, 0.2},
                                       {1, 2, 0, 0.36}, {1, 2, 1, 0.0001}, {2, 2, 0, 0.12}};
enum { SMALL = sizeof small_tree / sizeof *small_tree };

static void tree_table(dsc_table *t)
{
    add_tree(t, small_tree, SMALL);
}

// The table of `theory accept` for one pair at k = 1, 2, with the numbers of SpecTr, App. B.
static void accept_rows(dsc_table *t, const char *pair)
{
    add_named(t, "pair$ k# rejection specinfer kseq kseq_rho otm");
    add_row(t, (double[]){1, .75, .75, .75, 1, .75}, &pair);
    add_row(t, (double[]){2, .75, .8125, .847597, 1.390388, .9375}, &pair);
}

static void accept_table(dsc_table *t)
{
    accept_rows(t, "Ber(0.25) to Ber(0.5)");
}

static void accept_any_table(dsc_table *t)
{
    accept_rows(t, "row 0");
}

// The table of `sim --timeline` for PEARL, window 4: a rejection, then two accepted windows, in the
// second of which the draft model is the slower one; a last call without a draft.
static void timeline_table(dsc_table *t)
{
    static const double step[][6] = {// start, end of the draft, of the target; tokens; see below
                                     {0, 4, 5, 1, 0, 1},
                                     {5, 9, 10, 1, 1, 1},
                                     {10, 18, 15, 4, 4, 4},
                                     {18, 18, 23, 1, 0, 1}};
    add_named(t, "lane$ step# start_s end_s tokens# proposed# accepted# emitted#");
    for (int i = 0; i < 4; i++) {
        const double *s = step[i];
        if (s[1] > s[0])
            add_row(t, (double[]){i, s[0], s[1], 4, s[3], s[4], s[5]}, (const char *[]){"draft"});
        add_row(t, (double[]){i, s[0], s[2], s[3], s[3], s[4], s[5]}, (const char *[]){"target"});
    }
}

static const sample samples[] = {
    {"speedup-surface", surface_table}, {"pearl-window", pearl_table},
    {"pearl-window", published_table},  {"tree", tree_table},
    {"spectr-bernoulli", accept_table}, {"accept-vs-k", accept_any_table},
    {"timeline", timeline_table},
};
enum { SAMPLES = sizeof samples / sizeof *samples };

// --- numbers -------------------------------------------------------------------------------

// Each sample table fits its figure.
static void test_samples(void **state)
{
    (void)state;
    check_samples(samples, SAMPLES);
}

// A table of one family of distributions has one figure: that of the family.
static void test_families(void **state)
{
    (void)state;
    const dsc_figure_type *can[MOST_FIGURES];
    dsc_table t = {0};
    accept_table(&t);
    assert_int_equal(drawable(&t, can), 1);
    assert_string_equal(can[0]->name, "spectr-bernoulli");
    dsc_table_fini(&t);
    accept_any_table(&t);
    assert_int_equal(drawable(&t, can), 1);
    assert_string_equal(can[0]->name, "accept-vs-k");
    dsc_table_fini(&t);
}

// Seven intervals and 7 tokens in 23 seconds, or in 23 target calls with cost unit.
static void test_timeline(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    dsc_error err = {0};
    timeline_table(&t);
    draw("timeline", &t, NULL, "svg", &d);
    assert_int_equal(d.data.rows, 7);
    assert_close(drawn(&d, 4, "end_s"), 18, 0);
    assert_contains(&d.script, "'+4'");
    assert_contains(&d.finding,
                    "Timeline of 4 steps: 7 tokens in 23 seconds, 1.750 per target call");
    assert_contains(&d.finding, "draft model is busy 70 % of the time, the target 87 %");
    dsc_drawing_fini(&d);
    draw("timeline", &t, &(dsc_figure_options){.width = 60}, "dumb", &d);
    assert_contains(&d.picture, "target [xxx+1xxxx][###+1####]");
    dsc_drawing_fini(&d);
    assert_ok(dsc_table_comment(&t, "cost", "unit", &err), err);
    draw("timeline", &t, NULL, "svg", &d);
    assert_contains(&d.finding, "in 23 target calls");
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

// A timeline with more steps than fit.
static void test_long_timeline(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    add_named(&t, "lane$ step# start_s end_s tokens# proposed# accepted# emitted#");
    for (int i = 0; i < 5000; i++)
        add_row(&t, (double[]){i, i, i + 1, 1, 0, 0, 1}, (const char *[]){"target"});
    draw("timeline", &t, NULL, "svg", &d);
    assert_true(d.data.rows > 10 && d.data.rows < 50);
    assert_contains(&d.finding, "Timeline of 5000 steps: 5000 tokens");
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

static void test_bad_timelines(void **state)
{
    (void)state;
    static const double bad[][7] = {{0, 2, 1, 1, 1, 1, 1},        {0, -1, 1, 1, 1, 1, 1},
                                    {0, 0, NAN, 1, 1, 1, 1},      {NAN, 0, 1, 1, 1, 1, 1},
                                    {0, 0, INFINITY, 1, 1, 1, 1}, {0, 0, 1, 1e300, 1, 1, 1},
                                    {0, 0, 1, 1, 1, 1, 1},        {0, 3, 3, 1, 1, 1, 1}};
    for (size_t i = 0; i < 8; i++) {
        dsc_table t = {0};
        add_named(&t, "lane$ step start_s end_s tokens proposed accepted emitted");
        add_row(&t, bad[i], (const char *[]){i == 6 ? "middle" : "target"});
        refuse("timeline", &t, NULL, i == 7 ? "have length 0" : "row 1 is invalid");
        dsc_table_fini(&t);
    }
}

// alpha_2 of Ber(.25) to Ber(.5) is .9375.
static void test_accept(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    accept_table(&t);
    draw("spectr-bernoulli", &t, NULL, "svg", &d);
    assert_int_equal(d.data.rows, 2);
    assert_close(drawn(&d, 1, "k"), 2, 0);
    assert_close(drawn(&d, 1, "otm"), 0.9375, 0);
    assert_close(drawn(&d, 1, "kseq"), 0.847597, 0);
    assert_contains(&d.script, "2 0.9375 0.847597 0.8125 0.75\n");
    assert_contains(&d.finding, "0.8476 against 0.9375");
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

// At a draft cost of .05 the best lengths are 3 and 8. At acceptance rate .95 the speedup still
// rises at 12, which is therefore not an optimum and has no tick.
static void test_surface(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    surface_table(&t);
    draw("speedup-surface", &t, NULL, "svg", &d);
    assert_int_equal(d.data.rows, 3 * 12);
    assert_close(drawn(&d, 2, "length"), 3, 0);
    assert_close(drawn(&d, 2, "speedup"), 1.875 / 1.15, 1e-12);
    assert_close(drawn(&d, 12 + 7, "alpha"), 0.8, 0);
    assert_close(drawn(&d, 12 + 7, "speedup"), 3.0920795428571437, 1e-12);
    assert_contains(&d.script, "'0.5 (3)'");
    assert_contains(&d.script, "'0.8 (8)'");
    assert_contains(&d.script, "'0.95 (12+)'");
    assert_contains(&d.script, "still rising");
    assert_contains(&d.script, "from first 8, graph 1");
    assert_null(strstr(d.script.data, "from first 12, graph 1"));
    assert_contains(
        &d.finding,
        "length is 3 at alpha = 0.5 (1.63×), 8 at alpha = 0.8 (3.09×), 12, the longest, ");
    assert_contains(&d.finding, "at alpha = 0.95 (6.08×). Without");
    dsc_drawing_fini(&d);
    for (int i = 0; i < 2; i++) // a second cost: a panel for each, and no brackets
        add_speedups(&t, (double[]){0.5, 0.8}[i], 0.1, 12);
    draw("speedup-surface", &t, NULL, "svg", &d);
    assert_contains(&d.script, "$panel2 << EOD");
    assert_contains(&d.script, "draft_cost = 0.1");
    assert_contains(&d.script, "'0.8'");
    assert_contains(&d.finding,
                    "draft_cost = 0.1: The best draft length is 2 at alpha = 0.5 (1.46×)");
    assert_int_equal(d.data.rows, 5 * 12);
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

// Lines with the same best length have adjacent ticks.
static void test_ticks(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    add_speedups(&t, 0.50, 0.05, 11);
    add_speedups(&t, 0.51, 0.05, 11);
    draw("speedup-surface", &t, NULL, "svg", &d);
    assert_contains(&d.script, "'0.51 (3)'");
    assert_contains(&d.script, "from first 3, graph 1");
    assert_contains(&d.script, "from first 2.92, graph 1");
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

// With more acceptance rates than line styles, the subtitle gives the number of lines drawn.
static void test_thinned(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0}, p = {0};
    dsc_drawing d;
    for (int i = 0; i < 20; i++) {
        add_speedups(&t, 0.04 * (i + 1), 0.05, 6);
        add_windows(&p, "pearl", 0.04 * (i + 1), 3, 6);
    }
    draw("speedup-surface", &t, NULL, "svg", &d);
    assert_contains(&d.script, "8 of 20 values of alpha drawn");
    assert_int_equal(d.data.rows, 8 * 6);
    dsc_drawing_fini(&d);
    draw("pearl-window", &p, NULL, "svg", &d);
    assert_contains(&d.script, "8 of 20 lines drawn");
    assert_int_equal(d.data.rows, 8 * 6);
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
    dsc_table_fini(&p);
}

// PEARL, Theorem 1: the best window is the ratio. Other forms are drawn only if a filter selects
// them.
static void test_pearl(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0}, other = {0};
    dsc_drawing d;
    pearl_table(&t);
    draw("pearl-window", &t, NULL, "svg", &d);
    assert_int_equal(d.data.rows, 2 * 8);
    size_t best = 0;
    for (size_t i = 1; i < 8; i++)
        best = drawn(&d, i, "speedup") > drawn(&d, best, "speedup") ? i : best;
    assert_close(drawn(&d, best, "window"), 3, 0);
    assert_close(drawn(&d, best, "speedup"), 5 / (1 + 0.8 / (1 - 0.512)), 1e-12);
    assert_string_equal(dsc_table_at(&d.data, 8, 0)->text, "ratio = 5");
    assert_contains(&d.script, "from first 3, graph 1");
    assert_contains(&d.script, "from first 5, graph 1");
    assert_contains(&d.script, "Theorem 1");
    assert_contains(&d.finding, "ratio = 3 best 1.89 at 3; ratio = 5 best 2.28 at 5.");
    dsc_drawing_fini(&d);
    dsc_figure_filter f = {"form", "no-pre-verify"};
    draw("pearl-window", &t, &(dsc_figure_options){.filter = &f, .filters = 1}, "svg", &d);
    assert_int_equal(d.data.rows, 8);
    assert_contains(&d.script, "by window, no-pre-verify");
    assert_null(strstr(d.script.data, "Theorem 1"));
    dsc_drawing_fini(&d);
    add_windows(&other, "speculative", 0.8, 5, 8); // the only form needs no asking
    draw("pearl-window", &other, NULL, "svg", &d);
    assert_contains(&d.script, "Speedup of speculative decoding by draft length");
    assert_contains(&d.finding, "speedup of speculative decoding by window");
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
    dsc_table_fini(&other);
}

static void test_published(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    published_table(&t);
    add_published(&t, "7B/34B", "tokens_per_s", 7, NAN, 41.5);
    draw("pearl-window", &t, NULL, "svg", &d);
    assert_int_equal(d.data.rows, 2 * 5 + 1);
    assert_close(drawn(&d, 1, "predicted"), 60, 0);
    assert_close(drawn(&d, 1, "published"), 58, 0);
    assert_true(isnan(drawn(&d, 5, "predicted")));
    assert_close(drawn(&d, 5, "published"), 41.5, 0); // drawn, and so in the data
    assert_contains(&d.script, "$panel1 << EOD\n2 57 55\n3 60 58\n");
    assert_contains(&d.script, "$panel2 << EOD\n2 58 52\n3 61 55\n4 58 58\n");
    assert_contains(&d.script, "tokens per second");
    assert_contains(&d.finding, "7B/70B (2.60), published best 58.0 at 4");
    dsc_drawing_fini(&d);
    dsc_figure_filter f = {"quantity", "speedup"};
    draw("pearl-window", &t, &(dsc_figure_options){.filter = &f, .filters = 1}, "svg", &d);
    assert_null(strstr(d.script.data, "tokens per second"));
    assert_int_equal(d.data.rows, 1);
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

static void test_tree(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    static const int row[SMALL] = {0, 0, 2, 0, 1, 2};
    bool seen[SMALL] = {false};
    dsc_table t = {0};
    dsc_drawing d;
    tree_table(&t);
    draw("tree", &t, NULL, "svg", &d);
    assert_int_equal(d.data.rows, SMALL);
    for (size_t i = 0; i < SMALL; i++) {
        size_t node = (size_t)drawn(&d, i, "node");
        assert_true(node < SMALL && !seen[node]);
        seen[node] = true;
        assert_close(drawn(&d, i, "row"), row[node], 0);
        assert_close(drawn(&d, i, "depth"), small_tree[node].depth, 0);
        assert_close(drawn(&d, i, "parent"), small_tree[node].parent, 0);
        assert_close(drawn(&d, i, "probability"), small_tree[node].probability, 0);
    }
    assert_contains(&d.finding,
                    "6 nodes (including the root) and depth 2. The expected number of tokens per "
                    "target call is 2.280.");
    assert_contains(&d.finding, "Nodes by depth: 1, 2, 3.");
    assert_contains(&d.script, "'0.360'");
    assert_contains(&d.script, "'<.001'"); // not zero, and not drawn as zero
    assert_contains(&d.script, "speedup 1.75×");
    dsc_drawing_fini(&d);
    draw("tree", &t, NULL, "dumb", &d);
    assert_contains(&d.picture, "1.0-------+-.60-------+-.36 ");
    assert_contains(&d.picture, "|           +-<.01 ");
    assert_contains(&d.picture, "+-.20---------.12 ");
    dsc_drawing_fini(&d);
    dsc_figure_filter f = {"node", "0"}; // the speedup is that of the whole tree
    draw("tree", &t, &(dsc_figure_options){.filter = &f, .filters = 1}, "svg", &d);
    assert_contains(&d.script, "Draft tree with 1 node, depth 0");
    assert_null(strstr(d.script.data, "speedup"));
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

// --- pictures ------------------------------------------------------------------------------

static void test_terminals(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    check_sample_terminals(samples, SAMPLES);
}

// Hostile text in cells, comments, the title and a filter.
static void test_hostile(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    for (size_t i = 0; i < HOSTILE; i++)
        for (int f = 0; f < 4; f++) {
            static const char *const name[] = {"pearl-window", "pearl-window", "speedup-surface",
                                               "tree"};
            dsc_table t = {0};
            dsc_error err = {0};
            if (f == 0) {
                add_windows(&t, hostile[i], 0.8, 3, 3);
            } else if (f == 1) {
                add_published(&t, hostile[i], hostile[(i + 1) % HOSTILE], 3, 5, 6);
                add_published(&t, hostile[(i + 2) % HOSTILE], hostile[(i + 1) % HOSTILE], 3, 5, 6);
            } else if (f == 2) { // a text column makes groups, which have names
                add_named(&t, "note$ alpha length# speedup");
                for (size_t j = 0; j < 2; j++)
                    add_row(&t, (double[]){0.5, 3, 2}, &hostile[(i + j) % HOSTILE]);
            } else {
                assert_ok(dsc_table_comment(&t, "speedup", hostile[i], &err), err);
                add_tree(&t, small_tree, SMALL);
            }
            assert_ok(dsc_table_comment(&t, "cost", hostile[i], &err), err);
            check_hostile(name[f], &t, NULL);
            check_hostile(name[f], &t, &(dsc_figure_options){.title = hostile[i]});
            dsc_figure_filter filter = {"cost", hostile[i]};
            refuse(name[f], &t, &(dsc_figure_options){.filter = &filter, .filters = 1},
                   "the filter needs a column 'cost'");
            dsc_table_fini(&t);
        }
    assert_int_equal(count_files(""), 0);
}

// --- the edge of what can be drawn -----------------------------------------------------------

static void test_one_row(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    static const char *const terminal[] = {"svg", "png", "pdf", "dumb"};
    dsc_table t[4] = {{0}};
    static const char *const name[] = {"speedup-surface", "pearl-window", "pearl-window", "tree"};
    add_speedups(&t[0], 0.5, 0.05, 1);
    add_windows(&t[1], "pearl", 0.5, 4, 1); // the best window is not in the table
    add_published(&t[2], "a/b", "tokens_per_s", 3, 5, 6);
    add_tree(&t[3], small_tree, 1);
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            dsc_drawing d;
            draw(name[i], &t[i], NULL, terminal[j], &d);
            assert_int_equal(d.data.rows, 1);
            dsc_drawing_fini(&d);
        }
        dsc_table_fini(&t[i]);
    }
}

static void test_sizes(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    check_sample_sizes(samples, SAMPLES);
    for (int i = 0; i < SAMPLES; i++) {
        dsc_table t = {0};
        samples[i].fill(&t);
        refuse(samples[i].figure, &t, &(dsc_figure_options){.width = 100}, "width must be");
        if (strcmp(samples[i].figure, "tree")) // six nodes have room enough
            refuse(samples[i].figure, &t, &(dsc_figure_options){.width = 200, .height = 200},
                   "too small");
        dsc_table_fini(&t);
    }
}

// Extreme numbers give a picture if one is finite, else an error.
static void test_extremes(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    static const char *const pair = "a/b", *const form = "pearl";
    for (size_t i = 0; i < EXTREMES; i++)
        for (int second = 0; second < 2; second++) // a usual number in addition
            for (int f = 0; f < 3; f++) {
                const double v = extreme[i];
                dsc_table t = {0};
                if (f == 0)
                    add_named(&t, "alpha length# speedup");
                else if (f == 1)
                    add_named(&t, "alpha ratio form$ window# speedup best_window");
                for (int j = 0; j <= second; j++)
                    if (f == 0)
                        add_row(&t, (double[]){0.5, 1 + j, j ? 2 : v}, NULL);
                    else if (f == 1)
                        add_row(&t, (double[]){0.5, v, 1 + j, j ? 2 : v, v}, &form);
                    else
                        add_published(&t, pair, "tokens_per_s", 1 + j, j ? 2 : v, v);
                const bool drew =
                    draws_or_says(f ? "pearl-window" : "speedup-surface", &t, "no finite number");
                assert_int_equal(drew, second || fabs(v) < 1e300);
                dsc_table_fini(&t);
            }
}

// x values that fit on no axis.
static void test_extreme_axes(void **state)
{
    (void)state;
    dsc_table a = {0}, b = {0}, c = {0};
    const char *form = "pearl", *text = "three";
    add_named(&a, "alpha length speedup");
    add_row(&a, (double[]){0.5, INFINITY, 2}, NULL);
    refuse("speedup-surface", &a, NULL, "column 'length' has no numbers");
    add_named(&b, "alpha ratio form$ window speedup");
    add_row(&b, (double[]){0.5, 2, NAN, 2}, &form);
    refuse("pearl-window", &b, NULL, "column 'window' has no numbers");
    add_named(&c, "alpha length$ speedup");
    add_row(&c, (double[]){0.5, 2}, &text);
    refuse("speedup-surface", &c, NULL, "column 'length' has no numbers");
    dsc_table_fini(&a);
    dsc_table_fini(&b);
    dsc_table_fini(&c);
}

// Invalid trees are errors, whatever the numbers are.
static void test_bad_trees(void **state)
{
    (void)state;
    static const struct {
        double node, parent, depth, rank, probability;
        const char *says;
    } bad[] = {
        {1, 0, 1, 0, NAN, "is invalid"},         {1, 0, 1, 0, 1.5, "is invalid"},
        {1, 0, 1, 0, -0.1, "is invalid"},        {1, 0, 1, 0, INFINITY, "is invalid"},
        {NAN, 0, 1, 0, 0.5, "is invalid"},       {1e300, 0, 1, 0, 0.5, "is invalid"},
        {1, INFINITY, 1, 0, 0.5, "is invalid"},  {1, 0, -1, 0, 0.5, "is invalid"},
        {1, 0, 1e9, 0, 0.5, "is invalid"},       {1, 0, 1.5, 0, 0.5, "is invalid"},
        {1, 0, 1, NAN, 0.5, "is invalid"},       {1, 0.5, 1, 0, 0.5, "is invalid"},
        {1, 7, 1, 0, 0.5, "has no parent"},      {1, 1, 1, 0, 0.5, "has no parent"},
        {1, 0, 2, 0, 0.5, "has no parent"},      {1, -1, 0, 0, 0.5, "has no parent"},
        {0, 0, 1, 0, 0.5, "two rows have node"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dsc_table t = {0};
        add_named(&t, "node parent depth rank probability");
        add_row(&t, (double[]){0, -1, 0, -1, 1}, NULL);
        add_row(
            &t,
            (double[]){bad[i].node, bad[i].parent, bad[i].depth, bad[i].rank, bad[i].probability},
            NULL);
        refuse("tree", &t, NULL, bad[i].says);
        dsc_table_fini(&t);
    }
}

static void test_tree_comments(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    static const char *const value[] = {"1e308", "inf", "nan", "-1", "", "999999", "twice"};
    for (size_t i = 0; i < sizeof value / sizeof *value; i++) {
        dsc_table t = {0};
        dsc_drawing d;
        dsc_error err = {0};
        assert_ok(dsc_table_comment(&t, "speedup", value[i], &err), err);
        tree_table(&t);
        draw("tree", &t, NULL, "svg", &d);
        assert_true(!strstr(d.script.data, "speedup") == (i != 5));
        dsc_drawing_fini(&d);
        dsc_table_fini(&t);
    }
}

// Deep and wide trees with the greatest number of nodes, and with one more.
static void test_large_trees(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    for (int shape = 0; shape < 3; shape++) {
        dsc_table t = {0};
        dsc_drawing d;
        add_named(&t, "node# parent# depth# rank# probability");
        int nodes = shape == 2 ? 1025 : shape ? 64 : 1024;
        for (int i = 0; i < nodes; i++)
            add_row(&t,
                    (double[]){i,
                               shape == 1 ? i - 1
                               : i        ? 0
                                          : -1,
                               shape == 1 ? i : i > 0, shape == 1 ? 0 : i - 1, i ? 0.001 : 1},
                    NULL);
        if (shape == 2) {
            refuse("tree", &t, NULL, "1025 nodes and the figure shows at most 1024");
        } else {
            draw("tree", &t, NULL, "svg", &d);
            assert_int_equal(d.data.rows, nodes);
            dsc_drawing_fini(&d);
            refuse("tree", &t, &(dsc_figure_options){.width = 200, .height = 200}, "too small");
        }
        if (shape == 0) {
            draw("tree", &t, NULL, "dumb", &d);
            assert_contains(&d.picture, "... 1003 more rows");
            check_dumb(&d.picture);
            dsc_drawing_fini(&d);
        }
        dsc_table_fini(&t);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    static const char *const needs[][2] = {{"speedup-surface", "'alpha'"},
                                           {"pearl-window", "'window'"},
                                           {"tree", "'node'"},
                                           {"accept-vs-k", "'pair'"}};
    dsc_table none = {0}, costs = {0}, pearl = {0}, pairs = {0}, dup = {0}, empty = {0};
    char pair[32];
    add_named(&none, "k");
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        refuse(needs[i][0], &none, NULL, needs[i][1]);
    for (int i = 0; i < 6; i++)
        add_speedups(&costs, 0.5, 0.01 * (i + 1), 2);
    refuse("speedup-surface", &costs, NULL, "filter by draft_cost (0.01, 0.02,");
    for (int i = 0; i < 9; i++)
        add_windows(&pearl, "pearl", 0.1 * (1 + i % 3), 1 + i / 3, 3);
    for (int i = 0; i < 7; i++) {
        snprintf(pair, sizeof pair, "pair %d", i);
        add_published(&pairs, pair, "tokens_per_s", 3, 5, 6);
    }
    refuse("pearl-window", &pairs, NULL, "filter by pair (pair 0, pair 1,");
    add_windows(&dup, "pearl", 0.5, 2, 2);
    add_windows(&dup, "pearl", 0.5, 2, 2);
    refuse("pearl-window", &dup, NULL, "rows 1 and 3 have the same configuration (window = 1)");
    dsc_figure_filter f = {"form", "nope"};
    refuse("pearl-window", &dup, &(dsc_figure_options){.filter = &f, .filters = 1},
           "no row is left with form = nope");
    add_named(&empty, "alpha ratio form$ window# speedup");
    refuse("pearl-window", &empty, NULL, "no rows");
    dsc_table_fini(&none);
    dsc_table_fini(&costs);
    dsc_table_fini(&pearl);
    dsc_table_fini(&pairs);
    dsc_table_fini(&dup);
    dsc_table_fini(&empty);
}

SUITE(theory_plots)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),       cmocka_unit_test(test_families),
        cmocka_unit_test(test_timeline),      cmocka_unit_test(test_long_timeline),
        cmocka_unit_test(test_bad_timelines), cmocka_unit_test(test_accept),
        cmocka_unit_test(test_surface),       cmocka_unit_test(test_ticks),
        cmocka_unit_test(test_thinned),       cmocka_unit_test(test_pearl),
        cmocka_unit_test(test_published),     cmocka_unit_test(test_tree),
        cmocka_unit_test(test_terminals),     cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_one_row),       cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_extremes),      cmocka_unit_test(test_extreme_axes),
        cmocka_unit_test(test_bad_trees),     cmocka_unit_test(test_tree_comments),
        cmocka_unit_test(test_large_trees),   cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}

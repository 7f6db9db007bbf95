// SPDX-License-Identifier: Apache-2.0
// The figures of simulated methods: plotted numbers equal those of the table, marks are at the
// optimum or the break-even, intervals and bounds follow their formulas; several tables are joined;
// a table that cannot be drawn is an error that names the reason.
#include "tests/unit/plot_check.h"

#include "plots/draw/join.h"
#include "theory/block.h"

#include <math.h>

// --- tables as the commands write them -------------------------------------------------------

#define FIELDS "requests# num_drafts num_draft_tokens block_efficiency speedup accept_histogram%"

// Adds a row of a method whose parameters `number` precede the results.
static void add_result(dsc_table *t, const char *method, const char *rule, const double *parameter,
                       size_t parameters, const double *efficiency_speedup, const char *histogram)
{
    double number[16] = {0};
    memcpy(number, parameter, parameters * sizeof *number);
    memcpy(number + parameters,
           (double[]){10, 100, 300, efficiency_speedup[0], efficiency_speedup[1]},
           5 * sizeof *number);
    add_row(t, number, (const char *[]){method, rule, histogram});
}

// Adds chains of 1 .. lengths tokens at acceptance rate `alpha`; a draft token costs `cost` target
// calls.
static void add_chain(dsc_table *t, const char *rule, double alpha, double cost, int lengths)
{
    if (!t->columns)
        add_named(t, "method$ rule$ num_speculative_tokens# " FIELDS);
    for (int l = 1; l <= lengths; l++) {
        double tokens = (1 - pow(alpha, l + 1)) / (1 - alpha);
        add_result(t, "draft-model", rule, (double[]){l}, 1,
                   (double[]){tokens, tokens / (1 + l * cost)}, "40;30;20;10");
    }
}

// Adds 1 .. most drafts of lengths 1 .. 3; more are better.
static void add_spectr(dsc_table *t, const char *rule, double gain, int most)
{
    if (!t->columns)
        add_named(t, "method$ rule$ drafts# num_speculative_tokens# " FIELDS);
    for (int k = 1; k <= most; k++)
        for (int l = 1; l <= 3; l++) {
            double tokens = 1 + l * (1 - pow(1 - gain, k));
            add_result(t, "spectr", rule, (double[]){k, l}, 2, (double[]){tokens, tokens},
                       "40;30;20;10");
        }
}

static void chain_table(dsc_table *t)
{
    add_chain(t, "rejection", 0.8, 0.1, 12);
    add_chain(t, "block", 0.9, 0.1, 12);
}

static void spectr_table(dsc_table *t)
{
    add_spectr(t, "kseq", 0.4, 4);
    add_spectr(t, "otm", 0.5, 4);
}

static void add_batch(dsc_table *t, double length, double batch, double speedup)
{
    static const char *const text[] = {"draft-model", "rejection", "40;30;20;10"};
    if (!t->columns)
        add_named(t, "method$ rule$ num_speculative_tokens# block_efficiency speedup "
                     "accept_histogram% batch# "
                     "tokens_per_s");
    add_row(t, (double[]){length, 1 + length / 2, speedup, batch, 100 * batch * speedup}, text);
}

static void batch_table(dsc_table *t)
{
    for (int i = 0; i < 5; i++) {
        add_batch(t, 2, 1 << 2 * i, (double[]){1.8, 1.8, 1.5, 1.2, 1.1}[i]);
        add_batch(t, 6, 1 << 2 * i, (double[]){2.5, 2, 1.5, 0.5, 0.25}[i]);
    }
}

static void cost_table(dsc_table *t)
{
    add_named(t, "tokens# context# batch# target_s draft_s");
    for (int context = 512; context <= 4096; context *= 8)
        for (int tokens = 1; tokens <= 64; tokens *= 2)
            add_row(t, (double[]){tokens, context, 1, 0.02 + 0.0005 * (tokens - 1), 0.002}, NULL);
}

static void trace_table(dsc_table *t)
{
    add_named(t, "trace$ group$ source$ accept_histogram% conditional_acceptance_reached%");
    add_row(t, NULL, (const char *[]){"a.dst", "", "steps", "40;30;20;10", "100;50;20"});
}

static const sample samples[] = {
    {"methods", chain_table},
    {"length", chain_table},
    {"rules", spectr_table},
    {"acceptance-by-position", chain_table},
    {"batch", batch_table},
    {"cost", cost_table},
    {"acceptance-by-position", trace_table},
    {"length", batch_table},
    {"methods", spectr_table},
};
enum { SAMPLES = sizeof samples / sizeof *samples };

// --- numbers -------------------------------------------------------------------------------

static void test_samples(void **state)
{
    (void)state;
    check_samples(samples, SAMPLES);
}

// The best length is that of the closed form (Leviathan et al., Theorem 3.8).
static void test_length(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    dsc_error err = {0};
    dsc_block_best best[2];
    char says[128];
    chain_table(&t);
    for (int i = 0; i < 2; i++) {
        const dsc_acceptance dist = {.rate = i ? 0.9 : 0.8};
        const dsc_block_cost cost = {.draft = 0.1};
        assert_ok(dsc_block_best_length(&dist, 1, 12, cost, &best[i], &err), err);
    }
    draw("length", &t, NULL, "svg", &d);
    check_script(&d.script);
    snprintf(says, sizeof says,
             "best %.2f× at draft length %d (rejection); best %.2f× at draft "
             "length %d (block)",
             best[0].speedup, best[0].length, best[1].speedup, best[1].length);
    assert_contains(&d.finding, says);
    snprintf(says, sizeof says, "'rejection (%d)'", best[0].length);
    assert_contains(&d.script, says);
    snprintf(says, sizeof says, "$best << EOD\n%d %.12g\n", best[1].length, best[1].speedup);
    assert_contains(&d.script, says);
    assert_int_equal(d.data.rows, 24);
    assert_close(drawn(&d, 11, "speedup"), (1 - pow(0.8, 13)) / 0.2 / 2.2, 1e-12);
    assert_null(strstr(d.script.data, "dt (2,3)")); // nothing is predicted
    dsc_drawing_fini(&d);
    draw("length", &t, &(dsc_figure_options){.column = "block_efficiency"}, "svg", &d);
    assert_contains(&d.script, "'rejection (12+)'");
    assert_contains(&d.script, "+: still rising");
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

// Another x axis is named in the title and in the finding.
static void test_length_by_another_column(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    const char *const text[] = {"suffix"};
    add_named(&t, "method$ max_cached_requests# block_efficiency");
    add_row(&t, (double[]){1, 1.5}, text);
    add_row(&t, (double[]){10, 1.75}, text);
    draw("length", &t,
         &(dsc_figure_options){.x = "max_cached_requests", .column = "block_efficiency"}, "svg",
         &d);
    assert_contains(&d.script, "by number of cached requests");
    assert_contains(&d.finding, "best 1.75 at number of cached requests 10");
    assert_null(strstr(d.script.data, "draft length"));
    assert_null(strstr(d.finding.data, "draft length"));
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

// The i.i.d. reference scales in proportion to block efficiency.
static void test_prediction(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    const char *const text[] = {"draft-model"};
    add_named(&t, "method$ num_speculative_tokens# block_efficiency speedup iid_block_efficiency");
    add_row(&t, (double[]){1, 2, 1.5, 1.8}, text);
    add_row(&t, (double[]){2, 2.5, 1.75, 2}, text);
    draw("length", &t, NULL, "svg", &d);
    assert_contains(&d.script, "$panel1 << EOD\n1 1.5 1.35\n2 1.75 1.4\nEOD");
    assert_contains(&d.script, "$panel1 using 1:3 with lines lt 1 lw 1.5 dt (2,3)");
    assert_contains(&d.finding, "up to 20.0 % lower");
    assert_close(drawn(&d, 1, "iid"), 1.4, 1e-12);
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

// Each method has its own length parameter; its other parameters split lines.
static void test_lengths_of_methods(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    add_named(&t, "method$ num_speculative_tokens window n max block_efficiency");
    for (int i = 1; i <= 3; i++) {
        add_row(&t, (double[]){i, NAN, NAN, NAN, 1 + i}, (const char *[]){"draft-model"});
        add_row(&t, (double[]){NAN, 2 * i, 1, NAN, 2 + i}, (const char *[]){"llma"});
        add_row(&t, (double[]){NAN, 2 * i, 2, NAN, 3 + i}, (const char *[]){"llma"});
        add_row(&t, (double[]){NAN, NAN, NAN, 5 * i, 1}, (const char *[]){"threshold"});
    }
    add_row(&t, (double[]){NAN, NAN, NAN, NAN, 9}, (const char *[]){"tree"}); // has no length
    draw("length", &t, NULL, "svg", &d);
    assert_int_equal(d.data.rows, 12);
    assert_contains(&d.script, "'draft-model (3+)'");
    assert_contains(&d.script, "'llma, n 2 (6+)'");
    assert_contains(&d.script, "'threshold (5)'");
    assert_contains(&d.script, "$panel1 << EOD\n1 2 ? ? ?\n2 3 3 4 ?\n3 4 ? ? ?\n4 ? 4 5 ?\n5 ");
    dsc_drawing_fini(&d);
    draw("length", &t, &(dsc_figure_options){.x = "n"}, "svg", &d); // the other way round
    assert_contains(&d.script, "$panel1 << EOD\n1 5\n2 6\n"); // the best window of llma at each n
    assert_string_equal(drawn_text(&d, 1, "best_with"), "window 6");
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

// If there are too many lines, each method and rule is the envelope of its configurations.
static void test_many_lines(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    for (int r = 0; r < 3; r++)
        add_spectr(&t, (const char *[]){"kseq", "otm", "specinfer"}[r],
                   (const double[]){0.4, 0.5, 0.3}[r], 8);
    draw("length", &t, NULL, "svg", &d);
    assert_contains(&d.script, "best configuration of each method");
    for (int r = 0; r < 3; r++) {
        static const char *const label[] = {"'kseq'", "'otm'", "'specinfer'"};
        assert_contains(&d.script, label[r]);
    }
    assert_string_equal(drawn_text(&d, 0, "best_with"), "drafts 8");
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

static void test_rules(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table spectr = {0}, chain = {0}, t = {0};
    dsc_drawing d;
    dsc_error err = {0};
    spectr_table(&spectr);
    add_chain(&chain, "rejection", 0.4, 0, 5); // two lengths more, which are not drawn
    assert_ok(dsc_join_tables(&t, (const dsc_table *[]){&spectr, &chain}, 2, &err), err);
    draw("rules", &t, NULL, "svg", &d);
    check_script(&d.script);
    // L = 1: percent of the bound, of k-Seq, and of the single draft, constant over all K.
    assert_contains(&d.script, "$panel1 << EOD\n1 93.3333333333 93.3333333333\n"
                               "2 93.7142857143 80\n");
    assert_contains(&d.script, "plot 100 with lines");
    assert_contains(&d.script, "'L = 3'");
    assert_contains(&d.script, "'otm (bound)'");
    assert_contains(&d.finding,
                    "At the largest of both: otm (bound) 3.812, kseq 3.611, rejection 1.624.");
    assert_contains(&d.finding, "no rule for independently sampled drafts accepts more");
    assert_int_equal(d.data.rows, 3 * 3 * 4);
    assert_string_equal(drawn_text(&d, 0, "line"), "otm (bound)");
    dsc_drawing_fini(&d);
    dsc_figure_filter f = {"rule", "kseq"};
    draw("rules", &t, &(dsc_figure_options){.filter = &f, .filters = 1}, "svg", &d);
    assert_null(strstr(d.script.data, "#b4b4b4"));
    assert_contains(&d.script, "$panel1 << EOD\n1 1.4\n2 1.64\n"); // without a bound: values
    assert_null(strstr(d.finding.data, "bound"));
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
    dsc_table_fini(&spectr);
    dsc_table_fini(&chain);
}

// The best row of each method in the table's order, with its parameters; switches separate bars.
static void test_methods(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    add_named(&t, "method$ reuse$ num_speculative_tokens window block_efficiency speedup "
                  "speedup_low speedup_high");
    for (int i = 1; i <= 3; i++) {
        static const char *const text[][2] = {
            {"ouroboros", "on"}, {"ouroboros", "off"}, {"draft-model", ""}};
        add_row(&t, (double[]){i, 20, 3, 2 + 0.1 * i, 2, 2.5}, text[0]);
        add_row(&t, (double[]){i, 20, 3, 2 - 0.1 * i, 1.5, 2}, text[1]);
        add_row(&t, (double[]){i, NAN, 3, i == 2 ? 1.25 : 0.5, 1, 1.5}, text[2]);
    }
    add_row(&t, (double[]){NAN, NAN, 1, 1, 1, 1}, (const char *[]){"none", ""});
    draw("methods", &t, NULL, "svg", &d);
    check_script(&d.script);
    assert_int_equal(d.data.rows, 3);
    static const char *const bar[] = {"ouroboros, reuse on", "ouroboros, reuse off", "draft-model"};
    static const char *const with[] = {"draft length 3", "draft length 1", "draft length 2"};
    static const double value[] = {2.3, 1.9, 1.25};
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(drawn_text(&d, i, "bar"), bar[i]);
        assert_string_equal(drawn_text(&d, i, "best_with"), with[i]);
        assert_close(drawn(&d, i, "speedup"), value[i], 1e-12);
    }
    assert_contains(&d.script,
                    "$bars << EOD\n2.3 0.52 0.9 1 2 2.5 0.71\n1.9 1.52 1.9 0 1.5 2 1.71\n");
    assert_contains(&d.script, "xerrorbars");
    assert_contains(&d.script, "from first 1, first 0.45 to first 1,"); // no speculation
    assert_contains(&d.finding,
                    "ouroboros, reuse on 2.30× (draft length 3); ouroboros, reuse off 1.90×");
    dsc_drawing_fini(&d);
    draw("methods", &t, NULL, "dumb", &d);
    assert_contains(&d.picture, "# 2.30");
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

// --x separates bars by a numeric parameter.
static void test_ablation(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    add_named(&t, "method$ phrases# num_speculative_tokens# block_efficiency");
    for (int i = 0; i < 4; i++)
        add_row(&t, (double[]){i / 2 * 3, 1 + i % 2, 2 + i}, (const char *[]){"ouroboros"});
    draw("methods", &t, NULL, "svg", &d);
    assert_int_equal(d.data.rows, 1);
    assert_string_equal(drawn_text(&d, 0, "best_with"), "phrases 3, draft length 2");
    dsc_drawing_fini(&d);
    draw("methods", &t, &(dsc_figure_options){.x = "phrases"}, "svg", &d);
    assert_int_equal(d.data.rows, 2);
    assert_string_equal(drawn_text(&d, 0, "bar"), "ouroboros, phrases 0");
    assert_string_equal(drawn_text(&d, 1, "best_with"), "draft length 2");
    assert_close(drawn(&d, 0, "block_efficiency"), 3, 0);
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

// With too many combinations, bars are by method and rule alone.
static void test_many_bars(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    char branches[32];
    add_named(&t, "method$ rule$ branches$ block_efficiency");
    for (int i = 0; i < 30; i++) {
        snprintf(branches, sizeof branches, "%d,2", i);
        add_row(&t, (double[]){1 + i}, (const char *[]){"spectr-tree", "kseq", branches});
    }
    add_row(&t, (double[]){2}, (const char *[]){"draft-model", "rejection", ""});
    draw("methods", &t, NULL, "svg", &d);
    assert_int_equal(d.data.rows, 2);
    assert_string_equal(drawn_text(&d, 0, "best_with"), "branches 29,2");
    dsc_drawing_fini(&d);
    for (int i = 0; i < 30; i++) {
        snprintf(branches, sizeof branches, "m%d", i);
        add_row(&t, (double[]){1 + i}, (const char *[]){branches, "kseq", ""});
    }
    refuse("methods", &t, NULL, "more than 24 bars");
    dsc_table_fini(&t);
}

// Length 6 falls from 1.5 at 16 to 0.5 at 64: it breaks even half way, in powers of two at 32.
static void test_batch(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    batch_table(&t);
    draw("batch", &t, NULL, "svg", &d);
    check_script(&d.script);
    assert_contains(&d.script, "set logscale x 2");
    assert_contains(&d.finding,
                    "draft-model, rejection: 2.5 at 1, 1.1 at 256, no break-even in this range.");
    assert_int_equal(d.data.rows, 5); // the better of two draft lengths at each batch size
    assert_string_equal(drawn_text(&d, 0, "best_with"), "draft length 6");
    assert_string_equal(drawn_text(&d, 4, "best_with"), "draft length 2");
    dsc_drawing_fini(&d);
    dsc_figure_filter longer = {"num_speculative_tokens", "6"};
    draw("batch", &t, &(dsc_figure_options){.filter = &longer, .filters = 1}, "svg", &d);
    assert_contains(&d.script, "'draft-model, rejection (32)'");
    assert_contains(&d.script, "set arrow from first 32, graph 1");
    assert_contains(&d.finding, "2.5 at 1, 0.25 at 256, break-even at 32.");
    dsc_drawing_fini(&d);
    draw("batch", &t, &(dsc_figure_options){.column = "tokens_per_s"}, "svg", &d);
    assert_contains(&d.script, "256 28160\n");
    assert_null(strstr(d.script.data, "no speculation'"));
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

static void test_cost(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    cost_table(&t);
    draw("cost", &t, NULL, "svg", &d);
    check_script(&d.script);
    assert_contains(&d.script, "latency of a target forward pass (ms)");
    assert_contains(&d.script, "$panel1 << EOD\n1 20 20\n2 20.5 20.5\n");
    assert_contains(&d.script, "$panel2 << EOD\n1 2 2\n");
    assert_contains(&d.finding, "target, context 512: 20 ms with 1 token, 1.07 times that with 4");
    assert_int_equal(d.data.rows, 14);
    assert_close(drawn(&d, 6, "target_ms"), 51.5, 1e-12);
    assert_string_equal(drawn_text(&d, 0, "line"), "context 512");
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

// Wilson's interval of 60 in 100; conditional acceptance rates as theory/block.h counts them.
static void test_conditional_rate(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    dsc_conditional_count count[3] = {{0, 0}};
    static const int64_t times[] = {40, 30, 20, 10};
    dsc_error err = {0};
    for (int m = 0; m < 4; m++)
        assert_ok(dsc_conditional_add(count, 3, m, 3, times[m], &err), err);
    add_chain(&t, "rejection", 0.5, 0, 3);
    draw("acceptance-by-position", &t, NULL, "svg", &d);
    check_script(&d.script);
    assert_int_equal(d.data.rows, 3);
    for (size_t j = 0; j < 3; j++) {
        assert_close(drawn(&d, j, "acceptance"), dsc_conditional_rate(&count[j]), 1e-12);
        assert_close(drawn(&d, j, "reached"), (double)count[j].at_risk, 0);
        assert_close(drawn(&d, j, "iid"), 100.0 / 190, 1e-12);
    }
    assert_close(drawn(&d, 0, "low"), 0.50200258, 1e-6);
    assert_close(drawn(&d, 0, "high"), 0.69059871, 1e-6);
    assert_contains(&d.script, "filledcurves");
    assert_contains(
        &d.finding,
        "draft-model, rejection, draft length 3, row 3: 0.600 at position 1 (0.502 to 0.691), "
        "0.333 at position 3");
    assert_null(strstr(d.finding.data, "shorter than the draft length"));
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
    // 100 drafts of up to 6 tokens have 300 tokens: half of the positions were not drafted.
    add_named(&t, "method$ num_speculative_tokens# num_drafts num_draft_tokens block_efficiency "
                  "accept_histogram%");
    add_row(&t, (double[]){6, 100, 300, 2}, (const char *[]){"ngram", "40;30;20;10"});
    draw("acceptance-by-position", &t, NULL, "svg", &d);
    assert_contains(&d.finding, "50 % shorter than the draft length");
    assert_contains(&d.script, "lower bounds where drafts end early");
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
    // Ten calls had no draft and therefore reached no position.
    add_named(&t, "method$ num_speculative_tokens# num_drafts block_efficiency accept_histogram%");
    add_row(&t, (double[]){3, 90, 2}, (const char *[]){"ngram", "40;30;20;10"});
    draw("acceptance-by-position", &t, NULL, "svg", &d);
    assert_close(drawn(&d, 0, "acceptance"), 60.0 / 90, 1e-12);
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

// --- several tables ------------------------------------------------------------------------

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static int read_as_one(dsc_table *t, const char *a, const char *b, dsc_error *err)
{
    return dsc_read_tables(t, (const char *[]){a, b}, 2, err);
}

static void test_join(void **state)
{
    (void)state;
    dsc_table t;
    dsc_error err = {0};
    write_text("a.tsv", "# draftscope: 0.1.0\n# command: one\n# trace_hash: 0123456789abcdef\n"
                        "# cost: unit\nmethod\tnum_speculative_tokens\tspeedup\taccept_histogram\n"
                        "draft-model\t3\t2\t5;3\n");
    write_text("b.tsv", "# draftscope: 0.1.0\n# command: two\n# trace_hash: 0123456789abcdef\n"
                        "# cost: linear:1,2\nmethod\tn\tsemantics\tspeedup\taccept_histogram\n"
                        "llma\t4\tpaper\t2.5\t7\n");
    assert_ok(read_as_one(&t, "a.tsv", "b.tsv", &err), err);
    static const char *const want[] = {
        "method",  "num_speculative_tokens", "n", "semantics", "cost",
        "speedup", "accept_histogram"};
    assert_int_equal(t.columns, 7);
    for (size_t c = 0; c < 7; c++)
        assert_string_equal(t.column[c].name, want[c]);
    assert_true(isnan(dsc_table_real(&t, 1, 1)) && isnan(dsc_table_real(&t, 0, 2)));
    assert_string_equal(dsc_table_at(&t, 0, 3)->text, "");
    assert_string_equal(dsc_table_at(&t, 0, 4)->text, "unit");
    assert_string_equal(dsc_table_at(&t, 1, 4)->text, "linear:1,2");
    assert_close(dsc_table_real(&t, 0, 5), 2, 0);
    assert_int_equal(dsc_table_at(&t, 1, 6)->i, 1);
    assert_close(dsc_cell_element(dsc_table_at(&t, 1, 6), 0), 7, 0);
    assert_string_equal(dsc_table_get_comment(&t, "trace_hash"), "0123456789abcdef");
    assert_null(dsc_table_get_comment(&t, "cost"));
    assert_string_equal(dsc_table_get_comment(&t, "command"), "one");
    assert_string_equal(t.value[t.comments - 1], "two");
    dsc_table_fini(&t);
    write_text("c.tsv", "# trace_hash: ffffffffffffffff\n# cost: unit\nmethod\tspeedup\nx\t1\n");
    assert_ok(read_as_one(&t, "a.tsv", "c.tsv", &err), err);
    int hash = dsc_table_find(&t, "trace_hash");
    assert_string_equal(dsc_table_at(&t, 0, (size_t)hash)->text, "0123456789ab");
    assert_string_equal(dsc_table_at(&t, 1, (size_t)hash)->text, "ffffffffffff");
    assert_int_equal(dsc_table_at(&t, 1, (size_t)dsc_table_find(&t, "accept_histogram"))->i, 0);
    dsc_table_fini(&t);
    write_text("d.tsv", "method\taccept_histogram\nx\tnone at all\n");
    assert_int_equal(read_as_one(&t, "a.tsv", "d.tsv", &err), DSC_EINPUT);
    assert_non_null(strstr(err.message, "lists in one table and text in another"));
    assert_int_equal(read_as_one(&t, "a.tsv", "no.tsv", &err), DSC_EINPUT);
    assert_non_null(strstr(err.message, "no.tsv"));
    empty_scratch();
}

// Conditional acceptance rates of trace info --json are converted back to counts.
static void test_trace_info(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t;
    dsc_drawing d;
    dsc_error err = {0};
    const char *const path[] = {"info.json"};
    write_text(
        "info.json",
        "{\n  \"trace\": \"a.dst\",\n  \"conditional_acceptance_rate\": [0.6, 0.5, null],\n"
        "  \"conditional_acceptance_reached\": [100, 50, 0],\n  \"drafters\": {\"ngram\": {\n"
        "    \"conditional_acceptance_rate\": [0.25], \"conditional_acceptance_reached\": [8]}},\n "
        " \"groups\": {\n"
        "    \"math\": {\"conditional_acceptance_rate\": [1.0], "
        "\"conditional_acceptance_reached\": [9]}}\n}\n");
    assert_ok(dsc_read_tables(&t, path, 1, &err), err);
    assert_int_equal(t.rows, 3);
    assert_string_equal(dsc_table_at(&t, 0, 1)->text, "all");
    assert_string_equal(dsc_table_at(&t, 1, 2)->text, "ngram");
    assert_string_equal(dsc_table_at(&t, 2, 1)->text, "math");
    // 100 cases reached position 1 and 60 passed; 10 of those had no position 2; 25 passed it.
    static const int64_t histogram[] = {40, 35, 25, 0};
    assert_int_equal(dsc_table_at(&t, 0, 3)->i, 4);
    for (int m = 0; m < 4; m++)
        assert_int_equal(dsc_table_at(&t, 0, 3)->list[m], histogram[m]);
    draw("acceptance-by-position", &t, NULL, "svg", &d);
    assert_close(drawn(&d, 0, "acceptance"), 0.6, 1e-12);
    assert_close(drawn(&d, 1, "acceptance"), 0.5, 1e-12);
    assert_close(drawn(&d, 1, "reached"), 50, 0);
    assert_close(drawn(&d, 1, "iid"), 85.0 / 150, 1e-12);
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
    static const char *const bad[][2] = {
        {"{\n\"a\": 1}\n", "not the output of trace info --json"},
        {"{\n\"trace\": \"a\"}\n", "has no conditional acceptance rates"},
        {"{\n\"trace\": \"a\",\n", "line "},
        {"{\n\"trace\": \"a\", \"conditional_acceptance_rate\": [2.0], "
         "\"conditional_acceptance_reached\": [1]}\n",
         "conditional acceptance rate 1 is not in [0, 1]"},
        {"{\n\"trace\": \"a\", \"conditional_acceptance_rate\": [0.5, 1], "
         "\"conditional_acceptance_reached\": [4, 3]}\n",
         "conditional acceptance rate 2 is not"},
        {"{\n\"trace\": \"a\", \"conditional_acceptance_rate\": [0.5], "
         "\"conditional_acceptance_reached\": [-4]}\n",
         "conditional acceptance rate 1 is not"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_text("info.json", bad[i][0]);
        assert_int_equal(dsc_read_tables(&t, path, 1, &err), DSC_EINPUT);
        if (!strstr(err.message, bad[i][1]) || !strstr(err.message, "info.json"))
            fail_msg("'%s' does not say '%s'", err.message, bad[i][1]);
    }
    empty_scratch();
}

// --- pictures ------------------------------------------------------------------------------

static void test_terminals(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    check_sample_terminals(samples, SAMPLES);
}

static void test_hostile(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    static const char *const figure[] = {"methods", "length", "rules", "acceptance-by-position",
                                         "batch"};
    for (size_t i = 0; i < HOSTILE; i++) {
        dsc_table t = {0};
        dsc_error err = {0};
        add_named(&t, "method$ rule$ drafts# num_speculative_tokens# block_efficiency speedup "
                      "accept_histogram% "
                      "batch#");
        assert_ok(dsc_table_comment(&t, "cost", hostile[i], &err), err);
        for (int j = 0; j < 8; j++)
            add_row(&t, (double[]){1 + j % 2, 1 + j / 4, 2, 2, 1 + j / 2 % 2},
                    (const char *[]){hostile[i], hostile[(i + 1) % HOSTILE], "9;9;9"});
        for (size_t f = 0; f < sizeof figure / sizeof *figure; f++) {
            dsc_figure_filter one = {"batch", "1"};
            check_hostile(figure[f], &t,
                          &(dsc_figure_options){.title = hostile[i],
                                                .filter = &one,
                                                .filters = strcmp(figure[f], "batch") != 0});
        }
        dsc_table_fini(&t);
    }
}

// Extreme numbers and sizes give a picture or an error.
static void test_extremes(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    static const char *const figure[] = {"methods", "length", "rules", "batch", "cost"};
    for (size_t i = 0; i < EXTREMES; i++)
        for (size_t f = 0; f < sizeof figure / sizeof *figure; f++) {
            dsc_table t = {0};
            const double v = extreme[i];
            add_named(&t, "method$ rule$ drafts num_speculative_tokens tokens block_efficiency "
                          "speedup target_s "
                          "batch");
            for (int j = 1; j < 3; j++)
                add_row(&t, (double[]){j, j, j, v, v, v, j}, (const char *[]){"spectr", "otm"});
            assert_int_equal(draws_or_says(figure[f], &t, "no finite number"), fabs(v) < 1e300);
            dsc_table_fini(&t);
        }
    check_sample_sizes(samples, SAMPLES);
}

static void test_refusals(void **state)
{
    (void)state;
    dsc_table t = {0}, bare = {0}, spectr = {0}, costs = {0}, empty = {0};
    add_named(&bare, "k");
    refuse("length", &bare, NULL, "length needs a column 'method'");
    refuse("methods", &bare, NULL, "methods needs a column 'method'");
    refuse("rules", &bare, NULL, "rules needs a column 'rule'");
    refuse("batch", &bare, NULL, "batch needs a column 'batch'");
    refuse("cost", &bare, NULL, "cost needs a column 'tokens'");
    refuse("acceptance-by-position", &bare, NULL,
           "acceptance-by-position needs a column 'accept_histogram'");
    add_named(&empty, "method$ rule$ drafts# num_speculative_tokens# " FIELDS);
    refuse("length", &empty, NULL, "no rows");
    refuse("rules", &empty, NULL, "no rows");
    add_result(&empty, "none", "greedy", (double[]){0, 0}, 2, (double[]){1, 1}, "100");
    refuse("acceptance-by-position", &empty, NULL, "no row has an accepted token");
    chain_table(&t);
    refuse("length", &t, &(dsc_figure_options){.column = "rule"}, "must contain numbers");
    refuse("length", &t, &(dsc_figure_options){.column = "nope"}, "needs a column 'nope'");
    refuse("length", &t, &(dsc_figure_options){.x = "nope"}, "needs a column 'nope'");
    refuse("length", &t, &(dsc_figure_options){.x = "rule"}, "has no numbers");
    add_chain(&t, "rejection", 0.8, 0.1, 1);
    refuse("length", &t, NULL, "have the same configuration (draft_length = 1)");
    add_spectr(&spectr, "kseq", 0.5, 2);
    add_spectr(&spectr, "kseq", 0.5, 1);
    refuse("rules", &spectr, NULL,
           "two rows have the same configuration (kseq, drafts = 1, num_speculative_tokens = 1)");
    for (int i = 0; i < 9; i++) {
        char rule[16];
        snprintf(rule, sizeof rule, "r%d", i);
        add_spectr(&spectr, rule, 0.5, 1);
    }
    refuse("rules", &spectr, NULL, "shows at most 8: filter by rule (kseq, r0");
    add_named(&costs, "tokens# target_s batch speedup");
    add_row(&costs, (double[]){1, NAN, 0, 1}, NULL);
    refuse("cost", &costs, NULL, "'target_s' has no finite number");
    refuse("batch", &costs, NULL, "a batch size of 0");
    dsc_table_fini(&t);
    dsc_table_fini(&bare);
    dsc_table_fini(&empty);
    dsc_table_fini(&spectr);
    dsc_table_fini(&costs);
}

// The ranks and verdicts that tune writes are results: bars are labeled by method and parameters.
static void test_tuned(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    const dsc_figure_type *can[MOST_FIGURES];
    add_named(&t, "batch# rank# method$ rule$ parameters$ test significant$ block_efficiency");
    add_row(&t, (double[]){1, 1, 2.5, 2.6}, (const char *[]){"llma", "greedy", "n=1", "no"});
    add_row(&t, (double[]){1, 2, 2, 2.1}, (const char *[]){"llma", "greedy", "n=2", "yes"});
    draw("methods", &t, &(dsc_figure_options){.column = "test"}, "svg", &d);
    assert_contains(&d.finding, "llma, n=1 2.5; llma, n=2 2.");
    dsc_drawing_fini(&d);
    assert_int_equal(drawable(&t, can), 0); // a report has the sentences of tune instead
    dsc_table_fini(&t);
}

SUITE(sim_plots)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_length),
        cmocka_unit_test(test_length_by_another_column),
        cmocka_unit_test(test_prediction),
        cmocka_unit_test(test_lengths_of_methods),
        cmocka_unit_test(test_many_lines),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_ablation),
        cmocka_unit_test(test_many_bars),
        cmocka_unit_test(test_tuned),
        cmocka_unit_test(test_batch),
        cmocka_unit_test(test_cost),
        cmocka_unit_test(test_conditional_rate),
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_trace_info),
        cmocka_unit_test(test_terminals),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}

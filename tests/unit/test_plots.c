// SPDX-License-Identifier: Apache-2.0
// Every figure draws on every terminal, reproducibly; hostile text stays text; a table that cannot
// be drawn is an error that names the reason and leaves no file.
#include "tests/unit/plot_check.h"

#include "base/file.h"
#include "plots/draw/gnuplot.h"
#include "plots/draw/select.h"
#include "plots/draw/style.h"
#include "plots/figure/figure.h"

#include <signal.h>

// --- text ----------------------------------------------------------------------------------

static void test_text(void **state)
{
    (void)state;
    static const struct {
        const char *in, *quoted, *html;
    } example[] = {
        {"plain", "'plain'", "plain"},
        {"it's", "'it\xe2\x80\x99s'", "it&#39;s"},
        {"a\nb\tc\x7f", "'a b c '", "a b c "},
        {"<a href=\"x\">&", "'<a href=\"x\">&'", "&lt;a href=&quot;x&quot;&gt;&amp;"},
        {"caf\xc3\xa9", "'caf\xc3\xa9'", "caf\xc3\xa9"},
        {"\xc0\xaf", "'\xef\xbf\xbd\xef\xbf\xbd'", "\xef\xbf\xbd\xef\xbf\xbd"}, // overlong '/'
        {"\xed\xa0\x80", "'\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd'",
         "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, // a surrogate
        {"cut \xe2\x82", "'cut \xef\xbf\xbd\xef\xbf\xbd'", "cut \xef\xbf\xbd\xef\xbf\xbd"},
        {"\xe2\x80\xaex\xc2\x85y", "' x y'", " x y"}, // right-to-left override, next line
    };
    for (size_t i = 0; i < sizeof example / sizeof *example; i++) {
        dsc_buffer q = {0}, h = {0};
        dsc_writer wq = {.to = &q}, wh = {.to = &h};
        dsc_put_quoted(&wq, example[i].in);
        dsc_put_html(&wh, example[i].in);
        assert_string_equal(q.data, example[i].quoted);
        assert_string_equal(h.data, example[i].html);
        dsc_buffer_fini(&q);
        dsc_buffer_fini(&h);
    }
}

static void test_wrap(void **state)
{
    (void)state;
    const char *text = "one two  three \xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9 x";
    static const char *const want[] = {"one", "two", "three",
                                       "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", "\xc3\xa9 x"};
    char line[64];
    size_t cursor = 0, n = 0;
    while (dsc_text_wrap(text, &cursor, 5, line, sizeof line)) {
        line[strcspn(line, " ") < 3 ? strlen(line) : strcspn(line, " ")] = '\0';
        assert_true(n < 5);
        assert_string_equal(line, want[n++]);
    }
    assert_int_equal(n, 5);
    assert_int_equal(dsc_text_length(text), 23);
}

// --- axes and choices ----------------------------------------------------------------------

static void test_axis(void **state)
{
    (void)state;
    static const double range[][2] = {{1, 3.43}, {0, 100}, {4.0, 62.6}, {0.001, 0.0012}, {5, 5},
                                      {0, 0},    {-3, 7},  {1e6, 5e6},  {-2, -2}};
    for (size_t i = 0; i < sizeof range / sizeof *range; i++) {
        dsc_axis a = dsc_axis_fit(range[i][0], range[i][1], 6);
        assert_true(a.lo <= range[i][0] && a.hi >= range[i][1] && a.hi > a.lo && a.step > 0);
        double tics = (a.hi - a.lo) / a.step;
        assert_close(tics, round(tics), 1e-6);
        assert_true(tics >= 1 && tics <= 9);
    }
    dsc_axis log_axis = dsc_axis_decades(0.013, 96);
    assert_close(log_axis.lo, 0.01, 1e-12);
    assert_close(log_axis.hi, 100, 1e-12);
}

// The colors of an ordered parameter: from one end of the ramp to the other, as far apart as they
// go.
static void test_ramp(void **state)
{
    (void)state;
    for (size_t n = 2; n <= 2 * DSC_STYLES; n++) {
        assert_int_equal(dsc_ramp_style(0, n), DSC_STYLE_RAMP);
        assert_int_equal(dsc_ramp_style(n - 1, n), DSC_STYLE_RAMP + DSC_STYLES - 1);
        for (size_t i = 1; i < n; i++)
            assert_in_range(dsc_ramp_style(i, n) - dsc_ramp_style(i - 1, n), n <= DSC_STYLES,
                            (DSC_STYLES - 1 + n - 2) / (n - 1));
    }
}

static void test_thin(void **state)
{
    (void)state;
    for (size_t all = 1; all <= 40; all++)
        for (size_t keep = 0; keep < all; keep++) {
            size_t chosen[8], n = dsc_thin(all, 8, keep, chosen);
            bool kept = false;
            assert_int_equal(n, all < 8 ? all : 8);
            assert_int_equal(chosen[0], 0);
            assert_int_equal(chosen[n - 1], all - 1);
            for (size_t i = 0; i < n; i++) {
                kept = kept || chosen[i] == keep;
                assert_true(!i || chosen[i] > chosen[i - 1]);
            }
            assert_true(kept);
        }
}

// max_match follows from n and therefore does not split groups; semantics does.
static void test_groups(void **state)
{
    (void)state;
    dsc_table t = {0};
    dsc_error err = {0};
    dsc_plot p = dsc_plot_of(&t, "test", &err);
    add_columns(&t);
    for (int both = 0; both < 2; both++) {
        add_grid(&t, both ? "code" : "paper", 8, paper_k, PAPER_KS);
        dsc_selection s = dsc_select(&p, &t, p.options, NULL);
        dsc_groups g = dsc_group(&p, &s, 4, 3);
        assert_ok(p.rc, err);
        assert_int_equal(g.groups, both ? 2 : 1);
        assert_string_equal(g.label[both], both ? "semantics = code" : "");
        assert_string_equal(g.varying, both ? "semantics (paper, code)" : "");
    }
    dsc_plot_fini(&p);
    dsc_table_fini(&t);
}

// --- what the scripts say ------------------------------------------------------------------

static void test_list(void **state)
{
    (void)state;
    size_t n = 0;
    for (const dsc_figure_type *const *f = dsc_figures(); *f; f++, n++) {
        assert_ptr_equal(dsc_figure_find((*f)->name), *f);
        assert_true((*f)->summary[0] && (*f)->needs[0] && (*f)->draw);
    }
    assert_int_equal(n, 30);
    assert_null(dsc_figure_find("nothing"));
}

// The published counts per request are plotted as in the paper.
static void test_numbers(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    llma_table(&t);
    draw("llma-stats", &t, NULL, "svg", &d);
    assert_contains(&d.script, "$panel1 << EOD\n4 38.66 28.66\n18 28.25 18.25\nEOD\n");
    assert_contains(&d.script, "$panel2 << EOD\n4 67.06 60.06\n18 77.47 70\nEOD\n");
    assert_contains(&d.script, "$panel3 << EOD\n4 44.17 51.17\n18 33.76 41.23\nEOD\n");
    assert_contains(&d.finding, "fewest steps at n = 1, draft length 18");
    assert_int_equal(d.data.rows, 4);
    assert_close(dsc_table_real(&d.data, 1, (size_t)dsc_table_find(&d.data, "steps_per_request")),
                 33.76, 1e-12);
    assert_string_equal(dsc_table_get_comment(&d.data, "trace_hash"), "9f2c7a2be3c01d8e");
    dsc_drawing_fini(&d);
    draw("llma-speedup", &t, NULL, "svg", &d);
    assert_contains(&d.script, "speedup over decoding without speculation (cost: unit)");
    assert_contains(&d.script, "best 3.29× at n = 1, draft length 18");
    assert_contains(&d.finding, "The best speedup is 3.29× at n = 1, draft length 18.");
    dsc_drawing_fini(&d);
    draw("heatmap", &t, &(dsc_figure_options){.column = "target_calls"}, "svg", &d);
    assert_contains(&d.finding,
                    "from 3376 to 5117; the best is 3376 at draft length 18, n = 1"); // fewer is
                                                                                      // better
    assert_contains(&d.script, " 4456788 3376\n");  // the ends of viridis: #440154
    assert_contains(&d.script, " 16639781 5117\n"); // #fde725
    dsc_drawing_fini(&d);
    draw("heatmap", &t,
         &(dsc_figure_options){.title = "My title", .x = "n", .y = "num_speculative_tokens"}, "svg",
         &d);
    assert_contains(&d.script, "My title");
    assert_contains(&d.finding, "the best is 3.29 at n = 1, draft length 18");
    dsc_drawing_fini(&d);
    draw("accept-histogram", &t, NULL, "svg", &d);
    assert_contains(&d.script, "at draft length 18");
    assert_int_equal(d.data.rows, 2 * 19);
    double sum = 0, mean = 0;
    char key[16];
    for (size_t m = 0; m < 19; m++) {
        sum += dsc_table_real(&d.data, m, 2);
        mean += (double)m * dsc_table_real(&d.data, m, 2) / 100;
    }
    assert_close(sum, 100, 1e-9);
    snprintf(key, sizeof key, ": %.2f'", mean);
    assert_contains(&d.script, key);
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

// The figures that a sweep of LLMA has the columns for.
static size_t sweep_figures(const dsc_table *t, const dsc_figure_type *figure[MOST_FIGURES])
{
    size_t n = drawable(t, figure);
    assert_true(n >= 4);
    return n;
}

static void test_hostile(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    for (size_t i = 0; i < HOSTILE; i++) {
        dsc_table t = {0};
        add_columns(&t);
        add_comments(&t, hostile[i]);
        add_grid(&t, hostile[i], 2, paper_k, 3);
        add_grid(&t, hostile[(i + 1) % HOSTILE], 2, paper_k, 3);
        dsc_figure_filter f = {"semantics", hostile[i]};
        dsc_figure_options all = {.title = hostile[i]};
        dsc_figure_options one = {.title = hostile[i], .filter = &f, .filters = 1};
        const dsc_figure_type *g[MOST_FIGURES];
        for (size_t n = sweep_figures(&t, g); n-- > 0;)
            check_hostile(g[n]->name, &t, strcmp(g[n]->name, "heatmap") ? &all : &one);
        refuse("heatmap", &t, &(dsc_figure_options){.column = hostile[i]}, "needs a column");
        dsc_table_fini(&t);
    }
    assert_int_equal(count_files(""), 0);
}

// --- pictures ------------------------------------------------------------------------------

static void test_terminals(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    add_columns(&t);
    add_comments(&t, "unit");
    add_grid(&t, "paper", 8, paper_k, PAPER_KS);
    const dsc_figure_type *f[MOST_FIGURES];
    for (size_t g = sweep_figures(&t, f); g-- > 0;)
        check_terminals(f[g]->name, &t);
    dsc_table_fini(&t);
}

// Degenerate tables: one row, one k, too many n, missing rows.
static void test_edges(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    static const int64_t one[] = {8}, powers[] = {1, 2, 4, 8, 16, 32, 64};
    for (int i = 0; i < 6; i++) {
        dsc_table t = {0};
        add_columns(&t);
        if (i == 0)
            add_grid(&t, "paper", 1, one, 1); // one row
        else if (i == 1)
            add_grid(&t, "paper", 8, one, 1); // one k
        else if (i == 2)
            add_grid(&t, "paper", 1, powers, 7); // one n, k by powers
        else if (i == 3)
            add_grid(&t, "paper", 20, paper_k, PAPER_KS); // more n than lines
        else if (i == 4)
            add_grid(&t, "paper", 2, paper_k, 3); // ragged, with a row that has no number
        else
            add_configuration(&t, &(configuration){"none", "-", 0, 0, 0, 0, 100, 0});
        if (i == 4)
            add_configuration(&t, &(configuration){"llma", "paper", 3, 7, 10, 5, 100, NAN});
        const dsc_figure_type *f[MOST_FIGURES];
        for (size_t n = sweep_figures(&t, f); n-- > 0;) {
            dsc_drawing d;
            draw(f[n]->name, &t, NULL, "svg", &d);
            if (i == 3 && strstr(f[n]->name, "llma"))
                assert_contains(&d.script, "8 of 20 values of n drawn");
            dsc_drawing_fini(&d);
            draw(f[n]->name, &t, NULL, "dumb", &d);
            dsc_drawing_fini(&d);
        }
        dsc_table_fini(&t);
    }
}

// Extreme sizes and numbers give a picture or an error.
static void test_extremes(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    static const double value[][2] = {{1e308, -1e308},  {1e299, -1e299}, {1e6, 1e6 + 1e-10},
                                      {1e-300, 2e-300}, {-5, -1},        {INFINITY, 2},
                                      {1e12, 3}};
    dsc_table t = {0};
    add_columns(&t);
    add_grid(&t, "paper", 8, paper_k, PAPER_KS);
    const dsc_figure_type *f[MOST_FIGURES];
    for (size_t n = sweep_figures(&t, f); n-- > 0;) {
        check_sizes(f[n]->name, &t);
        for (size_t i = 0; i < sizeof value / sizeof *value; i++) {
            dsc_table v = {0};
            add_columns(&v);
            for (int64_t j = 0; j < 2; j++)
                add_configuration(
                    &v, &(configuration){"llma", "paper", 1, 4 + j, 50, 100, 100, value[i][j]});
            draws_or_says(f[n]->name, &v, "no finite number");
            dsc_table_fini(&v);
        }
    }
    refuse("llma-speedup", &t, &(dsc_figure_options){.width = 200, .height = 200}, "too small");
    dsc_table far = {0};
    dsc_drawing d;
    assert_true(dsc_table_find(&t, "num_speculative_tokens") == 4);
    add_columns(&far);
    far.column[4].type = DSC_CELL_REAL; // a k that no axis holds: the histogram needs none
    dsc_cell cell[16];
    memcpy(cell, dsc_table_at(&t, 0, 0), sizeof cell);
    cell[4] = (dsc_cell){.type = DSC_CELL_REAL, .r = 1e305};
    dsc_error err = {0};
    assert_ok(dsc_table_add_row(&far, cell, &err), err);
    draw("accept-histogram", &far, NULL, "svg", &d);
    dsc_drawing_fini(&d);
    refuse("heatmap", &far, NULL, "column 'num_speculative_tokens' has no numbers");
    dsc_table_fini(&far);
    dsc_table_fini(&t);
}

// The fastest n is drawn even when lines are left out.
static void test_best_is_drawn(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    add_columns(&t);
    for (int64_t n = 1; n <= 20; n++)
        add_configuration(&t,
                          &(configuration){"llma", "paper", n, 8, 50, 100, 100, n == 9 ? 4 : 2});
    draw("llma-speedup", &t, NULL, "svg", &d);
    assert_contains(&d.finding, "best speedup is 4.00× at n = 9, draft length 8");
    dsc_drawing_fini(&d);
    draw("accept-histogram", &t, NULL, "svg", &d);
    assert_contains(&d.script, "n = 9: ");
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

static void test_panels(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing d;
    add_columns(&t);
    add_grid(&t, "paper", 3, paper_k, PAPER_KS);
    add_grid(&t, "code", 3, paper_k, PAPER_KS);
    add_configuration(&t, &(configuration){"none", "-", 0, 0, 0, 0, 100, 0});
    draw("llma-stats", &t, NULL, "svg", &d);
    assert_contains(&d.script, "$panel6 << EOD");
    assert_contains(&d.script, "semantics = code");
    assert_contains(&d.script, "1 row of other methods left out");
    dsc_drawing_fini(&d);
    dsc_figure_filter f = {"semantics", "code"};
    draw("llma-stats", &t, &(dsc_figure_options){.filter = &f, .filters = 1}, "svg", &d);
    assert_null(strstr(d.script.data, "$panel4"));
    dsc_drawing_fini(&d);
    refuse("heatmap", &t, NULL, "filter by semantics (paper, code)");
    dsc_table_fini(&t);
}

// --- refusals ------------------------------------------------------------------------------

static void test_refusals(void **state)
{
    (void)state;
    dsc_table t = {0}, bare = {0}, nan_table = {0}, dup = {0};
    dsc_error err = {0};
    dsc_drawing d = {0};
    add_columns(&t);
    refuse("llma-speedup", &t, NULL, "no rows");
    add_grid(&t, "paper", 3, paper_k, PAPER_KS);
    assert_ok(dsc_table_add_column(&bare, "num_speculative_tokens", DSC_CELL_INT, NULL, &err), err);
    refuse("llma-speedup", &bare, NULL,
           "needs a column 'n'; the table has: num_speculative_tokens");
    refuse("llma-stats", &bare, NULL, "needs a column 'n'");
    refuse("heatmap", &bare, NULL, "needs a column 'n'");
    refuse("accept-histogram", &bare, NULL, "needs a column 'accept_histogram'");
    refuse("heatmap", &t, &(dsc_figure_options){.column = "method"}, "must contain numbers");
    refuse("heatmap", &t, &(dsc_figure_options){.column = "a b c d e f g h i j"}, "needs a column");
    refuse("heatmap", &t, &(dsc_figure_options){.column = "num_speculative_tokens"},
           "three columns");
    dsc_figure_filter f = {"semantics", "nope"}, g = {"nope", "1"}, h = {"n", "two"},
                      x = {"n", "1x"};
    refuse("llma-speedup", &t, &(dsc_figure_options){.filter = &f, .filters = 1},
           "contains paper)");
    refuse("llma-speedup", &t, &(dsc_figure_options){.filter = &g, .filters = 1}, "column 'nope'");
    refuse("llma-speedup", &t, &(dsc_figure_options){.filter = &h, .filters = 1}, "n = two");
    refuse("llma-speedup", &t, &(dsc_figure_options){.filter = &x, .filters = 1}, "n = 1x");
    refuse("llma-speedup", &t, &(dsc_figure_options){.width = 10}, "width must be");
    assert_int_equal(dsc_figure_draw(dsc_figure_find("heatmap"), &t, NULL, "gif", &d, &err),
                     DSC_EUSAGE);
    assert_non_null(strstr(err.message, "gif"));
    add_columns(&nan_table);
    add_configuration(&nan_table, &(configuration){"llma", "paper", 1, 4, 1, 1, 9, NAN});
    refuse("llma-speedup", &nan_table, NULL, "no finite number");
    add_columns(&dup);
    add_grid(&dup, "paper", 1, paper_k, 2);
    add_grid(&dup, "paper", 1, paper_k, 2);
    refuse("llma-speedup", &dup, NULL,
           "rows 1 and 3 have the same configuration (num_speculative_tokens = 4, n = 1)");
    dsc_table_fini(&t);
    dsc_table_fini(&bare);
    dsc_table_fini(&nan_table);
    dsc_table_fini(&dup);
}

static void test_files(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0}, back = {0};
    dsc_error err = {0};
    const dsc_figure_type *f = dsc_figure_find("llma-speedup");
    llma_table(&t);
    assert_ok(dsc_figure_render(f, &t, NULL, "svg", "a.b.svg", NULL, false, &err), err);
    assert_int_equal(count_files(""), 3);
    char *script, *svg;
    size_t script_length, svg_length;
    assert_ok(dsc_read_file(&script, &script_length, "a.b.gp", 1 << 24, &err), err);
    assert_ok(dsc_read_file(&svg, &svg_length, "a.b.svg", 1 << 24, &err), err);
    assert_ok(dsc_table_read(&back, "a.b.data.tsv", &err), err);
    assert_int_equal(back.rows, 4);
    dsc_buffer again = {0}; // the script kept is the script drawn
    assert_ok(dsc_gnuplot_run(script, &again, &err), err);
    assert_string_equal(again.data, svg);
    dsc_buffer_fini(&again);
    free(script);
    free(svg);
    assert_int_equal(dsc_figure_render(f, &t, NULL, "svg", "a.b.svg", NULL, false, &err),
                     DSC_EUSAGE);
    assert_ok(dsc_figure_render(f, &t, NULL, "png", "a.b.svg", NULL, true, &err), err);
    assert_int_equal(count_files(""), 3);
    unlink("a.b.svg"); // the data alone is there: refused, and no picture is left
    unlink("a.b.gp");
    assert_int_equal(dsc_figure_render(f, &t, NULL, "svg", "a.b.svg", NULL, false, &err),
                     DSC_EUSAGE);
    assert_non_null(strstr(err.message, "a.b.data.tsv"));
    assert_int_equal(count_files(""), 1);
    const char *const input = "a.b.data.tsv";
    dsc_figure_options o = {.input_path = &input, .inputs = 1};
    assert_int_equal(dsc_figure_render(f, &t, &o, "svg", "a.b.svg", NULL, true, &err), DSC_EUSAGE);
    assert_non_null(strstr(err.message, "is an input of the figure"));
    assert_int_equal(dsc_figure_render(f, &t, NULL, "svg", "x.gp", NULL, false, &err), DSC_EUSAGE);
    assert_int_equal(dsc_figure_render(f, &t, NULL, "svg", "no/x.svg", NULL, false, &err), DSC_EIO);
    assert_int_equal(count_files(""), 1);
    FILE *stream = fopen("stream", "w+");
    assert_ok(dsc_figure_render(f, &t, NULL, "dumb", NULL, stream, false, &err), err);
    assert_true(ftell(stream) > 1000);
    fclose(stream);
    empty_scratch();
    dsc_table_fini(&t);
    dsc_table_fini(&back);
}

// --- the child -----------------------------------------------------------------------------

static void test_child(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_error err = {0};
    dsc_buffer b = {0};
    assert_int_equal(dsc_gnuplot_run("set terminal dumb\nplot nonsense\n", &b, &err), DSC_EIO);
    assert_non_null(strstr(err.message, "nonsense"));
    assert_int_equal(dsc_gnuplot_run("set terminal dumb\nplot ==\n", &b, &err), DSC_EIO);
    assert_int_equal(dsc_gnuplot_run("a = 1\n", &b, &err), DSC_EIO);
    assert_non_null(strstr(err.message, "drew nothing"));
    assert_int_equal(dsc_gnuplot_run("set terminal nosuch\n", &b, &err), DSC_EABSENT);
    dsc_buffer_fini(&b);
    // gnuplot writes more to both pipes than they can buffer.
    assert_ok(dsc_gnuplot_run("set terminal dumb size 300,100\n"
                              "do for [i=1:5000] {print 'a line for the other pipe ............'}\n"
                              "do for [i=1:20] {plot x}\n",
                              &b, &err),
              err);
    assert_true(b.length > 20 * 300 * 100);
    dsc_buffer_fini(&b);
    struct sigaction before, after;
    sigaction(SIGPIPE, NULL, &before);
    signal(SIGCHLD, SIG_IGN); // a caller who lets the system reap: no status, but a picture
    assert_ok(dsc_gnuplot_run("set terminal dumb\nplot x\n", &b, &err), err);
    assert_int_equal(dsc_gnuplot_run("set terminal dumb\nplot nonsense\n", &b, &err), DSC_EIO);
    signal(SIGCHLD, SIG_DFL);
    sigaction(SIGPIPE, NULL, &after);
    assert_ptr_equal(before.sa_handler, after.sa_handler);
    dsc_buffer_fini(&b);
}

// The user's gnuplot settings and language do not affect the picture.
static void test_environment(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    dsc_drawing a, b;
    llma_table(&t);
    draw("llma-speedup", &t, NULL, "svg", &a);
    FILE *f = fopen(".gnuplot", "w");
    fputs("set title 'intruder'\nset grid x2\n", f);
    fclose(f);
    char *home = strdup(getenv("HOME") ? getenv("HOME") : "/");
    setenv("HOME", scratch, 1);
    setenv("GNUTERM", "dumb", 1);
    setenv("LC_ALL", "de_DE.UTF-8", 1);
    draw("llma-speedup", &t, NULL, "svg", &b);
    setenv("GNUPLOT_LIB", "/nowhere", 1);
    dsc_buffer said = {0};
    dsc_error err = {0};
    assert_ok(dsc_gnuplot_run("set print '-'\n"
                              "print system('echo \"[$LC_ALL$LANG$GNUTERM$GNUPLOT_LIB]\"')\n",
                              &said, &err),
              err);
    assert_string_equal(said.data, "[C]\n");
    dsc_buffer_fini(&said);
    setenv("HOME", home, 1);
    unsetenv("GNUTERM");
    unsetenv("GNUPLOT_LIB");
    unsetenv("LC_ALL");
    unlink(".gnuplot");
    assert_string_equal(a.picture.data, b.picture.data);
    char *path = strdup(getenv("PATH"));
    dsc_drawing none = {0};
    setenv("PATH", scratch, 1);
    assert_int_equal(dsc_figure_draw(dsc_figure_find("llma-speedup"), &t, NULL, "svg", &none, &err),
                     DSC_EABSENT);
    setenv("PATH", path, 1);
    assert_string_equal(err.message, "gnuplot not found; install it (Debian: gnuplot-nox)");
    free(path);
    free(home);
    dsc_drawing_fini(&a);
    dsc_drawing_fini(&b);
    dsc_table_fini(&t);
}

SUITE(plots)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),     cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_axis),     cmocka_unit_test(test_ramp),
        cmocka_unit_test(test_thin),     cmocka_unit_test(test_groups),
        cmocka_unit_test(test_list),     cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_hostile),  cmocka_unit_test(test_terminals),
        cmocka_unit_test(test_edges),    cmocka_unit_test(test_best_is_drawn),
        cmocka_unit_test(test_extremes), cmocka_unit_test(test_panels),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_files),
        cmocka_unit_test(test_child),    cmocka_unit_test(test_environment),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}

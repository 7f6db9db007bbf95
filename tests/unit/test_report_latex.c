// SPDX-License-Identifier: Apache-2.0
// The report in LaTeX: the chapters of the page, all text escaped, files complete or absent;
// pdflatex compiles it if there is one.
#include "tests/unit/plot_fixture.h"

#include "base/file.h"
#include "plots/report/report.h"
#include "plots/report/report_page.h"

static int write_latex(const char *in, const char *out, const char *title, bool force,
                       dsc_error *err)
{
    dsc_report_options o = {.title = title, .force = force, .latex = true};
    return dsc_report_write(&in, 1, out, &o, err);
}

static char *read_text(const char *path)
{
    dsc_error err = {0};
    char *text;
    size_t length;
    assert_ok(dsc_read_file(&text, &length, path, 1 << 26, &err), err);
    return text;
}

static void write_grid(const char *path)
{
    dsc_table t = {0};
    add_columns(&t);
    add_comments(&t, "affine");
    add_grid(&t, "paper", 4, paper_k, PAPER_KS);
    write_table(&t, path);
    dsc_table_fini(&t);
}

static void check_escaped(const char *text, const char *latex)
{
    dsc_buffer b = {0};
    dsc_error err = {0};
    dsc_writer w = {.to = &b, .err = &err};
    dsc_page_latex.text(&w, text);
    assert_ok(w.rc, err);
    assert_string_equal(b.data, latex);
    dsc_buffer_fini(&b);
}

static void test_escaping(void **state)
{
    (void)state;
    check_escaped("a_b 5% & #1", "a\\_b 5\\% \\& \\#1");
    check_escaped("$x {y} ~z ^w \\q", "\\$x \\{y\\} \\textasciitilde{}z \\textasciicircum{}w "
                                      "\\textbackslash{}q");
    check_escaped("--rule <a> \"b\" [c] *d", "-{}-{}rule $<$a$>$ ''b'' {[}c{]} {*}d");
    check_escaped("caf\xc3\xa9 \xc3\x97 \xe2\x80\x93 \xc2\xb1", "caf\\'{e} $\\times$ -- $\\pm$");
    check_escaped("\xe4\xb8\xad \xff", "{[}U+4E2D{]} {[}U+FFFD{]}");
    check_escaped("a\nb\tc", "a b c");
    // A hash may break; a short word may not.
    check_escaped("0123456789abcdef01", "0123456789abcdef\\allowbreak{}01");
    check_escaped("live/demo/target", "live/\\allowbreak{}demo/\\allowbreak{}target");
}

static void test_files(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_error err = {0};
    empty_scratch();
    write_grid("grid.tsv");
    assert_ok(write_latex("grid.tsv", "my re_port.tex", NULL, false, &err), err);
    assert_int_equal(count_files("my-re-port-figure-"), 5);
    assert_int_equal(count_files(""), 7);
    char *page = read_text("my re_port.tex"), *picture = read_text("my-re-port-figure-1.pdf");
    assert_non_null(strstr(page, "{my-re-port-figure-5.pdf}"));
    assert_non_null(strstr(page, "\\textbf{Best observed: n = 1, draft length 18}"));
    assert_non_null(strstr(page, "\\section*{Limitations}"));
    assert_non_null(strstr(page, "\\toprule\nn & num\\_\\allowbreak{}speculative"));
    assert_int_equal(strncmp(picture, "%PDF", 4), 0);
    // All rows of the table.
    const char *row = strstr(page, "\\midrule\n"), *end = strstr(page, "\\bottomrule");
    int rows = -2; // begins and ends the line of \midrule
    for (; row && row < end; row = strchr(row + 1, '\n'))
        rows++;
    assert_int_equal(rows, 10);
    // The same table gives the same bytes.
    assert_ok(write_latex("grid.tsv", "my re_port.tex", NULL, true, &err), err);
    char *again = read_text("my re_port.tex"), *redrawn = read_text("my-re-port-figure-1.pdf");
    assert_string_equal(page, again);
    assert_string_equal(picture, redrawn);
    free(page);
    free(picture);
    free(again);
    free(redrawn);
    // An existing page, and an existing figure of another page.
    assert_int_equal(write_latex("grid.tsv", "my re_port.tex", NULL, false, &err), DSC_EUSAGE);
    assert_non_null(strstr(err.message, "my re_port.tex exists already"));
    unlink("my re_port.tex");
    assert_int_equal(write_latex("grid.tsv", "my re_port.tex", NULL, false, &err), DSC_EUSAGE);
    assert_non_null(strstr(err.message, "my-re-port-figure-1.pdf"));
    assert_int_equal(count_files(".tex"), 0);
    empty_scratch();
}

static void test_folder(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_error err = {0};
    write_grid("grid.tsv");
    assert_ok(write_latex("grid.tsv", "out/", NULL, false, &err), err);
    char *page = read_text("out/report.tex");
    assert_non_null(strstr(page, "{figure-1.pdf}"));
    free(page);
    assert_int_equal(write_latex("grid.tsv", "out", NULL, false, &err), DSC_EUSAGE);
    assert_non_null(strstr(err.message, "out/report.tex exists already"));
    assert_ok(write_latex("grid.tsv", "out", NULL, true, &err), err);
    // A report that cannot be written leaves no file.
    assert_int_equal(write_latex("grid.tsv", "no/out", NULL, false, &err), DSC_EIO);
    assert_int_equal(write_latex("grid.tsv", "no/out.tex", NULL, false, &err), DSC_EIO);
    assert_int_equal(write_latex("none.tsv", "new", NULL, false, &err), DSC_EINPUT);
    assert_int_equal(count_files("new"), 0);
    assert_int_equal(system("rm -r out"), 0);
    empty_scratch();
}

// Hostile text as a title, a method, a parameter and a comment.
static void test_compiles(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    NEEDS("pdflatex");
    dsc_table t = {0};
    dsc_error err = {0};
    dsc_buffer title = {0};
    add_columns(&t);
    for (size_t i = 0; i < HOSTILE; i++) {
        assert_ok(dsc_table_comment(&t, "note", hostile[i], &err), err);
        assert_ok(dsc_buffer_printf(&title, &err, "%s ", hostile[i]), err);
        for (int64_t k = 4; k < 8; k += 2)
            add_configuration(
                &t, &(configuration){hostile[i], hostile[HOSTILE - 1 - i], 1, k, 90, 60, 50, 0});
    }
    add_configuration(&t, &(configuration){"{\\[*", "*[x] \\\\ %", 1, 4, 90, 60, 50, 0});
    write_table(&t, "hostile.tsv");
    assert_ok(write_latex("hostile.tsv", "page.tex", title.data, true, &err), err);
    int rc = system("timeout 120 pdflatex -interaction=nonstopmode -halt-on-error -no-shell-escape "
                    "page.tex >page.out 2>&1 </dev/null");
    if (rc) {
        char *log = read_text("page.out");
        const char *at = strstr(log, "\n!");
        fail_msg("pdflatex: %.2000s", at ? at : log);
    }
    assert_int_equal(count_files("page.pdf"), 1);
    assert_int_equal(count_files("OWNED"), 0);
    dsc_buffer_fini(&title);
    dsc_table_fini(&t);
    empty_scratch();
}

SUITE(report_latex)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_escaping),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_compiles),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}

// SPDX-License-Identifier: Apache-2.0
// The report: a self-contained page with a recommendation, everything escaped, for a desktop and
// for a phone.
#include "tests/unit/plot_fixture.h"

#include "base/file.h"
#include "base/sha256.h"
#include "plots/report/report.h"

static void write_grid(const char *path, const char *semantics, const char *cost)
{
    dsc_table t = {0};
    add_columns(&t);
    add_comments(&t, cost);
    add_grid(&t, semantics, 4, paper_k, PAPER_KS);
    write_table(&t, path);
    dsc_table_fini(&t);
}

static char *report(const char *const *path, size_t n, const char *title)
{
    dsc_error err = {0};
    char *page;
    size_t length;
    dsc_report_options o = {.title = title, .force = true};
    assert_ok(dsc_report_write(path, n, "page.html", &o, &err), err);
    assert_ok(dsc_read_file(&page, &length, "page.html", 1 << 26, &err), err);
    assert_int_equal(strlen(page), length);
    return page;
}

static size_t count(const char *page, const char *what)
{
    size_t n = 0;
    for (const char *s = page; (s = strstr(s, what)); s += strlen(what))
        n++;
    return n;
}

// --- the page as a document ----------------------------------------------------------------

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

// Checks that ids are unique and that every reference is to one of them.
static void check_ids(const char *page)
{
    enum { MOST = 20000 };
    static char *id[MOST];
    size_t n = 0;
    for (const char *s = page; (s = strstr(s, " id=")); n++) {
        s += 5;
        assert_true(n < MOST);
        id[n] = strndup(s, strcspn(s, "'\""));
    }
    qsort(id, n, sizeof *id, by_text);
    for (size_t i = 1; i < n; i++)
        if (!strcmp(id[i], id[i - 1]))
            fail_msg("id %s twice", id[i]);
    for (const char *s = page; (s = strstr(s, "href="));) {
        s += 7; // href='#
        char *to = strndup(s, strcspn(s, "'\""));
        assert_int_equal(s[-1], '#');
        if (!bsearch(&to, id, n, sizeof *id, by_text))
            fail_msg("#%s leads nowhere", to);
        free(to);
    }
    for (size_t i = 0; i < n; i++)
        free(id[i]);
}

// Whether text begins with an element that may stand alone.
static bool is_void(const char *name, size_t n)
{
    return (n == 4 && !strncmp(name, "meta", n)) || (n == 5 && !strncmp(name, "input", n));
}

// Checks that tags are nested and that headings descend one level at a time. Neither the script nor
// the style sheet contains a "<".
static void check_tags(const char *page)
{
    char open[64][32];
    int depth = 0, heading = 0;
    for (const char *s = page; (s = strchr(s, '<')); s++) {
        size_t n = strcspn(s + 1, " >/\n");
        const char *end = strchr(s, '>');
        assert_non_null(end);
        assert_true(n < 32 && depth < 63);
        if (s[1] == '!')
            continue;
        if (s[1] == '/') {
            n = strcspn(s + 2, ">");
            assert_true(depth > 0);
            depth--;
            if (strlen(open[depth]) != n || strncmp(open[depth], s + 2, n))
                fail_msg("</%.*s> closes <%s>: %.200s", (int)n, s + 2, open[depth], s);
            continue;
        }
        if (s[1] == 'h' && s[2] >= '1' && s[2] <= '6') {
            assert_true(s[2] - '0' <= heading + 1);
            heading = s[2] - '0';
        }
        if (end[-1] == '/' || is_void(s + 1, n))
            continue;
        snprintf(open[depth++], 32, "%.*s", (int)n, s + 1);
    }
    assert_int_equal(depth, 0);
}

static void check_page(const char *page)
{
    assert_int_equal(strncmp(page, "<!DOCTYPE html>\n<html lang=\"en\">", 32), 0);
    assert_non_null(strstr(page, "<meta charset=\"utf-8\">"));
    assert_non_null(strstr(page, "name=\"viewport\" content=\"width=device-width"));
    assert_int_equal(count(page, "<title>"), 1);
    assert_int_equal(count(page, "<h1>"), 1);
    assert_int_equal(count(page, "http://") + count(page, "https://"), 0);
    assert_int_equal(count(page, "<script>"), 1); // the one that the policy names
    assert_int_equal(count(page, "<script"), 1);
    assert_int_equal(count(page, "script-src 'sha256-"), 1);
    assert_int_equal(count(page, "src="), 0);
    assert_int_equal(count(page, " style="), 0); // the policy would drop it
    assert_int_equal(count(page, "<svg"), count(page, "<figure "));
    assert_int_equal(count(page, "<defs>"), count(page, "<figure ") > 0);
    assert_int_equal(count(page, "role=\"img\" aria-label=\""), count(page, "<svg"));
    assert_int_equal(count(page, "aria-label=\"\""), 0);
    check_ids(page);
    check_tags(page);
}

static void test_page(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    char hash[DSC_SHA256_HEX];
    dsc_error err = {0};
    write_grid("grid.tsv", "paper", "affine");
    char *page = report((const char *[]){"grid.tsv"}, 1, NULL);
    check_page(page);
    assert_int_equal(count(page, "<figure "), 5);
    assert_null(strstr(page, "is not drawn"));
    assert_null(strstr(page, "id=\"together-1\""));
    assert_non_null(strstr(page, "data-marks=\"=n = 1\n"));
    assert_non_null(strstr(page, "18: 3.0"));
    assert_non_null(strstr(page, "Best observed: n = 1, draft length 18"));
    assert_non_null(
        strstr(page, "speedup is 3.04× at n = 1, draft length 18. Without speculation"));
    assert_non_null(strstr(page, "no speculation = 1"));
    assert_non_null(strstr(page, "The 10 best rows by speedup"));
    assert_non_null(strstr(page, "The corners of the grid"));
    assert_non_null(strstr(page, "All 32 rows"));
    assert_non_null(strstr(page, "draftscope sweep rag.dst --n 1:8 --k 1:32"));
    assert_non_null(strstr(page, "9f2c7a2be3c01d8e"));
    assert_ok(dsc_sha256_file("grid.tsv", hash, &err), err);
    assert_non_null(strstr(page, hash));
    assert_non_null(
        strstr(page, "<dt>num_accepted_tokens</dt><dd>draft tokens accepted; the &lt;bonus&gt;"));
    char *again = report((const char *[]){"grid.tsv"}, 1, NULL);
    assert_string_equal(page, again);
    free(page);
    free(again);
}

// Several tables, one with two groups: all figures are drawn, the heat map for the better group.
static void test_several(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0};
    add_columns(&t);
    add_comments(&t, "affine");
    add_grid(&t, "paper", 2, paper_k, PAPER_KS);
    add_grid(&t, "code", 2, paper_k + 1, PAPER_KS - 2);
    write_table(&t, "two.tsv");
    dsc_table_fini(&t);
    write_grid("grid.tsv", "paper", "affine");
    char *page = report((const char *[]){"grid.tsv", "two.tsv"}, 2, "Both & more");
    check_page(page);
    // 5 and 6 (two semantics: bars), and the bars of both together.
    assert_int_equal(count(page, "<figure "), 12);
    assert_int_equal(count(page, "Best configuration per method"), 2);
    const char *chapter = strstr(page, "<section id=\"workload\">");
    assert_true(strstr(page, "Best configuration per method") < chapter); // on the first screen
    assert_null(strstr(page, " together</h3>")); // its only figure is there
    assert_int_equal(count(page, "Best observed: "), 2);
    assert_non_null(strstr(page, "<h1>Both &amp; more</h1>"));
    assert_non_null(strstr(page, "Rows with semantics = paper."));
    assert_non_null(strstr(page, "<a href=\"#methods\">Comparison of methods</a>"));
    assert_non_null(strstr(page, ">Result 2: two.tsv</td>"));
    free(page);
    // Nothing is compared across cost models, and unit costs make no speedup.
    write_grid("grid.tsv", "paper", "unit");
    page = report((const char *[]){"grid.tsv", "two.tsv"}, 2, NULL);
    check_page(page);
    assert_null(strstr(page, " together</h3>"));
    assert_int_equal(count(page, "no speculation = 1"), 1);
    free(page);
}

static void test_escaping(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    for (size_t i = 0; i < HOSTILE; i++) {
        dsc_table t = {0};
        add_columns(&t);
        add_comments(&t, hostile[i]);
        add_grid(&t, hostile[i], 2, paper_k, PAPER_KS);
        add_grid(&t, "<b>&\"'</b>", 2, paper_k, PAPER_KS);
        write_table(&t, "a<b>&.tsv");
        dsc_table_fini(&t);
        char *page = report((const char *[]){"a<b>&.tsv"}, 1, hostile[i]);
        check_page(page);
        assert_null(strstr(page, "<b>"));
        assert_non_null(strstr(page, "&lt;b&gt;&amp;&quot;&#39;&lt;/b&gt;"));
        free(page);
    }
    assert_int_equal(count_files("OWNED"), 0);
}

static void write_rows(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

// Rules in separate tables are compared in a section before those of the tables. A single batch
// size or draft length has no figure.
static void test_together(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    static const char *const path[] = {"kseq.tsv", "otm.tsv", "cost.tsv"};
    char text[512];
    for (int i = 0; i < 2; i++) {
        const char *rule = i ? "otm" : "kseq";
        snprintf(
            text, sizeof text,
            "# cost: unit\nmethod\trule\tdrafts\tnum_speculative_tokens\tblock_efficiency\tbatch\n"
            "spectr\t%s\t1\t2\t1.5\t1\nspectr\t%s\t4\t2\t%d\t1\n",
            rule, rule, 2 + i);
        write_rows(path[i], text);
    }
    write_rows("cost.tsv", "tokens\ttarget_s\n1\t0.01\n2\t0.011\n");
    char *page = report(path, 3, NULL);
    check_page(page);
    assert_int_equal(count(page, "<figure "), 3); // methods, rules; cost
    assert_null(strstr(page, "is not drawn"));
    const char *together = strstr(page, "<h3>Results 1, 2 together</h3>");
    assert_true(together && together < strstr(page, "<section id=\"result-1\">"));
    assert_non_null(strstr(together, "otm (bound) 3, kseq 2."));
    assert_int_equal(count(page, "<h4>Figures</h4>"), 1);
    free(page);
    write_rows("other.tsv",
               "# trace_hash: 12\nmethod\trule\tdrafts\tnum_speculative_tokens\tblock_efficiency\n"
               "spectr\tblock\t2\t2\t1.5\n");
    page = report((const char *[]){"kseq.tsv", "other.tsv", "otm.tsv"}, 3, NULL);
    check_page(page); // nothing is compared across traces
    assert_non_null(strstr(page, "<h3>Results 1, 3 together</h3>"));
    free(page);
}

// Results of every kind, in any order, appear in the order of the chapters, and the sentences agree
// with the tables. All numbers are made up.
static void write_story(void)
{
    write_rows(
        "kseq.tsv",
        "# cost: linear:1,0,0.1\n# trace_hash: ab\nmethod\trule\tdrafts\tnum_speculative_tokens\t"
        "block_efficiency\tspeedup\nspectr\tkseq\t1\t2\t1.5\t1.25\n"
        "spectr\tkseq\t4\t2\t1.8\t1.5\n");
    write_rows(
        "otm.tsv",
        "# cost: linear:1,0,0.1\n# trace_hash: ab\nmethod\trule\tdrafts\tnum_speculative_tokens\t"
        "block_efficiency\tspeedup\nspectr\totm\t1\t2\t1.5\t1.25\n"
        "spectr\totm\t4\t2\t2\t1.75\n");
    write_rows(
        "batch.tsv",
        "# cost: unit\nmethod\tnum_speculative_tokens\tspeedup\tbatch\ndraft-model\t4\t2\t1\n"
        "draft-model\t2\t1.5\t1\ndraft-model\t4\t0.5\t64\ndraft-model\t2\t0.75\t64\n");
    write_rows(
        "tune.tsv",
        "# objective: speedup, more is better\n# split: chosen on 10, reported on 9\n"
        "# cost: linear:1,0,0.1\n# trace_hash: ab\n# note: few requests\n"
        "# verdict_batch_1: leave speculation off: draft-model k=4 is 1.0123 times as fast as "
        "without on held-out requests (95 %: 0.9012 to 1.1111)\n"
        "# verdict_batch_8: run draft-model k=2: 1.7512 times as fast as without (95 %: "
        "1.7012 to 1.8012)\n# engine_line_1: serve <it>\n"
        "batch\trank\tmethod\trule\tparameters\ttest\ttest_low\ttest_high\tsignificant\n"
        "1\t1\tdraft-model\trejection\tnum-speculative-tokens=4\t1.25\t0.9\t1.5\tno\n"
        "1\t2\tdraft-model\trejection\tnum-speculative-tokens=5\t1.2\t0.9\t1.5\tno\n"
        "8\t1\tdraft-model\trejection\tnum-speculative-tokens=2\t0.75\t0.7\t0.8\tno\n");
    write_rows("cost.tsv", "# device_name: a <machine>\ntokens\ttarget_s\n1\t0.01\n2\t0.011\n");
    write_rows("bounds.tsv", "alpha\tlength\tspeedup\n0.5\t1\t1.5\n0.5\t2\t1.6\n0.7\t1\t1.7\n"
                             "0.7\t2\t1.8\n");
    write_rows(
        "check.tsv",
        "method\trule\tparameters\ttemperature\tquantity\tpredicted\tmeasured\tse\t"
        "tolerance\tverdict\tnote\n"
        "draft-model\trejection\tnum-speculative-tokens=1\t1\tspeedup\t1.5\t1.5\tnan\t10 "
        "%\tpass\t\n"
        "draft-model\trejection\tnum-speculative-tokens=2\t1\tspeedup\t3\t2\tnan\t10 %\tfail\t\n"
        "lookahead\tgreedy\twindow=5\t0\tspeedup\tnan\t1.5\tnan\t10 %\tnot predicted\t"
        "off the path\n");
    assert_int_equal(mkdir("t.dst", 0777), 0);
    write_rows("t.dst/manifest.json",
               "{\"schema\": 1, \"hash\": \"ab\", \"totals\": {\"requests\": 29},"
               " \"shards\": [{\"file\": \"not told\"}]}");
}

static void test_story(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    static const char *const path[] = {"cost.tsv",  "check.tsv", "tune.tsv", "bounds.tsv",
                                       "batch.tsv", "otm.tsv",   "kseq.tsv", "t.dst"};
    static const char *const chapters[] = {"summary", "workload",    "methods",
                                           "best",    "bounds",      "validation",
                                           "costs",   "limitations", "columns"};
    static const char *const says[] = {
        "<caption>Verdict of result 3; cost: linear:1,0,0.1; chosen on 10, reported on 9"
        "</caption>",
        "<td class=\"text\">batch size 1</td><td class=\"text\">leave speculation off "
        "(draft-model k=4 was judged)</td><td class=\"text\">1.01×</td><td class=\"text\">"
        "0.90 to 1.11</td></tr>",
        "<td class=\"text\">batch size 8</td><td class=\"text\">run draft-model k=2</td>"
        "<td class=\"text\">1.75×</td><td class=\"text\">1.70 to 1.80</td></tr>",
        "<pre>serve &lt;it&gt;\n</pre>",
        "<td class=\"text\">Result 6: otm.tsv</td><td class=\"text\">spectr, otm with "
        "drafts = 4</td><td class=\"text\">1.75×</td>",
        "<caption>Best observed in result 5, 4 rows</caption>",
        "<td class=\"text\">batch size 64</td><td class=\"text\">draft-model with draft length "
        "2</td><td class=\"text\">0.75</td></tr>",
        "1 of 2 predictions with a tolerance are within it. Speedup (result 2): mean |error| 25 %, "
        "largest +50 % (draft-model, num-speculative-tokens=2); 1 of 2 outside the tolerance.",
        "At 1 batch size of result 3, even the best configuration slows decoding down. 1 "
        "prediction is "
        "outside the tolerance. 1 prediction could not be made.",
        "<dt>requests</dt><dd><code>29</code></dd>",
        "<dt>device_name</dt><dd><code>a &lt;machine&gt;</code></dd>",
        "<h3>Results 6, 7 together</h3>",
        "kseq attains 95.0 % of the block efficiency of the optimal rule (otm) with the same "
        "drafts and length, on average over 2 configurations; the range is 90.0 to 100.0 %.",
        "1 pass, 1 fail, 1 not predicted, 0 disputed, 0 skipped, 0 only shown.",
        "<caption>Block efficiency and speedup</caption>",
        "which is a given line, not a measurement (results 3, 6, 7).",
        "which counts target calls and measures no time (result 5).",
        "optimistically biased (results 5, 6, 7).",
        "Result 3: note: few requests.",
        "Result 2: fail: speedup of draft-model rejection num-speculative-tokens=2, 3 predicted "
        "and 2 measured.",
        "Result 2: not predicted: speedup of lookahead greedy window=5; off the path.",
    };
    empty_scratch();
    write_story();
    char *page = report(path, sizeof path / sizeof *path, NULL);
    check_page(page);
    assert_null(strstr(page, "not told"));
    const char *before = page;
    for (size_t i = 0; i < sizeof chapters / sizeof *chapters; i++) {
        char id[64];
        snprintf(id, sizeof id, "<section id=\"%s\">", chapters[i]);
        const char *at = strstr(page, id);
        if (!at || at < before)
            fail_msg("chapter %s is not where it belongs", chapters[i]);
        before = at;
    }
    for (size_t i = 0; i < sizeof says / sizeof *says; i++)
        if (!strstr(page, says[i]))
            fail_msg("the page does not say: %s", says[i]);
    free(page);
    // The tuned configuration is faster than all others, or was found on another trace.
    static const char *const others[] = {"# objective: speedup\n# cost: linear:1,0,0.1\n# "
                                         "trace_hash: ab\nbatch\trank\tmethod\ttest\t"
                                         "significant\n1\t1\tdraft-model\t1.8\tno\n",
                                         "# objective: speedup\n# cost: linear:1,0,0.1\n# "
                                         "trace_hash: cd\nbatch\trank\tmethod\ttest\t"
                                         "significant\n1\t1\tdraft-model\t1.1\tno\n"};
    for (int i = 0; i < 2; i++) {
        write_rows("tune.tsv", others[i]);
        page = report(path + 2, 5, NULL);
        assert_non_null(strstr(page, "has no verdict in its comments"));
        assert_null(strstr(page, "A faster configuration"));
        assert_null(strstr(page, "interval nan"));
        free(page);
    }
    unlink("t.dst/manifest.json");
    rmdir("t.dst");
    empty_scratch();
}

// Invalid results are errors that name the file and leave no file.
static void test_no_results(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"{\n\"a\": 1}\n",
         "bad: neither the manifest of a trace nor the output of trace info --json"},
        {"{\n\"trace\": \n", "bad: line "},
        {"{\n\"trace\": 1}\n", NULL}, // a trace with few facts
        {"", "bad"},
    };
    empty_scratch();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dsc_error err = {0};
        const char *const in[] = {"bad"};
        dsc_report_options o = {.latex = i % 2};
        write_rows("bad", bad[i].text);
        int rc = dsc_report_write(in, 1, "page.tex", &o, &err);
        if (!bad[i].says)
            assert_ok(rc, err);
        else if (rc != DSC_EINPUT || !strstr(err.message, bad[i].says))
            fail_msg("%d '%s', not '%s'", rc, err.message, bad[i].says);
        assert_int_equal(count_files("page"), !bad[i].says);
        unlink("page.tex");
    }
    dsc_error err = {0};
    assert_int_equal(mkdir("empty.dst", 0777), 0);
    assert_int_equal(dsc_report_write((const char *[]){"empty.dst"}, 1, "page.html", NULL, &err),
                     DSC_EINPUT);
    assert_non_null(strstr(err.message, "empty.dst/manifest.json"));
    rmdir("empty.dst");
    empty_scratch();
}

// Tables with nothing to draw or to rank by.
static void test_edges(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_table t = {0}, one = {0}, requests = {0};
    dsc_error err = {0};
    add_columns(&t);
    write_table(&t, "empty.tsv");
    add_columns(&one);
    add_configuration(&one, &(configuration){"llma", "paper", 1, 18, 2825, 7747, 3376, 0});
    write_table(&one, "one.tsv");
    assert_ok(dsc_table_add_column(&requests, "request", DSC_CELL_INT, NULL, &err), err);
    assert_ok(dsc_table_add_column(&requests, "id", DSC_CELL_TEXT, NULL, &err), err);
    assert_ok(dsc_table_add_column(&requests, "mystery", DSC_CELL_REAL, NULL, &err), err);
    for (int64_t i = 0; i < 40; i++) {
        char id[16];
        snprintf(id, sizeof id, "r%d", (int)i);
        dsc_cell cell[3] = {{.type = DSC_CELL_INT, .i = i},
                            {.type = DSC_CELL_TEXT, .text = id},
                            {.type = DSC_CELL_REAL, .r = i ? 1.5 * (double)i : NAN}};
        assert_ok(dsc_table_add_row(&requests, cell, &err), err);
    }
    write_table(&requests, "requests.tsv");
    char *page = report((const char *[]){"empty.tsv", "one.tsv", "requests.tsv"}, 3, NULL);
    check_page(page);
    assert_int_equal(count(page, "<figure "), 5);
    assert_null(strstr(page, "together"));
    assert_non_null(strstr(page, "The table has no rows."));
    assert_non_null(strstr(page, "no finite speedup or block efficiency"));
    assert_non_null(strstr(page, "The table contains no definition."));
    free(page);
    dsc_table_fini(&t);
    dsc_table_fini(&one);
    dsc_table_fini(&requests);
}

static void test_refusals(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    dsc_error err = {0};
    dsc_report_options force = {.force = true};
    empty_scratch();
    write_grid("grid.tsv", "paper", "unit");
    const char *const in[] = {"grid.tsv"}, *const missing[] = {"grid.tsv", "no.tsv"};
    assert_int_equal(dsc_report_write(in, 0, "page.html", NULL, &err), DSC_EUSAGE);
    assert_int_equal(dsc_report_write(in, 1, "grid.tsv", &force, &err), DSC_EUSAGE);
    assert_non_null(strstr(err.message, "one of the result tables"));
    assert_int_equal(dsc_report_write(missing, 2, "page.html", NULL, &err), DSC_EINPUT);
    assert_non_null(strstr(err.message, "no.tsv"));
    assert_int_equal(dsc_report_write(in, 1, "no/page.html", NULL, &err), DSC_EIO);
    assert_int_equal(count_files(""), 1); // grid.tsv, and nothing half-written
    assert_ok(dsc_report_write(in, 1, "page.html", NULL, &err), err);
    assert_int_equal(dsc_report_write(in, 1, "page.html", NULL, &err), DSC_EUSAGE);
    assert_non_null(strstr(err.message, "exists already"));
    char *path = strdup(getenv("PATH"));
    setenv("PATH", scratch, 1);
    assert_int_equal(dsc_report_write(in, 1, "other.html", NULL, &err), DSC_EABSENT);
    setenv("PATH", path, 1);
    free(path);
    assert_int_equal(count_files("other"), 0);
}

// --- in a browser --------------------------------------------------------------------------

static char *chromium(const char *arguments)
{
    char command[1024];
    static char output[1 << 16];
    snprintf(command, sizeof command,
             "timeout 60 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars "
             "--user-data-dir=%s/.chromium %s 2>/dev/null; rm -rf %s/.chromium",
             scratch, arguments, scratch);
    FILE *p = popen(command, "r");
    assert_non_null(p);
    output[fread(output, 1, sizeof output - 1, p)] = '\0';
    pclose(p);
    return output;
}

// The page in a frame of the given width (a headless window is never narrower than about 500
// pixels), its details open; the frame's page reports how wide it wants to be, and how many figures
// are shown. The page's policy would not run the script that reports it, so it is taken away.
static void check_width(char *page, int width)
{
    char *policy = strstr(page, "Content-Security-Policy");
    FILE *f = fopen("framed.html", "w");
    if (policy)
        *policy = 'X';
    fputs(page, f);
    fputs("<script>onload = () => {"
          "document.querySelectorAll('details').forEach(d => d.open = true);"
          "const seen = [...document.querySelectorAll('figure svg')]"
          "  .filter(e => e.getBoundingClientRect().width > 200).length;"
          "parent.postMessage([document.documentElement.scrollWidth, innerWidth, seen]"
          "  .join(' '), '*'); };</script>\n",
          f);
    fclose(f);
    f = fopen("frame.html", "w");
    fprintf(f,
            "<!DOCTYPE html><title>t</title><script>onmessage = e => "
            "{ document.body.textContent = 'meas' + 'ured ' + e.data; };</script>"
            "<body><iframe src='framed.html' style='width:%dpx;height:800px;border:0'></iframe>",
            width);
    fclose(f);
    char arguments[256];
    snprintf(arguments, sizeof arguments,
             "--virtual-time-budget=5000 --window-size=1300,900 "
             "--dump-dom file://%s/frame.html",
             scratch);
    const char *at = strstr(chromium(arguments), "measured ");
    int wants, has, seen;
    assert_non_null(at);
    assert_int_equal(sscanf(at, "measured %d %d %d", &wants, &has, &seen), 3);
    assert_int_equal(has, width);
    if (wants > has)
        fail_msg("the page wants %d pixels of %d", wants, has);
    assert_int_equal(seen, 4);
}

static void check_screenshot(const char *file, int width)
{
    char arguments[256];
    struct stat st;
    snprintf(arguments, sizeof arguments,
             "--window-size=%d,2400 --screenshot=%s/shot.png "
             "file://%s/%s",
             width, scratch, scratch, file);
    chromium(arguments);
    assert_int_equal(stat("shot.png", &st), 0);
    assert_true(st.st_size > 40000); // an empty page has under 10000
    unlink("shot.png");
}

static void test_browser(void **state)
{
    (void)state;
    NEEDS("gnuplot");
    NEEDS("chromium");
    write_grid("grid.tsv",
               "a_word_without_any_place_to_break_it_that_is_longer_than_a_phone_is_wide", "unit");
    char *page = report((const char *[]){"grid.tsv"}, 1, NULL);
    check_width(page, 1200);
    check_width(page, 390);
    check_width(page, 320);
    check_screenshot("page.html", 1200);
    FILE *f = fopen("phone.html", "w");
    fputs("<!DOCTYPE html><iframe src='page.html' style='width:390px;height:2400px'></iframe>", f);
    fclose(f);
    check_screenshot("phone.html", 500);
    free(page);
}

SUITE(report)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page),     cmocka_unit_test(test_several),
        cmocka_unit_test(test_together), cmocka_unit_test(test_escaping),
        cmocka_unit_test(test_story),    cmocka_unit_test(test_no_results),
        cmocka_unit_test(test_edges),    cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_browser),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}

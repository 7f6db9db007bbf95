// SPDX-License-Identifier: Apache-2.0
// Result tables and a scratch folder for the tests of figures and reports, and the search for
// programs.
#ifndef DSC_TESTS_PLOT_FIXTURE_H
#define DSC_TESTS_PLOT_FIXTURE_H

#include "base/table.h"
#include "plots/figure/figure.h"
#include "tests/close.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char scratch[64], original[512];

// Creates and enters a working folder; files that hostile text might create appear here.
static int enter_scratch(void **state)
{
    (void)state;
    strcpy(scratch, "/tmp/dsc-plots-XXXXXX");
    return !getcwd(original, sizeof original) || !mkdtemp(scratch) || chdir(scratch);
}

static inline size_t count_files(const char *containing)
{
    DIR *d = opendir(scratch);
    size_t n = 0;
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.' && strstr(e->d_name, containing);
    closedir(d);
    return n;
}

static inline void empty_scratch(void)
{
    DIR *d = opendir(scratch);
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.')
            unlink(e->d_name);
    closedir(d);
}

static int leave_scratch(void **state)
{
    (void)state;
    empty_scratch();
    return chdir(original) || rmdir(scratch);
}

static inline bool in_path(const char *program)
{
    char *path = strdup(getenv("PATH") ? getenv("PATH") : "/usr/bin"), file[4096];
    bool found = false;
    for (char *p = strtok(path, ":"); p && !found; p = strtok(NULL, ":")) {
        snprintf(file, sizeof file, "%s/%s", p, program);
        found = !access(file, X_OK);
    }
    free(path);
    return found;
}

#define NEEDS(program)                                                                             \
    do {                                                                                           \
        if (!in_path(program))                                                                     \
            skip();                                                                                \
    } while (0)

// Finds the figures that a report would draw of a table; returns their number.
enum { MOST_FIGURES = 32 };
static inline size_t drawable(const dsc_table *t, const dsc_figure_type *figure[MOST_FIGURES])
{
    size_t n = 0;
    for (const dsc_figure_type *const *f = dsc_figures(); *f; f++)
        if (dsc_figure_fits(*f, t)) {
            assert_true(n < MOST_FIGURES);
            figure[n++] = *f;
        }
    return n;
}

// --- tables --------------------------------------------------------------------------------

// Adds columns by name; a name that ends in $ contains text, in # integers, in % lists.
static inline void add_named(dsc_table *t, const char *names)
{
    char text[512], *rest = text;
    dsc_error err = {0};
    assert_true(strlen(names) < sizeof text);
    strcpy(text, names);
    for (char *name; (name = strsep(&rest, " "));) {
        char *last = name + strlen(name) - 1;
        dsc_cell_type type = *last == '$'   ? DSC_CELL_TEXT
                             : *last == '#' ? DSC_CELL_INT
                             : *last == '%' ? DSC_CELL_LIST
                                            : DSC_CELL_REAL;
        if (type != DSC_CELL_REAL)
            *last = '\0';
        assert_ok(dsc_table_add_column(t, name, type, NULL, &err), err);
    }
    assert_ok(dsc_table_comment(t, "draftscope", "0.1.0", &err), err);
    assert_ok(dsc_table_comment(t, "command", "draftscope", &err), err);
}

// Adds a row: the numbers in the order of the numeric columns, the texts in that of the text and
// list columns ("3;2;1").
static inline void add_row(dsc_table *t, const double *number, const char *const *text)
{
    enum { MOST = 16, LONGEST = 64 };
    static int64_t list[MOST][LONGEST];
    dsc_cell cell[MOST];
    dsc_error err = {0};
    assert_true(t->columns <= MOST);
    for (size_t c = 0; c < t->columns; c++) {
        dsc_cell_type type = t->column[c].type;
        cell[c] = (dsc_cell){.type = type};
        if (type == DSC_CELL_TEXT)
            cell[c].text = *text++;
        else if (type == DSC_CELL_INT)
            cell[c].i = (int64_t)*number++;
        else if (type == DSC_CELL_REAL)
            cell[c].r = *number++;
        else {
            cell[c].list = list[c];
            for (const char *s = *text++; s; s = strchr(s, ';') ? strchr(s, ';') + 1 : NULL)
                list[c][cell[c].i++] = strtoll(s, NULL, 10);
        }
    }
    assert_ok(dsc_table_add_row(t, cell, &err), err);
}

// Columns as `draftscope sweep` writes them for LLMA.
static inline void add_columns(dsc_table *t)
{
    static const dsc_column column[] = {
        {"method", DSC_CELL_TEXT, NULL},
        {"semantics", DSC_CELL_TEXT, NULL},
        {"references", DSC_CELL_TEXT, NULL},
        {"n", DSC_CELL_INT, NULL},
        {"num_speculative_tokens", DSC_CELL_INT, NULL},
        {"max_match", DSC_CELL_INT, NULL},
        {"requests", DSC_CELL_INT, NULL},
        {"output_tokens", DSC_CELL_INT, NULL},
        {"target_calls", DSC_CELL_INT, NULL},
        {"num_drafts_started", DSC_CELL_INT, NULL},
        {"num_draft_tokens", DSC_CELL_INT, NULL},
        {"num_accepted_tokens", DSC_CELL_INT, "draft tokens accepted; the <bonus> not counted"},
        {"draft_acceptance_rate", DSC_CELL_REAL, NULL},
        {"block_efficiency", DSC_CELL_REAL, NULL},
        {"speedup", DSC_CELL_REAL, NULL},
        {"accept_histogram", DSC_CELL_LIST, NULL},
    };
    dsc_error err = {0};
    for (size_t i = 0; i < sizeof column / sizeof *column; i++)
        assert_ok(dsc_table_add_column(t, column[i].name, column[i].type, column[i].help, &err),
                  err);
}

typedef struct configuration {
    const char *method, *semantics;
    int64_t n, k, drafts, accepted, calls;
    double speedup; // 0: the block efficiency; NaN stays NaN
} configuration;

static inline void add_configuration(dsc_table *t, const configuration *c)
{
    int64_t histogram[65] = {0}, accepted = c->accepted, full = c->k ? accepted / c->k / 2 : 0;
    dsc_error err = {0};
    histogram[c->k] = full; // some calls accept all k, one the odd rest, others one token
    accepted -= full * c->k;
    if (c->k)
        histogram[1] += accepted < c->calls - full ? accepted : c->calls - full;
    histogram[0] = c->calls - full - (c->k > 1 ? histogram[1] : 0);
    double output = (double)(c->accepted + c->calls), efficiency = output / (double)c->calls;
    dsc_cell cell[16] = {
        {.type = DSC_CELL_TEXT, .text = c->method},
        {.type = DSC_CELL_TEXT, .text = c->semantics},
        {.type = DSC_CELL_TEXT, .text = "documents"},
        {.type = DSC_CELL_INT, .i = c->n},
        {.type = DSC_CELL_INT, .i = c->k},
        {.type = DSC_CELL_INT, .i = c->n > 5 ? c->n : 5},
        {.type = DSC_CELL_INT, .i = 100},
        {.type = DSC_CELL_INT, .i = c->accepted + c->calls},
        {.type = DSC_CELL_INT, .i = c->calls},
        {.type = DSC_CELL_INT, .i = c->drafts},
        {.type = DSC_CELL_INT, .i = c->drafts * c->k},
        {.type = DSC_CELL_INT, .i = c->accepted},
        {.type = DSC_CELL_REAL, .r = (double)c->accepted / (double)(c->drafts * c->k)},
        {.type = DSC_CELL_REAL, .r = efficiency},
        {.type = DSC_CELL_REAL, .r = c->speedup == 0 ? efficiency : c->speedup},
        {.type = DSC_CELL_LIST, .list = histogram, .i = c->k + 1},
    };
    assert_ok(dsc_table_add_row(t, cell, &err), err);
}

static inline void add_comments(dsc_table *t, const char *cost)
{
    dsc_error err = {0};
    assert_ok(dsc_table_comment(t, "draftscope", "0.1.0", &err), err);
    assert_ok(dsc_table_comment(t, "command", "draftscope sweep rag.dst --n 1:8 --k 1:32", &err),
              err);
    assert_ok(dsc_table_comment(t, "trace_hash", "9f2c7a2be3c01d8e", &err), err);
    assert_ok(dsc_table_comment(t, "seed", "1", &err), err);
    assert_ok(dsc_table_comment(t, "cost", cost, &err), err);
}

// A sweep of n = 1..most_n over the given k; counts fall with n and level off with k as LLMA's do.
static inline void add_grid(dsc_table *t, const char *semantics, int64_t most_n, const int64_t *k,
                            size_t ks)
{
    for (int64_t n = 1; n <= most_n; n++)
        for (size_t i = 0; i < ks; i++) {
            double kk = (double)k[i], level = kk / (kk + 2);
            configuration c = {"llma", semantics, n, k[i], 0, 0, 0, 0};
            c.accepted = (int64_t)(8300 * level / (1 + 0.15 * (double)(n - 1)));
            c.calls = 11123 - c.accepted;
            c.drafts = (int64_t)((double)c.calls * 0.9 / (double)n);
            add_configuration(t, &c);
        }
}

static const int64_t paper_k[] = {4, 6, 8, 10, 12, 14, 16, 18};
enum { PAPER_KS = 8 };

// LLMA's own grid with the two rows for n = 1 that are known exactly (RAG development set, 100
// requests, semantics of the paper).
static inline void llma_table(dsc_table *t)
{
    add_columns(t);
    add_comments(t, "unit");
    add_configuration(t, &(configuration){"llma", "paper", 1, 4, 3866, 6706, 4417, 0});
    add_configuration(t, &(configuration){"llma", "paper", 1, 18, 2825, 7747, 3376, 0});
    add_configuration(t, &(configuration){"llma", "paper", 2, 4, 2866, 6006, 5117, 0});
    add_configuration(t, &(configuration){"llma", "paper", 2, 18, 1825, 7000, 4123, 0});
}

static inline void write_table(const dsc_table *t, const char *path)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    dsc_table_write_tsv_head(t, f);
    for (size_t i = 0; i < t->rows; i++)
        dsc_table_write_tsv_row(t, i, f);
    assert_int_equal(fclose(f), 0);
}

// Text that tries to escape from every place it may be written to.
static const char *const hostile[] = {
    "'; system 'touch OWNED'; '",
    "`touch OWNED`",
    "$(touch OWNED)",
    "EOD",
    "x\nEOD\nsystem 'touch OWNED'\n",
    "<script>alert(1)</script>&\"'",
    "a\\nb\\'; !touch OWNED",
    "\"; set output 'OWNED",
    "{/Bold=99 x}_^ @OWNED %s%n",
    "\xff\xfe\xc0\xaf caf\xc3\xa9 \xe2\x80\xae",
};
enum { HOSTILE = sizeof hostile / sizeof *hostile };

#endif

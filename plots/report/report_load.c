// SPDX-License-Identifier: Apache-2.0
// The part of the report on a simulated server: up to which load speculation pays and what to set,
// as draftscope serve wrote it into its comments, the verdict at each load, and the rows by load.
// The report judges nothing by itself.
#include "plots/draw/text.h"
#include "plots/report/report_result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

// --- the answer ----------------------------------------------------------------------------------

// "Poisson arrivals: speculation pays ...; at 1 requests/s run ...; ...": the first part is what
// counts.
static void put_answer(dsc_page *p, const char *answer, size_t number)
{
    const char *rest = strstr(answer, "; ");
    const int first = rest ? (int)(rest - answer) : (int)strlen(answer);
    dsc_open(p, DSC_BOX);
    dsc_open(p, DSC_PARAGRAPH);
    dsc_say_block(p, DSC_STRONG, "%.*s.", first, answer);
    dsc_close(p, DSC_PARAGRAPH);
    if (rest)
        dsc_open(p, DSC_LIST);
    for (const char *next; rest; rest = next) {
        next = strstr(rest + 2, "; at ");
        dsc_say_block(p, DSC_ITEM, "%.*s.", next ? (int)(next - rest - 2) : (int)strlen(rest + 2),
                      rest + 2);
    }
    if (strstr(answer, "; "))
        dsc_close(p, DSC_LIST);
    dsc_say_block(p, DSC_SOFT, "Answer of result %zu, a simulated server.", number);
    dsc_close(p, DSC_BOX);
}

bool dsc_put_load_answers(dsc_page *p, const dsc_result_view *r, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; r[i].kind == DSC_RESULT_SERVED && k < r[i].table.comments; k++)
            if (begins(r[i].table.key[k], "load_answer_")) {
                put_answer(p, r[i].table.value[k], i + 1);
                any = true;
            }
    return any;
}

// --- the verdict at each load ------------------------------------------------------------------

enum { LOAD, VERDICT, GAIN, INTERVAL, NUMBERS, COLUMNS };

// The table of the verdicts, which is empty where serve wrote none.
static int make_verdicts(dsc_table *out, dsc_plot *m, const dsc_table *t, dsc_error *err)
{
    static const char *const name[COLUMNS] = {"load", "verdict", "gain", "95 % interval",
                                              "with and without"};
    int rc = DSC_OK;
    for (int i = 0; i < COLUMNS && !rc; i++)
        rc = dsc_table_add_column(out, name[i], DSC_CELL_TEXT, NULL, err);
    for (size_t k = 0; k < t->comments && !rc; k++) {
        dsc_cell cell[COLUMNS];
        const char *value = t->value[k], *verdict = strstr(value, ": ");
        if (!begins(t->key[k], "load_verdict_") || !verdict)
            continue;
        const dsc_verdict_words w = dsc_split_verdict(m, verdict + 2);
        const char *text[COLUMNS] = {dsc_text(m, "%.*s", (int)(verdict - value), value), w.verdict,
                                     w.gain, w.interval, w.rest};
        for (int i = 0; i < COLUMNS; i++)
            cell[i] = dsc_cell_text(text[i]);
        rc = m->rc ? m->rc : dsc_table_add_row(out, cell, err);
    }
    return rc;
}

void dsc_put_load_verdicts(dsc_page *p, const dsc_result_view *r)
{
    enum { MOST = 200 };
    dsc_table t = {0};
    dsc_plot m = dsc_plot_of(NULL, NULL, p->w.err);
    const size_t column[COLUMNS] = {LOAD, VERDICT, GAIN, INTERVAL, NUMBERS};
    size_t row[MOST];
    const char *slo = dsc_table_get_comment(&r->table, "slo");
    if (!p->w.rc)
        p->w.rc = make_verdicts(&t, &m, &r->table, p->w.err);
    for (size_t i = 0; i < t.rows && i < MOST; i++)
        row[i] = i;
    if (!t.rows)
        dsc_say_block(p, DSC_PARAGRAPH,
                      "The table has no verdict in its comments; draftscope serve writes one where "
                      "a method drafts.");
    else if (!p->w.rc)
        p->type->table(p, &(dsc_page_table){&t, row, column, t.rows < MOST ? t.rows : MOST, COLUMNS,
                                            dsc_text(&m,
                                                     "Verdict at each load: the best configuration "
                                                     "against no speculation%s%s",
                                                     slo ? "; SLO: " : "", slo ? slo : ""),
                                            NULL});
    dsc_table_fini(&t);
    dsc_plot_fini(&m);
}

// --- the rows by load ----------------------------------------------------------------------------

// Whether rows that have a value in a column differ in it: a parameter that `none` lacks does not.
static bool differs(const dsc_table *t, size_t c)
{
    const dsc_cell *first = NULL;
    for (size_t i = 0; i < t->rows; i++) {
        const dsc_cell *cell = dsc_table_at(t, i, c);
        if (dsc_is_missing(cell))
            continue;
        if (first && !dsc_same_cell(first, cell))
            return true;
        first = cell;
    }
    return false;
}

// Writes the columns of the short table to r->column: the load, the configuration, and what a
// server is judged by.
static size_t find_columns(dsc_result_view *r)
{
    static const char *const figure[] = {
        "advice",         "gain",         "gain_low",   "gain_high",   "saturated",
        "requests_per_s", "tokens_per_s", "goodput",    "ttft_p50_s",  "ttft_p99_s",
        "tpot_p50_s",     "tpot_p99_s",   "e2e_mean_s", "mean_running"};
    const dsc_table *t = &r->table;
    const int load = dsc_table_find(t, "arrivals"), last = dsc_table_find(t, "speculation");
    size_t n = 0;
    r->column[n++] = (size_t)load;
    for (int c = 0; c <= last; c++)
        if (c != load && (t->rows == 1 || differs(t, (size_t)c)))
            r->column[n++] = (size_t)c;
    for (size_t i = 0; i < sizeof figure / sizeof *figure; i++)
        if (dsc_table_find(t, figure[i]) >= 0)
            r->column[n++] = (size_t)dsc_table_find(t, figure[i]);
    return n;
}

// The rows of the first load, then those of the next, in the order of the file.
static size_t order_rows(const dsc_table *t, size_t *row)
{
    size_t rows = 0;
    for (size_t i = 0; i < t->rows; i++) {
        const char *load = dsc_text_at(t, i, "arrivals");
        size_t earlier = 0;
        while (strcmp(dsc_text_at(t, earlier, "arrivals"), load))
            earlier++;
        for (size_t j = i; j < t->rows && earlier == i; j++)
            if (!strcmp(dsc_text_at(t, j, "arrivals"), load))
                row[rows++] = j;
    }
    return rows;
}

void dsc_put_load_rows(dsc_page *p, dsc_result_view *r)
{
    enum { OPEN = 12 }; // rows of a table that is not folded
    const dsc_table *t = &r->table;
    size_t *row = NULL;
    if (!p->w.rc)
        p->w.rc = dsc_new(&row, t->rows, p->w.err);
    if (!p->w.rc && t->rows) {
        const size_t rows = order_rows(t, row), columns = find_columns(r);
        p->type->table(p, &(dsc_page_table){t, row, r->column, rows, columns,
                                            "Configurations by load, latencies in seconds",
                                            rows > OPEN ? "Configurations by load" : NULL});
    }
    free(row);
}

// SPDX-License-Identifier: Apache-2.0
// Writes the part of a result by a metadata field: the verdicts of tune, a figure, and the best row
// of each value and batch size.
#include "base/columns.h"
#include "plots/report/report_result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void put_verdicts(dsc_page *p, const dsc_table *t)
{
    bool any = false;
    for (size_t i = 0; i < t->comments; i++) {
        if (strncmp(t->key[i], "by_verdict", 10) != 0)
            continue;
        dsc_open_once(p, DSC_LIST, &any);
        dsc_say_block(p, DSC_ITEM, "%s.", t->value[i]);
    }
    if (any)
        dsc_close(p, DSC_LIST);
}

static bool same_cell(const dsc_table *t, size_t a, size_t b, const char *column)
{
    const int c = dsc_table_find(t, column);
    return c < 0 || dsc_same_cell(dsc_table_at(t, a, (size_t)c), dsc_table_at(t, b, (size_t)c));
}

// Upper bounds come after methods.
static bool is_better(const dsc_table *t, size_t row, size_t than)
{
    const bool a = dsc_table_is_bound(t, row), b = dsc_table_is_bound(t, than);
    return a != b ? b : dsc_merit_at(t, row) > dsc_merit_at(t, than);
}

// Writes to row[] the best row of each value and batch size, and returns their number. Of tune it
// is the one that was best on the selection set.
static size_t find_best(const dsc_table *t, const char *by, size_t *row)
{
    const bool ranked = dsc_table_find(t, "rank") >= 0;
    size_t n = 0;
    for (size_t i = 0; i < t->rows; i++) {
        size_t j = 0;
        while (j < n && !(same_cell(t, row[j], i, by) && same_cell(t, row[j], i, DSC_COL_BATCH)))
            j++;
        if (j == n)
            row[n++] = i;
        else if (!ranked && is_better(t, i, row[j]))
            row[j] = i;
    }
    return n;
}

// The columns that the table has of those that matter here.
static size_t find_columns(const dsc_table *t, const char *by, size_t *column)
{
    static const char *const wanted[] = {DSC_COL_BATCH,
                                         DSC_COL_METHOD,
                                         DSC_COL_RULE,
                                         "parameters",
                                         "num_speculative_tokens",
                                         DSC_COL_REQUESTS,
                                         DSC_COL_OUTPUT_TOKENS,
                                         DSC_COL_BLOCK_EFFICIENCY,
                                         DSC_COL_MEAN_ACCEPTANCE_LENGTH,
                                         DSC_COL_DRAFT_ACCEPTANCE_RATE,
                                         DSC_COL_SPEEDUP,
                                         "test",
                                         "test_low",
                                         "test_high",
                                         "measured",
                                         "measured_low",
                                         "measured_high",
                                         "predicted",
                                         "error_percent",
                                         "verdict"};
    size_t n = 0;
    column[n++] = (size_t)dsc_table_find(t, by);
    const char *cost = dsc_table_get_comment(t, "cost");
    const bool unit = cost && !strcmp(cost, "unit"); // unit costs make no speedup
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        const int c = dsc_table_find(t, wanted[i]);
        if (c >= 0 && (size_t)c != column[0] && !(unit && !strcmp(wanted[i], DSC_COL_SPEEDUP)))
            column[n++] = (size_t)c;
    }
    return n;
}

static void put_table(dsc_page *p, const dsc_table *t, const char *by)
{
    size_t *row = NULL, *column = NULL;
    if (!p->w.rc)
        p->w.rc = dsc_new(&row, t->rows, p->w.err);
    if (!p->w.rc)
        p->w.rc = dsc_new(&column, t->columns + 1, p->w.err);
    if (!p->w.rc) {
        const size_t rows = find_best(t, by, row), columns = find_columns(t, by, column);
        p->type->table(p, &(dsc_page_table){t, row, column, rows, columns,
                                            "The best row of each value, selected on its own "
                                            "requests unless the table has a test set",
                                            NULL});
    }
    free(row);
    free(column);
}

void dsc_put_by(dsc_page *p, const dsc_result_view *r)
{
    const char *by = dsc_table_get_comment(&r->values, "by");
    if (!by || !r->values.rows)
        return;
    const dsc_result_view values = {.path = r->path, .table = r->values, .merit = -1};
    dsc_say_block(p, DSC_SUBHEADING, "By %s", by);
    put_verdicts(p, &r->values);
    put_table(p, &r->values, by);
    dsc_put_figures(p, &values, false, "Figure");
}

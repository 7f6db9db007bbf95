// SPDX-License-Identifier: Apache-2.0
// Writes a result table to standard output or, by way of a temporary name, to a file.
#include "cli/result.h"

#include "base/columns.h"
#include "base/outfile.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BEST = 5 }; // rows of a sweep that a terminal gets

bool cli_result_terminal(void)
{
    return isatty(STDOUT_FILENO);
}

void cli_result_print(const dsc_table *t, bool json, bool head, FILE *f)
{
    if (json && head)
        dsc_table_write_jsonl_head(t, f);
    if (!json)
        dsc_table_write_tsv_head(t, f);
    for (size_t r = 0; r < t->rows; r++)
        if (json)
            dsc_table_write_jsonl_row(t, r, f);
        else
            dsc_table_write_tsv_row(t, r, f);
}

// --- for a person --------------------------------------------------------------------------------

// The text of a cell in at most `size` - 1 characters: integers whole, other numbers rounded.
static void cell_text(const dsc_cell *c, char *text, size_t size)
{
    *text = '\0';
    if (c->type == DSC_CELL_INT)
        snprintf(text, size, "%" PRId64, c->i);
    else if (c->type == DSC_CELL_REAL && c->r == floor(c->r) && fabs(c->r) < 1e6)
        snprintf(text, size, "%.0f", c->r);
    else if (c->type == DSC_CELL_REAL && !isnan(c->r))
        snprintf(text, size, "%.4g", c->r);
    else if (c->type == DSC_CELL_TEXT && c->text)
        snprintf(text, size, "%s", c->text);
}

void cli_result_align(const dsc_table *t, const size_t *row, size_t rows, const size_t *column,
                      size_t columns, FILE *f)
{
    enum { WIDEST = 48 };
    for (size_t i = 0; i <= rows; i++) { // the first line has the names
        for (size_t c = 0; c < columns; c++) {
            const dsc_column *head = &t->column[column[c]];
            char text[WIDEST + 1];
            int width = (int)strlen(head->name);
            for (size_t r = 0; r < rows; r++) {
                cell_text(dsc_table_at(t, row[r], column[c]), text, sizeof text);
                width = (int)strlen(text) > width ? (int)strlen(text) : width;
            }
            if (i)
                cell_text(dsc_table_at(t, row[i - 1], column[c]), text, sizeof text);
            else
                snprintf(text, sizeof text, "%s", head->name);
            fprintf(f, head->type == DSC_CELL_TEXT ? "%s%-*s" : "%s%*s", c ? "  " : "", width,
                    text);
        }
        fputc('\n', f);
    }
}

// Whether two of the rows differ in a column.
static bool varies(const dsc_table *t, const size_t *row, size_t rows, size_t column)
{
    char first[64], text[64];
    cell_text(dsc_table_at(t, row[0], column), first, sizeof first);
    for (size_t r = 1; r < rows; r++) {
        cell_text(dsc_table_at(t, row[r], column), text, sizeof text);
        if (strcmp(first, text) != 0)
            return true;
    }
    return false;
}

// Inserts a row among the best, which are in descending order. An upper bound is not one of them.
static void keep_best(const dsc_table *t, size_t by, size_t r, size_t *best, size_t *kept)
{
    const double x = dsc_table_real(t, r, by);
    if (isnan(x) || dsc_table_is_bound(t, r) ||
        (*kept == BEST && !(x > dsc_table_real(t, best[BEST - 1], by))))
        return;
    size_t at = *kept < BEST ? (*kept)++ : BEST - 1;
    for (; at > 0 && x > dsc_table_real(t, best[at - 1], by); at--)
        best[at] = best[at - 1];
    best[at] = r;
}

// The best rows of one batch size, or of all where `batch` is negative.
static int print_best(const dsc_table *t, int batch, int64_t size, size_t by, FILE *f,
                      dsc_error *err)
{
    static const char *const figures[] = {DSC_COL_SPEEDUP, DSC_COL_BLOCK_EFFICIENCY,
                                          DSC_COL_MEAN_ACCEPTANCE_LENGTH,
                                          DSC_COL_DRAFT_ACCEPTANCE_RATE};
    size_t best[BEST], kept = 0, *column, columns = 0;
    const int end = dsc_table_find(t, DSC_COL_REQUESTS);
    for (size_t r = 0; r < t->rows; r++)
        if (batch < 0 || dsc_table_at(t, r, (size_t)batch)->i == size)
            keep_best(t, by, r, best, &kept);
    int rc = dsc_new(&column, t->columns, err);
    if (rc || !kept) {
        free(column);
        return rc;
    }
    for (size_t c = 0; (int)c < end; c++)
        if (strcmp(t->column[c].name, DSC_COL_METHOD) == 0 || varies(t, best, kept, c))
            column[columns++] = c;
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        if (dsc_table_find(t, figures[i]) >= 0)
            column[columns++] = (size_t)dsc_table_find(t, figures[i]);
    if (batch >= 0)
        fprintf(f, "batch size %" PRId64 "\n", size);
    cli_result_align(t, best, kept, column, columns, f);
    free(column);
    return DSC_OK;
}

int cli_result_print_best(const dsc_table *t, FILE *f, dsc_error *err)
{
    const char *cost = dsc_table_get_comment(t, "cost");
    const int batch = dsc_table_find(t, DSC_COL_BATCH),
              speedup = dsc_table_find(t, DSC_COL_SPEEDUP),
              efficiency = dsc_table_find(t, DSC_COL_BLOCK_EFFICIENCY);
    const bool priced = speedup >= 0 && cost && strcmp(cost, "unit") != 0;
    int rc = DSC_OK;
    if (!t->rows || efficiency < 0)
        return DSC_OK;
    for (size_t r = 0; r < t->rows && !rc; r++) {
        bool known = r && batch < 0;
        for (size_t q = 0; batch >= 0 && q < r && !known; q++)
            known = dsc_table_at(t, q, (size_t)batch)->i == dsc_table_at(t, r, (size_t)batch)->i;
        if (!known)
            rc = print_best(t, batch, batch < 0 ? 0 : dsc_table_at(t, r, (size_t)batch)->i,
                            (size_t)(priced ? speedup : efficiency), f, err);
    }
    return rc;
}

static int align_all(const dsc_table *t, dsc_error *err)
{
    size_t *row, *column = NULL, columns = 0;
    int rc = dsc_new(&row, t->rows, err);
    if (!rc)
        rc = dsc_new(&column, t->columns, err);
    for (size_t r = 0; !rc && r < t->rows; r++)
        row[r] = r;
    for (size_t c = 0; !rc && c < t->columns; c++)
        if (t->column[c].type != DSC_CELL_LIST)
            column[columns++] = c;
    if (!rc)
        cli_result_align(t, row, t->rows, column, columns, stdout);
    free(row);
    free(column);
    return rc;
}

int cli_result_write(const dsc_table *t, const cli_call *call, dsc_error *err)
{
    if (strcmp(call->out, "-") == 0 && !call->json && cli_result_terminal())
        return align_all(t, err);
    if (strcmp(call->out, "-") == 0) {
        cli_result_print(t, call->json, false, stdout);
        return DSC_OK;
    }
    dsc_outfile f = {0};
    int rc = dsc_outfile_open(&f, call->out, call->force, err);
    if (rc)
        return rc;
    cli_result_print(t, call->json, true, f.stream);
    return dsc_outfile_commit(&f, err);
}

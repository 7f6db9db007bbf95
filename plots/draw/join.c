// SPDX-License-Identifier: Apache-2.0
// Concatenates result tables: the union of their columns, with the comments that identify a run
// as columns.
#include "plots/draw/join.h"

#include "base/file.h"
#include "plots/draw/select.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Comments that identify a run; they become columns if the tables differ in them.
static const char *const context[] = {"warmup", "trace_hash",  "target", "draft",
                                      "middle", "temperature", "cost"};
enum { CONTEXTS = sizeof context / sizeof *context, HASH_SHOWN = 12 };

static bool differs(const dsc_table *const *in, size_t n, const char *key)
{
    const char *first = dsc_table_get_comment(in[0], key);
    for (size_t i = 1; i < n; i++) {
        const char *other = dsc_table_get_comment(in[i], key);
        if (!first != !other || (first && strcmp(first, other)))
            return true;
    }
    return false;
}

static int add_comments(dsc_table *out, const dsc_table *const *in, size_t n, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = 0; i < n && !rc; i++)
        for (size_t c = 0; c < in[i]->comments && !rc; c++) {
            const char *key = in[i]->key[c];
            if (differs(in, n, key) ? !strcmp(key, "command") : !i)
                rc = dsc_table_comment(out, key, in[i]->value[c], err);
        }
    return rc;
}

// The type that can represent a column's values in both tables; -1: there is none.
static int common_type(dsc_cell_type a, dsc_cell_type b)
{
    bool a_number = a == DSC_CELL_INT || a == DSC_CELL_REAL;
    bool b_number = b == DSC_CELL_INT || b == DSC_CELL_REAL;
    if (a == b)
        return (int)a;
    if (a_number && b_number)
        return DSC_CELL_REAL;
    // A list of one element is read as a number.
    if (a == DSC_CELL_LIST || b == DSC_CELL_LIST)
        return a_number || b_number ? DSC_CELL_LIST : -1;
    return DSC_CELL_TEXT;
}

// The column's type over all tables. A table that lacks the column has no value there.
static int column_type(const dsc_table *const *in, size_t n, const char *name, dsc_cell_type *type,
                       dsc_error *err)
{
    int t = -1;
    for (size_t i = 0; i < n; i++) {
        int c = dsc_table_find(in[i], name);
        if (c < 0)
            continue;
        t = t < 0 ? (int)in[i]->column[c].type
                  : common_type((dsc_cell_type)t, in[i]->column[c].type);
        if (t < 0)
            return dsc_fail(err, DSC_EINPUT,
                            "column '%.60s' contains lists in one table and text in another", name);
    }
    *type = (dsc_cell_type)t;
    return DSC_OK;
}

// Adds the parameters, or the results, that `out` does not have yet.
static int add_columns(dsc_table *out, const dsc_table *const *in, size_t n, bool parameters,
                       dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = 0; i < n && !rc; i++)
        for (size_t c = 0; c < in[i]->columns && !rc; c++) {
            const dsc_column *column = &in[i]->column[c];
            dsc_cell_type type = column->type;
            if (dsc_is_parameter(in[i], c) != parameters || dsc_table_find(out, column->name) >= 0)
                continue;
            rc = column_type(in, n, column->name, &type, err);
            if (!rc)
                rc = dsc_table_add_column(out, column->name, type, column->help, err);
        }
    return rc;
}

// Converts `from` (NULL: the table lacks the column) to a cell of the given type, whose text or
// list the memory `m` owns.
static dsc_cell convert(dsc_plot *m, const dsc_cell *from, dsc_cell_type type)
{
    dsc_cell cell = {.type = type, .r = NAN, .text = ""};
    if (from && (from->type == type || (from->absent && type == DSC_CELL_INT)))
        return *from;
    if (!from && type == DSC_CELL_INT)
        return dsc_cell_absent();
    double number = !from ? NAN : from->type == DSC_CELL_INT ? (double)from->i : from->r;
    if (type == DSC_CELL_REAL) {
        cell.r = number;
    } else if (type == DSC_CELL_LIST) {
        double *element = dsc_plot_numbers(m, 1);
        if (element)
            *element = number;
        cell.reals = element;
        cell.i = from && !from->absent && element;
    } else if (from && !from->absent) {
        dsc_put_cell(dsc_text_begin(m), from);
        cell.text = dsc_text_end(m);
    }
    return cell;
}

static int add_row(dsc_table *out, const dsc_table *in, size_t row, dsc_error *err)
{
    dsc_plot m = dsc_plot_of(in, NULL, err);
    dsc_cell *cell = dsc_plot_new(&m, dsc_cell, out->columns);
    for (size_t c = 0; !m.rc && c < out->columns; c++) {
        const char *name = out->column[c].name, *comment = dsc_table_get_comment(in, name);
        int from = dsc_table_find(in, name);
        cell[c] =
            convert(&m, from < 0 ? NULL : dsc_table_at(in, row, (size_t)from), out->column[c].type);
        for (size_t i = 0; from < 0 && comment && i < CONTEXTS; i++)
            if (!strcmp(name, context[i]))
                cell[c].text = strcmp(name, "trace_hash")
                                   ? comment
                                   : dsc_text(&m, "%.*s", HASH_SHOWN, comment);
    }
    int rc = m.rc ? m.rc : dsc_table_add_row(out, cell, err);
    dsc_plot_fini(&m);
    return rc;
}

int dsc_join_tables(dsc_table *out, const dsc_table *const *in, size_t n, dsc_error *err)
{
    *out = (dsc_table){0};
    int rc = add_comments(out, in, n, err);
    if (!rc)
        rc = add_columns(out, in, n, true, err);
    for (size_t i = 0; i < CONTEXTS && !rc; i++)
        if (differs(in, n, context[i]) && dsc_table_find(out, context[i]) < 0)
            rc = dsc_table_add_column(out, context[i], DSC_CELL_TEXT, NULL, err);
    if (!rc)
        rc = add_columns(out, in, n, false, err);
    for (size_t i = 0; i < n && out->columns; i++)
        for (size_t r = 0; r < in[i]->rows && !rc; r++)
            rc = add_row(out, in[i], r, err);
    if (rc)
        dsc_table_fini(out);
    return rc;
}

enum { MOST_BYTES = 1 << 28 }; // of a JSON object over several lines

bool dsc_is_json_object(const char *path)
{
    FILE *f = fopen(path, "r");
    bool is = f && fgetc(f) == '{' && fgetc(f) == '\n';
    if (f)
        fclose(f);
    return is;
}

static int read_one(dsc_table *t, const char *path, dsc_error *err)
{
    char *text = NULL;
    size_t length;
    if (!dsc_is_json_object(path))
        return dsc_table_read(t, path, err);
    int rc = dsc_read_file(&text, &length, path, MOST_BYTES, err);
    if (!rc && (rc = dsc_read_trace_info(t, text, err)))
        dsc_error_prefix(err, rc, "%s", path);
    free(text);
    return rc;
}

int dsc_read_tables(dsc_table *t, const char *const *path, size_t n, dsc_error *err)
{
    if (n == 1)
        return read_one(t, path[0], err);
    dsc_plot m = dsc_plot_of(NULL, NULL, err);
    dsc_table *read = dsc_plot_new(&m, dsc_table, n);
    const dsc_table **in = dsc_plot_new(&m, const dsc_table *, n);
    *t = (dsc_table){0};
    for (size_t i = 0; i < n && !m.rc; i++) {
        m.rc = read_one(&read[i], path[i], err);
        in[i] = &read[i];
    }
    int rc = m.rc ? m.rc : dsc_join_tables(t, in, n, err);
    for (size_t i = 0; read && i < n; i++)
        dsc_table_fini(&read[i]);
    dsc_plot_fini(&m);
    return rc;
}

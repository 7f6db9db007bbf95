// SPDX-License-Identifier: Apache-2.0
// Reads result tables: TSV, whose column types follow from the values, and JSON lines;
// base/table.h.
#include "base/columns.h"
#include "base/file.h"
#include "base/json_file.h"
#include "base/number.h"
#include "base/table.h"
#include "base/utf8.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 256 };
static const size_t MAX_BYTES = (size_t)1 << 30;

static bool is_integer(const char *s)
{
    char *end;
    errno = 0;
    (void)strtoll(s, &end, 10);
    return *s && !*end && !errno && *s != ' ' && *s != '+';
}

static bool is_number(const char *s)
{
    char *end;
    if (strcmp(s, "nan") == 0)
        return true;
    if (!*s || strspn(s, "0123456789+-.eEinf") != strlen(s))
        return false;
    (void)dsc_strtod(s, &end);
    return !*end;
}

// A list consists of counts, or it has a real number in it; parse_list.
static bool is_whole(const char *s)
{
    return strspn(s, "0123456789;") == strlen(s);
}

// Counts of 64 bits, or finite numbers. Texts that look similar are texts: a longer row of digits
// may be an identifier.
static bool is_list(const char *s)
{
    const bool whole = is_whole(s);
    errno = 0;
    for (char *end; *s; s = end + 1) {
        if (*s < '0' || *s > '9')
            return false;
        if (whole)
            (void)strtoll(s, &end, 10);
        else if (!isfinite(dsc_strtod(s, &end)))
            return false;
        if (*end && *end != ';')
            return false;
        if (!*end)
            return !whole || !errno;
    }
    return false;
}

static bool is_named_list(const char *name)
{
    return strstr(name, "histogram") || strcmp(name, DSC_COL_ACCEPTANCE_RATE_POS) == 0 ||
           strcmp(name, DSC_COL_CONDITIONAL_ACCEPTANCE_RATE) == 0;
}

// The narrowest type that fits every value of column c. A column of single integers named as a
// histogram is a list column whose lists have one element each. Empty fields are empty lists where
// a list is expected, and absent numbers elsewhere.
static dsc_cell_type column_type(char *const *field, size_t rows, size_t columns, size_t c,
                                 const char *name)
{
    bool integer = rows > 0, number = rows > 0, list = rows > 0;
    size_t empty = 0;
    for (size_t r = 0; r < rows; r++) {
        const char *s = field[r * columns + c];
        empty += !*s;
        integer = integer && (is_integer(s) || !*s);
        number = number && (is_number(s) || !*s);
        list = list && (is_list(s) || !*s);
    }
    if (list &&
        (!number || empty == rows || strstr(name, "histogram") || (empty && is_named_list(name))))
        return DSC_CELL_LIST;
    return integer ? DSC_CELL_INT : number ? DSC_CELL_REAL : DSC_CELL_TEXT;
}

static int parse_list(dsc_table *t, const char *s, dsc_cell *out, dsc_error *err)
{
    size_t n = *s ? 1 : 0;
    for (const char *p = s; *p; p++)
        n += *p == ';';
    const bool whole = is_whole(s);
    void *mem;
    int rc = dsc_arena_alloc(&t->arena, &mem, n, sizeof(int64_t), err);
    if (rc)
        return rc;
    int64_t *list = whole ? mem : NULL;
    double *reals = whole ? NULL : mem;
    for (size_t j = 0; j < n; j++) {
        char *end;
        if (whole)
            list[j] = strtoll(s, &end, 10);
        else
            reals[j] = dsc_strtod(s, &end);
        s = *end ? end + 1 : end;
    }
    out->list = list;
    out->reals = reals;
    out->i = (int64_t)n;
    return DSC_OK;
}

// Cuts `line` at tabs into field[0, limit); returns the number of fields found (may exceed limit).
static size_t split(char *line, char **field, size_t limit)
{
    size_t n = 0;
    for (char *p = line; p; n++) {
        char *tab = strchr(p, '\t');
        if (tab)
            *tab = '\0';
        if (n < limit)
            field[n] = p;
        p = tab ? tab + 1 : NULL;
    }
    return n;
}

// Removes one line from *rest; NULL at the end.
static char *next_line(char **rest)
{
    char *line = *rest;
    if (!line || !*line)
        return NULL;
    char *nl = strchr(line, '\n');
    if (nl) {
        *nl = '\0';
        if (nl > line && nl[-1] == '\r')
            nl[-1] = '\0';
    }
    *rest = nl ? nl + 1 : NULL;
    return line;
}

static int fill_tsv(dsc_table *t, char *const *field, size_t rows, char *const *name,
                    size_t columns, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t c = 0; c < columns && !rc; c++)
        rc = dsc_table_add_column(t, name[c], column_type(field, rows, columns, c, name[c]), NULL,
                                  err);
    for (size_t r = 0; r < rows && !rc; r++) {
        dsc_cell row[MAX_COLUMNS] = {{0}};
        for (size_t c = 0; c < columns && !rc; c++) {
            const char *s = field[r * columns + c];
            row[c].type = t->column[c].type;
            if (!*s && (row[c].type == DSC_CELL_INT || row[c].type == DSC_CELL_REAL)) {
                row[c] = dsc_cell_absent();
                continue;
            }
            switch (row[c].type) {
            case DSC_CELL_INT: row[c].i = strtoll(s, NULL, 10); break;
            case DSC_CELL_REAL:
                row[c].r = strcmp(s, "nan") ? dsc_strtod(s, NULL) : (double)NAN;
                break;
            case DSC_CELL_TEXT: row[c].text = s; break;
            case DSC_CELL_LIST: rc = parse_list(t, s, &row[c], err); break;
            }
        }
        if (!rc)
            rc = dsc_table_add_row(t, row, err);
    }
    return rc;
}

static int read_comment(dsc_table *t, char *line, dsc_error *err)
{
    char *key = line + 1 + (line[1] == ' '), *colon = strstr(key, ": ");
    if (!colon)
        return DSC_OK;
    *colon = '\0';
    // A key that is not UTF-8 was not written by this program.
    return dsc_bad_utf8(key, (int64_t)strlen(key)) < 0 ? dsc_table_comment(t, key, colon + 2, err)
                                                       : DSC_OK;
}

static int read_tsv(dsc_table *t, const char *path, char *text, dsc_error *err)
{
    char *line, *name[MAX_COLUMNS], **field = NULL;
    size_t columns = 0, rows = 0, capacity = 0, number = 0;
    int rc = DSC_OK;
    while (!rc && (line = next_line(&text))) {
        number++;
        if (*line == '#' && !columns) { // after the line of names '#' is text
            rc = read_comment(t, line, err);
        } else if (!columns) {
            columns = split(line, name, MAX_COLUMNS);
            t->first_line = number + 1;
            if (columns > MAX_COLUMNS)
                rc = dsc_fail(err, DSC_EINPUT, "%s:%zu: %zu columns, the limit is %d", path, number,
                              columns, MAX_COLUMNS);
        } else {
            rc = dsc_resize(&field, &capacity, (rows + 1) * columns, err);
            if (rc)
                break;
            size_t n = split(line, field + rows * columns, columns);
            if (n != columns)
                rc = dsc_fail(err, DSC_EINPUT, "%s:%zu: %zu fields, the header has %zu columns",
                              path, number, n, columns);
            rows++;
        }
    }
    if (!rc && !columns)
        rc = dsc_fail(err, DSC_EINPUT, "%s: no header line", path);
    if (!rc)
        rc = fill_tsv(t, field, rows, name, columns, err);
    free(field);
    return rc;
}

// Adds the columns of the first row object.
static int json_columns(dsc_table *t, json_t *row, dsc_error *err)
{
    const char *key;
    json_t *v;
    int rc = DSC_OK;
    json_object_foreach(row, key, v)
    {
        dsc_cell_type type = json_is_integer(v)  ? DSC_CELL_INT
                             : json_is_string(v) ? DSC_CELL_TEXT
                             : json_is_array(v)  ? DSC_CELL_LIST
                                                 : DSC_CELL_REAL;
        if (!rc)
            rc = dsc_table_add_column(t, key, type, NULL, err);
    }
    return rc;
}

static int json_cell(dsc_table *t, json_t *v, dsc_cell *c, dsc_error *err)
{
    bool fits = true;
    int rc = DSC_OK;
    switch (c->type) {
    case DSC_CELL_INT:
        fits = json_is_integer(v) || json_is_null(v);
        c->i = json_integer_value(v);
        if (json_is_null(v))
            *c = dsc_cell_absent();
        break;
    case DSC_CELL_REAL:
        fits = json_is_number(v) || json_is_null(v);
        c->r = json_is_number(v) ? json_number_value(v) : (double)NAN;
        break;
    case DSC_CELL_TEXT:
        fits = json_is_string(v);
        c->text = json_string_value(v);
        break;
    case DSC_CELL_LIST: {
        void *mem;
        fits = json_is_array(v);
        size_t n = json_array_size(v);
        rc = dsc_arena_alloc(&t->arena, &mem, n, sizeof(int64_t), err);
        if (rc)
            return rc;
        bool whole = true;
        for (size_t i = 0; i < n; i++) {
            fits = fits && json_is_number(json_array_get(v, i));
            whole = whole && json_is_integer(json_array_get(v, i));
        }
        for (size_t i = 0; i < n && whole; i++)
            ((int64_t *)mem)[i] = json_integer_value(json_array_get(v, i));
        for (size_t i = 0; i < n && !whole; i++)
            ((double *)mem)[i] = json_number_value(json_array_get(v, i));
        c->list = whole ? mem : NULL;
        c->reals = whole ? NULL : mem;
        c->i = (int64_t)n;
        break;
    }
    }
    return fits ? rc
                : dsc_fail(err, DSC_EINPUT,
                           "the value has another type than in the first row, so this is no result "
                           "table");
}

// Columns have the type of their first value, and a null is of a real number: makes a column of
// nulls one of integers at the first integer.
static void take_integer(dsc_table *t, size_t c)
{
    for (size_t r = 0; r < t->rows; r++)
        if (!isnan(dsc_table_at(t, r, c)->r))
            return;
    for (size_t r = 0; r < t->rows; r++)
        t->cell[r * t->columns + c] = dsc_cell_absent();
    t->column[c].type = DSC_CELL_INT;
}

static int json_row(dsc_table *t, json_t *row, dsc_error *err)
{
    dsc_cell cell[MAX_COLUMNS] = {{0}};
    int rc = DSC_OK;
    if (!t->columns)
        rc = json_columns(t, row, err);
    if (!rc && (!t->columns || t->columns > MAX_COLUMNS || json_object_size(row) != t->columns))
        rc = dsc_fail(err, DSC_EINPUT, "%zu fields, the first row has %zu (limit %d)",
                      json_object_size(row), t->columns, MAX_COLUMNS);
    for (size_t c = 0; c < t->columns && !rc; c++) {
        json_t *v = json_object_get(row, t->column[c].name);
        if (t->rows && t->column[c].type == DSC_CELL_REAL && v && json_is_integer(v))
            take_integer(t, c);
        cell[c].type = t->column[c].type;
        rc = v ? json_cell(t, v, &cell[c], err) : dsc_fail(err, DSC_EINPUT, "field is missing");
        if (rc)
            dsc_error_prefix(err, rc, "'%s'", t->column[c].name);
    }
    return rc ? rc : dsc_table_add_row(t, cell, err);
}

static int read_jsonl(dsc_table *t, const char *path, char *text, dsc_error *err)
{
    char *line;
    size_t number = 0;
    int rc = DSC_OK;
    while (!rc && (line = next_line(&text))) {
        json_error_t e;
        json_t *j, *head;
        rc = dsc_json_load(&j, line, strlen(line), 0, &e, err);
        number++;
        if (rc == DSC_EINPUT) {
            dsc_fail(err, rc, "%s", e.text);
        } else if (rc) {
            return rc;
        } else if (!json_is_object(j)) {
            rc = dsc_fail(err, DSC_EINPUT, "not a JSON object");
        } else if ((head = json_object_get(j, "#")) &&
                   (!json_is_object(head) || json_object_size(j) > 1)) {
            rc = dsc_fail(err, DSC_EINPUT, "the comments, \"#\", must be an object by themselves");
        } else if (head) {
            const char *key;
            json_t *v;
            json_object_foreach(head, key, v)
            {
                if (!rc && json_is_string(v))
                    rc = dsc_table_comment(t, key, json_string_value(v), err);
            }
        } else {
            t->first_line = t->rows ? t->first_line : number;
            rc = json_row(t, j, err);
        }
        json_decref(j);
        if (rc == DSC_EINPUT)
            dsc_error_prefix(err, rc, "%s:%zu", path, number);
    }
    return rc;
}

// Moves the meanings of the columns, read as comments `column NAME`, to the columns.
static void take_help(dsc_table *t)
{
    static const char mark[] = "column ";
    size_t kept = 0;
    for (size_t i = 0; i < t->comments; i++) {
        int c = strncmp(t->key[i], mark, sizeof mark - 1)
                    ? -1
                    : dsc_table_find(t, t->key[i] + sizeof mark - 1);
        if (c >= 0) {
            t->column[c].help = t->value[i];
            continue;
        }
        t->key[kept] = t->key[i];
        t->value[kept++] = t->value[i];
    }
    t->comments = kept;
}

// Checks that names can be written again in either form: UTF-8 without control characters, unique,
// and none that would turn the line of names into a comment or JSON.
static int check_names(const dsc_table *t, const char *path, dsc_error *err)
{
    for (size_t c = 0; c < t->columns; c++) {
        const char *name = t->column[c].name;
        bool fits =
            *name && *name != '#' && *name != '{' && dsc_bad_utf8(name, (int64_t)strlen(name)) < 0;
        for (const char *p = name; *p; p++)
            fits = fits && (unsigned char)*p >= ' ' && *p != 0x7f;
        if (!fits)
            return dsc_fail(err, DSC_EINPUT, "%s: '%.40s' cannot be the name of a column", path,
                            name);
        if ((size_t)dsc_table_find(t, name) != c)
            return dsc_fail(err, DSC_EINPUT, "%s: two columns '%.40s'", path, name);
    }
    return DSC_OK;
}

int dsc_table_read(dsc_table *t, const char *path, dsc_error *err)
{
    char *text;
    *t = (dsc_table){0};
    int rc = dsc_read_text(&text, path, MAX_BYTES, err);
    if (rc)
        return rc;
    if (*text == '{')
        rc = read_jsonl(t, path, text, err);
    else
        rc = read_tsv(t, path, text, err);
    free(text);
    if (!rc)
        rc = check_names(t, path, err);
    if (rc)
        dsc_table_fini(t);
    else
        take_help(t);
    return rc;
}

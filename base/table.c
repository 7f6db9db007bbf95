// SPDX-License-Identifier: Apache-2.0
// Result tables: building and writing, as TSV and as JSON lines; base/table.h.
#include "base/table.h"
#include "base/columns.h"
#include "base/number.h"

#include <float.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int keep(dsc_table *t, char **out, const char *text, dsc_error *err)
{
    size_t n = strlen(text) + 1;
    int rc = dsc_arena_new(&t->arena, out, n, err);
    if (!rc)
        memcpy(*out, text, n);
    return rc;
}

void dsc_table_fini(dsc_table *t)
{
    free(t->column);
    free(t->cell);
    free(t->key);
    free(t->value);
    dsc_arena_fini(&t->arena);
    *t = (dsc_table){0};
}

int dsc_table_comment(dsc_table *t, const char *key, const char *value, dsc_error *err)
{
    int rc = dsc_resize(&t->key, &t->key_capacity, t->comments + 1, err);
    if (!rc)
        rc = dsc_resize(&t->value, &t->value_capacity, t->comments + 1, err);
    if (!rc)
        rc = keep(t, &t->key[t->comments], key, err);
    if (!rc)
        rc = keep(t, &t->value[t->comments], value, err);
    if (!rc)
        t->comments++;
    return rc;
}

const char *dsc_table_get_comment(const dsc_table *t, const char *key)
{
    for (size_t i = 0; i < t->comments; i++)
        if (strcmp(t->key[i], key) == 0)
            return t->value[i];
    return NULL;
}

int dsc_table_add_column(dsc_table *t, const char *name, dsc_cell_type type, const char *help,
                         dsc_error *err)
{
    int rc = dsc_resize(&t->column, &t->column_capacity, t->columns + 1, err);
    if (rc)
        return rc;
    char *kept_name = NULL, *kept_help = NULL;
    rc = keep(t, &kept_name, name, err);
    if (!rc && help)
        rc = keep(t, &kept_help, help, err);
    if (!rc)
        t->column[t->columns++] = (dsc_column){kept_name, type, kept_help};
    return rc;
}

static int keep_cell(dsc_table *t, dsc_cell *c, dsc_error *err)
{
    int rc = DSC_OK;
    char *text;
    void *list;
    if (c->type == DSC_CELL_TEXT) {
        rc = keep(t, &text, c->text ? c->text : "", err);
        c->text = rc ? NULL : text;
    } else if (c->type == DSC_CELL_LIST) {
        const void *from = c->reals ? (const void *)c->reals : c->list;
        rc = dsc_arena_alloc(&t->arena, &list, (size_t)c->i, sizeof *c->list, err);
        if (!rc && c->i)
            memcpy(list, from,
                   (size_t)c->i * sizeof *c->list); // elements of either kind have 8 bytes
        c->list = rc || c->reals ? NULL : list;
        c->reals = rc || !c->reals ? NULL : list;
    }
    return rc;
}

int dsc_table_add_columns(dsc_table *t, const dsc_column *column, size_t count, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t c = 0; c < count && !rc; c++)
        rc = dsc_table_add_column(t, column[c].name, column[c].type, column[c].help, err);
    return rc;
}

int dsc_table_add_row(dsc_table *t, const dsc_cell *cells, dsc_error *err)
{
    int rc = dsc_resize(&t->cell, &t->cell_capacity, (t->rows + 1) * t->columns, err);
    dsc_cell *row = rc ? NULL : t->cell + t->rows * t->columns;
    for (size_t c = 0; c < t->columns && !rc; c++) {
        row[c] = cells[c];
        rc = keep_cell(t, &row[c], err);
    }
    if (!rc)
        t->rows++;
    return rc;
}

int dsc_table_find(const dsc_table *t, const char *name)
{
    for (size_t c = 0; c < t->columns; c++)
        if (strcmp(t->column[c].name, name) == 0)
            return (int)c;
    return -1;
}

const dsc_cell *dsc_table_at(const dsc_table *t, size_t row, size_t column)
{
    return &t->cell[row * t->columns + column];
}

double dsc_table_real(const dsc_table *t, size_t row, size_t column)
{
    const dsc_cell *c = dsc_table_at(t, row, column);
    return c->type == DSC_CELL_INT ? (double)c->i : c->type == DSC_CELL_REAL ? c->r : NAN;
}

static const char *text_at(const dsc_table *t, size_t row, const char *column)
{
    const int c = dsc_table_find(t, column);
    const dsc_cell *x = c < 0 ? NULL : dsc_table_at(t, row, (size_t)c);
    return x && x->type == DSC_CELL_TEXT ? x->text : "";
}

bool dsc_table_is_bound(const dsc_table *t, size_t row)
{
    const char *method = text_at(t, row, DSC_COL_METHOD);
    if (strncmp(method, "adaptive", strlen("adaptive")) == 0)
        return strcmp(text_at(t, row, "controller"), "oracle") == 0 ||
               strstr(text_at(t, row, "parameters"), "controller=oracle");
    if (strcmp(method, "recorded") == 0)
        return strcmp(text_at(t, row, "policy"), "oracle") == 0 ||
               strstr(text_at(t, row, "parameters"), "policy=oracle");
    return strcmp(method, "oracle") == 0;
}

void dsc_number_text(double x, char text[DSC_NUMBER_TEXT])
{
    if (isnan(x)) {
        memcpy(text, "nan", 4);
        return;
    }
    // Up to 15 digits survive the way to a double and back (DBL_DIG) unless it is subnormal, and %g
    // drops trailing zeros: if fewer digits are enough, 15 give the same text, and 10, not 1e+01.
    for (int digits = fabs(x) < DBL_MIN ? 1 : DBL_DIG; digits <= 17; digits++) {
        dsc_real_text(text, DSC_NUMBER_TEXT, digits, x);
        if (dsc_strtod(text, NULL) == x)
            return;
    }
}

// A TSV field contains no tab and no line end: both become a space.
static void write_plain(const char *s, FILE *f)
{
    for (; *s; s++)
        fputc(*s == '\t' || *s == '\n' || *s == '\r' ? ' ' : *s, f);
}

static void write_tsv_comment(const char *what, const char *key, const char *value, FILE *f)
{
    fprintf(f, "# %s", what);
    write_plain(key, f);
    fputs(": ", f);
    write_plain(value, f);
    fputc('\n', f);
}

void dsc_table_write_tsv_head(const dsc_table *t, FILE *f)
{
    for (size_t i = 0; i < t->comments; i++)
        write_tsv_comment("", t->key[i], t->value[i], f);
    for (size_t c = 0; c < t->columns; c++)
        if (t->column[c].help)
            write_tsv_comment("column ", t->column[c].name, t->column[c].help, f);
    for (size_t c = 0; c < t->columns; c++)
        fprintf(f, "%s%c", t->column[c].name, c + 1 < t->columns ? '\t' : '\n');
}

// JSON strings come from Jansson. Text that is not UTF-8 (a file name, for example) is printed with
// '?' for every non-ASCII byte.
static void write_json_string(const char *s, FILE *f)
{
    json_t *j = json_string(s);
    if (j) {
        json_dumpf(j, f, JSON_ENCODE_ANY);
        json_decref(j);
        return;
    }
    fputc('"', f);
    for (; *s; s++)
        fputc((unsigned char)*s < 0x20 || (unsigned char)*s > 0x7e || strchr("\"\\", *s) ? '?' : *s,
              f);
    fputc('"', f);
}

// Prints comment i as a member. Later comments with the same key (several sources) are joined to
// it, because an object has each name once.
static void write_json_comment(const dsc_table *t, size_t i, FILE *f)
{
    dsc_buffer joined = {0};
    int rc = dsc_buffer_puts(&joined, t->value[i], NULL);
    for (size_t j = i + 1; j < t->comments && !rc; j++)
        if (strcmp(t->key[i], t->key[j]) == 0)
            rc = dsc_buffer_printf(&joined, NULL, "; %s", t->value[j]);
    write_json_string(t->key[i], f);
    fputs(": ", f);
    write_json_string(rc ? t->value[i] : joined.data, f);
    dsc_buffer_fini(&joined);
}

static bool is_first(const dsc_table *t, size_t comment)
{
    for (size_t i = 0; i < comment; i++)
        if (strcmp(t->key[i], t->key[comment]) == 0)
            return false;
    return true;
}

void dsc_table_write_jsonl_head(const dsc_table *t, FILE *f)
{
    const char *separator = "";
    fputs("{\"#\": {", f);
    for (size_t i = 0; i < t->comments; i++) {
        if (!is_first(t, i))
            continue;
        fputs(separator, f);
        write_json_comment(t, i, f);
        separator = ", ";
    }
    for (size_t c = 0; c < t->columns; c++)
        if (t->column[c].help) { // column names need no escapes
            fprintf(f, "%s\"column %s\": ", separator, t->column[c].name);
            write_json_string(t->column[c].help, f);
            separator = ", ";
        }
    fputs("}}\n", f);
}

static void write_number(double x, FILE *f)
{
    char number[DSC_NUMBER_TEXT];
    dsc_number_text(x, number);
    fputs(number, f);
}

// A number as JSON has it: null for a NaN, and with a point, which keeps it real for the reader.
static void write_json_number(double x, FILE *f)
{
    char number[DSC_NUMBER_TEXT];
    dsc_number_text(x, number);
    fputs(isfinite(x) ? number : "null", f);
    if (isfinite(x) && !strpbrk(number, ".e"))
        fputs(".0", f);
}

static void write_list(const dsc_cell *c, char separator, FILE *f)
{
    for (int64_t j = 0; j < c->i; j++) {
        if (j)
            fputc(separator, f);
        if (c->reals)
            write_number(c->reals[j], f);
        else
            fprintf(f, "%" PRId64, c->list[j]);
    }
}

static void write_cell(const dsc_cell *x, bool json, FILE *f)
{
    if (x->absent) {
        fputs(json ? "null" : "", f);
        return;
    }
    switch (x->type) {
    case DSC_CELL_INT: fprintf(f, "%" PRId64, x->i); break;
    case DSC_CELL_REAL: (json ? write_json_number : write_number)(x->r, f); break;
    case DSC_CELL_TEXT: (json ? write_json_string : write_plain)(x->text, f); break;
    case DSC_CELL_LIST:
        fputs(json ? "[" : "", f);
        write_list(x, json ? ',' : ';', f);
        fputs(json ? "]" : "", f);
        break;
    }
}

void dsc_table_write_tsv_row(const dsc_table *t, size_t row, FILE *f)
{
    for (size_t c = 0; c < t->columns; c++) {
        write_cell(dsc_table_at(t, row, c), false, f);
        fputc(c + 1 < t->columns ? '\t' : '\n', f);
    }
}

void dsc_table_write_jsonl_row(const dsc_table *t, size_t row, FILE *f)
{
    fputc('{', f);
    for (size_t c = 0; c < t->columns; c++) {
        fputs(c ? ", " : "", f);
        write_json_string(t->column[c].name, f);
        fputs(": ", f);
        write_cell(dsc_table_at(t, row, c), true, f);
    }
    fputs("}\n", f);
}

// SPDX-License-Identifier: Apache-2.0
// Result tables, the one format that commands print, figures draw and reports show.
//
// A table is a list of comment lines (`# key: value`: version, command, seed, trace hash), named
// typed columns and rows. It is written as TSV (comments, header, rows) or JSON lines (an object
// per row; the comments as a first object {"#": {...}}), and read back from both. The meaning of
// each column is in the table too, as a comment `# column NAME: meaning`.
#ifndef DSC_BASE_TABLE_H
#define DSC_BASE_TABLE_H

#include "base/cell.h"
#include "base/memory.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

// A cell with a value; its text stays the caller's.
static inline dsc_cell dsc_cell_int(int64_t i)
{
    return (dsc_cell){.type = DSC_CELL_INT, .i = i};
}

static inline dsc_cell dsc_cell_real(double r)
{
    return (dsc_cell){.type = DSC_CELL_REAL, .r = r};
}

// Without a value; `i` is that of no other cell.
static inline dsc_cell dsc_cell_absent(void)
{
    return (dsc_cell){.type = DSC_CELL_REAL, .r = NAN, .i = INT64_MIN, .absent = true};
}

static inline dsc_cell dsc_cell_text(const char *s)
{
    return (dsc_cell){.type = DSC_CELL_TEXT, .text = s};
}

typedef struct dsc_table {
    dsc_column *column;
    size_t columns, column_capacity;
    dsc_cell *cell; // [rows][columns]
    size_t rows, cell_capacity;
    char **key, **value; // [comments]
    size_t comments, key_capacity, value_capacity;
    size_t first_line; // of a table that was read: the file line of row 0; each row is one line
    dsc_arena arena;   // strings and lists
} dsc_table;           // zero-initialize; dsc_table_fini frees

void dsc_table_fini(dsc_table *t);
int dsc_table_comment(dsc_table *t, const char *key, const char *value, dsc_error *err);
const char *dsc_table_get_comment(const dsc_table *t, const char *key); // or NULL
// All columns are added before the first row. Name and help are copied.
int dsc_table_add_column(dsc_table *t, const char *name, dsc_cell_type type, const char *help,
                         dsc_error *err);
int dsc_table_add_columns(dsc_table *t, const dsc_column *column, size_t count, dsc_error *err);
// Adds one row: `cells` has t->columns values of the columns' types. Texts and lists are copied.
int dsc_table_add_row(dsc_table *t, const dsc_cell *cells, dsc_error *err);

int dsc_table_find(const dsc_table *t, const char *name); // column index or -1
const dsc_cell *dsc_table_at(const dsc_table *t, size_t row, size_t column);
double dsc_table_real(const dsc_table *t, size_t row,
                      size_t column); // INT or REAL, else NaN

// Whether a row is of a method that sees what will be accepted (method oracle, recorded with policy
// oracle, adaptive methods with controller oracle): an upper bound, which cannot be run.
bool dsc_table_is_bound(const dsc_table *t, size_t row);

// Writers. Numbers are printed as the shortest text that reads back as the same double. Write
// errors are left to the caller, who owns the stream and checks it once.
void dsc_table_write_tsv_head(const dsc_table *t, FILE *f); // comments and header line
void dsc_table_write_tsv_row(const dsc_table *t, size_t row, FILE *f);
void dsc_table_write_jsonl_head(const dsc_table *t, FILE *f);
void dsc_table_write_jsonl_row(const dsc_table *t, size_t row, FILE *f);

// The shortest decimal text of a number that reads back as the same double ("nan" for NaN).
enum { DSC_NUMBER_TEXT = 40 };
void dsc_number_text(double x, char text[DSC_NUMBER_TEXT]);

// Reads a whole table (TSV or JSON lines; the first byte decides). A TSV column is INT when every
// value is an integer, REAL when every value is a number, LIST when every value is numbers >= 0
// joined by ';' and at least one has a ';', else TEXT. Empty fields among numbers, and nulls among
// integers of JSON, are absent cells; they are empty lists in columns named as lists. DSC_EINPUT
// names file and line.
int dsc_table_read(dsc_table *t, const char *path, dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// Numbered rows of a result in TSV: their head, keys and cells (sim/sweep/row_table.h).
#include "sim/sweep/row_table.h"

#include "base/number.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const dsc_column keys[] = {
    {"unit", DSC_CELL_INT, "number of the run that the row belongs to, from 0"},
    {"rows_left", DSC_CELL_INT, "rows of the run that follow this one"},
};
enum { KEYS = sizeof keys / sizeof *keys };

static const char *const type_name[] = {[DSC_CELL_INT] = "int",
                                        [DSC_CELL_REAL] = "real",
                                        [DSC_CELL_TEXT] = "text",
                                        [DSC_CELL_LIST] = "list"};

// --- head ----------------------------------------------------------------------------------------

static int list_types(const dsc_table *head, dsc_buffer *types, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t c = 0; c < head->columns && !rc; c++)
        rc = dsc_buffer_printf(types, err, "%s%s", c ? " " : "", type_name[head->column[c].type]);
    return rc;
}

static int add_columns(dsc_table *t, const dsc_table *head, dsc_error *err)
{
    return dsc_table_add_columns(t, head->column, head->columns, err);
}

int dsc_row_table_head(const dsc_table *head, const dsc_split *split, FILE *f, dsc_error *err)
{
    char text[DSC_SPLIT_TEXT];
    dsc_buffer types = {0};
    dsc_table t = {0};
    int rc = list_types(head, &types, err);
    for (size_t i = 0; i < head->comments && !rc; i++)
        rc = dsc_table_comment(&t, head->key[i], head->value[i], err);
    dsc_split_text(split, text);
    if (!rc)
        rc = dsc_table_comment(&t, "split", text, err);
    if (!rc)
        rc = dsc_table_comment(&t, DSC_ROW_TYPES, types.data, err);
    if (!rc)
        rc = dsc_table_add_columns(&t, keys, KEYS, err);
    if (!rc)
        rc = add_columns(&t, head, err);
    if (!rc)
        dsc_table_write_tsv_head(&t, f);
    dsc_table_fini(&t);
    dsc_buffer_fini(&types);
    return rc;
}

int dsc_row_table_result(dsc_table *result, const dsc_table *head, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = 0; i < head->comments && !rc; i++)
        if (strncmp(head->key[i], DSC_ROW_SHARD, strlen(DSC_ROW_SHARD)) != 0)
            rc = dsc_table_comment(result, head->key[i], head->value[i], err);
    return rc ? rc : add_columns(result, head, err);
}

// The type that stands before a space or the end; *text moves after it.
static bool take_type(const char **text, dsc_cell_type *type)
{
    const size_t n = strcspn(*text, " ");
    for (size_t i = 0; i < sizeof type_name / sizeof *type_name; i++)
        if (type_name[i] && strlen(type_name[i]) == n && !memcmp(*text, type_name[i], n)) {
            *type = (dsc_cell_type)i;
            *text += n + ((*text)[n] == ' ');
            return true;
        }
    return false;
}

static int add_column(dsc_table *head, const dsc_table *more, const char *name, size_t length,
                      dsc_cell_type type, dsc_error *err)
{
    static const char column[] = "column ";
    char *key;
    int rc = dsc_new(&key, sizeof column + length, err);
    if (rc)
        return rc;
    memcpy(key, column, sizeof column - 1);
    memcpy(key + sizeof column - 1, name, length);
    key[sizeof column - 1 + length] = '\0';
    rc = dsc_table_add_column(head, key + sizeof column - 1, type, dsc_table_get_comment(more, key),
                              err);
    free(key);
    return rc;
}

int dsc_row_table_columns(dsc_table *head, const dsc_table *more, const char *line, size_t length,
                          bool *found, dsc_error *err)
{
    static const char begin[] = "unit\trows_left\t";
    const char *types = dsc_table_get_comment(more, DSC_ROW_TYPES);
    const char *at = line + sizeof begin - 1, *end = line + length;
    dsc_cell_type type = DSC_CELL_TEXT;
    int rc = DSC_OK;
    *found = types && length >= sizeof begin && !memcmp(line, begin, sizeof begin - 1);
    for (bool column = *found; column && !rc;) {
        const char *tab = memchr(at, '\t', (size_t)(end - at));
        const size_t n = (size_t)((tab ? tab : end) - at);
        if (!n || memchr(at, '\0', n) || !take_type(&types, &type))
            return dsc_fail(err, DSC_EINPUT,
                            "the comment " DSC_ROW_TYPES " does not have a type for each column");
        rc = add_column(head, more, at, n, type, err);
        at += n + 1;
        column = tab != NULL;
    }
    if (!rc && *found && *types)
        rc = dsc_fail(err, DSC_EINPUT, "the comment " DSC_ROW_TYPES " has more types than columns");
    return rc;
}

// --- rows ----------------------------------------------------------------------------------------

void dsc_row_table_row(const dsc_table *t, size_t row, int64_t unit, int64_t left, FILE *f)
{
    fprintf(f, "%" PRId64 "\t%" PRId64 "\t", unit, left);
    dsc_table_write_tsv_row(t, row, f);
}

bool dsc_row_table_keys(const char *line, size_t length, int64_t *unit, int64_t *left,
                        size_t *begin)
{
    enum { MOST = 1 << 30 };
    int64_t *const key[KEYS] = {unit, left};
    size_t at = 0;
    for (int k = 0; k < KEYS; k++) {
        const size_t first = at;
        for (*key[k] = 0; at < length && isdigit((unsigned char)line[at]); at++) {
            *key[k] = 10 * *key[k] + (line[at] - '0');
            if (*key[k] > MOST)
                return false;
        }
        if (at == first || at == length || line[at++] != '\t')
            return false;
    }
    *begin = at;
    return true;
}

// Whole numbers unless one of them is not. The list ends with the text.
static int read_list(char *text, dsc_arena *arena, dsc_cell *cell, dsc_error *err)
{
    const bool real = text[strspn(text, "-0123456789;")] != '\0';
    int64_t *number;
    double *fraction;
    size_t count = *text != '\0', i = 0;
    for (const char *p = text; *p; p++)
        count += *p == ';';
    int rc = dsc_arena_new(arena, &number, count, err);
    if (!rc)
        rc = dsc_arena_new(arena, &fraction, count, err);
    for (char *end = text; i < count && !rc; text = end + 1, i++) {
        if (real)
            fraction[i] = dsc_strtod(text, &end);
        else
            number[i] = strtoll(text, &end, 10);
        if (end == text || isspace((unsigned char)*text) || *end != (i + 1 < count ? ';' : '\0'))
            rc = dsc_fail(err, DSC_EINPUT, "'%.60s' is not a list of numbers", text);
    }
    *cell = (dsc_cell){.type = DSC_CELL_LIST, .i = (int64_t)count};
    if (!rc && real)
        cell->reals = fraction;
    else if (!rc)
        cell->list = number;
    return rc;
}

static int read_number(dsc_cell_type type, char *text, dsc_cell *cell, dsc_error *err)
{
    char *end = text;
    *cell = !*text                 ? dsc_cell_absent()
            : type == DSC_CELL_INT ? dsc_cell_int(strtoll(text, &end, 10))
                                   : dsc_cell_real(dsc_strtod(text, &end));
    return !*text || (end != text && !*end && !isspace((unsigned char)*text))
               ? DSC_OK
               : dsc_fail(err, DSC_EINPUT, "'%.60s' is not a number", text);
}

int dsc_row_table_cells(const dsc_table *head, char *text, dsc_arena *arena, dsc_cell *cell,
                        dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t c = 0; c < head->columns && !rc; c++) {
        const dsc_cell_type type = head->column[c].type;
        char *end = text + strcspn(text, "\t");
        const bool last = !*end;
        *end = '\0';
        if (last != (c + 1 == head->columns))
            return dsc_fail(err, DSC_EINPUT, "the row does not have %zu cells", head->columns);
        if (type == DSC_CELL_TEXT)
            cell[c] = dsc_cell_text(text);
        else
            rc = type == DSC_CELL_LIST ? read_list(text, arena, &cell[c], err)
                                       : read_number(type, text, &cell[c], err);
        text = end + 1;
    }
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
// Finds the units in tables of numbered rows, and writes their rows as the result.
#include "sim/sweep/row_units.h"

#include "sim/sweep/row_table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int dsc_row_units_init(dsc_row_units *u, int64_t units, dsc_error *err)
{
    *u = (dsc_row_units){0};
    int rc = dsc_new(&u->unit, (size_t)units, err);
    u->count = rc ? 0 : (size_t)units;
    return rc;
}

void dsc_row_units_fini(dsc_row_units *u)
{
    free(u->unit);
    *u = (dsc_row_units){0};
}

static int bad_row(const dsc_shard_reader *r, const char *what, dsc_error *err)
{
    return dsc_fail(err, DSC_EINPUT, "%s:%" PRId64 ": %s", r->path, r->line, what);
}

int dsc_row_units_read(dsc_row_units *u, dsc_shard_reader *r, size_t *end, dsc_error *err)
{
    const char *line, *first = NULL;
    size_t length, begin;
    int64_t unit, left, current = -1, expected = 0;
    *end = r->at;
    while (dsc_shard_reader_line(r, &line, &length)) {
        if (memchr(line, '\0', length) || !dsc_row_table_keys(line, length, &unit, &left, &begin) ||
            unit >= (int64_t)u->count)
            return bad_row(r,
                           "the line does not begin with the number of a run and of the rows "
                           "that follow",
                           err);
        if (current < 0)
            first = line;
        else if (unit != current || left != expected)
            return bad_row(r, "rows of the run before this line are missing", err);
        current = left ? unit : -1;
        expected = left - 1;
        if (left)
            continue;
        u->unit[unit] = (dsc_row_unit){first, (size_t)(line + length + 1 - first)};
        *end = r->at;
    }
    return DSC_OK;
}

void dsc_row_memory_fini(dsc_row_memory *m)
{
    dsc_buffer_fini(&m->text);
    dsc_arena_fini(&m->arena);
}

static int copy_cells(const char *line, size_t length, const dsc_table *head, dsc_row_memory *m,
                      dsc_cell *cell, dsc_error *err)
{
    int64_t unit, left;
    size_t begin = 0;
    (void)dsc_row_table_keys(line, length, &unit, &left, &begin);
    m->text.length = 0;
    dsc_arena_reset(&m->arena);
    int rc = dsc_buffer_append(&m->text, line + begin, length - begin, err);
    if (!rc)
        rc = dsc_row_table_cells(head, m->text.data, &m->arena, cell, err);
    return rc ? dsc_error_prefix(err, rc, "run %" PRId64, unit) : DSC_OK;
}

int dsc_row_units_last(const dsc_row_unit *unit, const dsc_table *head, dsc_row_memory *memory,
                       dsc_cell *cell, dsc_error *err)
{
    const char *end = unit->text + unit->bytes - 1, *line = end;
    while (line > unit->text && line[-1] != '\n')
        line--;
    return copy_cells(line, (size_t)(end - line), head, memory, cell, err);
}

// Writes the line of the last row whose cells were read.
static void write_line(const char *line, size_t length, bool keys, FILE *f)
{
    int64_t unit, left;
    size_t begin = 0;
    if (!keys)
        (void)dsc_row_table_keys(line, length, &unit, &left, &begin);
    fwrite(line + begin, 1, length + 1 - begin, f);
}

int dsc_row_units_write(const dsc_row_units *u, const dsc_table *head, bool keys, bool jsonl,
                        FILE *f, dsc_error *err)
{
    dsc_row_memory memory = {0};
    dsc_table one = *head; // with a row of its own
    int rc = dsc_new(&one.cell, head->columns, err);
    one.rows = 1;
    for (size_t i = 0; i < u->count && !rc; i++) {
        const char *line = u->unit[i].text, *end = line ? line + u->unit[i].bytes : NULL;
        for (size_t n; line < end && !rc; line += n + 1) {
            n = (size_t)((const char *)memchr(line, '\n', (size_t)(end - line)) - line);
            rc = copy_cells(line, n, head, &memory, one.cell, err);
            if (!rc && jsonl)
                dsc_table_write_jsonl_row(&one, 0, f);
            else if (!rc)
                write_line(line, n, keys, f);
        }
    }
    dsc_row_memory_fini(&memory);
    free(one.cell);
    return rc;
}

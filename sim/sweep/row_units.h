// SPDX-License-Identifier: Apache-2.0
// The units of a result in tables of numbered rows (sim/sweep/row_table.h): where they are, and the
// result that they make together.
#ifndef DSC_SIM_ROW_UNITS_H
#define DSC_SIM_ROW_UNITS_H

#include "sim/sweep/shard_table.h"

// Lines [text, text + bytes) in the map of a reader; NULL: the unit was not found.
typedef struct dsc_row_unit {
    const char *text;
    size_t bytes;
} dsc_row_unit;

typedef struct dsc_row_units {
    dsc_row_unit *unit; // [count]
    size_t count;
} dsc_row_units; // zero-initialize

int dsc_row_units_init(dsc_row_units *u, int64_t units, dsc_error *err);
void dsc_row_units_fini(dsc_row_units *u);

// Reads the rows of a reader, which stays open while the units are used. The last copy of a unit
// counts. *end: where the last whole unit ends; the rows of the one after it may be missing.
// DSC_EINPUT: a line is not a row of a unit.
int dsc_row_units_read(dsc_row_units *u, dsc_shard_reader *r, size_t *end, dsc_error *err);

// Memory of the cells of one row. Zero-initialize.
typedef struct dsc_row_memory {
    dsc_buffer text;
    dsc_arena arena;
} dsc_row_memory;
void dsc_row_memory_fini(dsc_row_memory *m);

// The cells of the last row of a unit, cell[head->columns], until the memory is used again.
int dsc_row_units_last(const dsc_row_unit *unit, const dsc_table *head, dsc_row_memory *memory,
                       dsc_cell *cell, dsc_error *err);

// Writes the rows of all units that were found, in their order: as rows of the result, or, with
// `keys`, as rows of a table of numbered rows.
int dsc_row_units_write(const dsc_row_units *u, const dsc_table *head, bool keys, bool jsonl,
                        FILE *f, dsc_error *err);

#endif

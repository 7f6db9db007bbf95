// SPDX-License-Identifier: Apache-2.0
// A file of numbered rows (sim/sweep/row_table.h) that grows as units are finished, in any order,
// and can be resumed after an interruption at any moment: PATH.part. When all units are there, PATH
// gets them in their order, as the result or as the table of a shard, by way of PATH.part.sorted.
#ifndef DSC_SIM_ROW_FILE_H
#define DSC_SIM_ROW_FILE_H

#include "sim/sweep/part_file.h"
#include "sim/sweep/split.h"

#include "base/table.h"

typedef struct dsc_row_file {
    dsc_part_file file;
    const dsc_table *head; // comments and columns of the result, the caller's
    dsc_split split;       // its configurations are the units
    double synced_s;       // when the file was last written to disk
} dsc_row_file;            // zero-initialize; dsc_row_file_close frees

// Takes the cells of the last row of a unit that is complete on disk.
typedef int dsc_row_file_take(void *user, size_t unit, const dsc_cell *cell, dsc_error *err);

// Opens PATH.part, or resumes it: `take` gets every complete unit. DSC_EUSAGE: as
// dsc_part_file_open, or PATH.part is of a different sweep.
int dsc_row_file_open(dsc_row_file *f, const char *path, bool force, const dsc_table *head,
                      const dsc_split *split, dsc_row_file_take *take, void *user, dsc_error *err);

// Writes rows [0, rows->rows) of a unit, of which `left` more follow in further calls, before those
// of another unit. A unit that is written again replaces its former rows. Rows survive the process
// after dsc_row_file_flush, and the machine a second later.
int dsc_row_file_add(dsc_row_file *f, int64_t unit, const dsc_table *rows, int64_t left,
                     dsc_error *err);
int dsc_row_file_flush(dsc_row_file *f, dsc_error *err);

// Writes PATH and removes PATH.part. `shard`: as the table of a shard, for dsc_merge; otherwise as
// the result, with `jsonl` as JSON lines.
int dsc_row_file_finish(dsc_row_file *f, bool shard, bool jsonl, dsc_error *err);
// Without `keep`, PATH.part is removed. Harmless after dsc_row_file_finish.
void dsc_row_file_close(dsc_row_file *f, bool keep);

#endif

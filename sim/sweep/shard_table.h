// SPDX-License-Identifier: Apache-2.0
// The counts of one shard of a sweep: a table with a row for each configuration, group of requests
// (sweep --by) and block of requests, in the order of the shard's cells (sim/sweep/split.h). Its
// comments are those of the result table and `split`. Counts are integers, so sums do not depend on
// the division. Expectations are doubles, and their single block contains all requests.
#ifndef DSC_SIM_SHARD_TABLE_H
#define DSC_SIM_SHARD_TABLE_H

#include "base/table.h"
#include "sim/counts.h"
#include "sim/sweep/split.h"

#include <stdbool.h>

// Adds the columns, and one row.
int dsc_shard_columns(dsc_table *t, dsc_error *err);
int dsc_shard_row(dsc_table *t, int64_t configuration, int64_t group, int64_t request,
                  const dsc_counts *counts, dsc_error *err);

// Sums for each configuration and group. Their lists grow with the rows that are added.
typedef struct dsc_sums {
    dsc_counts *counts; // [configurations][each]
    size_t count;
    size_t each; // 1 + groups
} dsc_sums;
int dsc_sums_init(dsc_sums *s, size_t configurations, size_t groups, dsc_error *err);
void dsc_sums_fini(dsc_sums *s);
int dsc_sums_add(dsc_counts *sum, const dsc_counts *x, dsc_error *err);

// Reads such a table; its end may be missing.
typedef struct dsc_shard_reader {
    const char *path; // the caller's
    void *map;
    size_t bytes, at;
    int64_t line;   // the line that was read last, from 1
    bool begun;     // the table has its header line
    bool numbered;  // it has numbered rows of a result (sim/sweep/row_table.h) and not counts
    dsc_table head; // comments without `split` and `types`; with numbered rows the columns, too
    dsc_table more; // `types`, and the help of columns
    dsc_split split;
    int64_t *number; // of the lists of a row
    size_t capacity;
    double *real; // of its expectations
    size_t real_capacity;
} dsc_shard_reader; // zero-initialize

// Reads the comments and the header line, of a table of counts or of numbered rows. DSC_EINPUT:
// it is neither.
int dsc_shard_reader_open(dsc_shard_reader *r, const char *path, dsc_error *err);
void dsc_shard_reader_close(dsc_shard_reader *r);
// The next line without its end; false after the last complete one.
bool dsc_shard_reader_line(dsc_shard_reader *r, const char **line, size_t *length);
// Reads the rows of a cell, with `groups` groups of requests, and adds them unless `sums` is NULL.
// *whole: false when the table ends before the last of them. DSC_EINPUT: a row of another cell, or
// a malformed row.
int dsc_shard_reader_cell(dsc_shard_reader *r, const dsc_cell_range *cell, size_t groups,
                          dsc_sums *sums, bool *whole, dsc_error *err);
// Returns whether all lines were read.
bool dsc_shard_reader_ended(const dsc_shard_reader *r);

#endif

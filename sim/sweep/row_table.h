// SPDX-License-Identifier: Apache-2.0
// A result table whose rows are computed in units, in any order and by several processes. A unit of
// draftscope serve is the run of a method under a load; it has one row, or one for each request.
//
// On disk it is the result in TSV with two columns before its own: the number of the row's unit,
// from 0, and the number of rows of the unit that follow. Its comments are those of the result,
// `split` (sim/sweep/split.h, whose configurations are the units), `types` of the columns, and
// those that begin with "shard_", by which two such tables are recognized as parts of one result.
#ifndef DSC_SIM_ROW_TABLE_H
#define DSC_SIM_ROW_TABLE_H

#include "base/table.h"
#include "sim/sweep/split.h"

#define DSC_ROW_TYPES "types"
#define DSC_ROW_SHARD "shard_"

// Writes comments, columns and the header line. `head`: comments and columns of the result, and
// comments that begin with DSC_ROW_SHARD.
int dsc_row_table_head(const dsc_table *head, const dsc_split *split, FILE *f, dsc_error *err);
// Writes row `row` of `t`, which has the columns of the result.
void dsc_row_table_row(const dsc_table *t, size_t row, int64_t unit, int64_t left, FILE *f);

// Adds the columns that line[0, length) names, if it is the header line of such a table, to `head`.
// `more`: the comment `types`, and "column NAME" for the help of each column. *found: whether it is
// one. DSC_EINPUT: it is one, and the types are not those of its columns.
int dsc_row_table_columns(dsc_table *head, const dsc_table *more, const char *line, size_t length,
                          bool *found, dsc_error *err);

// Reads the two numbers; *begin: where the first cell of the result begins. False: there are none.
bool dsc_row_table_keys(const char *line, size_t length, int64_t *unit, int64_t *left,
                        size_t *begin);
// Reads the cells of a row of the result, cell[head->columns], from a NUL-terminated text, which is
// changed. The cells point into it and, with their lists, into the arena. DSC_EINPUT: it is not
// such a row.
int dsc_row_table_cells(const dsc_table *head, char *text, dsc_arena *arena, dsc_cell *cell,
                        dsc_error *err);

// Copies what the result has of `head`: all comments but those that begin with DSC_ROW_SHARD.
int dsc_row_table_result(dsc_table *result, const dsc_table *head, dsc_error *err);

#endif

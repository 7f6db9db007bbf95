// SPDX-License-Identifier: Apache-2.0
// Several result tables as one: what a figure compares need not stand in one file.
#ifndef DSC_PLOTS_JOIN_H
#define DSC_PLOTS_JOIN_H

#include "base/table.h"

// Reads `n` >= 1 tables; what `draftscope trace info --json` printed is one too, see below. A
// single table comes as it is, several are joined. DSC_EINPUT: as dsc_table_read.
DSC_API int dsc_read_tables(dsc_table *t, const char *const *path, size_t n, dsc_error *err);

// The rows of n >= 1 tables below each other, in the columns of all of them, parameters first. A
// parameter that a table does not have is NaN, "" or an empty list. Comments that all agree in are
// kept; of those that differ, `command` is kept once for each table, and those without which rows
// cannot be compared become columns: trace_hash (cut to 12 digits), model, draft, middle,
// temperature and cost. DSC_EINPUT:
// a column holds lists in one table and texts in another.
DSC_API int dsc_join_tables(dsc_table *out, const dsc_table *const *in, size_t n, dsc_error *err);

// The object of `trace info --json`: a row for the recorded steps and for each drafter, of all
// requests (group "all") and of each group (--by), with the columns trace, group, source, and two
// lists: accept_histogram, and conditional_acceptance_reached, the cases that drafted position 1,
// 2, ... and accepted all before it. DSC_EINPUT: not such an object, or one without conditional
// acceptance rates.
DSC_API int dsc_read_trace_info(dsc_table *t, const char *text, dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// Joins several result tables into one, so that a figure can compare rows of different files.
#ifndef DSC_PLOTS_JOIN_H
#define DSC_PLOTS_JOIN_H

#include "base/table.h"

#include <stdbool.h>

// Reads `n` >= 1 tables; the output of `draftscope trace info --json` also counts as one (see
// below). A single table is returned unchanged, several are joined. DSC_EINPUT: as dsc_table_read.
int dsc_read_tables(dsc_table *t, const char *const *path, size_t n, dsc_error *err);

// Whether a file is a JSON object over several lines: the first contains only "{". A table of JSON
// lines is not.
bool dsc_is_json_object(const char *path);

// Concatenates the rows of n >= 1 tables. The result has the columns of all of them, parameters
// first; a value that a table lacks is NaN, "" or an empty list. Comments that all tables share are
// kept. `command`, if it differs, is kept once per table. Comments that identify the run become
// columns if they differ: warmup, trace_hash (cut to 12 digits), target, draft, middle, temperature
// and cost. DSC_EINPUT: a column contains lists in one table and text in another.
int dsc_join_tables(dsc_table *out, const dsc_table *const *in, size_t n, dsc_error *err);

// Reads the object of `trace info --json`. There is one row for the recorded steps and one per
// drafter, for all requests (group "all") and for each group (--by). The columns are trace, group,
// source, and two lists: accept_histogram, and conditional_acceptance_reached, the number of cases
// that drafted position 1, 2, ... and accepted every earlier one. DSC_EINPUT: it is not such an
// object, or it contains no conditional acceptance rates.
int dsc_read_trace_info(dsc_table *t, const char *text, dsc_error *err);

#endif

// SPDX-License-Identifier: Apache-2.0
// Resumes the part file of a shard, or of rows that are computed in any order, after an
// interruption at any moment.
#ifndef DSC_SIM_RESUME_H
#define DSC_SIM_RESUME_H

#include "sim/sweep/part_file.h"
#include "sim/sweep/shard_table.h"

// Returns whether the heads of two tables are of one sweep: all but the command is the same.
bool dsc_resume_same(const dsc_table *a, const dsc_table *b);

// Opens an open part file as a table of the shard `split` whose comments and columns are those of
// `head`. *fresh: it is empty now, because it was or had no complete head; then the reader is not
// open. DSC_EUSAGE: it is of a different sweep.
int dsc_resume_shard(dsc_part_file *f, const dsc_table *head, const dsc_split *split,
                     dsc_shard_reader *r, bool *fresh, dsc_error *err);

#endif

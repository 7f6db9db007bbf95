// SPDX-License-Identifier: Apache-2.0
// Adds the tables of all shards of a sweep up to the result table, or puts the rows of all shards
// of draftscope serve into their order. It is byte for byte the table that one process writes.
#ifndef DSC_SIM_MERGE_H
#define DSC_SIM_MERGE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dsc_merge_options {
    const char *version; // of this program: tables of another one are refused
    bool force;          // replace an existing result
    bool jsonl;          // JSON lines instead of TSV
    int (*progress)(void *user, int64_t done, int64_t total); // tables; nonzero stops. May be NULL
    void *user;
} dsc_merge_options;

// Tables may come in any order. The result has the command and trace of shard 1, because other
// shards may have read the same trace from another path. DSC_EUSAGE: a shard is missing or given
// twice, or the tables are not of one sweep (trace hash, seed, grid, cost, version, division).
// DSC_EINPUT: a table is unfinished or malformed.
int dsc_merge(const char *const *part, size_t count, const char *path,
              const dsc_merge_options *options, dsc_error *err);

#endif
